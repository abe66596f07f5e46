"""Compiled pinhole projection with the lens distortion of OpenCV, and its inverse."""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel

_NEWTON_STEPS = 30
_CONVERGED = 1e-12  # error of normalised coordinates


@kernel
def project_into(points: Array, matrix: Array, lens: Array, pixels: Array) -> None:
    """
    Project points (n, 3) of a camera's frame to pixels (n, 2); nan if a point is not visible.

    Parameters
    ----------
    points : (n, 3)
        Points [m].
    matrix : (3, 3)
        [[fx, skew, cx], [0, fy, cy], [0, 0, 1]] [px].
    lens : (8,)
        k1, k2, p1, p2, k3, k4, k5, k6.
    pixels : (n, 2)
        Output.

    """
    bent = np.empty(6)
    for n in range(points.shape[0]):
        project_point(points[n, 0], points[n, 1], points[n, 2], matrix, lens, bent, pixels[n])


@kernel
def project_point(
    x: float, y: float, z: float, matrix: Array, lens: Array, bent: Array, pixel: Array
) -> None:
    """Project a point of a camera's frame [m] to a pixel (2,); `bent` (6,) is scratch."""
    pixel[0] = pixel[1] = math.nan
    if not z > 0.0:
        return
    _distort(x / z, y / z, lens, bent)
    if _upright(bent):
        pixel[0] = matrix[0, 0] * bent[0] + matrix[0, 1] * bent[1] + matrix[0, 2]
        pixel[1] = matrix[1, 1] * bent[1] + matrix[1, 2]


@kernel
def directions_into(pixels: Array, matrix: Array, lens: Array, rays: Array) -> None:
    """
    Write the unit vectors (n, 3) of the rays of pixels (n, 2); nan if there is none.

    Newton's method inverts the distortion; a vector is nan if it does not converge. The parameters
    are those of `project_into`; `rays` is the output.
    """
    bent = np.empty(6)
    for n in range(pixels.shape[0]):
        rays[n, 0] = rays[n, 1] = rays[n, 2] = math.nan
        y0 = (pixels[n, 1] - matrix[1, 2]) / matrix[1, 1]
        x0 = (pixels[n, 0] - matrix[0, 2] - matrix[0, 1] * y0) / matrix[0, 0]
        x, y = x0, y0
        for _ in range(_NEWTON_STEPS):
            _distort(x, y, lens, bent)
            miss_x, miss_y = bent[0] - x0, bent[1] - y0
            if not (math.isfinite(miss_x) and math.isfinite(miss_y)):
                break
            if max(abs(miss_x), abs(miss_y)) < _CONVERGED:
                if _upright(bent):
                    length = math.sqrt(x * x + y * y + 1.0)
                    rays[n, 0], rays[n, 1], rays[n, 2] = x / length, y / length, 1.0 / length
                break
            det = bent[2] * bent[5] - bent[3] * bent[4]
            x -= (bent[5] * miss_x - bent[3] * miss_y) / det
            y -= (bent[2] * miss_y - bent[4] * miss_x) / det


@kernel
def _distort(x: float, y: float, lens: Array, bent: Array) -> None:
    """Write (6,): distorted normalised coordinates, and their derivatives xx, xy, yx, yy."""
    k1, k2, p1, p2 = lens[0], lens[1], lens[2], lens[3]
    k3, k4, k5, k6 = lens[4], lens[5], lens[6], lens[7]
    r2 = x * x + y * y
    above = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3))
    below = 1.0 + r2 * (k4 + r2 * (k5 + r2 * k6))
    radial = above / below
    above_slope = k1 + r2 * (2.0 * k2 + 3.0 * k3 * r2)
    below_slope = k4 + r2 * (2.0 * k5 + 3.0 * k6 * r2)
    radial_slope = (above_slope - radial * below_slope) / below  # derivative by r2
    bent[0] = x * radial + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x)
    bent[1] = y * radial + p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y
    bent[2] = radial + 2.0 * x * x * radial_slope + 2.0 * p1 * y + 6.0 * p2 * x
    bent[3] = 2.0 * x * y * radial_slope + 2.0 * p1 * x + 2.0 * p2 * y
    bent[4] = bent[3]
    bent[5] = radial + 2.0 * y * y * radial_slope + 6.0 * p1 * y + 2.0 * p2 * x


@kernel
def _upright(bent: Array) -> bool:
    """
    Return whether the distortion keeps neighbours in order.

    It does so near the axis. Farther out, the model folds back into the image, unlike a real lens.
    """
    return bent[2] * bent[5] - bent[3] * bent[4] > 0.0 and bent[2] + bent[5] > 0.0
