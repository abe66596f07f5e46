"""The command `softarm teleop`."""

from __future__ import annotations

from typing import Annotated

import typer

from softarm_ros.cli.options import RigArgument, SetOption, command_app

app = command_app()


@app.command(
    epilog='Examples:  softarm teleop cable_arm   |   softarm teleop cable_arm --joy /joy'
)
def teleop(
    rig: RigArgument,
    joy: Annotated[
        str | None,
        typer.Option(
            metavar='TOPIC', help='Topic of a gamepad (sensor_msgs/Joy), as from joy_node.'
        ),
    ] = None,
    *,
    settings: SetOption,
) -> None:
    """Move the tip of an arm that runs with --goals by keys or a gamepad; q quits."""
    from softarm_ros.cli.consoles import echo
    from softarm_ros.cli.teleop_command import teleop as lead
    from softarm_ros.rigs.loader import load_rig

    raise typer.Exit(lead(load_rig(rig, settings), joy, echo))
