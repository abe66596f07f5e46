"""The command `softarm goto`."""

from __future__ import annotations

from typing import Annotated

import typer

from softarm_ros.cli.options import NegativeNumbers, RigArgument, SetOption, command_app

app = command_app()


@app.command(
    epilog='Examples:  softarm goto cable_arm 0.08 0.02 0.20   |   '
    'softarm goto cable_arm -0.05 0 0.22 --timeout-s 20',
    cls=NegativeNumbers,  # coordinates may be negative
)
def goto(
    rig: RigArgument,
    x: Annotated[float, typer.Argument(metavar='X', help='Target x in m, base frame.')],
    y: Annotated[float, typer.Argument(metavar='Y', help='Target y in m.')],
    z: Annotated[float, typer.Argument(metavar='Z', help='Target z in m.')],
    timeout_s: Annotated[
        float, typer.Option(min=0.1, help='Time after which the goal is cancelled.')
    ] = 120.0,
    *,
    settings: SetOption,
) -> None:
    """
    Send the tip of an arm that runs with --goals to a position; Ctrl-C cancels.

    Exit status 0 if the position is reached, 1 if not.
    """
    from softarm_ros.cli.consoles import echo
    from softarm_ros.cli.goto_command import goto as send
    from softarm_ros.rigs.loader import load_rig

    raise typer.Exit(send(load_rig(rig, settings), (x, y, z), timeout_s, echo))
