"""
The recordings of the ASL trunk, predicted: what identification is worth, beside what is simpler.

Predictions of rows that identified nothing, of the arm `trunk` that docs/add_your_arm.md makes.
Recordings: github StanfordASL/trunk-stack (MIT), columns as in the rig's block `recording`.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from softarm_ros.cli.identified_rig import known_parameters
from softarm_ros.cli.identify_from_data import TipErrors, errors_of
from softarm_ros.cli.recording_file import Rows, read_recording, recording_of, split_rows
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.cable_driven.pair_identification import (
    TIP_SPREAD,
    PairParameters,
    PairRecording,
    identify,
    predict,
)
from softarm_ros.models.cable_driven.paired_cables import nominal_contractions
from softarm_ros.models.config import GROUPS, Group
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
# What is stated with the recordings: heights of the resting disks, the mount above them, y up.
NOMINAL_LENGTHS_M = (0.103, 0.094, 0.113)  # disks of 4 mm less
NOMINAL_MOUNT = MountConfig(
    position_m=(0.101, 0.0, 0.105), z_axis=(0.0, -1.0, 0.0), x_axis=(1.0, 0.0, 0.0)
)
NOMINAL_DELAY_S = 0.2
SHAPE_GROUPS: tuple[Group, ...] = ('mount', 'lengths', 'rest_bends', 'delay')
# Contraction per duty of the earlier motors, which is any: `bends` take it up.
DUTY_M = 0.01
RADII_TOO = 'and the radii of the cables, directions nominal'
_FEW_ROWS = 500
_TURNS = 4


@dataclass(frozen=True)
class Prediction:
    """Errors of one way to predict, and how many numbers it takes from the recording."""

    name: str
    unknowns: int
    errors: TipErrors


@dataclass(frozen=True)
class MovingStudy:
    """
    The moving run under one split.

    `measured`, `predicted` and `nominal` (n, sections, 3) [m] are all rows, at `time_s` (n,);
    `test` are the rows that count.
    """

    split: str
    predictions: tuple[Prediction, ...]
    found: PairParameters
    time_s: Array
    measured: Array
    predicted: Array
    nominal: Array
    test: Rows


@dataclass(frozen=True)
class RestStudy:
    """
    The poses at rest of another session.

    `repeatability_m` (sections,) is the largest distance between poses of one command,
    `commands` how many different ones there are.
    """

    commands: int
    repeatability_m: Array
    predictions: tuple[Prediction, ...]


@dataclass(frozen=True)
class ForceStudy:
    """The poses at rest with the earlier motors, whose command is roughly a force."""

    identified_from: int
    predicted: int
    predictions: tuple[Prediction, ...]


@dataclass(frozen=True)
class Servo:
    """How one servo followed: gain and delay of the measured angle, and what is left [rad]."""

    name: str
    gain: float
    delay_s: float
    left_rad: float


def data_folder() -> Path | None:
    """Return the folder of the recordings: under SOFTARM_DATA, or beside the repository."""
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
    """Return the arm as it is without identification: lengths, mount and radii as guessed."""
    config = recording_of(rig)
    arm = CableArm.of(rig)
    nominal = rig.with_arm(
        sections=tuple(
            section.model_copy(update={'length_m': length, 'rest_bend_deg': (0.0, 0.0)})
            for section, length in zip(arm.sections, NOMINAL_LENGTHS_M)
        ),
        actuators=tuple(a.model_copy(update={'bends': ()}) for a in arm.actuators),
    )
    mounted = config.model_copy(update={'mount': NOMINAL_MOUNT, 'delay_s': NOMINAL_DELAY_S})
    return nominal.model_copy(update={'recording': mounted})


def moving_study(rig: Rig, folder: Path, split: str) -> MovingStudy:
    """Predict the moving run; `split` is 'blocks' (as `softarm identify`) or 'halves'."""
    recording = read_recording(rig, folder / MOVING).measured
    if recording.time_s is None:
        raise ValueError(f'{MOVING}: expected a column of time')
    nominal = nominal_rig(rig)
    known = known_parameters(nominal, recording_of(nominal))
    half = 0.5 * float(recording.time_s[-1] + recording.time_s[1] - 2.0 * recording.time_s[0])
    train, test = split_rows(recording, *([2.5] if split == 'blocks' else [half]))
    shape = identify(known, recording, train, SHAPE_GROUPS)
    found = identify(known, recording, train, GROUPS)
    predictions = (
        _resting(recording, train, test),
        Prediction('constant curvature, nominal', 0, errors_of(known, recording, test)),
        Prediction(
            'mount, lengths, rest shape, delay identified',
            _unknowns(known, SHAPE_GROUPS),
            errors_of(shape, recording, test),
        ),
        Prediction(
            RADII_TOO,
            _unknowns(known, SHAPE_GROUPS) + 2 * len(CableArm.of(rig).sections) - 1,
            errors_of(_radii(nominal, shape, recording, train), recording, test),
        ),
        _linear(recording, train, test, found.delay_s),
        _after(known, GROUPS, found, recording, test),
        Prediction(
            'all identified, rows identified from',
            _unknowns(known, GROUPS),
            errors_of(found, recording, train),
        ),
    )
    return MovingStudy(
        split,
        predictions,
        found,
        recording.time_s,
        recording.tips,
        predict(found, recording),
        predict(known, recording),
        test,
    )


def rest_study(rig: Rig, folder: Path, found: PairParameters) -> RestStudy:
    """
    Predict the poses at rest: without them, and each command from all others.

    `found` is what the moving run identified.
    """
    recording = read_recording(rig, folder / AT_REST).measured
    nominal = nominal_rig(rig)
    known = known_parameters(nominal, recording_of(nominal))
    commands, group = np.unique(recording.contractions, axis=0, return_inverse=True)
    group = group.reshape(-1)
    every = np.arange(len(group))
    free: tuple[Group, ...] = ('rest_bends',)
    left_out, resting = np.empty_like(recording.tips), np.empty_like(recording.tips)
    apart = np.zeros(recording.tips.shape[1])
    for k in range(len(commands)):
        own, others = every[group == k], every[group != k]
        refined = identify(found, recording, others, free)
        left_out[own] = predict(refined, recording, own)
        resting[own] = recording.tips[others].mean(axis=0)
        poses = recording.tips[own]
        distance = np.linalg.norm(poses[:, None] - poses[None], axis=3)
        apart = np.maximum(apart, distance.max(axis=(0, 1)))
    return RestStudy(
        len(commands),
        apart,
        (
            Prediction('mean of the other commands', 0, TipErrors.of(resting, recording.tips)),
            Prediction('constant curvature, nominal', 0, errors_of(known, recording, every)),
            Prediction('identified from the moving run', 0, errors_of(found, recording, every)),
            Prediction(
                'the same, rest shape from the other commands',
                _unknowns(found, free),
                TipErrors.of(left_out, recording.tips),
            ),
        ),
    )


def force_study(rig: Rig, folder: Path) -> ForceStudy:
    """Identify from half of the poses of the earlier motors, predict the other half."""
    config = recording_of(rig)
    columns = {
        'time': None,
        'command_unit': 'm',
        'commands': {k: v.replace('_cmd_deg', '_duty') for k, v in config.commands.items()},
        'section_tips': {
            name: tuple(f'{column}_m' for column in tips)
            for name, tips in config.section_tips.items()
        },
    }
    nominal = nominal_rig(rig)
    config = recording_of(nominal).model_copy(update=columns)
    forced = nominal.model_copy(update={'recording': config})
    raw = read_recording(forced, folder / BY_FORCE)
    recording = PairRecording(None, DUTY_M * raw.measured.contractions, raw.measured.tips)
    known = known_parameters(nominal, config)
    train, test = split_rows(recording)
    free = tuple(group for group in GROUPS if group != 'delay')
    found = identify(known, recording, train, free)
    return ForceStudy(
        len(train),
        len(test),
        (
            _resting(recording, train, test),
            _linear(recording, train, test, 0.0),
            _after(known, free, found, recording, test),
        ),
    )


def servo_study(rig: Rig, folder: Path, longest_s: float = 0.6) -> tuple[Servo, ...]:
    """Return how the measured angles of the servos follow the recorded commands."""
    config = recording_of(rig)
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


def _radii(
    rig: Rig, known: PairParameters, recording: PairRecording, train: Rows
) -> PairParameters:
    """
    Identify the distances of the cables from the backbone, then the shape anew, in turn.

    The last section has no passing radius: no cable passes it.
    """
    few = train[:: max(1, len(train) // _FEW_ROWS)]
    count = len(CableArm.of(rig).sections)
    first = [s.cable_radius_m for s in CableArm.of(rig).sections]
    first += [s.passing_radius_m for s in CableArm.of(rig).sections[:-1]]
    tolerated = TIP_SPREAD * known.arm_length_m

    def bends(radii: Array) -> Array:
        sections = [
            section.model_copy(update={'cable_radius_m': own, 'passing_radius_m': passing})
            for section, own, passing in zip(
                CableArm.of(rig).sections, radii, [*radii[count:], 0.0]
            )
        ]
        return np.asarray(
            np.linalg.pinv(nominal_contractions(sections, CableArm.of(rig).cables()))
        )

    found, radii = known, np.array(first)
    for _ in range(_TURNS):
        shape = found

        def residuals(trial: Array, shape: PairParameters = shape) -> Array:
            predicted = predict(replace(shape, bends=bends(trial)), recording, few)
            return np.asarray((predicted - recording.tips[few]).reshape(-1) / tolerated)

        radii = least_squares(residuals, radii, bounds=(1e-4, 0.2), loss='soft_l1').x
        found = identify(replace(found, bends=bends(radii)), recording, train, SHAPE_GROUPS)
    return found


def _resting(recording: PairRecording, train: Rows, test: Rows) -> Prediction:
    pose = recording.tips[train].mean(axis=0)
    return Prediction('mean pose', 0, TipErrors.of(pose, recording.tips[test]))


def _linear(recording: PairRecording, train: Rows, test: Rows, delay_s: float) -> Prediction:
    """Predict by least squares from commands straight to positions, without any arm."""
    commands = recording.contractions
    if recording.time_s is not None:
        at = recording.time_s - delay_s
        commands = np.stack([np.interp(at, recording.time_s, c) for c in commands.T], axis=1)
    regressors = np.column_stack([np.ones(len(commands)), commands])
    flat = recording.tips.reshape(len(commands), -1)
    weights = np.linalg.lstsq(regressors[train], flat[train], rcond=None)[0]
    predicted = (regressors[test] @ weights).reshape(len(test), -1, 3)
    errors = TipErrors.of(predicted, recording.tips[test])
    return Prediction('linear from commands to tips, no arm', weights.size, errors)


def _after(
    known: PairParameters,
    free: tuple[Group, ...],
    found: PairParameters,
    recording: PairRecording,
    test: Rows,
) -> Prediction:
    errors = errors_of(found, recording, test)
    return Prediction('all identified', _unknowns(known, free), errors)


def _unknowns(known: PairParameters, free: tuple[Group, ...]) -> int:
    dof, m = known.bends.shape
    sizes = {
        'mount': 5,
        'lengths': len(known.lengths),
        'rest_bends': dof,
        'bends': dof * m,
        'delay': 1,
    }
    return sum(sizes[group] for group in free)
