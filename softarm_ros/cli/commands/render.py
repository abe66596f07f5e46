"""The command `softarm render`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softarm_ros.cli.options import SetOption, command_app

app = command_app()

_ANIMATION_S = 6.0


@app.command(
    epilog='Examples:  softarm render pam_arm --output pam.png   |   '
    'softarm render cable_arm --trajectory circle --output circle.gif   |   '
    'softarm render run_bag --output run.mp4'
)
def render(
    what: Annotated[
        str,
        typer.Argument(
            metavar='RIG|BAG', help='Rig, simulated in closed loop, or folder of a recorded bag.'
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(metavar='FILE', help='.png: a few moments; .gif or .mp4: an animation.'),
    ],
    trajectory: Annotated[
        str | None,
        typer.Option(metavar='NAME|FILE', help='Trajectory of the rig, or a YAML file.'),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(min=0.2, max=600.0, help='Duration of an animation; 6 s by default.'),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help='Seed of every random number of a simulated run; 0 by default.'),
    ] = None,
    rig: Annotated[
        str | None,
        typer.Option(metavar='RIG', help='Rig for the bag, instead of the recorded one.'),
    ] = None,
    *,
    settings: SetOption,
) -> None:
    """Draw an arm in motion, simulated or from a bag: a picture, a GIF or a video."""
    from softarm_ros.cli.cli_errors import UsageError
    from softarm_ros.cli.motion import film, film_of_bag
    from softarm_ros.cli.recorded_rig import rig_of_bag, rig_without_bag
    from softarm_ros.cli.render import check_output
    from softarm_ros.cli.render import render as write
    from softarm_ros.home_path import expand_home
    from softarm_ros.nodes.bag_messages import is_bag
    from softarm_ros.whole_file import require_writable

    check_output(output)
    require_writable(output)
    if seconds is not None and output.suffix.lower() == '.png':
        raise UsageError(f'--seconds {seconds:g}: a picture has no duration; drop --seconds')
    folder = expand_home(what, '')
    if is_bag(folder):
        if trajectory is not None:
            raise UsageError(f'--trajectory {trajectory}: a bag already holds its trajectory')
        if seed is not None:
            raise UsageError(f'--seed {seed}: a bag already holds its run; drop --seed')
        arm, which = rig_of_bag(folder, rig, settings)
        typer.echo(f'rig: {which}')
        motion = film_of_bag(folder, arm)
        for note in motion.notes:
            typer.echo(f'{folder}: {note}')
    else:
        arm = rig_without_bag(what, rig, settings)
        motion = film(arm, trajectory, seed or 0)
    typer.echo(f'picture: {write(arm, motion, output, seconds or _ANIMATION_S)}')
