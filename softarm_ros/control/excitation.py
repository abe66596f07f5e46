"""
Sequences of configurations through which an arm is moved to identify it.

| kind | configurations | read |
|---|---|---|
| `quasi-static` | one coordinate after the other, up and down in steps | at rest |
| `actuators` | one after the other towards its farther limit, then all, in steps | at rest |
| `random` | drawn uniformly within the limits | at rest |
| `steps` | random ones too, one after the other as fast as the limits allow | throughout |
| `sweep` | one coordinate after the other to its ends and back, faster each time | throughout |

All kinds but `actuators` move coordinates, not single actuators, because antagonists must yield
together. Hysteresis lags in both directions: `quasi-static` reads both; `actuators` swings about
each place with decreasing amplitude before it is read, which leaves the hysteresis in the middle
of its loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.geometry.arrays import Array

KINDS = ('quasi-static', 'actuators', 'random', 'steps', 'sweep')
SWEEP_S = (8.0, 4.0, 2.0, 1.0)  # duration of half a swing, if the limits allow it
_SINGLE_LEVELS = (1.0 / 3.0, 2.0 / 3.0, 1.0)
_SWINGS = (0.4, -0.4, 0.2, -0.2, 0.0)  # offsets about each level, as shares of the whole way
# Up, and down again through the same places: friction and hysteresis lag in both directions.
_LEVELS = (0.2, 0.4, 0.6, 0.8, 1.0, 0.8, 0.6, 0.4, 0.2, 0.0)


@dataclass(frozen=True)
class Excitation:
    """
    Places, the shortest duration of the motion to each, and how long the arm waits there.

    Attributes
    ----------
    places : (n, dof)
        Configurations, in order.
    least_s : (n,)
        Shortest duration of the motion to each [s]; the actuators' limits may require more.
    dwell_s : float
        Duration of the stop at each place [s].
    at_rest : bool
        Whether poses are read only at the end of each dwell, or throughout.
    read : (n,)
        Whether the arm stops at the place; it passes through the others.

    """

    places: Array
    least_s: Array
    dwell_s: float
    at_rest: bool
    read: NDArray[np.bool_]

    def kept(self, places: Sequence[int]) -> Excitation:
        """Return the excitation with the chosen places only."""
        chosen = list(places)
        return replace(
            self,
            places=self.places[chosen],
            least_s=self.least_s[chosen],
            read=self.read[chosen],
        )


def excitation(
    kind: str,
    limits: ConfigurationLimits,
    rest: Array,
    drawn: Array,
    *,
    amplitude: float,
    dwell_s: float,
) -> Excitation:
    """
    Return the excitation of one kind.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    limits : ConfigurationLimits
        Limits of the configuration.
    rest : (dof,)
        Configuration from which the arm begins.
    drawn : (n, dof)
        Configurations for the kinds that need them: random ones within the limits, or those of the
        actuations of `steps_of_actuators`.
    amplitude : float
        Share of the way from rest to each place, above 0 to 1.
    dwell_s : float
        How long the arm stands at each place before it is read [s].

    Raises
    ------
    ValueError
        If the kind is unknown, or a number is out of range.

    """
    if kind not in KINDS:
        raise ValueError(f'kind {kind!r}: expected {", ".join(KINDS)}')
    if not 0.0 < amplitude <= 1.0:
        raise ValueError(f'amplitude {amplitude:g}: expected above 0, at most 1')
    if not 0.0 < dwell_s <= 60.0:
        raise ValueError(f'dwell {dwell_s:g} s: expected above 0, at most 60')
    if kind == 'actuators':
        read = np.tile(np.array(_SWINGS) == 0.0, len(drawn) // len(_SWINGS))
        return Excitation(drawn, np.full(len(drawn), 1.0), dwell_s, True, read)
    if kind in ('random', 'steps'):
        places = rest + amplitude * (drawn - rest)
        return _read_all(places, np.zeros(len(places)), dwell_s, kind == 'random')
    ends = [_end(limits, rest, axis, sign) for axis in range(len(rest)) for sign in (1.0, -1.0)]
    ways = [amplitude * (end - rest) for end in ends if np.any(np.abs(end - rest) > 1e-9)]
    if kind == 'quasi-static':
        places = np.array([rest + level * way for way in ways for level in _LEVELS])
        return _read_all(places, np.full(len(places), 1.0), dwell_s, True)
    swings = [
        (rest + share * way, half) for way in ways for half in SWEEP_S for share in (1.0, 0.0)
    ]
    places = np.array([place for place, _ in swings])
    return _read_all(places, np.array([half for _, half in swings]), 0.0, False)


def _read_all(places: Array, least_s: Array, dwell_s: float, at_rest: bool) -> Excitation:
    """Return an excitation that stops at each of its places."""
    return Excitation(places, least_s, dwell_s, at_rest, np.ones(len(places), dtype=np.bool_))


def steps_of_actuators(rest: Array, low: Array, high: Array, amplitude: float) -> Array:
    """
    Return actuations (n, m) within their limits: each actuator alone from rest (m,), then all.

    They move towards the farther limit. Before each step, the actuators swing about it.
    """
    end = np.where(high - rest >= rest - low, high, low)
    ways = amplitude * np.vstack([np.diag(end - rest), end - rest])
    steps = [
        rest + (level + swing) * way
        for way in ways
        for level in _SINGLE_LEVELS
        for swing in _SWINGS
    ]
    return np.clip(steps, low, high)


def _end(limits: ConfigurationLimits, rest: Array, axis: int, sign: float) -> Array:
    """Return the configuration (dof,) at which one coordinate moved from rest meets its limit."""
    way = np.zeros(len(rest))
    way[axis] = sign
    low, high = 0.0, 1e6
    for _ in range(80):
        middle = 0.5 * (low + high)
        moved = rest + middle * way
        inside = np.allclose(limits.clipped(moved.copy()), moved, rtol=0.0, atol=1e-12)
        low, high = (middle, high) if inside else (low, middle)
    if high >= 1e6:
        raise ValueError(f'coordinate {axis}: has no limits to move it between')
    return np.asarray(rest + low * way)
