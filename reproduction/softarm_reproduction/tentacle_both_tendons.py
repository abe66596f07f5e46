"""
Show how uncertain predictions under both tendons are if all runs pull one tendon at a time.

`python -m softarm_reproduction.tentacle_both_tendons DATA_DIR` identifies the measured tentacle
from all its runs with each of two parameter choices of `identification_table`. It prints the
distance between the marker predictions of both choices. No run shows which choice is right.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from softarm_reproduction.data_folder import folder_of
from softarm_reproduction.identification_table import CASES, Case, from_all_rows
from softarm_ros.cli.measured_run import MeasuredRun
from softarm_ros.cli.prediction import predict
from softarm_ros.geometry.arrays import Array
from softarm_ros.rigs.schema import Rig

MANY, FEW = 'tentacle, other session', 'tentacle, other session, few groups'
TENSIONS_N = (1.54, 3.08, 4.62, 6.15)  # of 0.05 to 0.20 N m, as recorded with single tendons
FIRST = np.zeros(1, dtype=np.int64)  # one row, as template for mount and markers


def case_of(name: str) -> Case:
    """Return the case of `identification_table` with a name."""
    return next(case for case in CASES if case.name == name)


def markers(rig: Rig, run: MeasuredRun, tensions: Array) -> Array:
    """Return the predicted markers (n, markers, 3) [m] under tensions (n, tendons) [N]."""
    pulled = replace(run.rows(np.zeros(len(tensions), dtype=np.int64)), commands=tensions)
    return np.stack(list(predict(rig, rig.model(), pulled).points.values()), axis=1)


def main() -> None:
    """Print the RMS distances between the predictions of both choices."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('data', type=Path)
    data = folder_of(parser.parse_args().data, '', 'tendon_tentacle/static_means.csv')
    found = [from_all_rows(case_of(name), data) for name in (MANY, FEW)]
    one = [(t, 0.0) for t in TENSIONS_N] + [(0.0, t) for t in TENSIONS_N]
    for what, tensions in (('one tendon', one), ('both', list(product(TENSIONS_N, repeat=2)))):
        many, few = (
            markers(after.rig, recorded[0].seen_by(after.rig, FIRST), np.array(tensions))
            for _, recorded, after in found
        )
        apart = 1e3 * np.sqrt(np.mean(np.sum((many - few) ** 2, axis=2), axis=0))
        print(f'{what}, apart by RMS: {" / ".join(f"{a:.3g}" for a in apart)} mm')


if __name__ == '__main__':
    main()
