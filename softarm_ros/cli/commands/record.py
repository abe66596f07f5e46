"""The command `softarm record`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softarm_ros.cli.options import SetOption, command_app

app = command_app()


@app.command(
    epilog='Examples:  softarm record cable_arm --bag monday   |   '
    'softarm record my_arm.yaml --bag monday --duration 60   |   '
    'softarm record --repair monday'
)
def record(
    rig: Annotated[
        str | None,
        typer.Argument(metavar='[RIG]', help='Name of a built-in rig, or a .yaml file.'),
    ] = None,
    bag: Annotated[
        Path | None,
        typer.Option(metavar='DIR', help='The new bag; by default named after rig and time.'),
    ] = None,
    duration: Annotated[
        float, typer.Option(min=0.0, metavar='S', help='Duration in s; 0: until Ctrl-C.')
    ] = 0.0,
    repair: Annotated[
        Path | None,
        typer.Option(
            metavar='BAG',
            help='Write an indexed copy of a bag without index, to --bag or beside it.',
        ),
    ] = None,
    *,
    settings: SetOption,
) -> None:
    """Record all topics of a running arm into a rosbag2 bag, or repair one."""
    from softarm_ros.cli import record_command
    from softarm_ros.cli.cli_errors import UsageError

    if (rig is None) == (repair is None):
        raise UsageError('expected either a RIG to record or --repair BAG')
    if repair is not None:
        if duration or settings:
            raise UsageError('--repair copies a whole bag; drop --duration and --set')
        for line in record_command.repair(repair, bag):
            typer.echo(line)
    elif rig is not None:
        raise typer.Exit(record_command.record(rig, bag, duration, settings))
