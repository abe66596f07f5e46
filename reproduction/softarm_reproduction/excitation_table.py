"""
Excite and identify simulated arms; compare identified values with those of the plant.

`python -m softarm_reproduction.excitation_table [RIG ...]` prints a Markdown table. Alternate
blocks of the recording identify the arm; the others test its predictions. Plant and model have
different formulations: for fields of equal name, the best value of the model may differ.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from softarm_ros.cli.identification.common import all_parameters, usual_groups
from softarm_ros.cli.identification.fit import chosen, fit
from softarm_ros.cli.identification.intervals import intervals
from softarm_ros.cli.identification.recordings import read_recordings
from softarm_ros.cli.measured_excitation import write_excitation
from softarm_ros.cli.prediction import predict
from softarm_ros.cli.score import score
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.field_values import values_of
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.excite import excite, plan_excitation

RIGS = (
    'cable_arm_single', 'cable_arm', 'trunk', 'pneumatic_arm', 'hydraulic_arm', 'fishbone_arm',
    'pam_arm',
)  # fmt: skip
_OF_RECORDING = ('mount', 'markers', 'delay')
_MOST_ROWS = 40


def lines_of(rig: Rig, kind: str, count: int, folder: Path) -> Iterator[str]:
    """Excite and identify an arm; yield its lines of the table."""
    plan = plan_excitation(rig, kind, count=count, amplitude=0.6, dwell_s=2.5, seed=0)
    path = folder / f'{rig.name}.csv'
    write_excitation(rig, excite(rig, plan), path)
    recorded = read_recordings(rig, [path], 'blocks')
    groups = [group for group in usual_groups(rig) if group not in _OF_RECORDING]
    found = fit(rig, recorded, chosen(all_parameters(rig), groups), _MOST_ROWS)
    identified, (one,) = found.rig(rig), recorded
    run = one.seen_by(rig, one.test)
    before, after = (score(predict(r, r.physics(), run), run).errors for r in (rig, identified))
    for was, now in zip(before, after):
        yield f'| {rig.name} | {was.what} | {was.rms:.2f} | {now.rms:.2f} | - | {was.unit} |'
    for parameter, x, ends in zip(found.parameters, found.x, intervals(found)):
        truth = _of_plant(rig, parameter.fields[0])
        if truth is not None and parameter.change in ('factor', 'shift'):
            number = parameter.number(found.values)
            low, high = parameter.interval(number, *(ends - x))
            yield (
                f'| {rig.name} | {parameter.name} | {parameter.number(found.known):.5g} | '
                f'{number:.5g} ({low:.5g} to {high:.5g}) | {truth:.5g} | {parameter.unit} |'
            )


def _of_plant(rig: Rig, field: str) -> float | None:
    """Return the plant's value for the field of the same name, or None if it has none."""
    try:
        (value,) = values_of(rig, [field.replace('arm.', 'plant.', 1)]).values()
    except (RigError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None
    return value


def main() -> None:
    """Print the Markdown table of all arms."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('rigs', nargs='*', default=RIGS)
    parser.add_argument('--kind', default='random')
    parser.add_argument('--count', type=int, default=24)
    arguments = parser.parse_args()
    print(
        '| arm | what | as it was | identified (95 %) | plant | unit |\n|---|---|---|---|---|---|'
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.rigs:
            for line in lines_of(load_rig(name), arguments.kind, arguments.count, Path(folder)):
                print(line, flush=True)


if __name__ == '__main__':
    main()
