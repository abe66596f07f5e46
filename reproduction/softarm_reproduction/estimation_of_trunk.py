"""
Estimate the recorded ASL trunk: `python -m softarm_reproduction.estimation_of_trunk`.

The estimator uses the commands, the positions of three disks (no orientations) and the identified
arm `trunk`. The arm was identified from every other 2.5 s block of `servo_controlled_1_0g.csv`.
The scores are of rows in the other blocks, at least half a second from the identification blocks,
and of `servo_controlled_1_100g.csv`, another run with a load unknown to the estimator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softarm_reproduction.nominal import NOMINAL
from softarm_reproduction.trunk_study import MOVING, data_folder, predicted_by, read, tips_of
from softarm_ros.cli.identification.recordings import Recorded
from softarm_ros.cli.measured_run import mount_of
from softarm_ros.control.config import EstimatorConfig
from softarm_ros.control.estimator import SECTION, Estimate, Estimator
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.sightings import Place, PointSighting, Sighting
from softarm_ros.rigs.arms.cable_driven import CableArm
from softarm_ros.rigs.loader import load_rig_of
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import build_estimator

LOADED = 'servo_controlled_1_100g.csv'
BLOCK_S, GUARD_S, HIDDEN_S = 2.5, 0.5, 1.0  # blocks as in `softarm identify`
DISKS = ('base', 'middle', 'tip')


@dataclass(frozen=True)
class Scores:
    """
    Errors [m] of one recording, at the scored rows only.

    Attributes
    ----------
    rows : int
        Number of scored rows.
    filtered, ahead : (rows, 3)
        Distance of each disk's estimate from its measurement, after that measurement was used
        and before (10 ms ahead).
    hidden, frozen, commanded : mapping
        Disk -> distances (n,) from the measurement while the disk was hidden: of the estimate, of
        its last visible position, and of the identified arm driven by the commands alone.
    configurations : (rows, dof)
        Model configurations from the estimated sections.

    """

    rows: int
    filtered: Array
    ahead: Array
    hidden: Mapping[str, Array]
    frozen: Mapping[str, Array]
    commanded: Mapping[str, Array]
    configurations: Array


def trunk(kind: str = 'filter') -> Rig:
    """Return the arm with an estimator whose response time is the identified command delay."""
    rig = load_rig_of(CableArm, 'trunk', NOMINAL)
    assert rig.recording is not None
    fields = {'kind': kind, 'response_s': rig.recording.delay_s}
    return rig.model_copy(update={'estimator': EstimatorConfig.model_validate(fields)})


def score(rig: Rig, folder: Path, file: str, most_rows: int | None = None) -> Scores:
    """Estimate a recording row by row, first with all disks, then hiding each disk in turn."""
    recorded = read(rig, folder / file, 'blocks')
    if recorded.whole.time_s is None or rig.recording is None:
        raise ValueError(f'{file}: expected a time column')
    since = recorded.whole.time_s - recorded.whole.time_s[0]
    every, mount = np.arange(len(since)), mount_of(rig.recording)
    local = (tips_of(rig, recorded, every) - mount.position) @ mount.rotation
    scored = every if file == LOADED else recorded.test
    scored = scored[since[scored] > 1.0]
    if most_rows is not None:
        scored = scored[scored < most_rows]
    last = int(scored[-1]) + 1
    filtered, ahead, seen = _pass(rig, recorded, local, last, hide=None)
    hidden: dict[str, Array] = {}
    frozen: dict[str, Array] = {}
    commanded: dict[str, Array] = {}
    alone = (predicted_by(rig, recorded, every) - mount.position) @ mount.rotation
    gone = _hidden(since)
    rows = scored[gone[scored]]
    for k, name in enumerate(DISKS):
        blind, _, _ = _pass(rig, recorded, local, last, hide=k)
        hidden[name] = np.linalg.norm(blind[rows, k] - local[rows, k], axis=1)
        before = [int(np.flatnonzero(~gone[:row])[-1]) for row in rows]
        frozen[name] = np.linalg.norm(local[before, k] - local[rows, k], axis=1)
        commanded[name] = np.linalg.norm(alone[rows, k] - local[rows, k], axis=1)
    return Scores(
        len(scored),
        np.linalg.norm(filtered[scored] - local[scored], axis=2),
        np.linalg.norm(ahead[scored] - local[scored], axis=2),
        hidden,
        frozen,
        commanded,
        seen[scored],
    )


def _hidden(since_s: Array) -> NDArray[np.bool_]:
    within = since_s % BLOCK_S
    return (
        (np.floor(since_s / BLOCK_S) % 2 == 1)
        & (within >= GUARD_S)
        & (within < GUARD_S + HIDDEN_S)
    )


def _pass(
    rig: Rig, recorded: Recorded, local: Array, last: int, hide: int | None
) -> tuple[Array, Array, Array]:
    """Return disks (rows, 3, 3) after and before each row's measurement, and configurations."""
    model = rig.model()
    estimator: Estimator = build_estimator(
        rig, model, {f'{SECTION}{k}': Place(k) for k in range(3)}
    )
    assert recorded.whole.time_s is not None
    time_s = recorded.whole.time_s - recorded.whole.time_s[0]
    gone = _hidden(time_s)
    filtered, ahead = np.full((last, 3, 3), np.nan), np.full((last, 3, 3), np.nan)
    configurations = np.full((last, len(model.rest_configuration)), np.nan)
    posture = None
    for row in range(last):
        now = float(time_s[row])
        configuration = model.configuration_of(recorded.whole.commands[row])
        posture = model.posture_of(configuration, posture)
        estimator.command(now, posture)
        ahead[row] = _disks(estimator.estimate(now))
        points = tuple(
            PointSighting(f'{SECTION}{k}', local[row, k])
            for k in range(3)
            if not (k == hide and gone[row])
        )
        estimator.observe(Sighting(round(1e9 * now), 'base', (), points))
        estimate = estimator.estimate(now)
        filtered[row] = _disks(estimate)
        if estimate is not None and estimate.configuration is not None:
            configurations[row] = estimate.configuration
    return filtered, ahead, configurations


def _disks(estimate: Estimate | None) -> Array:
    if estimate is None or estimate.section_tips is None:
        return np.full((3, 3), np.nan)
    return estimate.section_tips[:, :3, 3]


def lines(file: str, scores: Scores) -> list[str]:
    """Return the scores in mm."""
    out = [f'{file}: {scores.rows} rows scored']
    for k, name in enumerate(DISKS):
        out.append(
            f'  disk {name:7} reprojection rms {_rms(scores.filtered[:, k]):6.3f} mm, '
            f'10 ms ahead {_rms(scores.ahead[:, k]):6.3f} mm'
        )
    for name in DISKS:
        error = scores.hidden[name]
        out.append(
            f'  disk {name:7} hidden for 1 s: rms {_rms(error):6.2f} mm, median '
            f'{1e3 * np.median(error):6.2f}, largest {1e3 * error.max():6.2f}; last seen '
            f'{_rms(scores.frozen[name]):6.2f}; by the commands alone '
            f'{_rms(scores.commanded[name]):6.2f} ({len(error)} rows)'
        )
    return out


def _rms(values: Array) -> float:
    return 1e3 * float(np.sqrt(np.mean(np.square(values))))


def main() -> None:
    """Print the scores of both recordings."""
    folder = data_folder()
    if folder is None:
        raise SystemExit('no recordings asl_trunk; set SOFTARM_DATA to the folder around it')
    for file in (MOVING, LOADED):
        print('\n'.join(lines(file, score(trunk(), folder, file))), flush=True)


if __name__ == '__main__':
    main()
