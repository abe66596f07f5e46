"""The command `softarm identify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softarm_ros.cli.options import RigArgument, command_app

app = command_app()


@app.command(
    epilog='Examples:  softarm identify cable_arm --seed 1   |   '
    'softarm identify my_arm.yaml --data recording.csv --output identified.yaml'
)
def identify(
    rig: RigArgument,
    seed: Annotated[int, typer.Option(help='Of every random number.')] = 0,
    section: Annotated[int, typer.Option(min=0, help='0 is the one at the base.')] = 0,
    data: Annotated[
        Path | None,
        typer.Option(metavar='FILE.csv', help='Recorded commands and section tips of the arm.'),
    ] = None,
    hold_out: Annotated[
        str, typer.Option(help='Predicted, of --data: blocks (every second) or later (a half).')
    ] = 'blocks',
    intervals: Annotated[
        int,
        typer.Option(min=0, metavar='N', help='95 % intervals of --data, by N draws of blocks.'),
    ] = 0,
    output: Annotated[
        Path | None, typer.Option(metavar='FILE.yaml', help='Rig file to write (with --data).')
    ] = None,
) -> None:
    """
    Identify an arm: with --data its gains, mount and rest shape from a recording.

    Without, the stiffnesses of a section as the paper did, on the simulated arm.
    """
    from softarm_ros.cli import identify as identification
    from softarm_ros.cli.cli_errors import UsageError
    from softarm_ros.rigs.arms.cable_driven import CableArm
    from softarm_ros.rigs.loader import load_rig_of

    if data is not None:
        from softarm_ros.cli import identify_from_data

        for line in identify_from_data.run(rig, data, output, hold_out, intervals):
            typer.echo(line)
        return
    if output is not None:
        raise UsageError('--output is written from --data FILE, which is missing')
    arm = load_rig_of(CableArm, rig)
    if CableArm.of(arm).actuators[0].pair:
        raise UsageError(
            f'{arm.name} has pairs of cables: identify it from a recording, --data FILE'
        )
    if section >= len(CableArm.of(arm).sections):
        raise UsageError(
            f'--section {section}: {arm.name} has sections 0..{len(CableArm.of(arm).sections) - 1}'
        )
    readings = identification.measure_single_cable(arm, seed, section=section)
    result = identification.identify(arm, readings, section=section)
    for line in identification.describe(arm, result, section):
        typer.echo(line)
