"""
Test whether a smooth function of the bends predicts the residual of the measured trunk's arcs.

`python -m softarm_reproduction.trunk_trials DATA_DIR` prints errors in five folds of the first
halves of both recordings: of arcs identified without the fold, and of arcs with kernel ridge
regression of their residuals outside the fold (the mean of a Gaussian process with a squared
exponential kernel). Both recordings have the same commands, so each fold is left out of both. The
second halves are not used. The recorded steps, with each command three times, show the arm's
repeatability.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softarm_reproduction.data_folder import folder_of
from softarm_reproduction.identification_table import RIGS
from softarm_ros.cli.identification.common import all_parameters, spelled_out
from softarm_ros.cli.identification.fit import chosen
from softarm_ros.cli.identification.identified import identified
from softarm_ros.cli.identification.learn import left_by_model
from softarm_ros.cli.identification.recordings import Recorded, read_recordings
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.cable_driven.paired_cables import PairedCablesArm
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.schema import Rig

FOLDS = 5
GUARD_S = 0.5  # on both sides of a fold
MOST_ROWS = 600  # for identification of the arcs, and as centres of the kernel
FILES = ('servo_controlled_1_0g.csv', 'servo_controlled_1_100g.csv')
GROUPS = ('mount', 'lengths', 'rest_bends', 'bends', 'delay', 'compliance')
WIDTHS = (1.0, 2.0, 3.0)  # of the kernel, in standard deviations of the bends
PENALTIES = (0.03, 0.1, 0.3, 1.0)


@dataclass(frozen=True)
class Fold:
    """Residuals of the disks' positions (n, 3 sections) [m] by arcs, and their bends (n, 6)."""

    known_bends: Array
    known_left: Array
    bends: tuple[Array, ...]  # of each file's rows of the fold
    left: tuple[Array, ...]


def files(rig: Rig, data: Path) -> list[Recorded]:
    """Return the first halves of both recordings."""
    light, heavy = (data / 'asl_trunk' / name for name in FILES)
    return [
        *read_recordings(rig, [light], 'later'),
        *read_recordings(rig, [Path(f'{heavy}:tip_load_kg=0.1')], 'later'),
    ]


def _left(rig: Rig, one: Recorded, rows: NDArray[np.int64]) -> tuple[Array, Array]:
    run = one.seen_by(rig, rows)
    errors = left_by_model(rig, run).reshape(len(rows), -1, 6)[:, :, :3]
    arm = rig.physics()
    assert isinstance(arm, PairedCablesArm)
    return run.commands @ arm.bends_per_contraction.T, errors.reshape(len(rows), -1)


def fold_of(rig: Rig, halves: Sequence[Recorded], number: int) -> Fold:
    """Return the residuals of arcs identified without a fold, outside and inside the fold."""
    without, inside = [], []
    for one in halves:
        time = one.whole.time_s
        assert time is not None
        since = time[one.train] - time[one.train[0]]
        length = (since[-1] + since[1]) / FOLDS
        within = np.floor(since / length).astype(int) == number
        ahead, behind = since - number * length, (number + 1) * length - since
        kept = within & (ahead >= GUARD_S * (number > 0))
        kept &= behind >= GUARD_S * (number < FOLDS - 1)
        without.append(replace(one, train=one.train[~within]))
        inside.append(one.train[kept])
    parameters = chosen(all_parameters(rig), GROUPS)
    found = identified(rig, without, parameters, MOST_ROWS).rig
    every = -(-sum(len(one.train) for one in without) // MOST_ROWS)
    known = [_left(found, one, one.train[::every]) for one in without]
    new = [_left(found, one, rows) for one, rows in zip(halves, inside)]
    bends, left = (tuple(pair[i] for pair in new) for i in (0, 1))
    known_bends, known_left = (np.concatenate([pair[i] for pair in known]) for i in (0, 1))
    return Fold(known_bends, known_left, bends, left)


def corrected(fold: Fold, width: float, penalty: float) -> list[Array]:
    """Return the residuals of each file after kernel ridge regression on the bends."""
    from sklearn.kernel_ridge import KernelRidge

    scale = fold.known_bends.std(axis=0)
    ridge = KernelRidge(alpha=penalty, kernel='rbf', gamma=0.5 / width**2)
    ridge.fit(fold.known_bends / scale, fold.known_left)
    return [left - ridge.predict(b / scale) for b, left in zip(fold.bends, fold.left)]


def row(name: str, folds: Sequence[Sequence[Array]]) -> str:
    """Return a line of the table: RMS error [mm] of each disk for each file."""
    cells = []
    for parts in zip(*folds):
        left = np.concatenate(parts).reshape(-1, 3, 3)
        rms = 1e3 * np.sqrt(np.mean(np.sum(left**2, axis=2), axis=0))
        cells.append(' / '.join(f'{value:.3g}' for value in rms))
    return f'| {name} | {" | ".join(cells)} |'


def repeats(rig: Rig, data: Path) -> str:
    """Return the deviations [mm] of the disks from their means over repeated commands."""
    run = read_recordings(rig, [data / 'asl_trunk/servo_steps_settled.csv'], 'nothing')[0].whole
    commands, group = np.unique(run.commands, axis=0, return_inverse=True)
    group = group.reshape(-1)
    found = []
    for points in run.points.values():
        mean = np.stack([points[group == k].mean(axis=0) for k in range(len(commands))])
        squares = np.sum((points - mean[group]) ** 2)
        found.append(1e3 * np.sqrt(squares / (len(points) - len(commands))))
    figures = ' / '.join(f'{value:.3g}' for value in found)
    return f'{len(commands)} commands of the steps, {len(run)} times in all: {figures} mm'


def main() -> None:
    """Print the repeatability and the table of errors."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('data', type=Path)
    data = folder_of(parser.parse_args().data, '', 'asl_trunk/servo_*.csv')
    rig = spelled_out(load_rig(RIGS / 'asl_trunk.yaml'))
    print(repeats(rig, data), flush=True)
    halves = files(rig, data)
    folds = [fold_of(rig, halves, number) for number in range(FOLDS)]
    print('| base / middle / tip, mm | without weight | with 100 g |\n|---|---|---|')
    print(row('arcs', [fold.left for fold in folds]))
    for width, penalty in product(WIDTHS, PENALTIES):
        by_fold = [corrected(fold, width, penalty) for fold in folds]
        print(row(f'kernel {width:g}, penalty {penalty:g}', by_fold), flush=True)


if __name__ == '__main__':
    main()
