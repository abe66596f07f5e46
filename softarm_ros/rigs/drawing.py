"""Arrays to draw an arm, in viewer and rviz: its centreline, a smooth tube, strands on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import Shape
from softarm_ros.models.section_points import sections_along
from softarm_ros.rigs.outline import Strand

AROUND = 24  # number of points of a ring
OUTSIDE = 1.06  # of the body's radius: strands are drawn outside it to be visible
# Colours of strands with actuators at the low end, middle and high end of their range.
_RAMP = np.array([[70, 110, 170], [230, 190, 60], [215, 48, 39]], dtype=float)


@dataclass(frozen=True)
class Centreline:
    """
    Centreline of an arm, with frames carried along it without twist.

    Attributes
    ----------
    points : (n, 3)
        Points from base to tip [m], base frame.
    across : (n, 2, 3)
        Unit x and y axis of the cross-section at each point; at the first, x of the base frame.
    section : (n,)
        Index of the section that each point belongs to.

    """

    points: Array
    across: Array
    section: NDArray[np.int64]

    def at_angle(self, angle_rad: float) -> Array:
        """Return unit vectors (n, 3) outwards from the line, at an angle [rad] from x about z."""
        x, y = self.across[:, 0], self.across[:, 1]
        return np.asarray(np.cos(angle_rad) * x + np.sin(angle_rad) * y)


def centreline_of(shape: Shape, points: int) -> Centreline:
    """Return the centreline of a shape with `points` points, evenly spaced in arc length."""
    line = shape.centerline(points)
    return Centreline(line, carried_axes(line), sections_along(line, shape))


def carried_axes(line: Array) -> Array:
    """Return axes (n, 2, 3) across a line, with the least rotation from point to point."""
    tangents = np.gradient(line, axis=0)
    tangents /= np.maximum(np.linalg.norm(tangents, axis=1, keepdims=True), 1e-12)
    across = []
    x, before = [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]  # x and z axis of the base frame
    for tangent in tangents.tolist():
        # The smallest rotation from one tangent to the next: about their normal.
        axis, cosine = _cross(before, tangent), _dot(before, tangent)
        if cosine > -1.0 + 1e-9:
            share = _dot(axis, x) / (1.0 + cosine)
            x = [cosine * a + b + share * c for a, b, c in zip(x, _cross(axis, x), axis)]
        along = _dot(tangent, x)  # of rounding errors
        x = [a - along * t for a, t in zip(x, tangent)]
        size = math.hypot(*x)
        x = [a / size for a in x]
        across.append((x, _cross(tangent, x)))
        before = tangent
    return np.array(across)


# Plain numbers: numpy's functions take ten times as long for three of them.
def _dot(a: list[float], b: list[float]) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _cross(a: list[float], b: list[float]) -> list[float]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def tube(line: Centreline, radii_m: Sequence[float]) -> tuple[Array, NDArray[np.int64]]:
    """
    Return vertices (n * AROUND + 2, 3) [m] and triangles (t, 3) of a closed tube.

    `radii_m` holds the radius of each section. The triangles depend only on the number of points.
    """
    radius = np.asarray(radii_m, dtype=float)[line.section]
    angle = np.linspace(0.0, 2.0 * np.pi, AROUND, endpoint=False)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rings = line.points[:, None] + radius[:, None, None] * np.einsum(
        'ka,nad->nkd', circle, line.across
    )
    vertices = np.concatenate([rings.reshape(-1, 3), line.points[[0, -1]]])
    return vertices, _triangles(len(line.points))


def _triangles(points: int) -> NDArray[np.int64]:
    ring, k = np.arange(AROUND), np.roll(np.arange(AROUND), -1)
    faces = []
    for i in range(points - 1):
        a, b = i * AROUND, (i + 1) * AROUND
        faces += [np.stack([a + ring, a + k, b + k], 1), np.stack([a + ring, b + k, b + ring], 1)]
    base, tip, last = points * AROUND, points * AROUND + 1, (points - 1) * AROUND
    faces.append(np.stack([np.full(AROUND, base), k, ring], 1))
    faces.append(np.stack([np.full(AROUND, tip), last + ring, last + k], 1))
    return np.concatenate(faces)


def strand_lines(
    line: Centreline, strands: Sequence[Strand], radii_m: Sequence[float]
) -> list[Array]:
    """Return points (n, 3) [m] of each strand, outside the body with these radii of sections."""
    return [
        strand_points(line, each, OUTSIDE * radii_m[each.section] / max(abs(each.radius_m), 1e-6))
        for each in strands
    ]


def strand_colours(
    strands: Sequence[Strand], command: Array | None, limits: ActuatorLimits
) -> Array:
    """Return red, green, blue (n, 3) from 0 to 255, by the commands' shares of their ranges."""
    low, high = limits.position_min, limits.position_max
    share = np.zeros(len(low))
    if command is not None:
        share = np.clip((command - low) / (high - low), 0.0, 1.0)
    places = [2.0 * share[each.actuator] for each in strands]
    return np.stack(
        [np.interp(places, (0.0, 1.0, 2.0), _RAMP[:, channel]) for channel in range(3)], axis=1
    )


def strand_points(line: Centreline, strand: Strand, out_by: float = 1.0) -> Array:
    """Return points (n, 3) [m] of a strand, its distance from the centreline times `out_by`."""
    on = np.flatnonzero(line.section == strand.section)
    radius = out_by * np.linspace(strand.radius_m, strand.end_radius_m, len(on))
    return np.asarray(
        line.points[on] + radius[:, None] * line.at_angle(strand.angle_rad)[on], dtype=np.float64
    )
