"""Courses of the setpoint of a motion: to a configuration, through several, or by a timetable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from softarm_ros.geometry.arrays import Array

# Shortest duration [s] of a change of the configuration (dof,); a norm.
Duration = Callable[[Array], float]


class Course(Protocol):
    """Course of the setpoint through the configuration space (dof,)."""

    @property
    def done(self) -> bool:
        """Whether the setpoint has reached the end."""
        ...

    @property
    def index(self) -> int:
        """Index of the last point that the setpoint has passed; 0 before the first."""
        ...

    def advance(
        self, setpoint: Array, period_s: float, duration: Duration, *, resting: bool
    ) -> Array:
        """Return the next setpoint; `resting`: the motion is at rest at the present one."""
        ...


class Through:
    """
    Straight lines through configurations (k, dof), as fast as `duration` allows.

    With more than one configuration, the motion comes to rest at the first before it goes on.
    """

    def __init__(self, configurations: Array) -> None:
        self._points = np.atleast_2d(configurations)
        self._next = 0
        self._begun = len(self._points) == 1

    @property
    def done(self) -> bool:
        """Whether the setpoint is the last configuration."""
        return self._next >= len(self._points)

    @property
    def index(self) -> int:
        """Index of the last configuration that the setpoint has passed; 0 before the first."""
        return max(self._next - 1, 0)

    def advance(
        self, setpoint: Array, period_s: float, duration: Duration, *, resting: bool
    ) -> Array:
        """Return the next setpoint."""
        if self._next == 1 and not self._begun:
            self._begun = resting
            if not resting:
                return setpoint
        left, here = period_s, setpoint
        while self._next < len(self._points):
            way = self._points[self._next] - here
            needed = duration(way)
            if needed > left:
                return np.asarray(here + (left / needed) * way)
            here, left = self._points[self._next], left - needed
            self._next += 1
            if self._next == 1 and not self._begun:
                break
        return np.asarray(here)


class Timetable:
    """
    Configurations (k, dof), each at its time [s] after the first call.

    Straight lines connect them or, if there are velocities (k, dof), cubic polynomials as in
    joint_trajectory_controller. The timetable begins at the setpoint of the first call, at rest.
    """

    def __init__(self, times_s: Array, configurations: Array, velocities: Array) -> None:
        self._times, self._points = times_s, configurations
        self._rates = velocities if len(velocities) else None
        self._time = 0.0
        self._knots: tuple[Array, Array, Array | None] | None = None

    @property
    def done(self) -> bool:
        """Whether the time of the last configuration has passed."""
        return bool(self._time >= self._times[-1])

    @property
    def index(self) -> int:
        """Index of the last configuration whose time has passed; 0 before the first."""
        return max(int(np.searchsorted(self._times, self._time, side='right')) - 1, 0)

    def advance(
        self, setpoint: Array, period_s: float, duration: Duration, *, resting: bool
    ) -> Array:
        """Return the setpoint one period later."""
        if self._knots is None:
            self._knots = self.knots_from(setpoint)
        self._time += period_s
        return sampled(*self._knots, self._time)

    def knots_from(self, start: Array) -> tuple[Array, Array, Array | None]:
        """Return times, configurations and velocities, beginning with the start (dof,)."""
        if self._times[0] <= 0.0:
            return self._times, self._points, self._rates
        rates = None if self._rates is None else np.vstack([0.0 * start, self._rates])
        return np.append(0.0, self._times), np.vstack([start, self._points]), rates


def sampled(times_s: Array, points: Array, rates: Array | None, time_s: float) -> Array:
    """Return the configuration (dof,) of a timetable at a time [s]; constant outside its times."""
    if len(times_s) == 1 or time_s <= times_s[0]:
        return np.array(points[0] if time_s <= times_s[0] else points[-1])
    if time_s >= times_s[-1]:
        return np.array(points[-1])
    i = int(np.searchsorted(times_s, time_s, side='right')) - 1
    h = times_s[i + 1] - times_s[i]
    s = (time_s - times_s[i]) / h
    if rates is None:
        return np.asarray(points[i] + s * (points[i + 1] - points[i]))
    return np.asarray(
        (1.0 + 2.0 * s) * (1.0 - s) ** 2 * points[i]
        + s * (1.0 - s) ** 2 * h * rates[i]
        + s**2 * (3.0 - 2.0 * s) * points[i + 1]
        + s**2 * (s - 1.0) * h * rates[i + 1]
    )
