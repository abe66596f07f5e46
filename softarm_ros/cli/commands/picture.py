"""The command `softarm picture`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softarm_ros.cli.options import RigArgument, SetOption, command_app

app = command_app()


@app.command(epilog='Example:  softarm picture pam_arm --trajectory circle --output pam.png')
def picture(
    rig: RigArgument,
    output: Annotated[Path, typer.Option(metavar='FILE.png', help='Picture to write.')],
    trajectory: Annotated[
        str | None, typer.Option(metavar='NAME|FILE', help='Of the rig, or a YAML file.')
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help='Of every random number.')] = 0,
    settings: SetOption = None,
) -> None:
    """Draw an arm at a few moments of a trajectory, simulated in closed loop."""
    from softarm_ros.cli.arm_picture import render
    from softarm_ros.rigs.loader import load_rig

    typer.echo(f'picture: {render(load_rig(rig, settings or ()), trajectory, output, seed)}')
