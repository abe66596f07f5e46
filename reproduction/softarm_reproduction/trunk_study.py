"""
Predict recordings of the ASL trunk with identified models and simpler baselines.

Predictions are scored on rows that were not used for identification. The arm is the `trunk` that
docs/add_your_arm.md builds. Recordings: github StanfordASL/trunk-stack (MIT), columns as in the
rig's block `recording`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from softarm_ros.cli.identification.common import all_parameters, spelled_out
from softarm_ros.cli.identification.fit import chosen, fit
from softarm_ros.cli.identification.misfit import ERROR_SHARE
from softarm_ros.cli.identification.recordings import Recorded, Rows, read_recordings
from softarm_ros.cli.prediction import predict
from softarm_ros.geometry.arrays import Array
from softarm_ros.rigs.arms.cable_driven import CableArm
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import find_share_folder
from softarm_ros.rigs.recording import MountConfig
from softarm_ros.rigs.schema import Rig

MOVING, AT_REST, BY_FORCE = (
    'servo_controlled_1_0g.csv',
    'servo_steps_settled.csv',
    'dc_static_beta.csv',
)
# Stated with the recordings: heights of the disks at rest, and the mount above them, y up.
NOMINAL_LENGTHS_M = (0.103, 0.094, 0.113)  # without the 4 mm of the disks
NOMINAL_MOUNT = MountConfig(
    position_m=(0.101, 0.0, 0.105), z_axis=(0.0, -1.0, 0.0), x_axis=(1.0, 0.0, 0.0)
)
NOMINAL_DELAY_S = 0.2
SHAPE_GROUPS = ('mount', 'lengths', 'rest_bends', 'delay')
GROUPS = (*SHAPE_GROUPS, 'bends')
# Contraction per duty of the earlier motors; arbitrary, because `bends` scale it.
DUTY_M = 0.01
RADII_TOO = 'and the radii of the cables, directions nominal'
MOST_ROWS = 1500  # for identification
_FEW_ROWS = 500
_TURNS = 4


@dataclass(frozen=True)
class TipErrors:
    """Distance between predicted and measured section tips [m], each (sections,)."""

    mean: Array
    rms: Array
    max: Array

    @staticmethod
    def of(predicted: Array, measured: Array) -> TipErrors:
        """Compare tips (n, sections, 3) [m], or (sections, 3) for a constant pose."""
        distance = np.linalg.norm(np.broadcast_to(predicted, measured.shape) - measured, axis=2)
        return TipErrors(
            distance.mean(axis=0), np.sqrt(np.mean(distance**2, axis=0)), distance.max(axis=0)
        )


@dataclass(frozen=True)
class Prediction:
    """Errors of one predictor and the number of parameters it identifies from the recording."""

    name: str
    unknowns: int
    errors: TipErrors


@dataclass(frozen=True)
class MovingStudy:
    """
    The results of the moving run under one split.

    `found` is the rig with all parameters identified. `measured`, `predicted` and `nominal`
    (n, sections, 3) [m] hold all rows at `time_s` (n,); `test` are the scored rows.
    """

    split: str
    predictions: tuple[Prediction, ...]
    found: Rig
    time_s: Array
    measured: Array
    predicted: Array
    nominal: Array
    test: Rows


@dataclass(frozen=True)
class RestStudy:
    """
    The results for the poses at rest of another session.

    `repeatability_m` (sections,) is the largest distance between poses at the same command;
    `commands` is the number of different commands.
    """

    commands: int
    repeatability_m: Array
    predictions: tuple[Prediction, ...]


@dataclass(frozen=True)
class ForceStudy:
    """Results for poses at rest with the earlier motors, whose command is roughly a force."""

    identified_from: int
    predicted: int
    predictions: tuple[Prediction, ...]


@dataclass(frozen=True)
class Servo:
    """Response of one servo: gain and delay of the measured angle, and residual [rad]."""

    name: str
    gain: float
    delay_s: float
    left_rad: float


def data_folder() -> Path | None:
    """Return the folder of the recordings, under SOFTARM_DATA or beside the repository."""
    folders = []
    if os.environ.get('SOFTARM_DATA'):
        folders.append(Path(os.environ['SOFTARM_DATA']))
    with contextlib.suppress(RigError):
        folders.append(find_share_folder().parent / 'shared' / 'data')
    for folder in folders:
        if (folder / 'asl_trunk' / MOVING).is_file():
            return folder / 'asl_trunk'
    return None


def nominal_rig(rig: Rig) -> Rig:
    """Return the rig before identification, with nominal lengths, mount and radii."""
    arm = CableArm.of(rig)
    nominal = rig.with_arm(
        sections=tuple(
            section.model_copy(update={'length_m': length, 'rest_bend_deg': (0.0, 0.0)})
            for section, length in zip(arm.sections, NOMINAL_LENGTHS_M)
        ),
        actuators=tuple(a.model_copy(update={'bends': ()}) for a in arm.actuators),
    )
    return spelled_out(_recorded_as(nominal, mount=NOMINAL_MOUNT, delay_s=NOMINAL_DELAY_S))


def moving_study(rig: Rig, folder: Path, split: str) -> MovingStudy:
    """Predict the moving run; `split` is 'blocks' (as `softarm identify`) or 'halves'."""
    nominal = nominal_rig(rig)
    hold_out = 'blocks' if split == 'blocks' else 'later'
    recorded = read(nominal, folder / MOVING, hold_out)
    train, test = recorded.train, recorded.test
    shape = identified(nominal, recorded, SHAPE_GROUPS)
    found = identified(nominal, recorded, GROUPS)
    predictions = (
        _resting(rig, recorded, train, test),
        Prediction('constant curvature, nominal', 0, errors_of(nominal, recorded, test)),
        Prediction(
            'mount, lengths, rest shape, delay identified',
            _unknowns(nominal, SHAPE_GROUPS),
            errors_of(shape, recorded, test),
        ),
        Prediction(
            RADII_TOO,
            _unknowns(nominal, SHAPE_GROUPS) + 2 * len(CableArm.of(rig).sections) - 1,
            errors_of(_radii(shape, recorded), recorded, test),
        ),
        _linear(found, recorded, train, test),
        Prediction('all identified', _unknowns(nominal, GROUPS), errors_of(found, recorded, test)),
        Prediction(
            'all identified, rows identified from',
            _unknowns(nominal, GROUPS),
            errors_of(found, recorded, train),
        ),
    )
    every = np.arange(len(recorded.whole))
    if recorded.whole.time_s is None:
        raise ValueError(f'{MOVING}: expected a time column')
    return MovingStudy(
        split,
        predictions,
        found,
        recorded.whole.time_s,
        tips_of(rig, recorded, every),
        predicted_by(found, recorded, every),
        predicted_by(nominal, recorded, every),
        test,
    )


def rest_study(rig: Rig, folder: Path, found: Rig) -> RestStudy:
    """
    Predict the poses at rest by the moving run alone, and with the poses of other commands.

    `found` is the rig identified from the moving run.
    """
    recorded = read(found, folder / AT_REST, 'nothing')
    commands, group = np.unique(recorded.whole.commands, axis=0, return_inverse=True)
    group = group.reshape(-1)
    every = np.arange(len(group))
    measured = tips_of(rig, recorded, every)
    free = ('rest_bends',)
    left_out, resting = np.empty_like(measured), np.empty_like(measured)
    apart = np.zeros(measured.shape[1])
    for k in range(len(commands)):
        own, others = every[group == k], every[group != k]
        refined = identified(found, replace(recorded, train=others), free)
        left_out[own] = predicted_by(refined, recorded, own)
        resting[own] = measured[others].mean(axis=0)
        distance = np.linalg.norm(measured[own][:, None] - measured[own][None], axis=3)
        apart = np.maximum(apart, distance.max(axis=(0, 1)))
    return RestStudy(
        len(commands),
        apart,
        (
            Prediction('mean of the other commands', 0, TipErrors.of(resting, measured)),
            Prediction(
                'constant curvature, nominal', 0, errors_of(nominal_rig(rig), recorded, every)
            ),
            Prediction('identified from the moving run', 0, errors_of(found, recorded, every)),
            Prediction(
                'the same, rest shape from the other commands',
                _unknowns(found, free),
                TipErrors.of(left_out, measured),
            ),
        ),
    )


def force_study(rig: Rig, folder: Path) -> ForceStudy:
    """Identify from half of the poses of the earlier motors and predict the other half."""
    nominal = nominal_rig(rig)
    config = nominal.recording
    assert config is not None
    forced = _recorded_as(
        nominal,
        time=None,
        command_unit='m',
        commands={k: v.replace('_cmd_deg', '_duty') for k, v in config.commands.items()},
        section_tips={
            name: tuple(f'{column}_m' for column in tips)
            for name, tips in config.section_tips.items()
        },
    )
    raw = read(forced, folder / BY_FORCE, 'blocks')
    whole = replace(raw.whole, commands=DUTY_M * raw.whole.commands)
    recorded = replace(raw, whole=whole)
    free = tuple(group for group in GROUPS if group != 'delay')
    found = identified(forced, recorded, free)
    train, test = recorded.train, recorded.test
    return ForceStudy(
        len(train),
        len(test),
        (
            _resting(rig, recorded, train, test),
            _linear(found, recorded, train, test),
            Prediction(
                'all identified', _unknowns(forced, free), errors_of(found, recorded, test)
            ),
        ),
    )


def read(rig: Rig, path: Path, hold_out: str) -> Recorded:
    """Read a recording; `hold_out` is that of `read_recordings`."""
    (recorded,) = read_recordings(rig, [path], hold_out)
    return recorded


def identified(rig: Rig, recorded: Recorded, groups: Sequence[str]) -> Rig:
    """Return the rig with parameter groups identified from the training rows."""
    free = chosen(all_parameters(rig), groups)
    return fit(rig, [recorded], free, MOST_ROWS).rig(rig)


def predicted_by(rig: Rig, recorded: Recorded, rows: Rows) -> Array:
    """Return the section tips (n, sections, 3) [m] predicted from the commands of rows."""
    run = recorded.seen_by(rig, rows)
    points = predict(rig, rig.physics(), run, strict=False).points
    return np.stack([points[name] for name in rig.section_names], axis=1)


def tips_of(rig: Rig, recorded: Recorded, rows: Rows) -> Array:
    """Return the measured section tips (n, sections, 3) [m] in the frame of the recording."""
    points = recorded.whole.points
    return np.stack([points[name][rows] for name in rig.section_names], axis=1)


def errors_of(rig: Rig, recorded: Recorded, rows: Rows) -> TipErrors:
    """Return the errors of a rig's predictions on some rows."""
    return TipErrors.of(predicted_by(rig, recorded, rows), tips_of(rig, recorded, rows))


def _recorded_as(rig: Rig, **fields: object) -> Rig:
    if rig.recording is None:
        raise ValueError(f'rig {rig.name!r} has no block `recording`')
    return rig.model_copy(update={'recording': rig.recording.model_copy(update=fields)})


def servo_study(rig: Rig, folder: Path, longest_s: float = 0.6) -> tuple[Servo, ...]:
    """Fit gain and delay from the recorded commands to the measured angles of each servo."""
    config = rig.recording
    assert config is not None
    angles = {
        name: column.replace('u', 'phi').replace('_cmd_deg', '')
        for name, column in config.commands.items()
    }
    text = (folder / MOVING).read_text(encoding='utf-8').splitlines()
    heading = text[0].split(',')
    table = np.array([[float(v) for v in line.split(',')] for line in text[1:]])
    time = table[:, heading.index(str(config.time))]
    period = float(np.median(np.diff(time)))
    servos = []
    for name, column in config.commands.items():
        command = np.deg2rad(table[:, heading.index(column)])
        angle = np.deg2rad(table[:, heading.index(angles[name])])
        best = Servo(name, 0.0, 0.0, np.inf)
        for lag in range(round(longest_s / period)):
            u, y = command[: len(command) - lag], angle[lag:]
            slope, offset = np.polyfit(u, y, 1)
            left = float(np.std(y - slope * u - offset))
            if left < best.left_rad:
                best = Servo(name, float(slope), lag * period, left)
        servos.append(best)
    return tuple(servos)


def _radii(rig: Rig, recorded: Recorded) -> Rig:
    """
    Identify the radii of the cables and the shape parameters alternately.

    The last section has no passing radius, because no cable passes it.
    """
    few = recorded.train[:: max(1, len(recorded.train) // _FEW_ROWS)]
    measured = tips_of(rig, recorded, few)
    sections = CableArm.of(rig).sections
    count = len(sections)
    tolerated = ERROR_SHARE * rig.model().rest_length_m
    radii = np.array(
        [s.cable_radius_m for s in sections] + [s.passing_radius_m for s in sections[:-1]]
    )

    def with_radii(shape: Rig, radii: Array) -> Rig:
        arm = CableArm.of(shape)
        geometry = tuple(
            section.model_copy(update={'cable_radius_m': own, 'passing_radius_m': passing})
            for section, own, passing in zip(arm.sections, radii[:count], [*radii[count:], 0.0])
        )
        actuators = tuple(a.model_copy(update={'bends': ()}) for a in arm.actuators)
        by_geometry = arm.model_copy(update={'sections': geometry, 'actuators': actuators})
        return shape.with_arm(actuators=by_geometry.spelled_out().actuators)

    found = rig
    for _ in range(_TURNS):
        shape = found

        def residuals(trial: Array, shape: Rig = shape) -> Array:
            predicted = predicted_by(with_radii(shape, trial), recorded, few)
            return np.asarray((predicted - measured).reshape(-1) / tolerated)

        radii = least_squares(residuals, radii, bounds=(1e-4, 0.2), loss='soft_l1').x
        found = identified(with_radii(found, radii), recorded, SHAPE_GROUPS)
    return found


def _resting(rig: Rig, recorded: Recorded, train: Rows, test: Rows) -> Prediction:
    pose = tips_of(rig, recorded, train).mean(axis=0)
    return Prediction('mean pose', 0, TipErrors.of(pose, tips_of(rig, recorded, test)))


def _linear(rig: Rig, recorded: Recorded, train: Rows, test: Rows) -> Prediction:
    """Predict positions by linear least squares from commands with the delay of `rig`."""
    every = np.arange(len(recorded.whole))
    commands = recorded.seen_by(rig, every).commands
    regressors = np.column_stack([np.ones(len(commands)), commands])
    flat = tips_of(rig, recorded, every).reshape(len(commands), -1)
    weights = np.linalg.lstsq(regressors[train], flat[train], rcond=None)[0]
    predicted = (regressors[test] @ weights).reshape(len(test), -1, 3)
    errors = TipErrors.of(predicted, tips_of(rig, recorded, test))
    return Prediction('linear from commands to tips, no arm', weights.size, errors)


def _unknowns(rig: Rig, groups: Sequence[str]) -> int:
    return len(chosen(all_parameters(rig), groups))
