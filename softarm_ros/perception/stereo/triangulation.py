"""Triangulation: start from the points nearest to both rays, then minimise reprojection error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array
from softarm_ros.perception.stereo.camera import Mask
from softarm_ros.perception.stereo.cameras import StereoCameras
from softarm_ros.perception.stereo.pair_kernels import refine_points


@dataclass(frozen=True)
class Triangulated:
    """
    Points of n pairs of pixels, in the left camera's frame; nan if the rays do not meet.

    Attributes
    ----------
    points : (n, 3)
        Points [m].
    covariances : (n, 3, 3)
        Covariances of the points, from those of the pixels [m2].
    misfit : (n,)
        Squared reprojection error, weighted by the pixels' covariance. For pixels that show the
        same point it is chi-square with one degree of freedom (four numbers minus three): the
        squared ratio of the epipolar distance, with distortion and refraction, to its standard
        deviation.

    """

    points: Array
    covariances: Array
    misfit: Array


def nearest_to_rays(left: tuple[Array, Array], right: tuple[Array, Array]) -> tuple[Array, Mask]:
    """
    Return the points (n, 3) midway between rays (starts, unit vectors), and which lie ahead (n,).

    The points of parallel rays are nan.
    """
    (a, u), (b, v) = left, right
    across = b - a
    cosine = np.einsum('ni,ni->n', u, v)
    along_u, along_v = np.einsum('ni,ni->n', across, u), np.einsum('ni,ni->n', across, v)
    with np.errstate(all='ignore'):
        apart = 1.0 - cosine * cosine
        apart = np.where(apart > 1e-12, apart, np.nan)
        s = (along_u - cosine * along_v) / apart
        t = (cosine * along_u - along_v) / apart
        return 0.5 * (a + s[:, None] * u + b + t[:, None] * v), (s > 0.0) & (t > 0.0)


def triangulate(
    cameras: StereoCameras,
    left_px: ArrayLike,
    right_px: ArrayLike,
    left_covariances: ArrayLike | None = None,
    right_covariances: ArrayLike | None = None,
    *,
    hopeless: float = np.inf,
) -> Triangulated:
    """
    Return the points shown by n pairs of pixels.

    Parameters
    ----------
    cameras : StereoCameras
        The cameras, with the window if there is one.
    left_px, right_px : (n, 2)
        Pixels in the distorted images.
    left_covariances, right_covariances : (n, 2, 2), optional
        Covariances of the pixels [px2]; by default those of a standard deviation of 1 px.
    hopeless : float
        Largest misfit of the point midway between the rays. Pairs beyond it get nan without a
        search, which would cost most for them.

    """
    pixels = [np.asarray(p, dtype=np.float64).reshape(-1, 2) for p in (left_px, right_px)]
    count = len(pixels[0])
    seen = np.concatenate(pixels, axis=1)
    weight = np.zeros((count, 4, 4))
    for place, given in ((0, left_covariances), (2, right_covariances)):
        each = np.eye(2) if given is None else np.linalg.inv(np.asarray(given).reshape(-1, 2, 2))
        weight[:, place : place + 2, place : place + 2] = each
    points, ahead = nearest_to_rays(
        cameras.rays('left', pixels[0]), cameras.rays('right', pixels[1])
    )
    points[~ahead] = np.nan
    covariances, misfit = np.empty((count, 3, 3)), np.empty(count)
    refine_points(points, seen, weight, *cameras.numbers, hopeless, covariances, misfit)
    return Triangulated(points, covariances, misfit)
