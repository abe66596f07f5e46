"""Pinhole camera with the lens distortion of OpenCV, up to its rational model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softarm_ros.geometry.arrays import Array, finite_array
from softarm_ros.perception.stereo.lens_kernels import directions_into, project_into

Mask = NDArray[np.bool_]

_COEFFICIENTS = (4, 5, 8)
_FIXED = (np.array([1, 2, 2, 2]), np.array([0, 0, 1, 2]))  # entries that nothing reads


class CameraError(ValueError):
    """A camera's parameters, images or calibration are unusable; the message gives the reason."""


@dataclass(frozen=True)
class Camera:
    """
    A calibrated camera; its frame has x to the right of the image, y down, z along the view.

    Attributes
    ----------
    name : str
        For messages.
    size : (int, int)
        Width and height of its images [px].
    matrix : (3, 3)
        [[fx, skew, cx], [0, fy, cy], [0, 0, 1]] [px]; the centre of the first pixel is (0, 0).
    distortion : (4,), (5,) or (8,)
        k1, k2, p1, p2, k3, k4, k5, k6 in OpenCV's order and meaning.

    Raises
    ------
    CameraError
        If an attribute has a wrong shape or is not finite, a focal length is not positive, or the
        matrix is none of a camera.

    """

    name: str
    size: tuple[int, int]
    matrix: Array
    distortion: Array

    def __post_init__(self) -> None:
        if min(self.size) < 1:
            raise CameraError(f'camera {self.name}: size = {self.size}: expected positive pixels')
        count = np.size(self.distortion)
        if count not in _COEFFICIENTS:
            raise CameraError(
                f'camera {self.name}: distortion has {count} numbers: expected 4, 5 or 8'
            )
        try:
            matrix = finite_array(self.matrix, (3, 3), 'matrix')
            finite_array(np.ravel(self.distortion), (count,), 'distortion')
        except ValueError as error:
            raise CameraError(f'camera {self.name}: {error}') from None
        if min(matrix[0, 0], matrix[1, 1]) <= 0.0:
            raise CameraError(f'camera {self.name}: focal length must be positive [px]')
        if not np.array_equal(matrix[_FIXED], [0.0, 0.0, 0.0, 1.0]):
            raise CameraError(
                f'camera {self.name}: matrix = {matrix.tolist()}: expected '
                '[[fx, skew, cx], [0, fy, cy], [0, 0, 1]]'
            )

    def project(self, points_C: ArrayLike) -> Array:
        """
        Project points (n, 3) of the camera's frame to pixels (n, 2).

        A pixel is nan if the point is not before the camera, or so far outside the image that the
        distortion folds back on itself.
        """
        points = np.ascontiguousarray(points_C, dtype=np.float64).reshape(-1, 3)
        pixels = np.empty((len(points), 2))
        project_into(points, *self.numbers, pixels)
        return pixels

    def directions(self, pixels: ArrayLike) -> Array:
        """
        Return the unit vectors (n, 3) of the rays of pixels (n, 2); nan if there is none.

        Newton's method inverts the distortion; a vector is nan if it does not converge.
        """
        given = np.ascontiguousarray(pixels, dtype=np.float64).reshape(-1, 2)
        rays = np.empty((len(given), 3))
        directions_into(given, *self.numbers, rays)
        return rays

    def apart_px(self, other: Camera) -> float:
        """
        Return the largest difference of projections by this and another lens [px].

        The points cover an image of this camera's size. The difference is infinite if the other
        camera does not see one of them.
        """
        width, height = self.size
        x, y = np.meshgrid(np.linspace(0.0, width - 1, 9), np.linspace(0.0, height - 1, 7))
        pixels = np.column_stack([x.ravel(), y.ravel()])
        rays = self.directions(pixels)
        seen = np.isfinite(rays).all(axis=1)
        off = np.linalg.norm(other.project(rays[seen]) - pixels[seen], axis=1)
        return float(np.max(np.where(np.isnan(off), np.inf, off), initial=0.0))

    def shows(self, pixels: Array, margin_px: float = 0.0) -> Mask:
        """Return which pixels (n, 2) lie in the image with a margin to its edges (n,)."""
        width, height = self.size
        x, y = pixels[:, 0], pixels[:, 1]
        inside: Mask = (
            (x >= margin_px - 0.5)
            & (x <= width - 0.5 - margin_px)
            & (y >= margin_px - 0.5)
            & (y <= height - 0.5 - margin_px)
        )
        return inside

    @cached_property
    def numbers(self) -> tuple[Array, Array]:
        """Matrix (3, 3) and distortion (8,) for compiled code."""
        lens = np.zeros(8)
        lens[: np.size(self.distortion)] = np.ravel(self.distortion)
        return np.ascontiguousarray(self.matrix, dtype=np.float64), lens
