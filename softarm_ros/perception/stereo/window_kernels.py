"""
Compiled refraction at a flat window.

Two independent computations: the ray in air towards a point in water, and the ray in water that
continues one in air.
"""

from __future__ import annotations

import math

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel

_NEWTON_STEPS = 50


@kernel
def direction_into(point: Array, origin: Array, window: Array, ray: Array) -> None:
    """
    Write the unit vector (3,) along which a camera in air sees a point in water.

    Solve for the slope of the ray in air: its sideways travel in air, glass and water must add up.
    The sum is increasing and concave in the slope, so Newton's method cannot overshoot when it
    starts from the straight line, which lies below. The result is nan for points that are not
    behind the window.

    Parameters
    ----------
    point, origin : (3,)
        Point and camera centre, in the frame of the window [m].
    window : (8,)
        Normal, distance and thickness [m] of the window, and indices of air, glass and water.
    ray : (3,)
        Output.

    """
    nx, ny, nz = window[0], window[1], window[2]
    thick, glassy, watery = window[4], window[6] / window[5], window[7] / window[5]
    x, y, z = point[0] - origin[0], point[1] - origin[1], point[2] - origin[2]
    along = x * nx + y * ny + z * nz
    x, y, z = x - along * nx, y - along * ny, z - along * nz
    reach = math.sqrt(x * x + y * y + z * z)
    gap = window[3] - (origin[0] * nx + origin[1] * ny + origin[2] * nz)
    depth = along - gap - thick
    ray[0] = ray[1] = ray[2] = math.nan
    if not depth >= 0.0:
        return
    slope = reach / (gap + thick + depth)
    for _ in range(_NEWTON_STEPS):
        glass, glass_rate = _slope_behind(slope, glassy)
        water, water_rate = _slope_behind(slope, watery)
        miss = gap * slope + thick * glass + depth * water - reach
        step = miss / (gap + thick * glass_rate + depth * water_rate)
        slope -= step
        if not abs(step) > 1e-15 * (1.0 + slope):
            break
    lean = slope / reach if reach > 0.0 else 0.0
    length = math.sqrt(1.0 + slope * slope)
    ray[0] = (nx + lean * x) / length
    ray[1] = (ny + lean * y) / length
    ray[2] = (nz + lean * z) / length


@kernel
def _slope_behind(slope: float, ratio: float) -> tuple[float, float]:
    """Return the slope (tangent) of the refracted ray for that in air, and its derivative."""
    square = ratio * ratio + (ratio * ratio - 1.0) * slope * slope
    root = math.sqrt(square)
    return slope / root, ratio * ratio / (square * root)


@kernel
def directions_into(points: Array, origin: Array, window: Array, rays: Array) -> None:
    """Write the directions (n, 3) to points (n, 3); parameters as for `direction_into`."""
    for n in range(points.shape[0]):
        direction_into(points[n], origin, window, rays[n])


@kernel
def continue_ray(start: Array, ray: Array, window: Array) -> None:
    """
    Trace a ray from a point in air through the window; replace it by its part in water.

    The results are nan if the ray does not reach the window or is totally reflected.

    Parameters
    ----------
    start, ray : (3,)
        Start [m] in front of the dry face, and unit vector; overwritten with the point where the
        ray leaves the wet face, and its unit vector in water.
    window : (8,)
        As for `direction_into`.

    """
    nx, ny, nz = window[0], window[1], window[2]
    towards = ray[0] * nx + ray[1] * ny + ray[2] * nz
    gap = window[3] - (nx * start[0] + ny * start[1] + nz * start[2])
    along = gap / towards if towards > 0.0 else math.nan
    for k in range(3):
        start[k] += ray[k] * along
    _refract(ray, window, window[5] / window[6])
    along = window[4] / (ray[0] * nx + ray[1] * ny + ray[2] * nz)
    for k in range(3):
        start[k] += ray[k] * along
    _refract(ray, window, window[6] / window[7])


@kernel
def continue_rays(starts: Array, rays: Array, window: Array) -> None:
    """Trace rays (n, 3) through the window; parameters as for `continue_ray`."""
    for n in range(starts.shape[0]):
        continue_ray(starts[n], rays[n], window)


@kernel
def _refract(ray: Array, window: Array, ratio: float) -> None:
    """Refract a unit vector at a face with a ratio of the indices before and behind it."""
    cosine = ray[0] * window[0] + ray[1] * window[1] + ray[2] * window[2]
    behind = 1.0 - ratio * ratio * (1.0 - cosine * cosine)
    bent = (math.sqrt(behind) if behind > 0.0 else math.nan) - ratio * cosine
    for k in range(3):
        ray[k] = ratio * ray[k] + bent * window[k]
