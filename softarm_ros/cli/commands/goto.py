"""The command `softarm goto`."""

from __future__ import annotations

from typing import Annotated

import typer

from softarm_ros.cli.options import RigArgument, SetOption, command_app

app = command_app()


@app.command(
    epilog='Examples:  softarm goto cable_arm 0.08 0.02 0.20   |   '
    'softarm goto cable_arm -0.05 0 0.22 --timeout-s 20',
    context_settings={'ignore_unknown_options': True},  # coordinates may be negative
)
def goto(
    rig: RigArgument,
    x: Annotated[float, typer.Argument(metavar='X', help='m, base frame.')],
    y: Annotated[float, typer.Argument(metavar='Y', help='m.')],
    z: Annotated[float, typer.Argument(metavar='Z', help='m.')],
    timeout_s: Annotated[
        float, typer.Option(min=0.1, help='After which the goal is cancelled.')
    ] = 120.0,
    *,
    settings: SetOption,
) -> None:
    """
    Send the tip of an arm that runs with --goals to a position; Ctrl-C cancels.

    Exit status 0 if it is reached, 1 if not.
    """
    from softarm_ros.cli.goto_command import goto as send
    from softarm_ros.rigs.loader import load_rig

    raise typer.Exit(send(load_rig(rig, settings), (x, y, z), timeout_s, typer.echo))
