"""
How far the tentacle under both tendons is open, known from runs that pull one of them.

`python -m softarm_reproduction.tentacle_both_tendons DATA_DIR` identifies the measured tentacle
from all its runs, once with each choice of parameters of `identification_table`, and prints how
far apart the choices predict its markers under both tendons. No run shows which of them is right.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np

from softarm_reproduction.identification_table import CASES, RIGS, Case, parameters_of, recordings
from softarm_ros.cli.identification.common import spelled_out
from softarm_ros.cli.identification.identified import identified
from softarm_ros.cli.measured_run import mount_of
from softarm_ros.geometry.arrays import Array
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.schema import Rig

MANY, FEW = 'tentacle, other session', 'tentacle, other session, few groups'
TENSIONS_N = (1.54, 3.08, 4.62, 6.15)  # of 0.05 to 0.20 N m, as recorded of each tendon alone


def case_of(name: str) -> Case:
    """Return the case of that name."""
    return next(case for case in CASES if case.name == name)


def from_all_runs(case: Case, data: Path) -> Rig:
    """Return the tentacle identified from all runs, with the parameters of a case."""
    rig = spelled_out(load_rig(RIGS / f'{case.rig}.yaml', case.settings))
    recorded = recordings(rig, data, (*case.train, *case.test), True)
    return identified(rig, recorded, parameters_of(case, rig), case.most_rows).rig


def markers(rig: Rig, tensions: Array) -> Array:
    """Return the markers (n, markers, 3) [m] in the frame of the measurements."""
    model, config = rig.model(), rig.recording
    assert config is not None
    mount = mount_of(config)
    names = rig.section_names
    found = []
    for pulled in tensions:
        tips = model.forward(pulled).section_tips
        found.append([
            mount.rotation @ (tip @ [*place.offset_m, 1.0])[:3] + mount.position
            for place in config.markers.values()
            for tip in [tips[names.index(place.section)]]
        ])  # fmt: skip
    return np.array(found)


def main() -> None:
    """Print how far apart the predictions are."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('data', type=Path)
    data = parser.parse_args().data
    rigs = [from_all_runs(case_of(name), data) for name in (MANY, FEW)]
    one = [(t, 0.0) for t in TENSIONS_N] + [(0.0, t) for t in TENSIONS_N]
    for what, tensions in (('one tendon', one), ('both', list(product(TENSIONS_N, repeat=2)))):
        many, few = (markers(rig, np.array(tensions)) for rig in rigs)
        apart = 1e3 * np.sqrt(np.mean(np.sum((many - few) ** 2, axis=2), axis=0))
        print(f'{what}, apart by RMS: {" / ".join(f"{a:.3g}" for a in apart)} mm')


if __name__ == '__main__':
    main()
