"""
What a residual is a function of: commands, their products, and what an arm remembers of them.

| feature | of each actuator, u from -1 to 1 over its range |
|---|---|
| `linear`, `cube` | u, u^3 |
| `square` | all products of two |
| `lag T` | what u is still behind with a time constant of T s |
| `play W` | what u is beyond a play of half width W: one operator of Prandtl and Ishlinskii |
| `highest T` | the highest that u, lagging by T s, has been |
| `worked T` | the highest mean of a section's actuators, lagging by T s, and its products with u |

Several plays and lags make the sums that hysteresis and creep are described by. Where nothing is
known of the time (time None), an arm has been at each command for long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from softarm_ros.geometry.arrays import Array

TIMED = ('lag', 'play', 'highest', 'worked')
PLAIN = ('linear', 'square', 'cube')


def parsed(features: Sequence[str]) -> list[tuple[str, float]]:
    """
    Return names and numbers of features.

    Raises
    ------
    ValueError
        If there is no such feature, or its number is missing or not positive.

    """
    found = []
    for text in features:
        name, _, number = text.strip().partition(' ')
        if name in PLAIN and not number:
            found.append((name, 0.0))
            continue
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if name not in TIMED or not (value > 0.0 and math.isfinite(value)):
            raise ValueError(
                f'feature {text!r}: expected one of {", ".join(PLAIN)}, or '
                f'{", ".join(f"{n} NUMBER" for n in TIMED)} with a number above 0'
            )
        found.append((name, value))
    return found


def command_features(
    features: Sequence[str],
    commands: Array,
    time_s: Array | None,
    rest: Array,
    groups: Sequence[int],
) -> Array:
    """
    Return the features (n, f) of commands (n, m), each from -1 to 1 over its range.

    `rest` (m,) is the command before the first row, `groups` (m,) the section of each actuator.
    """
    u = np.asarray(commands, dtype=float)
    columns = []
    for name, value in parsed(features):
        if name == 'linear':
            columns.append(u)
        elif name == 'cube':
            columns.append(u**3)
        elif name == 'square':
            i, j = np.triu_indices(u.shape[1])
            columns.append(u[:, i] * u[:, j])
        elif name == 'lag':
            columns.append(lagging(u, time_s, value, rest) - u)
        elif name == 'play':
            columns.append(u - with_play(u, value, rest) if time_s is not None else 0.0 * u)
        else:
            late = lagging(u, time_s, value, rest)
            if name == 'worked':
                late = np.stack(
                    [late[:, np.equal(groups, g)].mean(axis=1) for g in sorted(set(groups))],
                    axis=1,
                )
            highest = late if time_s is None else np.maximum.accumulate(late, axis=0)
            columns.append(highest)
            if name == 'worked':
                order = [sorted(set(groups)).index(g) for g in groups]
                columns.append(highest[:, order] * u)
    return np.concatenate(columns, axis=1)


def lagging(u: Array, time_s: Array | None, constant_s: float, rest: Array) -> Array:
    """Return u (n, m) behind a first-order lag, which has been at `rest` before the first row."""
    if time_s is None:
        return u
    out, state = np.empty_like(u), np.array(rest, dtype=float)
    shares = -np.expm1(-np.diff(time_s, prepend=time_s[0]) / constant_s)
    for i, share in enumerate(shares):
        state = state + share * (u[i] - state)
        out[i] = state
    return out


def with_play(u: Array, half_width: float, rest: Array) -> Array:
    """Return what u (n, m) moves through a play of this half width, from `rest`."""
    out, state = np.empty_like(u), np.array(rest, dtype=float)
    for i, row in enumerate(u):
        state = np.clip(state, row - half_width, row + half_width)
        out[i] = state
    return out
