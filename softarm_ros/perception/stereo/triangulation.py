"""Triangulation: start from the points nearest to both rays, then minimise reprojection error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array
from softarm_ros.perception.stereo.cameras import StereoCameras
from softarm_ros.perception.stereo.pair_kernels import triangulate_pairs


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
    points, covariances, misfit = np.empty((count, 3)), np.empty((count, 3, 3)), np.empty(count)
    triangulate_pairs(seen, weight, *cameras.numbers, hopeless, points, covariances, misfit)
    return Triangulated(points, covariances, misfit)
