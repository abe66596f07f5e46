"""Compiled search regions: around expected markers, joined, and shared by marks of two images."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.perception.stereo.pair_kernels import project_through

_NEAREST_M = 1e-3  # a marker at the camera's centre is taken to be this far away


@kernel
def regions_around(
    places: Array,
    reaches: Array,
    X_LB: Array,
    radius_m: float,
    rim_px: float,
    refraction: float,
    matrices: Array,
    lenses: Array,
    poses: Array,
    window: Array,
) -> Array:
    """
    Return the regions (2, n, 4) of both images that contain markers; nan for an invisible one.

    A region is from x, y, to x, y [px], in whole pixels.

    Parameters
    ----------
    places : (n, 3)
        Expected positions in the base frame [m].
    reaches : (n,)
        Largest distance of a marker from its place [m].
    X_LB : (4, 4)
        Pose of the base in the left camera's frame.
    radius_m : float
        Radius of a marker.
    rim_px : float
        Width of the rim around the marker.
    refraction : float
        Ratio by which objects behind the window appear nearer; 1 without a window.
    matrices, lenses, poses, window
        As for `refine_points`.

    """
    count = places.shape[0]
    regions = np.empty((2, count, 4))
    middles = np.empty((count, 2))
    seen = moved(places, X_LB)
    for side in range(2):
        X_LC = poses[side]
        project_through(seen, matrices[side], lenses[side], X_LC, window, middles)
        for n in range(count):
            depth = 0.0
            for k in range(3):
                depth += (seen[n, k] - X_LC[k, 3]) * X_LC[k, 2]
            scale = matrices[side, 0, 0] / max(depth, _NEAREST_M) * refraction
            half = scale * (reaches[n] + radius_m) + rim_px
            for k in range(2):
                regions[side, n, k] = math.floor(middles[n, k] - half)
                regions[side, n, k + 2] = math.ceil(middles[n, k] + half) + 1.0
    return regions


@kernel
def moved(points: Array, X: Array) -> Array:
    """Return points (n, 3) moved by a pose (4, 4)."""
    result = np.empty_like(points)
    for n in range(points.shape[0]):
        for i in range(3):
            result[n, i] = (
                X[i, 0] * points[n, 0] + X[i, 1] * points[n, 1] + X[i, 2] * points[n, 2] + X[i, 3]
            )
    return result


@kernel
def joined_regions(regions: Array, width: int, height: int) -> NDArray[np.int64]:
    """Return disjoint regions (m, 4) of an image that cover all finite ones of regions (n, 4)."""
    left = np.empty((regions.shape[0], 4), dtype=np.int64)
    apart = np.empty((regions.shape[0], 4), dtype=np.int64)
    waiting = count = 0
    for n in range(regions.shape[0]):
        x0, y0, x1, y1 = regions[n, 0], regions[n, 1], regions[n, 2], regions[n, 3]
        # A comparison with nan is false.
        if x0 < width and y0 < height and x1 > 0.0 and y1 > 0.0:
            left[waiting, 0], left[waiting, 1] = int(max(x0, 0.0)), int(max(y0, 0.0))
            left[waiting, 2] = int(min(x1, float(width)))
            left[waiting, 3] = int(min(y1, float(height)))
            waiting += 1
    while waiting > 0:
        waiting -= 1
        one = left[waiting]
        met = -1
        for k in range(count):
            other = apart[k]
            beside = one[0] >= other[2] or other[0] >= one[2]
            if not (beside or one[1] >= other[3] or other[1] >= one[3]):
                met = k
                break
        if met < 0:
            apart[count] = one
            count += 1
            continue
        for k in range(2):
            one[k], one[k + 2] = min(one[k], apart[met, k]), max(one[k + 2], apart[met, k + 2])
        waiting += 1
        count -= 1
        for k in range(met, count):
            apart[k] = apart[k + 1]
    return apart[:count].copy()


@kernel
def in_one_region(left: Array, right: Array, regions: Array) -> NDArray[np.bool_]:
    """
    Return which marks (left, right) lie in the regions of the same marker in both images.

    Parameters
    ----------
    left, right : (n, 2), (m, 2)
        Marks of both images [px].
    regions : (2, k, 4)
        Regions of both images, as from `regions_around`.

    """
    together = np.zeros((left.shape[0], right.shape[0]), dtype=np.bool_)
    for k in range(regions.shape[1]):
        for a in range(left.shape[0]):
            if not _inside(left[a], regions[0, k]):
                continue
            for b in range(right.shape[0]):
                if _inside(right[b], regions[1, k]):
                    together[a, b] = True
    return together


@kernel
def _inside(pixel: Array, region: Array) -> bool:
    return (
        pixel[0] >= region[0]
        and pixel[1] >= region[1]
        and pixel[0] < region[2]
        and pixel[1] < region[3]
    )
