"""The command `softarm identify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softarm_ros.cli.options import RigArgument, SetOption, command_app

app = command_app()


@app.command(
    epilog='Examples:  softarm identify cable_arm --seed 1   |   '
    'softarm identify my_arm.yaml monday.csv tuesday.csv --hold-out file --output new.yaml'
)
def identify(
    rig: RigArgument,
    recordings: Annotated[
        list[Path] | None,
        typer.Argument(metavar='[BAG|CSV...]', help='Recordings of the arm, of any kind.'),
    ] = None,
    seed: Annotated[int, typer.Option(help='Of every random number.')] = 0,
    section: Annotated[int, typer.Option(min=0, help='0 is the one at the base.')] = 0,
    hold_out: Annotated[
        str, typer.Option(help='Predicted, not used: blocks (every second), later, file, nothing.')
    ] = 'blocks',
    output: Annotated[
        Path | None, typer.Option(metavar='FILE.yaml', help='Rig file to write.')
    ] = None,
    parameters: Annotated[
        str | None,
        typer.Option(metavar='A,B', help='Groups or names; `?` lists them; `none` keeps all.'),
    ] = None,
    rows: Annotated[
        str | None, typer.Option(metavar='FROM:TO', help='Of each file, as `softarm score`.')
    ] = None,
    residual: Annotated[
        str | None,
        typer.Option(
            metavar='A,B', help='Learn what is left: linear, square, "lag 0.3", "play 0.2".'
        ),
    ] = None,
    most_rows: Annotated[int, typer.Option(min=10, help='Of all files, that identify.')] = 600,
    *,
    settings: SetOption,
) -> None:
    """
    Identify an arm of any kind from its recordings; intervals, and what the data cannot tell.

    Without recordings, as the papers did on the simulated arm: stiffnesses of a cable-driven
    section by pulling a cable; pressure, length and give of chambers by filling them.
    """
    if recordings or parameters == '?':
        from softarm_ros.cli.identification import command
        from softarm_ros.rigs.loader import load_rig

        any_rig = load_rig(rig, settings)
        if parameters == '?':
            for line in command.listed(any_rig):
                typer.echo(line)
            return
        asked = command.Asked(
            tuple(recordings or ()),
            command.names_of(parameters),
            hold_out,
            rows,
            command.names_of(residual),
            most_rows,
            output,
        )
        for line in command.run(any_rig, asked):
            typer.echo(line)
        return
    from softarm_ros.cli import identify as identification
    from softarm_ros.cli.cli_errors import UsageError
    from softarm_ros.rigs.arms.cable_driven import CableArm
    from softarm_ros.rigs.loader import load_rig, load_rig_of

    if load_rig(rig).kind == 'pneumatic':
        from softarm_ros.cli import identify_chambers as chambers

        air = load_rig(rig, settings)
        looks = chambers.measure_chambers(air, seed)
        for line in chambers.describe_chambers(air, chambers.identify_chambers(air, looks)):
            typer.echo(line)
        return
    if output is not None:
        raise UsageError('--output is written from recordings, which are missing')
    arm = load_rig_of(CableArm, rig, settings)
    if CableArm.of(arm).actuators[0].pair:
        raise UsageError(f'{arm.name} has pairs of cables: identify it from a recording')
    if section >= len(CableArm.of(arm).sections):
        raise UsageError(
            f'--section {section}: {arm.name} has sections 0..{len(CableArm.of(arm).sections) - 1}'
        )
    readings = identification.measure_single_cable(arm, seed, section=section)
    for line in identification.describe(arm, readings, section):
        typer.echo(line)
