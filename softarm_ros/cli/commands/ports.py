"""The command `softarm ports`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softarm_ros.cli.options import SetOption, command_app

app = command_app()


@app.command(epilog='Examples:  softarm ports   |   softarm ports cable_arm')
def ports(
    rig: Annotated[
        str | None,
        typer.Argument(
            metavar='[RIG]', help='Test the devices of this rig; without it, list ports.'
        ),
    ] = None,
    test: Annotated[
        bool | None,
        typer.Option(
            '--test/--no-test',
            help='Test all ports, or none; by default those that look like boards.',
        ),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(metavar='DIR', help='Folder with addresses of emulated devices.')
    ] = None,
    image: Annotated[
        Path | None,
        typer.Option(
            metavar='FILE', help='Save the view of the cameras of RIG to this file (PNG).'
        ),
    ] = None,
    *,
    settings: SetOption,
) -> None:
    """
    List connected devices; test them without motion. Opening its port resets a Mega.

    Exit status 1 if a test fails.
    """
    from softarm_ros.cli.cli_errors import UsageError
    from softarm_ros.cli.ports_command import show_cameras, show_ports, show_rig

    if rig is None:
        if folder is not None:
            raise UsageError('--folder belongs to the devices of a RIG')
        if image is not None:
            raise UsageError('--image belongs to the cameras of a RIG')
        if settings:
            raise UsageError('--set belongs to the fields of a RIG')
        well = show_ports(test, typer.echo)
        show_cameras(typer.echo)
    else:
        from softarm_ros.rigs.loader import load_rig

        well = show_rig(load_rig(rig, settings), folder, test, typer.echo, image=image)
    if not well:
        raise typer.Exit(1)
