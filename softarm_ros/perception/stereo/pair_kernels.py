"""Compiled pair of cameras: projection of points, and triangulation of pairs of pixels."""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.linear_kernels import weighted_square
from softarm_ros.perception.stereo.lens_kernels import directions_into, project_point
from softarm_ros.perception.stereo.window_kernels import continue_ray, direction_into

_STEP_M = 1e-6  # step of the central differences
_CONVERGED_M = 1e-8  # length of a last step; the next would be far smaller
_FLAT_M = 2e-3  # after a shorter step, the previous derivatives are still good enough
_STEPS = 10
_REGULAR = 1e14  # largest condition number of an invertible matrix
_APART = 1e-12  # square of the sine of the least angle between two rays


@kernel
def project_through(
    points: Array, matrix: Array, lens: Array, X_LC: Array, window: Array, pixels: Array
) -> None:
    """
    Project points to pixels (n, 2) of one image; nan if a point is not visible.

    Parameters
    ----------
    points : (n, 3)
        Points in the left camera's frame [m].
    matrix, lens : (3, 3), (8,)
        As for `project_into`.
    X_LC : (4, 4)
        Pose of the camera in the left one's frame.
    window : (8,) or (0,)
        As for `direction_into`; empty without a window.
    pixels : (n, 2)
        Output.

    """
    bent, ray = np.empty(6), np.empty(3)
    for n in range(points.shape[0]):
        _appear(points[n], matrix, lens, X_LC, window, bent, ray, pixels[n])


@kernel
def _appear(
    point: Array,
    matrix: Array,
    lens: Array,
    X_LC: Array,
    window: Array,
    bent: Array,
    ray: Array,
    pixel: Array,
) -> None:
    if window.shape[0] == 0:
        for axis in range(3):
            ray[axis] = point[axis] - X_LC[axis, 3]
    else:
        direction_into(point, X_LC[:3, 3], window, ray)
    x = ray[0] * X_LC[0, 0] + ray[1] * X_LC[1, 0] + ray[2] * X_LC[2, 0]
    y = ray[0] * X_LC[0, 1] + ray[1] * X_LC[1, 1] + ray[2] * X_LC[2, 1]
    z = ray[0] * X_LC[0, 2] + ray[1] * X_LC[1, 2] + ray[2] * X_LC[2, 2]
    project_point(x, y, z, matrix, lens, bent, pixel)


@kernel
def triangulate_pairs(
    seen: Array,
    weights: Array,
    matrices: Array,
    lenses: Array,
    poses: Array,
    window: Array,
    hopeless: float,
    points: Array,
    covariances: Array,
    misfits: Array,
) -> None:
    """
    Triangulate pairs of pixels; parameters as for `refine_points`, but `points` is output only.

    The search starts midway between both rays, and fails if they are parallel or meet behind a
    camera.
    """
    count = seen.shape[0]
    pixels = np.empty((count, 2))
    starts, rays = np.empty((2, count, 3)), np.empty((2, count, 3))
    for side in range(2):
        pixels[:] = seen[:, 2 * side : 2 * side + 2]
        rays_into(
            pixels,
            matrices[side],
            lenses[side],
            poses[side],
            window,
            starts[side],
            rays[side],
        )
    for n in range(count):
        midway(starts[0, n], rays[0, n], starts[1, n], rays[1, n], points[n])
    refine_points(
        points, seen, weights, matrices, lenses, poses, window, hopeless, covariances, misfits
    )


@kernel
def rays_into(
    pixels: Array,
    matrix: Array,
    lens: Array,
    X_LC: Array,
    window: Array,
    starts: Array,
    rays: Array,
) -> None:
    """
    Write the starts and unit vectors (n, 3) of the rays of pixels (n, 2), in the arm's medium.

    The parameters are those of `project_through`.
    """
    directions_into(pixels, matrix, lens, rays)
    for n in range(pixels.shape[0]):
        x, y, z = rays[n, 0], rays[n, 1], rays[n, 2]
        for k in range(3):
            starts[n, k] = X_LC[k, 3]
            rays[n, k] = X_LC[k, 0] * x + X_LC[k, 1] * y + X_LC[k, 2] * z
        if window.shape[0] > 0:
            continue_ray(starts[n], rays[n], window)


@kernel
def midway(a: Array, u: Array, b: Array, v: Array, point: Array) -> None:
    """Write the point midway between rays from a along u and from b along v; nan if none."""
    cosine = along_u = along_v = 0.0
    for k in range(3):
        cosine += u[k] * v[k]
        along_u += (b[k] - a[k]) * u[k]
        along_v += (b[k] - a[k]) * v[k]
    apart = 1.0 - cosine * cosine
    point[0] = point[1] = point[2] = math.nan
    if not apart > _APART:
        return
    s = (along_u - cosine * along_v) / apart
    t = (cosine * along_u - along_v) / apart
    if s > 0.0 and t > 0.0:
        for k in range(3):
            point[k] = 0.5 * (a[k] + s * u[k] + b[k] + t * v[k])


@kernel
def refine_points(
    points: Array,
    seen: Array,
    weights: Array,
    matrices: Array,
    lenses: Array,
    poses: Array,
    window: Array,
    hopeless: float,
    covariances: Array,
    misfits: Array,
) -> None:
    """
    Move points to the minimum of their squared reprojection error (Gauss-Newton).

    Parameters
    ----------
    points : (n, 3)
        Initial points [m]; overwritten with the results, nan for failures.
    seen : (n, 4)
        Pixels of the left and the right image [px].
    weights : (n, 4, 4)
        Inverse covariance of the pixels [1/px2].
    matrices, lenses, poses : (2, 3, 3), (2, 8), (2, 4, 4)
        Parameters of both cameras, as for `project_through`.
    window : (8,) or (0,)
        As for `project_through`.
    hopeless : float
        Largest initial misfit; points with a larger one are given up.
    covariances, misfits : (n, 3, 3), (n,)
        Output [m2]; nan for failures.

    """
    bent, ray = np.empty(6), np.empty(3)
    shown, before, after = np.empty(4), np.empty(4), np.empty(4)
    moved, slope, miss = np.empty(3), np.empty((4, 3)), np.empty(4)
    information, inverse, gradient = np.empty((3, 3)), np.empty((3, 3)), np.empty(3)
    for n in range(points.shape[0]):
        covariances[n] = math.nan
        misfits[n] = math.nan
        length = math.inf
        for trial in range(_STEPS):
            point = points[n]
            _both(point, matrices, lenses, poses, window, bent, ray, shown)
            for i in range(4):
                miss[i] = shown[i] - seen[n, i]
            if trial == 0 and not weighted_square(miss, weights[n]) < hopeless:
                points[n] = math.nan
            if not math.isfinite(points[n, 0] + points[n, 1] + points[n, 2]):
                break
            if length > _FLAT_M:
                for axis in range(3):
                    for k in range(3):
                        moved[k] = point[k] + (_STEP_M if k == axis else 0.0)
                    _both(moved, matrices, lenses, poses, window, bent, ray, after)
                    moved[axis] = point[axis] - _STEP_M
                    _both(moved, matrices, lenses, poses, window, bent, ray, before)
                    for i in range(4):
                        slope[i, axis] = (after[i] - before[i]) / (2.0 * _STEP_M)
                _normal(slope, weights[n], information)
                if not invert_symmetric(information, inverse):
                    points[n] = math.nan
                    break
            for k in range(3):
                gradient[k] = 0.0
                for i in range(4):
                    for j in range(4):
                        gradient[k] += slope[i, k] * weights[n, i, j] * miss[j]
            length = 0.0
            for k in range(3):
                step = 0.0
                for j in range(3):
                    step += inverse[k, j] * gradient[j]
                points[n, k] -= step
                length = max(length, abs(step))
            if length <= _CONVERGED_M:
                break
        if math.isfinite(points[n, 0] + points[n, 1] + points[n, 2]):
            _both(points[n], matrices, lenses, poses, window, bent, ray, shown)
            for i in range(4):
                miss[i] = shown[i] - seen[n, i]
            misfits[n] = weighted_square(miss, weights[n])
            covariances[n] = inverse


@kernel
def _both(
    point: Array,
    matrices: Array,
    lenses: Array,
    poses: Array,
    window: Array,
    bent: Array,
    ray: Array,
    shown: Array,
) -> None:
    """Project a point to both images (4,) [px]."""
    for side in range(2):
        pixel = shown[2 * side : 2 * side + 2]
        _appear(point, matrices[side], lenses[side], poses[side], window, bent, ray, pixel)


@kernel
def _normal(slope: Array, weight: Array, information: Array) -> None:
    """Write slope^T weight slope (3, 3)."""
    for a in range(3):
        for b in range(3):
            total = 0.0
            for i in range(4):
                for j in range(4):
                    total += slope[i, a] * weight[i, j] * slope[j, b]
            information[a, b] = total


@kernel
def invert_symmetric(matrix: Array, inverse: Array) -> bool:
    """Write the inverse of a symmetric matrix (3, 3); return whether it is well conditioned."""
    for i in range(3):
        for j in range(3):
            a, b = (j + 1) % 3, (j + 2) % 3
            c, d = (i + 1) % 3, (i + 2) % 3
            inverse[i, j] = matrix[a, c] * matrix[b, d] - matrix[a, d] * matrix[b, c]
    det = 0.0
    for k in range(3):
        det += matrix[0, k] * inverse[k, 0]
    if not det > 0.0:
        return False
    for i in range(3):
        for j in range(3):
            inverse[i, j] /= det
    # This product exceeds the condition number by less than a factor of ten.
    size = matrix[0, 0] + matrix[1, 1] + matrix[2, 2]
    return size * (inverse[0, 0] + inverse[1, 1] + inverse[2, 2]) < _REGULAR
