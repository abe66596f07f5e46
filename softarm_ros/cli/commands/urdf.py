"""The command `softarm urdf`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softarm_ros.cli.options import RigArgument, SetOption, command_app

app = command_app()


@app.command(epilog='Example:  softarm urdf cable_arm --links 8 --output cable_arm.urdf')
def urdf(
    rig: RigArgument,
    links: Annotated[int, typer.Option(min=1, max=99, help='Rigid links per section.')] = 8,
    output: Annotated[
        Path | None,
        typer.Option(metavar='FILE', help='File to write; by default the output is printed.'),
    ] = None,
    *,
    settings: SetOption,
) -> None:
    """Print the URDF of a rig, generated from its file."""
    from softarm_ros.cli.text_output import write_or_print
    from softarm_ros.rigs.loader import load_rig
    from softarm_ros.rigs.urdf import build_urdf

    write_or_print(build_urdf(load_rig(rig, settings), links), output)
