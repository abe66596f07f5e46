"""The command `softarm jog`."""

from __future__ import annotations

from typing import Annotated

import typer

from softarm_ros.cli.options import NegativeNumbers, RigArgument, SetOption, command_app
from softarm_ros.nodes.process import LARGEST_SEED

app = command_app()


@app.command(
    epilog='Examples:  softarm jog cable_arm proximal_1 2 --home   |   '
    'softarm jog pneumatic_arm distal_chamber_1 10 --backend emulated',
    cls=NegativeNumbers,  # AMOUNT may be negative
)
def jog(
    rig: RigArgument,
    actuator: Annotated[str, typer.Argument(metavar='ACTUATOR', help='Actuator of the rig.')],
    amount: Annotated[
        float,
        typer.Argument(
            metavar='AMOUNT', help='Distance to move, in mm or kPa as shown by softarm check.'
        ),
    ],
    speed: Annotated[
        float | None, typer.Option(help='mm/s or kPa/s; by default a tenth of the greatest.')
    ] = None,
    backend: Annotated[str, typer.Option(help='hardware or emulated.')] = 'hardware',
    home: Annotated[
        bool, typer.Option('--home', help='The arm is at rest now: home all actuators first.')
    ] = False,
    hold_s: Annotated[
        float, typer.Option(help='Time to hold the last command before the end.')
    ] = 1.0,
    yes: Annotated[bool, typer.Option('--yes', help='Do not ask for confirmation.')] = False,
    seed: Annotated[
        int, typer.Option(min=0, max=LARGEST_SEED, help='Seed of the emulated arm.')
    ] = 0,
    *,
    settings: SetOption,
) -> None:
    """
    Move one actuator by an amount, slowly and within its limits; Ctrl-C stops it.

    Exit status 1 if it could not be moved.
    """
    from softarm_ros.cli.jog_command import JogOptions, describe, plan_move, run_jog
    from softarm_ros.rigs.loader import load_rig

    options = JogOptions(actuator, amount, speed, backend, home, hold_s, seed)
    arm = load_rig(rig, settings)
    move = plan_move(arm, options)
    typer.echo(describe(arm, move, options))
    if backend == 'hardware' and not yes:
        typer.confirm(
            'Is nobody within its reach, and the emergency stop at hand? Move?', abort=True
        )
    raise typer.Exit(run_jog(arm, move, options, typer.echo))
