"""Curves in space by arc length: the geometry of a trajectory, without time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np

from softarm_ros.control.trajectory_config import (
    MIN_SPACING_M,
    CardioidConfig,
    CircleConfig,
    LineConfig,
    SquareConfig,
    TrajectoryConfig,
    WaypointsConfig,
)
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.piecewise_cubic import monotone_cubic, natural_spline, periodic_spline

ARC_LENGTH_SAMPLES = 4000
# At a sharper turn the path stops: a spline would have a cusp there, or almost.
TURNS_BACK_RAD = math.radians(150.0)


class Curve(Protocol):
    """Smooth piece of a path; `s` is arc length [m]."""

    @property
    def length(self) -> float:
        """Total arc length [m]."""
        ...

    def at(self, s: float) -> tuple[Array, Array]:
        """Return position (3,) [m] and unit tangent (3,) at arc length `s`."""
        ...


@dataclass(frozen=True)
class Segment:
    """Straight piece from `start` to `end` [m]."""

    start: Array
    end: Array

    @cached_property
    def length(self) -> float:
        """Total arc length [m]."""
        return float(np.linalg.norm(self.end - self.start))

    def at(self, s: float) -> tuple[Array, Array]:
        """Return position (3,) [m] and unit tangent (3,) at arc length `s`."""
        tangent = (self.end - self.start) / self.length
        return self.start + s * tangent, tangent


@dataclass(frozen=True)
class Circle:
    """Full circle; `axes` (2, 3) are orthonormal; the first points at the start."""

    center: Array
    radius: float
    axes: Array

    @property
    def length(self) -> float:
        """Total arc length [m]."""
        return 2.0 * np.pi * self.radius

    def at(self, s: float) -> tuple[Array, Array]:
        """Return position (3,) [m] and unit tangent (3,) at arc length `s`."""
        angle = s / self.radius
        c, sn = math.cos(angle), math.sin(angle)
        return (
            self.center + self.radius * (c * self.axes[0] + sn * self.axes[1]),
            -sn * self.axes[0] + c * self.axes[1],
        )


@dataclass(frozen=True)
class Cardioid:
    """
    Cardioid r = a (1 - cos t), traced once from its cusp.

    Arc length has a closed form: s = 4 a (1 - cos(t / 2)), total 8 a.
    """

    cusp: Array
    size: float
    axes: Array

    @property
    def length(self) -> float:
        """Total arc length [m]."""
        return 8.0 * self.size

    def at(self, s: float) -> tuple[Array, Array]:
        """Return position (3,) [m] and unit tangent (3,) at arc length `s`."""
        half = np.arccos(np.clip(1.0 - s / (4.0 * self.size), -1.0, 1.0))
        t = 2.0 * half
        r = self.size * (1.0 - np.cos(t))
        # The tangent of r(t) turns 3/2 as fast as the ray: exact, also at the cusp.
        heading = 1.5 * t
        return (
            self.cusp + r * (np.cos(t) * self.axes[0] + np.sin(t) * self.axes[1]),
            np.cos(heading) * self.axes[0] + np.sin(heading) * self.axes[1],
        )


class SplineCurve:
    """
    Cubic spline through points, parametrised by chord length and timed by arc length.

    If `closed`, the last point equals the first, and the curve passes it smoothly.
    """

    def __init__(self, points: Array, closed: bool) -> None:
        chord = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
        self._spline = (periodic_spline if closed else natural_spline)(chord, points)
        parameter = np.union1d(np.linspace(0.0, chord[-1], ARC_LENGTH_SAMPLES), chord)
        speed = np.linalg.norm(self._spline.slope(parameter), axis=1)
        middle = 0.5 * (parameter[1:] + parameter[:-1])
        speed_middle = np.linalg.norm(self._spline.slope(middle), axis=1)
        # Simpson's rule on every interval.
        steps = np.diff(parameter) * (speed[1:] + 4.0 * speed_middle + speed[:-1]) / 6.0
        arc = np.concatenate([[0.0], np.cumsum(steps)])
        self._parameter = monotone_cubic(arc, parameter)
        self._length = float(arc[-1])

    @property
    def length(self) -> float:
        """Total arc length [m]."""
        return self._length

    def at(self, s: float) -> tuple[Array, Array]:
        """Return position (3,) [m] and unit tangent (3,) at arc length `s`."""
        u = float(self._parameter(min(max(s, 0.0), self._length)))
        derivative = self._spline.slope(u)
        return self._spline(u), derivative / np.linalg.norm(derivative)


@dataclass(frozen=True)
class Path:
    """
    Pieces of one lap. If `periodic`, the single piece closes smoothly, so laps need no stop.

    If `closed` but not `periodic` (square, cardioid), every piece is driven from rest to rest.
    """

    pieces: tuple[Curve, ...]
    closed: bool
    periodic: bool

    @property
    def length(self) -> float:
        """Length of one lap [m]."""
        return sum(piece.length for piece in self.pieces)

    def sample(self, n: int) -> Array:
        """Return (n, 3) points [m] of one lap, evenly spaced in arc length, both ends included."""
        starts = np.concatenate([[0.0], np.cumsum([p.length for p in self.pieces])])
        points = np.empty((n, 3))
        for k, s in enumerate(np.linspace(0.0, starts[-1], n)):
            i = min(int(np.searchsorted(starts, s, side='right')) - 1, len(self.pieces) - 1)
            points[k] = self.pieces[i].at(s - starts[i])[0]
        return points


def plane_axes(normal: tuple[float, float, float], angle_rad: float) -> Array:
    """
    Return orthonormal axes (2, 3) of the plane with this `normal`, rotated by `angle_rad`.

    For normal = z and no rotation, they are the x and y axes of the base.
    """
    z = np.asarray(normal, dtype=float)
    z = z / np.linalg.norm(z)
    seed = np.array([1.0, 0.0, 0.0]) if abs(z[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    x = seed - (seed @ z) * z
    x /= np.linalg.norm(x)
    y = np.cross(z, x)
    c, s = np.cos(angle_rad), np.sin(angle_rad)
    return np.array([c * x + s * y, -s * x + c * y])


def build_path(config: TrajectoryConfig) -> Path:
    """Return the path of a trajectory configuration."""
    if isinstance(config, WaypointsConfig):
        return _through_points(np.array(config.points, dtype=float), config.closed)
    if isinstance(config, LineConfig):
        line = Segment(np.array(config.start, float), np.array(config.end, float))
        return Path((line,), False, False)
    center = np.array(config.center, dtype=float)
    axes = plane_axes(config.normal, np.deg2rad(config.start_angle_deg))
    if isinstance(config, CircleConfig):
        return Path((Circle(center, config.radius, axes),), True, True)
    if isinstance(config, SquareConfig):
        reach = config.side / np.sqrt(2.0)
        corners = [center + reach * d for d in (axes[0], axes[1], -axes[0], -axes[1], axes[0])]
        edges = tuple(Segment(a, b) for a, b in pairwise(corners))
        return Path(edges, True, False)
    if isinstance(config, CardioidConfig):
        return Path((Cardioid(center, config.size, axes),), True, False)
    raise TypeError(f'unknown trajectory type {type(config).__name__}')


def _through_points(points: Array, closed: bool) -> Path:
    """Return a smooth curve through points (n, 3), cut where the path turns back."""
    if closed:
        ends_there = np.linalg.norm(points[0] - points[-1]) < MIN_SPACING_M
        points = np.vstack([points[:-1] if ends_there else points, points[:1]])
    ways = np.diff(points, axis=0)
    ways = ways / np.linalg.norm(ways, axis=1, keepdims=True)
    least = math.cos(TURNS_BACK_RAD)
    turns = [k for k in range(1, len(ways)) if ways[k - 1] @ ways[k] < least]
    smooth = closed and not turns and ways[-1] @ ways[0] >= least
    if smooth or (not turns and not closed):
        return Path((SplineCurve(points, closed),), closed, closed)
    cuts = [0, *turns, len(points) - 1]
    pieces = tuple(SplineCurve(points[a : b + 1], False) for a, b in pairwise(cuts))
    return Path(pieces, closed, False)
