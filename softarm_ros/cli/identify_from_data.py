"""
`softarm identify RIG --data FILE`: gains, mount and rest shape of an arm from its recordings.

Half of the recorded rows identify, the other half is predicted. The errors of both are reported
beside those of the rig file as it was, and of the mean pose as the only prediction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.identified_rig import known_parameters, updated_text
from softarm_ros.cli.recording_file import (
    Recording,
    Rows,
    read_recording,
    recording_of,
    split_rows,
)
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.cable_driven.pair_identification import (
    PairParameters,
    PairRecording,
    identify,
    predict,
)
from softarm_ros.rigs.arms.cable_driven import CableArm
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import find_rig, load_rig_of
from softarm_ros.rigs.schema import Rig

HOLD_OUT = ('blocks', 'later')
BLOCK_S = 2.5  # longer than the arm remembers


@dataclass(frozen=True)
class TipErrors:
    """Distance between predicted and measured section tips [m], each (sections,)."""

    mean: Array
    rms: Array
    max: Array

    @staticmethod
    def of(predicted: Array, measured: Array) -> TipErrors:
        """Compare tips (n, sections, 3) [m], or (sections, 3) for a pose that never changes."""
        distance = np.linalg.norm(np.broadcast_to(predicted, measured.shape) - measured, axis=2)
        return TipErrors(
            distance.mean(axis=0), np.sqrt(np.mean(distance**2, axis=0)), distance.max(axis=0)
        )


@dataclass(frozen=True)
class DataIdentification:
    """
    Outcome of one identification.

    Attributes
    ----------
    known, found : PairParameters
        Before and after.
    identified_from, predicted : (n,)
        Rows of the recording.
    before : TipErrors
        Of the rig file as it was, on the predicted rows.
    resting : TipErrors
        Of the mean pose of the identified rows, on the predicted rows.
    fitted, after : TipErrors
        Of what was found, on the rows it was found from and on the predicted ones.

    """

    recording: Recording
    known: PairParameters
    found: PairParameters
    identified_from: Rows
    predicted: Rows
    before: TipErrors
    resting: TipErrors
    fitted: TipErrors
    after: TipErrors


def errors_of(parameters: PairParameters, measured: PairRecording, rows: Rows) -> TipErrors:
    """Return the errors of a prediction on some rows."""
    return TipErrors.of(predict(parameters, measured, rows), measured.tips[rows])


def identify_rig(rig: Rig, path: Path, hold_out: str = 'blocks') -> DataIdentification:
    """
    Identify what `recording.identify` names.

    `hold_out` says which half of a moving arm is predicted: every second block of 2.5 s, or all of
    what is `later`. The second is the harder: an arm does not stay as it was.

    Raises
    ------
    RecordingError
        If the rig has no `recording`, or the file does not fit it.
    ModelError
        If there are too few rows, or the fit does not converge.

    """
    config = recording_of(rig)
    recording = read_recording(rig, path)
    measured = recording.measured
    known = known_parameters(rig, config)
    train, test = split_rows(measured, *_block_s(measured, hold_out))
    free = [group for group in config.identify if group != 'delay' or measured.time_s is not None]
    found = identify(known, measured, train, free)
    return DataIdentification(
        recording,
        known,
        found,
        train,
        test,
        errors_of(known, measured, test),
        TipErrors.of(measured.tips[train].mean(axis=0), measured.tips[test]),
        errors_of(found, measured, train),
        errors_of(found, measured, test),
    )


def _block_s(measured: PairRecording, hold_out: str) -> tuple[float, ...]:
    if hold_out not in HOLD_OUT:
        raise UsageError(f'--hold-out {hold_out!r}: expected {" or ".join(HOLD_OUT)}')
    if hold_out == 'blocks':
        return ()
    if measured.time_s is None:
        raise UsageError("--hold-out 'later': rows are poses at rest, of no time")
    return (0.5 * float(measured.time_s[-1] - measured.time_s[0]) + 1e-9,)


def describe(rig: Rig, result: DataIdentification) -> Iterator[str]:
    """Yield what is printed."""
    recording = result.recording
    kind = 'poses at rest' if recording.measured.time_s is None else 'rows'
    yield (
        f'{rig.name}: {len(result.identified_from)} {kind} of {recording.source} identify, '
        f'{len(result.predicted)} are predicted'
        + (f'; {recording.skipped} incomplete rows skipped' if recording.skipped else '')
    )
    names = rig.section_names
    yield ''
    yield 'tip error, mm          ' + ''.join(f'{name:>24}' for name in names)
    yield '                       ' + f'{"mean     rms     max":>24}' * len(names)
    lines: Sequence[tuple[str, TipErrors]] = (
        ('mean pose', result.resting),
        ('rig file as it was', result.before),
        ('identified', result.after),
        ('(rows identified from)', result.fitted),
    )
    for what, errors in lines:
        cells = (
            f'{1e3 * mean:8.2f}{1e3 * rms:8.2f}{1e3 * worst:8.2f}'
            for mean, rms, worst in zip(errors.mean, errors.rms, errors.max)
        )
        yield f'{what:<23}' + ''.join(cells)
    if np.any(result.after.mean > np.minimum(result.before.mean, result.resting.mean)):
        commands = len(np.unique(recording.measured.contractions[result.identified_from], axis=0))
        yield (
            f'warning: worse than without identification; {commands} different commands are too '
            'few for what recording.identify lists'
        )
    yield ''
    yield from _parameters(rig, result)


def _parameters(rig: Rig, result: DataIdentification) -> Iterator[str]:
    known, found = result.known, result.found
    for k, section in enumerate(CableArm.of(rig).sections):
        x, y = np.rad2deg(found.rest[2 * k : 2 * k + 2])
        yield (
            f'{section.name}: length {1e3 * found.lengths[k, 0]:.1f} mm '
            f'(was {1e3 * known.lengths[k, 0]:.1f}), bent at rest by ({x:.1f}, {y:.1f}) deg'
        )
    for j, actuator in enumerate(CableArm.of(rig).actuators):
        column = found.bends[:, j].reshape(-1, 2)
        parts = (
            f'{s.name} {np.hypot(x, y):.1f} rad/m at {np.rad2deg(np.arctan2(y, x)):.0f} deg'
            for s, (x, y) in zip(CableArm.of(rig).sections, column)
        )
        yield f'{actuator.name}: ' + ', '.join(parts)
    turn = known.mount_rotation.T @ found.mount_rotation
    tilt = np.rad2deg(np.arccos(np.clip(turn[2, 2], -1.0, 1.0)))
    moved = 1e3 * (found.mount_position - known.mount_position)
    yield (
        f'mount: moved by ({moved[0]:.1f}, {moved[1]:.1f}, {moved[2]:.1f}) mm, '
        f'turned by {tilt:.1f} deg'
    )
    yield f'delay: {1e3 * found.delay_s:.0f} ms (was {1e3 * known.delay_s:.0f})'


def resampled(
    rig: Rig, result: DataIdentification, count: int, seed: int = 0
) -> list[PairParameters]:
    """
    Return what is identified from the same rows drawn again, with replacement, `count` times.

    A moving arm is drawn in blocks of `BLOCK_S`, poses at rest by their commands: rows that follow
    each other err alike, and intervals that count each of them are too narrow.
    """
    measured, rows = result.recording.measured, result.identified_from
    if measured.time_s is None:
        _, block = np.unique(measured.contractions[rows], axis=0, return_inverse=True)
        block = block.reshape(-1)
    else:
        block = np.floor((measured.time_s[rows] - measured.time_s[0]) / BLOCK_S).astype(int)
    blocks = [rows[block == k] for k in np.unique(block)]
    rng = np.random.default_rng(seed)
    free = [g for g in recording_of(rig).identify if g != 'delay' or measured.time_s is not None]
    return [
        identify(
            result.known,
            measured,
            np.concatenate([blocks[k] for k in rng.integers(0, len(blocks), len(blocks))]),
            free,
        )
        for _ in range(count)
    ]


def intervals(
    rig: Rig, found: PairParameters, draws: Sequence[PairParameters]
) -> Iterator[tuple[str, float, float, float]]:
    """Yield name, value and 95 % interval of what a person would compare, unit in the name."""
    drawn = [_values(rig, draw) for draw in draws]
    for name, value in _values(rig, found).items():
        low, high = np.percentile([values[name] for values in drawn], [2.5, 97.5])
        yield name, value, float(low), float(high)


def _values(rig: Rig, found: PairParameters) -> dict[str, float]:
    values = {'delay_ms': 1e3 * found.delay_s}
    arm = CableArm.of(rig)
    for k, section in enumerate(arm.sections):
        values[f'{section.name} length_mm'] = 1e3 * float(found.lengths[k, 0])
        for axis, bend in zip('xy', found.rest[2 * k : 2 * k + 2]):
            values[f'{section.name} rest_bend_{axis}_deg'] = float(np.rad2deg(bend))
    for j, actuator in enumerate(arm.actuators):
        for section, (x, y) in zip(arm.sections, found.bends[:, j].reshape(-1, 2)):
            for axis, gain in (('x', x), ('y', y)):
                values[f'{actuator.name} on {section.name}_{axis}_rad_m'] = float(gain)
    return values


def run(
    rig_name: str,
    data: Path,
    output: Path | None,
    hold_out: str = 'blocks',
    draws: int = 0,
) -> Iterator[str]:
    """
    Identify a rig from a recording, yield the lines of the report, and write the new rig file.

    Raises
    ------
    RigError
        If the rig file is wrong, or the new one cannot be written or would be wrong.
    RecordingError, ModelError
        As `identify_rig`.

    """
    rig = load_rig_of(CableArm, rig_name)
    result = identify_rig(rig, data, hold_out)
    yield from describe(rig, result)
    if draws > 0:
        yield ''
        yield f'95 % intervals, from {draws} draws of blocks'
        for name, value, low, high in intervals(rig, result.found, resampled(rig, result, draws)):
            yield f'{name:<36}{value:10.3f}   {low:10.3f} to {high:10.3f}'
    if output is None:
        return
    text = updated_text(
        find_rig(rig_name).read_text(encoding='utf-8'), rig, result.found, data.name
    )
    try:
        output.write_text(text, encoding='utf-8')
    except OSError as error:
        raise RigError(str(output), f'cannot be written ({error.strerror})') from None
    load_rig_of(CableArm, output)
    yield f'written: {output}'
