"""The command `softarm rviz`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softarm_ros.cli.options import RigArgument, command_app

app = command_app()


@app.command(epilog='Example:  softarm rviz my_arm.yaml --output my_arm.rviz')
def rviz(
    rig: RigArgument,
    output: Annotated[
        Path | None, typer.Option(metavar='FILE', help='File to write; printed without it.')
    ] = None,
) -> None:
    """Print the rviz configuration of a rig: its topics and frames, a view of all of it."""
    from softarm_ros.cli.text_output import write_or_print
    from softarm_ros.rigs.loader import load_rig
    from softarm_ros.rigs.rviz import rviz_config

    write_or_print(rviz_config(load_rig(rig)), output)
