"""Matching of marks in the left and right image that show the same marker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.perception.stereo.camera import Mask
from softarm_ros.perception.stereo.cameras import SIDES, Side, StereoCameras
from softarm_ros.perception.stereo.detection import Marks
from softarm_ros.perception.stereo.triangulation import triangulate

# Quantile of chi-square with one degree of freedom: 1 in 1000 true pairs is lost.
EPIPOLAR_GATE = 10.83
# Multiple of the gate for the initial point, midway between two rays, which is not the best one.
_HOPELESS = 30.0


@dataclass(frozen=True)
class Candidates:
    """
    Pairs of marks that may show the same marker; a mark may be in several pairs.

    Attributes
    ----------
    left, right : (n,)
        Indices of the marks in each image.
    points : (n, 3)
        Triangulated points in the left camera's frame [m].
    covariances : (n, 3, 3)
        Covariances of the points [m2].
    misfit : (n,)
        Square of the ratio of the epipolar distance to its standard deviation.
    names : tuple of str
        Names of ArUco markers; '' for others.

    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    points: Array
    covariances: Array
    misfit: Array
    names: tuple[str, ...]

    def chosen(self, which: NDArray[np.int64]) -> Candidates:
        """Return the candidates with these indices."""
        return Candidates(
            self.left[which],
            self.right[which],
            self.points[which],
            self.covariances[which],
            self.misfit[which],
            tuple(self.names[i] for i in which),
        )


def candidates(
    cameras: StereoCameras,
    left: Marks,
    right: Marks,
    *,
    nearest_m: float = 0.05,
    farthest_m: float = 10.0,
    marker_m: float | None = None,
    size_tolerance: float = 0.25,
    together: Mask | None = None,
) -> Candidates:
    """
    Return the pairs of marks whose rays meet within their covariances.

    Parameters
    ----------
    cameras : StereoCameras
        The cameras, with the window if there is one.
    left, right : Marks
        Marks of one exposure.
    nearest_m, farthest_m : float
        Range of distances from either camera, along its view.
    marker_m : float, optional
        Diameter of balls. The size of a blob is then compared with the expected size at its
        distance: a smaller blob is partly hidden, and its centre is not that of the marker.
    size_tolerance : float
        Relative tolerance of the diameter in the image.
    together : (left marks, right marks), optional
        Which marks may show the same marker; by default all.

    """
    counts = len(left.pixels), len(right.pixels)
    allowed = np.ones(counts, dtype=bool) if together is None else together.copy()
    if any(left.names) or any(right.names):
        for a, name in enumerate(left.names):
            allowed[a] &= np.array([name == other for other in right.names], dtype=bool)
    i, j = np.nonzero(allowed)
    found = triangulate(
        cameras,
        left.pixels[i],
        right.pixels[j],
        left.covariances[i],
        right.covariances[j],
        hopeless=_HOPELESS * EPIPOLAR_GATE,
    )
    with np.errstate(invalid='ignore'):
        good = np.isfinite(found.points).all(axis=1) & (found.misfit < EPIPOLAR_GATE)
        for side, marks, numbers in zip(SIDES, (left, right), (i, j)):
            X_LC = cameras.pose(side)
            depth = (found.points - X_LC[:3, 3]) @ X_LC[:3, 2]
            good &= (depth > nearest_m) & (depth < farthest_m)
            if marker_m is not None:
                wanted = marker_width_px(cameras, side, found.points, marker_m)
                seen = np.sqrt(4.0 / np.pi * marks.areas[numbers])
                good &= np.abs(seen / wanted - 1.0) < size_tolerance
    which = np.flatnonzero(good)
    return Candidates(
        i[which],
        j[which],
        found.points[which],
        found.covariances[which],
        found.misfit[which],
        tuple(left.names[a] for a in i[which]),
    )


def marker_width_px(cameras: StereoCameras, side: Side, points_L: Array, marker_m: float) -> Array:
    """Return the widths (n,) [px] of balls at points (n, 3), from the pixels of their ends."""
    X_LC = cameras.pose(side)
    half = 0.5 * marker_m * np.stack([X_LC[:3, 0], -X_LC[:3, 0], X_LC[:3, 1], -X_LC[:3, 1]])
    ends = cameras.project(side, (points_L[None] + half[:, None]).reshape(-1, 3))
    ends = ends.reshape(4, len(points_L), 2)
    across = np.linalg.norm(ends[0] - ends[1], axis=1)
    up: Array = np.linalg.norm(ends[2] - ends[3], axis=1)
    return np.sqrt(across * up)


def unambiguous(found: Candidates) -> Candidates:
    """
    Return the candidates whose two marks are in no other candidate.

    If a mark is in several candidates, none of these is returned: only a prediction could decide
    between them.
    """
    lefts, rights = found.left.tolist(), found.right.tolist()
    which = [
        n for n in range(len(lefts)) if lefts.count(lefts[n]) == 1 and rights.count(rights[n]) == 1
    ]
    return found.chosen(np.array(which, dtype=np.int64))
