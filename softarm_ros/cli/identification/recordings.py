"""Recordings for identification: rows to identify from, rows to predict, and blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softarm_ros.cli.actuation import shares_reached
from softarm_ros.cli.chosen_rows import chosen_rows
from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.measured_run import MeasuredRun, commands_followed, in_effect, mount_of
from softarm_ros.cli.read_run import read_run
from softarm_ros.geometry.arrays import Array
from softarm_ros.rigs.field_values import with_values
from softarm_ros.rigs.schema import Rig

Rows = NDArray[np.int64]

HOLD_OUT = ('later', 'file', 'blocks', 'nothing')
BLOCK_S = 2.5  # longer than an arm's memory, apart from creep
GUARD_S = 0.5  # on both sides of a predicted block


@dataclass(frozen=True)
class Recorded:
    """One recording, with its rows `train` to identify from and its rows `test` to predict."""

    whole: MeasuredRun
    train: Rows
    test: Rows
    # Cached states of hysteresis, which a search needs in each step, by what they depend on.
    _lagging: dict[tuple[float, ...], Array | None] = field(default_factory=dict, repr=False)

    def seen_by(self, rig: Rig, rows: Rows) -> MeasuredRun:
        """Return rows as a rig's `recording` interprets them: actuators, mount and markers."""
        config = rig.recording
        if config is None or self.whole.in_base:
            return self.whole.rows(rows)
        run = replace(in_effect(rig, self.whole), lagging=self._remembered(rig)).rows(rows)
        places = {
            name: config.markers.get(name, place) for name, place in self.whole.places.items()
        }
        return replace(run, mount=mount_of(config), places=places)

    def _remembered(self, rig: Rig) -> Array | None:
        """Return the states of hysteresis under the commands in effect, by `rig.recording`."""
        config, operator = rig.recording, rig.operator()
        if config is None or operator is None or not np.any(operator.weights):
            return self.whole.lagging  # no model uses it
        shares = shares_reached(config, rig.actuator_names)
        key = (config.delay_s, operator.lag_s, *operator.widths, *shares.tolist())
        if key not in self._lagging:
            commands, time, of_run = commands_followed(rig, self.whole)
            self._lagging.clear()
            self._lagging[key] = (
                None if time is None else operator.remembered(commands, time)[of_run]
            )
        return self._lagging[key]

    def blocks(self, rows: Rows) -> NDArray[np.int64]:
        """Return the block of each row: `BLOCK_S` of a moving arm, or one command."""
        if self.whole.time_s is not None:
            first = np.concatenate([self.train[:1], self.test[:1]]).min()  # as `_divided` counts
            since = self.whole.time_s[rows] - self.whole.time_s[first]
            return np.asarray(np.floor(since / BLOCK_S), dtype=np.int64)
        return _commands_of(self.whole, rows)


def read_recordings(
    rig: Rig,
    paths: Sequence[Path],
    hold_out: str,
    rows: str | None = None,
    *,
    stood_s: float = 0.0,
) -> list[Recorded]:
    """
    Read files and divide their rows into `train` and `test`.

    `later`: the second half of each file is predicted; `file`: all of the last file; `blocks`:
    every second block, without its ends, or every second row if rows are about as far apart as
    blocks; `nothing`: all rows identify. Files without times hold poses at rest; repetitions of a
    command stay together. With `stood_s`, rows of an arm that moves or has just stopped are left
    out: no model here describes how an arm swings, and hysteresis would be fitted to its lag.

    Raises
    ------
    UsageError
        If `hold_out` is unknown or does not suit the files; MeasurementError as `read_run`.

    """
    if hold_out not in HOLD_OUT:
        raise UsageError(f'--hold-out {hold_out!r}: expected {", ".join(HOLD_OUT)}')
    if not paths:
        raise UsageError('no recordings: expected DATA files, or bags')
    if hold_out == 'file' and len(paths) < 2:
        raise UsageError('--hold-out file: the last file is predicted; expected two files or more')
    if rig.recording is not None:
        reached = {f'recording.reached.{name}': 1.0 for name in rig.recording.reached}
        rig = with_values(rig, {'recording.delay_s': 0.0, **reached})
    found = []
    for i, path in enumerate(paths):
        run = read_run(rig, path)
        kept = np.arange(len(run))
        if rows is not None:
            numbered = replace(run, commands=np.column_stack([run.commands, kept]))
            kept = chosen_rows(numbered, rows, 1).commands[:, -1].astype(np.int64)
        still = _stood(run, stood_s)[kept]
        if not still.all():
            gone = (
                f'left out: {np.count_nonzero(~still)} of {len(kept)} rows, whose commands had '
                f'not been constant for {stood_s:g} s (--stood-s)'
            )
            run, kept = replace(run, notes=(*run.notes, gone)), kept[still]
        last = i == len(paths) - 1
        found.append(Recorded(run, *_divided(run, kept, hold_out, last)))
    if not any(len(recorded.train) for recorded in found):
        stood = f': commands stand for --stood-s {stood_s:g} before few or none' if stood_s else ''
        told = f'{sum(len(recorded.whole) for recorded in found)} rows, --hold-out {hold_out}'
        raise UsageError(f'no rows are left to identify from ({told}){stood}')
    return found


def _stood(run: MeasuredRun, least_s: float) -> NDArray[np.bool_]:
    """Return for each row (n,) whether the commands had been constant for a time [s]."""
    if run.time_s is None or least_s == 0.0:
        return np.ones(len(run), dtype=bool)
    told = run if run.followed is None else run.followed
    time = np.asarray(told.time_s)
    commands = told.commands if told.commanded is None else told.commanded
    changed = np.any(commands[1:] != commands[:-1], axis=1)
    since = np.concatenate([time[:1], np.where(changed, time[1:], -np.inf)])
    stood = time - np.maximum.accumulate(since) >= least_s
    return np.asarray(stood if run.followed is None else stood[run.followed.rows])


def _commands_of(run: MeasuredRun, rows: Rows) -> Rows:
    """Return the number of the command of each row (n,); repetitions have the same number."""
    # Measured positions of a repeated command differ.
    _, group = np.unique(run.asked[rows], axis=0, return_inverse=True)
    return np.asarray(group.reshape(-1), dtype=np.int64)


def _divided(run: MeasuredRun, rows: Rows, hold_out: str, last: bool) -> tuple[Rows, Rows]:
    none = rows[:0]
    if hold_out == 'nothing' or not len(rows):
        return rows, none
    if hold_out == 'file':
        return (none, rows) if last else (rows, none)
    if run.time_s is None:
        if hold_out == 'later':
            raise UsageError(
                f"--hold-out 'later': rows of {run.source} are poses at rest, without times; "
                'expected blocks, file or nothing'
            )
        even = _commands_of(run, rows) % 2 == 0
        return rows[even], rows[~even]
    since = run.time_s[rows] - run.time_s[rows[0]]
    if hold_out == 'later':
        half = 0.5 * since[-1]
        return rows[since < half], rows[since >= half + GUARD_S]
    if len(rows) > 1 and np.median(np.diff(since)) >= BLOCK_S - 2.0 * GUARD_S:  # rows are blocks
        return rows[::2], rows[1::2]
    block, within = np.floor(since / BLOCK_S).astype(int), since % BLOCK_S
    inside = (within >= GUARD_S) & (within <= BLOCK_S - GUARD_S)
    return rows[block % 2 == 0], rows[(block % 2 == 1) & inside]
