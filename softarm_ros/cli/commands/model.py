"""The command `softarm model`."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from softarm_ros.cli.options import ModelOption, RigArgument, SetOption, command_app

app = command_app()


class Direction(str, Enum):
    """Direction of the computation."""

    FORWARD = 'forward'
    INVERSE = 'inverse'


@app.command(
    epilog='Examples:  softarm model cable_arm_single forward --actuation 12,-6,-6  |  '
    'softarm model cable_arm inverse --position-m 0.08,0.02,0.20'
)
def model(
    rig: RigArgument,
    direction: Annotated[Direction, typer.Argument(help='What to compute.')],
    actuation: Annotated[
        str | None,
        typer.Option(
            metavar='A1,A2,...',
            help='Values of all actuators, in mm, kPa or N as shown by softarm check (forward).',
        ),
    ] = None,
    position_m: Annotated[
        str | None,
        typer.Option(metavar='X,Y,Z', help='Tip position in m, base frame (inverse).'),
    ] = None,
    model_name: ModelOption = None,
    *,
    settings: SetOption,
) -> None:
    """
    Compute shape from actuation (forward) or actuation from a tip position (inverse).

    Exit status 1 if the position is out of reach; the nearest solution is printed.
    """
    from softarm_ros.cli import model_command
    from softarm_ros.rigs.loader import load_rig

    model_command.refuse_unused(actuation, position_m, direction.value)
    arm = load_rig(rig, settings)
    trouble = None
    if direction is Direction.FORWARD:
        text = model_command.require(actuation, '--actuation', direction.value)
        lines = list(model_command.forward_report(arm, text, model_name))
    else:
        text = model_command.require(position_m, '--position-m', direction.value)
        lines, trouble = model_command.inverse_report(arm, text, model_name)
    for line in lines:
        typer.echo(line)
    if trouble is not None:
        typer.echo(f'softarm: {trouble}', err=True)
        raise typer.Exit(1)
