"""
Smooth motion that follows a setpoint whose speed may jump.

The setpoint u(t) is piecewise linear in time. Its average over a window T1, averaged again over a
window T2, satisfies for any norm and any setpoint with |u'| <= v:

    speed <= v,    acceleration <= 2 v / T1,    jerk <= 4 v / (T1 T2)

It stays in the convex hull of past setpoints, so it respects convex limits, and it comes to rest
T1 + T2 after the setpoint does. A time-optimal profile (Ruckig) would bound each coordinate
separately: if several coordinates move the tip together, its speed would only be bounded by the
sum of all, and coordinates that move at different times would leave the hull.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise

import numpy as np

from softarm_ros.control.config import TrackerConfig
from softarm_ros.geometry.arrays import Array

# Time [s], setpoint less origin (n,), its integral, and the integral of that.
_Knot = tuple[float, Array, Array, Array]
_REBASE_S = 5.0  # after this long, sums that grow with time are restarted
_SHORTEST_S = 1e-9  # a shorter period could vanish in the rounding of the time
_SAME = 1e-12  # setpoints that differ by less, relative to 1, are equal


class SmoothedMotion:
    """
    The smoothed motion of a setpoint (n,).

    Parameters
    ----------
    start : (n,)
        Initial position.
    windows_s : (float, float)
        T1 and T2 [s].

    """

    def __init__(self, start: Array, windows_s: tuple[float, float]) -> None:
        self.first_s, self.second_s = windows_s
        self.reset(start)

    def reset(self, start: Array) -> None:
        """Stand at a position (n,), without any past motion."""
        self._origin = np.array(start, dtype=float)
        zero = np.zeros_like(self._origin)
        self._time = 0.0
        self._knots: deque[_Knot] = deque([(0.0, zero, zero, zero)])
        self._still_s = np.inf  # how long the setpoint has been constant

    def copy(self) -> SmoothedMotion:
        """Return a motion with the same past, which then moves by itself."""
        other = SmoothedMotion(self._origin, (self.first_s, self.second_s))
        other._time, other._still_s = self._time, self._still_s
        other._knots = deque(self._knots)
        return other

    @property
    def setpoint(self) -> Array:
        """The present setpoint (n,)."""
        return np.asarray(self._origin + self._knots[-1][1])

    @property
    def resting(self) -> bool:
        """Whether the motion is at rest at the setpoint."""
        return self._still_s >= self.first_s + self.second_s - 1e-9

    def advance(self, period_s: float, setpoint: Array) -> None:
        """Advance by a period [s] in which the setpoint (n,) moves linearly to a new one."""
        if period_s < _SHORTEST_S:
            return
        knot = self._knots[-1]
        new = setpoint - self._origin
        change = float(np.max(np.abs(new - knot[1])))
        self._still_s = self._still_s + period_s if change <= _SAME else 0.0
        slope = (new - knot[1]) / period_s
        self._time = knot[0] + period_s
        self._knots.append((self._time, *_after(knot, period_s, slope)))
        oldest = self._time - self.first_s - self.second_s
        while len(self._knots) > 2 and self._knots[1][0] <= oldest:
            self._knots.popleft()
        if self._time > _REBASE_S + self.first_s + self.second_s:
            self._rebase()

    def state(self) -> tuple[Array, Array, Array]:
        """Return position, velocity and acceleration (n,) of the motion, now."""
        t, a, b = self._time, self.first_s, self.second_s
        corners = [self._at(t), self._at(t - a), self._at(t - b), self._at(t - a - b)]
        area = a * b
        second = [s for _, _, s in corners]
        first = [s for _, s, _ in corners]
        plain = [s for s, _, _ in corners]
        return (
            self._origin + (second[0] - second[1] - second[2] + second[3]) / area,
            (first[0] - first[1] - first[2] + first[3]) / area,
            (plain[0] - plain[1] - plain[2] + plain[3]) / area,
        )

    def _at(self, time: float) -> tuple[Array, Array, Array]:
        """Return the setpoint less the origin, and its integrals, at a time in the windows."""
        knots = self._knots
        if time <= knots[0][0]:  # the setpoint was constant before the first knot
            return _after(knots[0], time - knots[0][0], 0.0 * knots[0][1])
        low, high = 0, len(knots) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if knots[middle][0] <= time:
                low = middle
            else:
                high = middle
        begin, end = knots[low], knots[high]
        slope = (end[1] - begin[1]) / (end[0] - begin[0])
        return _after(begin, time - begin[0], slope)

    def _rebase(self) -> None:
        """Restart the integrals at the oldest knot: large sums lose digits."""
        knots = list(self._knots)
        zero, shift = knots[0][0], knots[0][1]
        self._origin = self._origin + shift
        self._time -= zero
        nothing = np.zeros_like(shift)
        self._knots = deque([(0.0, nothing, nothing, nothing)])
        for (before, value, _, _), (time, new, _, _) in pairwise(knots):
            h = time - before
            self._knots.append((time - zero, *_after(self._knots[-1], h, (new - value) / h)))


def _after(knot: _Knot, h: float, slope: Array) -> tuple[Array, Array, Array]:
    """Return the setpoint and its integrals a time [s] after a knot, with a slope (n,)."""
    _, last, once, twice = knot
    return (
        last + h * slope,
        once + h * last + h * h / 2.0 * slope,
        twice + h * once + h * h / 2.0 * last + h**3 / 6.0 * slope,
    )


def windows_of(speed_m_s: float, config: TrackerConfig) -> tuple[float, float]:
    """Return the windows [s] that limit acceleration and jerk of a motion at this speed."""
    return (
        2.0 * speed_m_s / config.max_acceleration_m_s2,
        2.0 * config.max_acceleration_m_s2 / config.max_jerk_m_s3,
    )
