"""The command `softarm identify`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softarm_ros.cli.options import RigArgument, SetOption, command_app

if TYPE_CHECKING:
    from softarm_ros.cli.identification.command import Asked
    from softarm_ros.rigs.schema import Rig

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
    seed: Annotated[int, typer.Option(min=0, help='Of every random number.')] = 0,
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
        list[str] | None,
        typer.Option(
            metavar='A,B',
            help='Learn what is left: linear, square, "lag 0.3", "play 0.2". Given several times: '
            'those that predict best what they have not seen.',
        ),
    ] = None,
    prior_factor: Annotated[
        float,
        typer.Option(min=0.01, max=100.0, help='By which what is known before is less sure.'),
    ] = 1.0,
    most_rows: Annotated[int, typer.Option(min=10, help='Of all files, that identify.')] = 600,
    most_predicted: Annotated[
        int, typer.Option(min=10, help='Of all files, that are predicted or learned from.')
    ] = 20000,
    stood_s: Annotated[
        float,
        typer.Option(min=0.0, help='Only rows before which commands stood for so long (s).'),
    ] = 0.0,
    *,
    model: Annotated[
        str | None, typer.Option(metavar='NAME', help="Whose parameters; the rig's without.")
    ] = None,
    settings: SetOption,
) -> None:
    """
    Identify an arm of any kind from its recordings; intervals, and what the data cannot tell.

    Without recordings, as the papers did on the simulated arm: stiffnesses of a cable-driven
    section by pulling a cable; pressure, length and give of chambers by filling them; strips,
    levers and weight of an arm of tendons by pulling each of them, with weights; the same of water
    chambers by filling each of them; tables of valves, pull, leak and stiffness of muscles on a
    bench.
    """
    from softarm_ros.cli.identification import command
    from softarm_ros.cli.identification.experiment import EXPERIMENTS
    from softarm_ros.rigs.loader import load_rig

    arm = load_rig(rig, settings)
    given = [f'--set {text}' for text in settings]
    if model not in (None, arm.default_model):
        arm = load_rig(rig, [*settings, f'model={model}'])
        given.append(f'--model {model}')
    if parameters == '?':
        for line in command.listed(arm):
            typer.echo(line)
        return
    asked = command.Asked(
        tuple(recordings or ()),
        command.names_of(parameters),
        hold_out,
        rows,
        tuple(command.names_of(choice) for choice in residual or ()),
        most_rows,
        output,
        prior_factor,
        stood_s=stood_s,
        most_predicted=most_predicted,
    )
    if recordings:
        _of_recordings(arm, asked)
        if output is not None and given:
            typer.echo(
                f'note: {output} has what was identified, and not {", ".join(given)}: give it to '
                'softarm score and run likewise, or write it into the file'
            )
    elif arm.mechanics_name in EXPERIMENTS:
        _of_excitation(arm, asked, seed)
    else:
        _as_in_its_paper(arm, asked, seed, section)


def _of_recordings(arm: Rig, asked: Asked) -> None:
    """Identify an arm from recordings and print the report; a bar shows the progress."""
    from softarm_ros.cli.identification import command
    from softarm_ros.cli.work_bar import WorkBar

    with WorkBar() as bar:
        for line in bar.between(command.run(arm, asked, bar.show)):
            typer.echo(line)


def _of_excitation(arm: Rig, asked: Asked, seed: int) -> None:
    """Run the paper's experiment on the simulated arm, and identify it from these recordings."""
    from tempfile import TemporaryDirectory

    from softarm_ros.cli.identification.experiment import experiment_of, run_experiment, weighed
    from softarm_ros.cli.work_bar import WorkBar

    with TemporaryDirectory() as folder:
        with WorkBar() as bar:
            moved = partial(bar.show, f'{arm.name}: moved and read at rest')
            files = run_experiment(arm, seed, Path(folder), moved)
        experiment = experiment_of(arm)
        arm = weighed(arm, seed)
        asked = replace(
            asked,
            data=tuple(files),
            groups=asked.groups or experiment.parameters,
            prior_factor=asked.prior_factor * experiment.prior_factor,
            group_factors=experiment.group_factors,
        )
        _of_recordings(arm, asked)


def _as_in_its_paper(arm: Rig, asked: Asked, seed: int, section: int) -> None:
    """Identify the simulated arm by filling chambers, pulling a cable or loading muscles."""
    from softarm_ros.cli import identify as identification
    from softarm_ros.cli import identify_chambers as chambers
    from softarm_ros.cli.cli_errors import UsageError
    from softarm_ros.cli.work_bar import WorkBar
    from softarm_ros.rigs.arms.cable_driven import CableArm

    if arm.kind == 'muscle':
        from softarm_ros.cli.identified_muscles import identified_fields

        for line in identified_fields(arm, seed, asked.output):
            typer.echo(line)
        return
    if asked.output is not None:
        raise UsageError('--output is written from recordings, which are missing')
    if arm.kind == 'pneumatic':
        looks = chambers.measure_chambers(arm, seed)
        for line in chambers.describe_chambers(arm, chambers.identify_chambers(arm, looks)):
            typer.echo(line)
        return
    cables = CableArm.of(arm)
    if cables.actuators[0].pair:
        raise UsageError(f'{arm.name} has pairs of cables: identify it from a recording')
    if section >= len(cables.sections):
        raise UsageError(
            f'--section {section}: {arm.name} has sections 0..{len(cables.sections) - 1}'
        )
    with WorkBar() as bar:
        pulled = partial(bar.show, f'{arm.name}: a cable pulled and let out')
        readings = identification.measure_single_cable(arm, seed, section=section, progress=pulled)
    for line in identification.describe(arm, readings, section):
        typer.echo(line)
