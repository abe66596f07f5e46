"""
How actuators follow their commands, fitted to recordings that have both.

    measured(t) = share * command(t - delay),

with one share per actuator and one delay for all. The model is identified from measured actuator
positions; shares and delay let it predict recordings that have commands alone. For a given delay,
the shares are a linear least-squares fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.identification.recordings import Recorded
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.identifiable import Parameter
from softarm_ros.rigs.schema import Rig

LONGEST_S = 1.0
_TRIED = 51  # delays from 0 to the longest; the best is refined between its neighbours
_LEAST_SHARE = 0.05  # of a command; below it, the column does not belong to the actuator
_STILL = 0.01  # of the range: an actuator whose commands stay below it does not show its share


def drives_of(rig: Rig, recorded: Sequence[Recorded]) -> dict[str, float]:
    """
    Return fields of `recording`: the actuators' shares and their delay; none if not measured.

    The rows `train` later than the longest delay are fitted. If no file has times, or no command
    changes, the delay is not among the fields; neither is the share of an actuator that was not
    moved.

    Raises
    ------
    UsageError
        If no file has rows after the longest delay, or an actuator does not follow its command:
        its column is wrong, or its command never changes.

    """
    measured = [one for one in recorded if one.whole.commanded is not None and len(one.train)]
    if not measured:
        return {}
    used = [one for one in measured if len(_after_the_longest(one))]
    if not used:
        sources = ', '.join(one.whole.source for one in measured)
        raise UsageError(
            f'{sources}: no row to identify from is {LONGEST_S:g} s or more after the first row; '
            f'expected some: delays up to {LONGEST_S:g} s between commands and measured actuators '
            'are tried'
        )
    limits = rig.actuator_limits()
    span = limits.position_max - limits.position_min
    most = np.max([np.abs(one.whole.asked[one.train]).max(axis=0) for one in used], axis=0)
    moved = most >= _STILL * span
    if not moved.any():
        return {}
    varied = np.ptp(np.concatenate([one.whole.asked for one in used]), axis=0) >= _STILL * span

    def fitted(delay_s: float) -> tuple[float, Array]:
        """Return the squared error [spans^2] and the shares (m,) for a delay."""
        asked, there = [], []
        for one in used:
            time, commanded, told = one.whole.time_s, one.whole.commanded, one.whole.followed
            assert commanded is not None  # by the choice of `used`
            if time is not None:
                late = time - delay_s
                at, columns = time, commanded
                if told is not None and told.commanded is not None:
                    at, columns = told.time_s, told.commanded
                commanded = np.stack([np.interp(late, at, c) for c in columns.T], axis=1)
            rows = _after_the_longest(one)
            asked.append(commanded[rows])
            there.append(one.whole.commands[rows])
        u, x = np.concatenate(asked), np.concatenate(there)
        shares = np.sum(u * x, axis=0) / np.maximum(np.sum(u * u, axis=0), 1e-12 * span**2)
        return float(np.sum((((x - shares * u) / span) ** 2)[:, moved])), shares

    found, delay_s = {}, 0.0
    if (moved & varied).any() and any(one.whole.time_s is not None for one in used):
        tried = np.linspace(0.0, LONGEST_S, _TRIED)
        best = tried[np.argmin([fitted(d)[0] for d in tried])]
        ends = (max(0.0, best - tried[1]), best + tried[1])
        delay_s = float(minimize_scalar(lambda d: fitted(d)[0], bounds=ends, method='bounded').x)
        found['recording.delay_s'] = delay_s
    shares = fitted(delay_s)[1]
    for name, share, is_told, is_varied in zip(rig.actuator_names, shares, moved, varied):
        if not is_told:
            continue
        if share < _LEAST_SHARE:
            cause = (
                'does recording.measured name its column?'
                if is_varied
                else 'its command never changes; record a motion'
            )
            raise UsageError(
                f'{name} was measured to reach {share:.3g} of its command; expected at least '
                f'{_LEAST_SHARE}: {cause}'
            )
        found[f'recording.reached.{name}'] = float(share)
    return found


def _after_the_longest(one: Recorded) -> NDArray[np.int64]:
    """Return the rows `train` whose command is known for all delays; all rows without times."""
    time = one.whole.time_s
    if time is None:
        return one.train
    return one.train[time[one.train] >= time[0] + LONGEST_S]


def told_by_poses(parameters: Sequence[Parameter], drives: dict[str, float]) -> list[Parameter]:
    """Return the parameters to identify from poses: those not found from measured actuators."""
    return [p for p in parameters if not set(p.fields) & set(drives)]


def describe(rig: Rig, drives: dict[str, float]) -> Iterator[str]:
    """Yield the report's lines about shares and delay."""
    prefix = 'recording.reached.'
    shares = [f'{f.removeprefix(prefix)} {v:.3f}' for f, v in drives.items() if prefix in f]
    delay = drives.get('recording.delay_s')
    after = '' if delay is None else f', after {delay:.3f} s'
    yield f'of its command each actuator reaches: {", ".join(shares)}{after}'
    still = [name for name in rig.actuator_names if prefix + name not in drives]
    if still:
        yield f'not moved: {", ".join(still)}; the share of the rig file is kept'
    if delay is not None and delay >= LONGEST_S:
        yield (
            f'warning: no delay above {LONGEST_S:g} s is tried; shares and delay are wrong if the '
            'actuators follow later'
        )
