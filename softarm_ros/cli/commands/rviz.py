"""The command `softarm rviz`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softarm_ros.cli.options import RigArgument, SetOption, command_app

app = command_app()


@app.command(epilog='Example:  softarm rviz my_arm.yaml --output my_arm.rviz')
def rviz(
    rig: RigArgument,
    output: Annotated[
        Path | None,
        typer.Option(metavar='FILE', help='File to write; by default the output is printed.'),
    ] = None,
    *,
    settings: SetOption,
) -> None:
    """Print an rviz configuration for a rig: its topics, its frames, a view of the arm."""
    from softarm_ros.cli.text_output import write_or_print
    from softarm_ros.rigs.loader import load_rig
    from softarm_ros.rigs.rviz import rviz_config

    write_or_print(rviz_config(load_rig(rig, settings)), output)
