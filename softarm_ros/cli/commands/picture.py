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
        str | None,
        typer.Option(metavar='NAME|FILE', help='Trajectory of the rig, or a YAML file.'),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help='Seed of every random number.')] = 0,
    *,
    settings: SetOption,
) -> None:
    """Draw a simulated arm at a few moments, as PNG."""
    from softarm_ros.cli.cli_errors import UsageError
    from softarm_ros.cli.motion import film
    from softarm_ros.cli.render import check_output, render
    from softarm_ros.rigs.loader import load_rig
    from softarm_ros.whole_file import require_writable

    check_output(output)
    if output.suffix.lower() != '.png':
        raise UsageError(f'--output {output}: a picture is a .png; animations: softarm render')
    require_writable(output)
    arm = load_rig(rig, settings)
    typer.echo(f'picture: {render(arm, film(arm, trajectory, seed), output, 0.0)}')
