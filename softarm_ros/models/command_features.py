"""
Features on which a residual depends: commands, their products, and the memory of past commands.

| feature | of each actuator, u from -1 to 1 over its range |
|---|---|
| `linear`, `cube` | u, u^3 |
| `square` | all products of two commands |
| `lag T` | u after a first-order lag with time constant T s, minus u |
| `play W` | u minus its play of half width W: one operator of Prandtl and Ishlinskii |
| `highest T` | the highest value so far of u after a lag with time constant T s |
| `worked T` | the highest mean so far of a section's lagged commands, and its products with u |
| `stiffened W` | r, r times each inflation, r times the highest mean inflation so far |

Sums of several plays and lags describe hysteresis and creep. r = 1 / (1 + c / W), with the mean
inflation c of a section, from 0 to 1: the inflation common to its chambers stiffens a section, so
that bends at rest and bends by pressure differences decrease alike. Without time stamps (time
None), every command counts as held for long.

Two words are not features. `valve UP DOWN`: for the features listed after it, commands pass a
first-order lag with time constant UP s when they rise and DOWN s when they fall. `local`: the
rotation of a section relative to the previous one depends on its own actuators alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array

# How many numbers follow the name of a feature.
NUMBERS = {
    'linear': 0, 'square': 0, 'cube': 0, 'local': 0, 'lag': 1, 'play': 1, 'highest': 1,
    'worked': 1, 'stiffened': 1, 'valve': 2,
}  # fmt: skip


def parsed(features: Sequence[str]) -> list[tuple[str, tuple[float, ...]]]:
    """
    Return the name and the numbers of each feature.

    Raises
    ------
    ValueError
        If a feature is unknown, its numbers are missing or not positive, or the list has only
        `local` and `valve`.

    """
    found = []
    for text in features:
        name, *rest = text.split()
        try:
            values = tuple(float(number) for number in rest)
        except ValueError:
            values = (math.nan,)
        if len(values) != NUMBERS.get(name, -1) or not all(0.0 < v < math.inf for v in values):
            known = ', '.join(n + ' NUMBER' * count for n, count in NUMBERS.items())
            raise ValueError(f'feature {text!r}: expected one of {known}, numbers above 0')
        found.append((name, values))
    if all(name in ('local', 'valve') for name, _ in found):
        raise ValueError(f'{", ".join(features)}: expected at least one more feature')
    return found


def is_local(features: Sequence[str]) -> bool:
    """Return whether `local` is among the features: sections depend on their own actuators."""
    return any(name == 'local' for name, _ in parsed(features))


def command_features(
    features: Sequence[str],
    commands: Array,
    time_s: Array | None,
    rest: Array,
    groups: Sequence[int],
) -> Array:
    """
    Return the features (n, f) of commands (n, m), each scaled to -1..1 over its range.

    `rest` (m,) is the command before the first row; `groups` (m,) is the section of each actuator.
    """
    return np.concatenate(
        [c for c, _ in _columns(features, commands, time_s, rest, groups)], axis=1
    )


@dataclass(frozen=True)
class FeatureMemory:
    """
    Memory of past commands, for features that are evaluated step by step.

    Attributes
    ----------
    states : tuple of tuple of arrays
        States of each feature: outputs of lags and plays, and highest values so far.
    values : (f,)
        The features at the latest command.

    """

    states: tuple[tuple[Array, ...], ...]
    values: Array


def begun(features: Sequence[str], rest: Array, groups: Sequence[int]) -> FeatureMemory:
    """Return the memory of an arm that has only been at the command `rest` (m,), -1 to 1."""
    rest = np.asarray(rest, dtype=float)
    own, nothing = np.asarray(groups), -np.inf
    states: list[tuple[Array, ...]] = []
    for name, _ in parsed(features):
        if name in ('valve', 'lag', 'play'):
            states.append((rest,))
        elif name == 'highest':
            states.append((rest, np.full(len(rest), nothing)))
        elif name == 'worked':
            states.append((rest, np.full(len(set(own.tolist())), nothing)))
        elif name == 'stiffened':
            states.append((np.full(len(set(own.tolist())), nothing),))
        else:
            states.append(())
    return stepped(features, FeatureMemory(tuple(states), np.zeros(0)), rest, 0.0, groups)


def stepped(
    features: Sequence[str],
    memory: FeatureMemory,
    command: Array,
    elapsed_s: float,
    groups: Sequence[int],
) -> FeatureMemory:
    """
    Return the memory after a command (m,), -1 to 1, was in effect for a time [s].

    Its values equal the rows of `command_features`, for any time steps.
    """
    u = np.asarray(command, dtype=float)
    own, names = np.asarray(groups), np.array(sorted(set(groups)))
    states: list[tuple[Array, ...]] = []
    values: list[Array] = []
    for (name, numbers), state in zip(parsed(features), memory.states):
        now = state
        if name == 'valve':
            constant = np.where(u > state[0], numbers[0], numbers[1])
            u = state[0] - np.expm1(-elapsed_s / constant) * (u - state[0])
            now = (u,)
        elif name == 'linear':
            values.append(u)
        elif name == 'cube':
            values.append(u**3)
        elif name == 'square':
            i, j = np.triu_indices(len(u))
            values.append(u[i] * u[j])
        elif name == 'lag':
            now = (_lagged(state[0], u, elapsed_s, numbers[0]),)
            values.append(now[0] - u)
        elif name == 'play':
            now = (np.clip(state[0], u - numbers[0], u + numbers[0]),)
            values.append(u - now[0])
        elif name == 'highest':
            late = _lagged(state[0], u, elapsed_s, numbers[0])
            now = (late, np.maximum(state[1], late))
            values.append(now[1])
        elif name == 'worked':
            late = _lagged(state[0], u, elapsed_s, numbers[0])
            now = (late, np.maximum(state[1], _means(late[None], own)[0]))
            values += [now[1], now[1][np.searchsorted(names, own)] * u]
        elif name == 'stiffened':
            inflation = 0.5 * (u + 1.0)
            common = _means(inflation[None], own)[0]
            ease = 1.0 / (1.0 + common / numbers[0])
            now = (np.maximum(state[0], common),)
            values += [ease, ease[np.searchsorted(names, own)] * inflation, ease * now[0]]
        states.append(now)
    return FeatureMemory(tuple(states), np.concatenate(values))


def _lagged(state: Array, u: Array, elapsed_s: float, constant_s: float) -> Array:
    return np.asarray(state - math.expm1(-elapsed_s / constant_s) * (u - state))


def groups_of_features(features: Sequence[str], groups: Sequence[int]) -> NDArray[np.int64]:
    """Return the section (f,) of each feature, -1 if it depends on several sections."""
    one = np.zeros((1, len(groups)))
    owners = [o for _, o in _columns(features, one, None, one[0], groups)]
    return np.concatenate(owners)


def _columns(
    features: Sequence[str],
    commands: Array,
    time_s: Array | None,
    rest: Array,
    groups: Sequence[int],
) -> Iterator[tuple[Array, NDArray[np.int64]]]:
    """Yield the columns (n, c) of each feature and the section (c,) of each column."""
    u = np.asarray(commands, dtype=float)
    own, names = np.asarray(groups), np.array(sorted(set(groups)))
    for name, numbers in parsed(features):
        if name == 'local':
            continue
        if name == 'valve':
            u = through_valve(u, time_s, numbers[0], numbers[1], rest)
        elif name == 'linear':
            yield u, own
        elif name == 'cube':
            yield u**3, own
        elif name == 'square':
            i, j = np.triu_indices(u.shape[1])
            yield u[:, i] * u[:, j], np.where(own[i] == own[j], own[i], -1)
        elif name == 'lag':
            yield lagging(u, time_s, numbers[0], rest) - u, own
        elif name == 'play':
            yield (u - with_play(u, numbers[0], rest) if time_s is not None else 0.0 * u), own
        elif name == 'highest':
            yield _highest(lagging(u, time_s, numbers[0], rest), time_s), own
        elif name == 'worked':
            highest = _highest(_means(lagging(u, time_s, numbers[0], rest), own), time_s)
            yield highest, names
            yield highest[:, np.searchsorted(names, own)] * u, own
        else:
            inflation = 0.5 * (u + 1.0)
            common = _means(inflation, own)
            ease = 1.0 / (1.0 + common / numbers[0])
            yield ease, names
            yield ease[:, np.searchsorted(names, own)] * inflation, own
            highest = _highest(common, time_s)
            if time_s is not None:
                highest = np.maximum(highest, _means(0.5 * (rest[None] + 1.0), own))
            yield ease * highest, names


def _means(u: Array, own: NDArray[np.int64]) -> Array:
    """Return the mean command of each section (n, sections)."""
    return np.stack([u[:, own == g].mean(axis=1) for g in sorted(set(own.tolist()))], axis=1)


def _highest(u: Array, time_s: Array | None) -> Array:
    return u if time_s is None else np.asarray(np.maximum.accumulate(u, axis=0))


def through_valve(
    u: Array, time_s: Array | None, up_s: float, down_s: float, rest: Array
) -> Array:
    """Return u (n, m) after a first-order lag, from `rest`, with time constants up and down."""
    if time_s is None:
        return u
    out, state = np.empty_like(u), np.array(rest, dtype=float)
    for i, elapsed in enumerate(np.diff(time_s, prepend=time_s[0])):
        constant = np.where(u[i] > state, up_s, down_s)
        state = state - np.expm1(-elapsed / constant) * (u[i] - state)
        out[i] = state
    return out


def lagging(u: Array, time_s: Array | None, constant_s: float, rest: Array) -> Array:
    """Return u (n, m) after a first-order lag whose state is `rest` before the first row."""
    if time_s is None:
        return u
    out, state = np.empty_like(u), np.array(rest, dtype=float)
    shares = -np.expm1(-np.diff(time_s, prepend=time_s[0]) / constant_s)
    for i, share in enumerate(shares):
        state = state + share * (u[i] - state)
        out[i] = state
    return out


def with_play(u: Array, half_width: float, rest: Array) -> Array:
    """Return the output (n, m) of a play of this half width driven by u (n, m), from `rest`."""
    out, state = np.empty_like(u), np.array(rest, dtype=float)
    low, high = u - half_width, u + half_width
    for i in range(len(u)):  # np.clip takes twice as long; a recording may have 1e6 rows
        state = np.minimum(np.maximum(state, low[i]), high[i])
        out[i] = state
    return out
