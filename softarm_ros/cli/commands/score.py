"""The command `softarm score`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softarm_ros.cli.options import RigArgument, SetOption, command_app

app = command_app()


@app.command(
    epilog='Examples:  softarm score cable_arm bag1   |   '
    'softarm score my_arm.yaml monday.csv --model cosserat --model constant_curvature   |   '
    'softarm score trunk run.csv --rows 30s: --report scores'
)
def score(
    rig: RigArgument,
    data: Annotated[
        list[Path], typer.Argument(metavar='BAG|CSV...', help='Recordings of the arm.')
    ],
    model: Annotated[
        list[str] | None,
        typer.Option(metavar='NAME', help="Model to score, repeatable; by default the rig's."),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(metavar='FROM:TO', help='Rows of each file: 3000: or 30s:60s or 0,2,4:8.'),
    ] = None,
    every: Annotated[int, typer.Option(min=1, help='Use only every Nth row.')] = 1,
    report: Annotated[
        Path | None, typer.Option(metavar='DIR', help='Write figures (PNG) into this folder.')
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option('--json', metavar='FILE', help='Write the scores to this file.')
    ] = None,
    *,
    settings: SetOption,
) -> None:
    """Compare model predictions for recorded commands with measurements and baselines."""
    from dataclasses import replace

    from softarm_ros.cli import score as scoring
    from softarm_ros.cli.chosen_rows import chosen_rows
    from softarm_ros.cli.cli_errors import UsageError
    from softarm_ros.cli.read_run import read_run, require_new
    from softarm_ros.cli.report_files import require_writable_folder
    from softarm_ros.cli.work_bar import WorkBar
    from softarm_ros.rigs.loader import load_rig
    from softarm_ros.whole_file import require_writable

    arm = load_rig(rig, settings)
    models = scoring.check_models(arm, model or ())
    if json_file is not None:
        require_new('--json', json_file, arm, data)
        require_writable(json_file)
    if report is not None:
        require_writable_folder(report)
    scores: list[scoring.Score] = []
    notes: dict[str, tuple[str, ...]] = {}
    drawn: list[Path] = []
    failed: UsageError | None = None
    for path in data:
        with WorkBar() as bar:
            bar.show(f'reading {path.name}', None)
            whole = read_run(arm, path)
            if whole.source in notes:
                whole = replace(whole, source=str(path))  # same name, but another folder or weight
            run = chosen_rows(whole, rows, every)
            predictions = scoring.predictions(arm, models, run, bar.show)
            found = [scoring.score(prediction, run) for prediction in predictions]
        scores += found
        notes[run.source] = run.notes
        for line in scoring.table(arm, found):
            typer.echo(line)
        for note in run.notes:
            typer.echo(f'  {note}')
        if report is not None:
            from softarm_ros.cli import score_figures

            try:
                figures = score_figures.draw(report, run, predictions, drawn)
            except OSError as error:  # the numbers are still wanted
                failed = UsageError(f'--report {report}: cannot be written ({error})')
                report = None
                continue
            drawn += figures
            for figure in figures:
                typer.echo(f'  {figure}')
    if json_file is not None:
        scoring.save_json(json_file, arm, scores, notes)
    if failed is not None:
        raise failed
