"""
Identify hysteresis on simulated machines and measure its benefit in the control loop.

`python -m softarm_reproduction.memory_study RIG [--machines 0,1,2,3,4,5] [--paths NAME,...]`
excites each machine in steps and identifies `hysteresis`, alone or with `--groups`, from the rows
at rest of the recording's first half. Each machine then drives its paths without and with the
hysteresis. The program prints tip prediction errors on the second half, the weights, the mean
(largest) error of the true tip, and the median time of a cycle.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from softarm_ros.cli.identification.common import all_parameters, spelled_out
from softarm_ros.cli.identification.fit import chosen
from softarm_ros.cli.identification.identified import identified
from softarm_ros.cli.identification.recordings import read_recordings
from softarm_ros.cli.measured_excitation import write_excitation
from softarm_ros.cli.prediction import predict
from softarm_ros.cli.score import score
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.direct import run_direct
from softarm_ros.runtime.excite import excite, plan_excitation

_MOST_ROWS = 300
_STOOD_S = 0.5  # longer than the swing and response of any of these arms


def machine(rig: Rig, number: int, folder: Path, groups: Sequence[str]) -> tuple[Rig, Rig, str]:
    """Return a rig identified on a machine without and with hysteresis, and results as text."""
    path = folder / f'{rig.name}{number}.csv'
    if not path.is_file():
        plan = plan_excitation(rig, 'steps', count=20, amplitude=0.6, dwell_s=2.5, seed=number)
        write_excitation(rig, excite(rig, plan, seed=number), path)
    # Hysteresis weights of zero do not affect the identification of the other groups.
    known = spelled_out(rig)
    (one,) = recorded = read_recordings(known, [path], 'later', stood_s=_STOOD_S)
    before = known
    if groups:
        before = identified(known, recorded, chosen(all_parameters(known), groups), _MOST_ROWS).rig
    asked = chosen(all_parameters(known), [*groups, 'hysteresis'])
    after = identified(known, recorded, asked, _MOST_ROWS).rig
    errors = []
    for r in (before, after):
        run = one.seen_by(r, one.test)
        tip = score(predict(r, r.physics(), run), run).errors[len(run.points) - 1]
        errors.append(f'{tip.rms:.2f}')
    found = after.hysteresis
    assert found is not None
    rows = '; '.join(
        ' '.join(f'{w:.3f}' for w in (*row, share))
        for row, share in zip(found.weights, found.lag_shares)
    )
    return before, after, f'predicted tip {errors[0]} -> {errors[1]} mm; weights and lag {rows}'


def _driven(rig: Rig, path: str, number: int, *, open_loop: bool) -> tuple[float, str]:
    began = time.process_time()
    try:
        record = run_direct(rig, path, open_loop=open_loop, laps=1, seed=number)
    except (ValueError, RuntimeError, ArithmeticError) as reason:
        return float('nan'), f'stopped: {reason}'
    spent = time.process_time() - began
    true, compute = record.error(), record.timing.compute_p50_ms
    if not record.completed or true is None:
        return float('nan'), 'not completed'
    mean, most = 1e3 * true.mean, 1e3 * true.max
    return mean, f'{mean:.2f} ({most:.2f}) mm, {compute:.2f} ms a cycle, {spent:.0f} CPU s'


def lines(
    rig: Rig, machines: Sequence[int], paths: Sequence[str], folder: Path, groups: Sequence[str]
) -> Iterator[str]:
    """Yield the output lines as results arrive, then medians over all but the nominal machine."""
    ratios: dict[tuple[str, bool], list[float]] = {}
    for number in machines:
        before, after, found = machine(rig, number, folder, groups)
        yield f'{rig.name}, machine {number}: {found}'
        for path in paths or rig.trajectories:
            for open_loop in (False, True):
                loop = 'open' if open_loop else 'closed'
                was, text = _driven(before, path, number, open_loop=open_loop)
                now, with_memory = _driven(after, path, number, open_loop=open_loop)
                yield f'  {path}, {loop}: without {text}; with {with_memory}'
                if number:
                    ratios.setdefault((path, open_loop), []).append(now / was)
    for (path, open_loop), found_ratios in ratios.items():
        loop = 'open' if open_loop else 'closed'
        yield (
            f'{rig.name}, {path}, {loop}: with / without, median of {len(found_ratios)} machines '
            f'{np.median(found_ratios):.3f} ({min(found_ratios):.3f} to {max(found_ratios):.3f})'
        )


def main() -> None:
    """Print the study of one rig."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('rig')
    parser.add_argument('--machines', default='0,1,2,3,4,5')
    parser.add_argument('--paths', default='')
    parser.add_argument('--groups', default='', help='identify these with and without hysteresis')
    parser.add_argument('--folder', type=Path, help='folder for recordings, written and reused')
    asked = parser.parse_args()
    numbers = [int(n) for n in asked.machines.split(',')]
    paths, groups = ([p for p in text.split(',') if p] for text in (asked.paths, asked.groups))
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.folder or Path(scratch)
        for line in lines(load_rig(asked.rig), numbers, paths, folder, groups):
            print(line, flush=True)


if __name__ == '__main__':
    main()
