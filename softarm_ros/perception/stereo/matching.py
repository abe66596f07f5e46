"""Matching of marks in the left and right image that show the same marker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.perception.stereo.camera import Mask
from softarm_ros.perception.stereo.cameras import StereoCameras
from softarm_ros.perception.stereo.detection import Marks
from softarm_ros.perception.stereo.match_kernels import match_marks

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
        Triangulated points, in the left camera's frame unless another was given [m].
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
    X: Array | None = None,
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
    X : (4, 4), optional
        Pose of the left camera in the frame of the points; by default that of the camera.

    """
    counts = len(left.pixels), len(right.pixels)
    allowed = np.ones(counts, dtype=bool) if together is None else together
    if any(left.names) or any(right.names):
        allowed = allowed.copy()
        for a, name in enumerate(left.names):
            allowed[a] &= np.array([name == other for other in right.names], dtype=bool)
    lefts, rights, points, covariances, misfit = match_marks(
        _arrays(left),
        _arrays(right),
        allowed,
        *cameras.numbers,
        (nearest_m, farthest_m),
        (np.nan if marker_m is None else marker_m, size_tolerance),
        (EPIPOLAR_GATE, _HOPELESS * EPIPOLAR_GATE),
        np.eye(4) if X is None else X,
    )
    names = left.names
    return Candidates(
        lefts, rights, points, covariances, misfit, tuple(names[a] for a in lefts.tolist())
    )


def _arrays(marks: Marks) -> tuple[Array, Array, Array]:
    """Return the arrays of marks as compiled code takes them."""
    return (
        np.ascontiguousarray(marks.pixels),
        np.ascontiguousarray(marks.covariances),
        np.ascontiguousarray(marks.areas),
    )


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
