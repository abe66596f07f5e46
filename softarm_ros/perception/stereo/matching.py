"""Which mark of the left image and which of the right show the same marker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.perception.stereo.camera import Mask
from softarm_ros.perception.stereo.cameras import SIDES, Side, StereoCameras
from softarm_ros.perception.stereo.detection import Marks
from softarm_ros.perception.stereo.triangulation import triangulate

# Of chi-square with one degree of freedom: 1 in 1000 true pairs is lost.
EPIPOLAR_GATE = 10.83
# Midway between two rays is not where the misfit is least, but near to it.
_HOPELESS = 30.0


@dataclass(frozen=True)
class Candidates:
    """
    Pairs of marks that may show one marker; a mark may be in several.

    Attributes
    ----------
    left, right : (n,)
        Numbers of the marks.
    points : (n, 3)
        In the left camera's frame [m].
    covariances : (n, 3, 3)
        [m2].
    misfit : (n,)
        Square of the epipolar distance by its standard deviation.
    names : tuple of str
        Of markers that carry their own.

    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    points: Array
    covariances: Array
    misfit: Array
    names: tuple[str, ...]

    def chosen(self, which: NDArray[np.int64]) -> Candidates:
        """Return some of them."""
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
    Return the pairs of marks whose rays meet, within what their covariances allow.

    Parameters
    ----------
    cameras : StereoCameras
        With its window, if there is one.
    left, right : Marks
        Of one exposure.
    nearest_m, farthest_m : float
        From either camera, along its view.
    marker_m : float, optional
        Diameter of balls. A blob is then compared with how large it has to be at that distance:
        one that is smaller is partly hidden and its centre is not that of the marker.
    size_tolerance : float
        Of the diameter in the image, as a share.
    together : (left marks, right marks), optional
        Which marks may show one marker; all without it.

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
    """Return how wide (n,) balls at points (n, 3) appear, by where their upper ends appear."""
    X_LC = cameras.pose(side)
    half = 0.5 * marker_m * np.stack([X_LC[:3, 0], -X_LC[:3, 0], X_LC[:3, 1], -X_LC[:3, 1]])
    ends = cameras.project(side, (points_L[None] + half[:, None]).reshape(-1, 3))
    ends = ends.reshape(4, len(points_L), 2)
    across = np.linalg.norm(ends[0] - ends[1], axis=1)
    up: Array = np.linalg.norm(ends[2] - ends[3], axis=1)
    return np.sqrt(across * up)


def unambiguous(found: Candidates) -> Candidates:
    """
    Return the candidates both of whose marks are in no other candidate.

    Where a mark could belong to several, nothing is chosen: which one it is only a prediction can
    tell.
    """
    lefts, rights = found.left.tolist(), found.right.tolist()
    which = [
        n for n in range(len(lefts)) if lefts.count(lefts[n]) == 1 and rights.count(rights[n]) == 1
    ]
    return found.chosen(np.array(which, dtype=np.int64))
