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
        typer.Argument(metavar='[BAG|CSV...]', help='Recordings of the arm.'),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help='Seed of every random number.')] = 0,
    section: Annotated[
        int, typer.Option(min=0, help='Section to identify; 0 is at the base.')
    ] = 0,
    hold_out: Annotated[
        str,
        typer.Option(
            help='Rows to predict: blocks (every second), later (half), file (last), nothing.'
        ),
    ] = 'blocks',
    output: Annotated[
        Path | None, typer.Option(metavar='FILE.yaml', help='Rig file to write.')
    ] = None,
    parameters: Annotated[
        str | None,
        typer.Option(
            metavar='A,B', help='Groups or names; `?` lists them; `none` keeps all values.'
        ),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(metavar='FROM:TO', help='Rows of each file, as for `softarm score`.'),
    ] = None,
    residual: Annotated[
        list[str] | None,
        typer.Option(
            metavar='A,B',
            help='Learn the remaining error from features: linear, square, "lag 0.3", "play 0.2". '
            'Repeatable: the choice that best predicts unseen rows is used.',
        ),
    ] = None,
    prior_factor: Annotated[
        float,
        typer.Option(min=0.01, max=100.0, help='Factor that widens the priors.'),
    ] = 1.0,
    most_rows: Annotated[
        int, typer.Option(min=10, help='Most rows, of all files, to identify from.')
    ] = 600,
    most_predicted: Annotated[
        int, typer.Option(min=10, help='Most rows, of all files, to predict or to learn from.')
    ] = 20000,
    stood_s: Annotated[
        float,
        typer.Option(
            min=0.0, help='Use only rows with constant commands for this long before (s).'
        ),
    ] = 0.0,
    *,
    model: Annotated[
        str | None, typer.Option(metavar='NAME', help="Model to identify; the rig's by default.")
    ] = None,
    settings: SetOption,
) -> None:
    """
    Identify the parameters of an arm from recordings, with intervals and warnings.

    Without recordings, the experiment of the arm's paper is simulated. A cable-driven section: its
    stiffnesses, by pulling a cable. Air chambers: pressure curves and compliance, by filling them.
    Tendons: strips, levers and weight, by pulling each tendon, with weights. Water chambers: the
    same, by filling each chamber. Muscles: valve tables, pull, leak and stiffness, on a bench.
    """
    from softarm_ros.cli.identification import command
    from softarm_ros.cli.identification.experiment import EXPERIMENTS
    from softarm_ros.cli.identification.written import residual_path
    from softarm_ros.cli.read_run import require_new
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
    if output is not None:
        require_new('--output', output, arm, recordings or ())
        beside = residual_path(output)
        require_new(f'--output {output}: its residual', beside, arm, recordings or ())
    asked = command.Asked(
        tuple(recordings or ()),
        command.names_of('--parameters', parameters),
        hold_out,
        rows,
        tuple(command.names_of('--residual', choice) for choice in residual or ()),
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
                f'note: {output} has the identified values, but not {", ".join(given)}: pass it '
                'to softarm score and run as well, or write it into the file'
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
    from softarm_ros.cli.identification.experiment import experiment_of, run_experiment, weighed
    from softarm_ros.cli.work_bar import WorkBar
    from softarm_ros.leftovers import temporary_folder

    with temporary_folder() as folder:
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
