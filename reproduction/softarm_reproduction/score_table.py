"""
Score the rig files of other laboratories' arms against their measurements in DATA_DIR.

`python -m softarm_reproduction.score_table DATA_DIR [--report DIR] [--json FILE]` scores the rig
files in `reproduction/rigs`. A missing data file is reported and skipped.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softarm_ros.cli import score as scoring
from softarm_ros.cli.chosen_rows import chosen_rows
from softarm_ros.cli.read_run import read_run
from softarm_ros.rigs.loader import load_rig
from softarm_ros.whole_file import write_text

RIGS = Path(__file__).parents[1] / 'rigs'


@dataclass(frozen=True)
class Case:
    """One data file of an arm; its rows did not identify the arm unless `used` says so."""

    rig: str
    file: str
    rows: str | None = None
    every: int = 1
    models: tuple[str, ...] = ()
    used: str = ''


CASES = (
    Case(
        'tendon_tentacle',
        'tendon_tentacle/static_means.csv',
        rows='0,2,4,7,9,11',
        models=('cosserat', 'constant_curvature'),
    ),
    Case('asl_trunk', 'asl_trunk/servo_controlled_1_0g.csv', rows='30.2s:', every=2),
    Case('asl_trunk', 'asl_trunk/servo_controlled_1_100g.csv', every=4),
    Case('stiffflop_pneumatic', 'stiffflop_pneumatic/noload.csv', used='identified on it'),
    Case('stiffflop_pneumatic', 'stiffflop_pneumatic/load1.csv'),
    Case('asu_pneumatic', 'asu_pneumatic/apr4_1.csv', every=2, used='identified on it'),
    Case('asu_pneumatic', 'asu_pneumatic/apr4_5.csv', every=2),
    Case('asu_pneumatic', 'asu_pneumatic/apr18_1.csv', every=2),
    Case('asu_pneumatic', 'asu_pneumatic/jan10_seg_LR_5_10psi.csv', every=2),
    Case('asu_pneumatic', 'asu_pneumatic/jan23_seg_LR_10_15psi.csv', every=2),
)


def run_case(case: Case, data: Path, report: Path | None = None) -> list[scoring.Score]:
    """Return the scores of one case, baselines first."""
    rig = load_rig(RIGS / f'{case.rig}.yaml')
    run = chosen_rows(read_run(rig, data / case.file), case.rows, case.every)
    models = scoring.check_models(rig, case.models)
    predictions = scoring.predictions(rig, models, run)
    if report is not None:
        from softarm_ros.cli import score_figures

        score_figures.draw(report, run, predictions)
    return [scoring.score(prediction, run) for prediction in predictions]


def rows_of(case: Case, scores: list[scoring.Score]) -> list[str]:
    """Return the lines of a case in the Markdown table."""
    what = f'{Path(case.file).stem}' + (f' ({case.used})' if case.used else '')
    return [
        f'| {case.rig}, {what} | {score.by} | {e.what} | {e.rms:.2f} | {e.median:.2f} | '
        f'{e.p90:.2f} | {e.unit} | {e.rows} of {score.rows} |'
        for score in scores
        for e in score.errors
    ]


def main() -> None:
    """Print the table; optionally write figures and a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('data', type=Path)
    parser.add_argument('--report', type=Path, help='write figures to this folder')
    parser.add_argument('--json', type=Path)
    arguments = parser.parse_args()
    print('| set | by | what | RMS | median | 90 % | unit | rows |')
    print('|---|---|---|---|---|---|---|---|')
    found: list[dict[str, Any]] = []
    for case in CASES:
        if not (arguments.data / case.file).is_file():
            print(f'{case.file} is not in {arguments.data}')
            continue
        scores = run_case(case, arguments.data, arguments.report)
        found += [{'rig': case.rig, **score.as_json()} for score in scores]
        print('\n'.join(rows_of(case, scores)), flush=True)
    if arguments.json is not None:
        write_text(arguments.json, json.dumps(found, indent=2) + '\n')


if __name__ == '__main__':
    main()
