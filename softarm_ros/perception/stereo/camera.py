"""A camera: pinhole with the lens distortion of OpenCV, up to its rational model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softarm_ros.geometry.arrays import Array, finite_array

Mask = NDArray[np.bool_]

_COEFFICIENTS = (4, 5, 8)
_NEWTON_STEPS = 30
_CONVERGED = 1e-12  # of normalised coordinates


class CameraError(ValueError):
    """A camera's numbers, images or calibration cannot be used; says which and why."""


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
        [[fx, 0, cx], [0, fy, cy], [0, 0, 1]] [px]; the centre of the first pixel is (0, 0).
    distortion : (4,), (5,) or (8,)
        k1, k2, p1, p2, k3, k4, k5, k6 in OpenCV's order and meaning.

    Raises
    ------
    CameraError
        If one of them has another shape, is not finite, or no focal length is positive.

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

    def project(self, points_C: ArrayLike) -> Array:
        """
        Return where points (n, 3) of the camera's frame appear (n, 2) [px].

        A point that is not before the camera, or so far outside the image that the distortion
        has folded back on itself, appears nowhere: nan.
        """
        points = np.asarray(points_C, dtype=np.float64).reshape(-1, 3)
        before = points[:, 2] > 0.0
        depth = np.where(before, points[:, 2], np.nan)
        flat = points[:, :2] / depth[:, None]
        bent, slope = self._distorted(flat)
        bent[~_upright(slope)] = np.nan
        return self._pixels(bent)

    def directions(self, pixels: ArrayLike) -> Array:
        """
        Return unit vectors (n, 3), along which pixels (n, 2) look; nan where the lens has none.

        Newton's method on the distortion; a pixel is nan where it does not converge.
        """
        given = np.asarray(pixels, dtype=np.float64).reshape(-1, 2)
        K = self.matrix
        y = (given[:, 1] - K[1, 2]) / K[1, 1]
        wanted = np.column_stack([(given[:, 0] - K[0, 2] - K[0, 1] * y) / K[0, 0], y])
        flat = wanted.copy()
        todo = np.flatnonzero(np.isfinite(wanted).all(axis=1))
        solved = np.zeros(len(given), dtype=bool)
        with np.errstate(all='ignore'):
            for _ in range(_NEWTON_STEPS):
                bent, slope = self._distorted(flat[todo])
                miss = bent - wanted[todo]
                near = np.abs(miss).max(axis=1) < _CONVERGED
                solved[todo[near & _upright(slope)]] = True
                keep = ~near & np.isfinite(miss).all(axis=1)
                todo, miss, slope = todo[keep], miss[keep], slope[keep]
                if not todo.size:
                    break
                det = slope[:, 0, 0] * slope[:, 1, 1] - slope[:, 0, 1] * slope[:, 1, 0]
                flat[todo] -= np.column_stack(
                    [
                        (slope[:, 1, 1] * miss[:, 0] - slope[:, 0, 1] * miss[:, 1]) / det,
                        (slope[:, 0, 0] * miss[:, 1] - slope[:, 1, 0] * miss[:, 0]) / det,
                    ]
                )
        flat[~solved] = np.nan
        rays = np.column_stack([flat, np.ones(len(flat))])
        return rays / np.linalg.norm(rays, axis=1, keepdims=True)

    def shows(self, pixels: Array, margin_px: float = 0.0) -> Mask:
        """Return which pixels (n, 2) lie within the image, so far from its edges (n,)."""
        width, height = self.size
        x, y = pixels[:, 0], pixels[:, 1]
        inside: Mask = (
            (x >= margin_px - 0.5)
            & (x <= width - 0.5 - margin_px)
            & (y >= margin_px - 0.5)
            & (y <= height - 0.5 - margin_px)
        )
        return inside

    def _pixels(self, flat: Array) -> Array:
        K = self.matrix
        return np.column_stack(
            [
                K[0, 0] * flat[:, 0] + K[0, 1] * flat[:, 1] + K[0, 2],
                K[1, 1] * flat[:, 1] + K[1, 2],
            ]
        )

    def _distorted(self, flat: Array) -> tuple[Array, Array]:
        """Return normalised coordinates (n, 2) behind the lens, and their slope (n, 2, 2)."""
        k = np.zeros(8)
        k[: np.size(self.distortion)] = np.ravel(self.distortion)
        k1, k2, p1, p2, k3, k4, k5, k6 = k
        x, y = flat[:, 0], flat[:, 1]
        with np.errstate(all='ignore'):
            r2 = x * x + y * y
            above = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3))
            below = 1.0 + r2 * (k4 + r2 * (k5 + r2 * k6))
            radial = above / below
            above_slope = k1 + r2 * (2.0 * k2 + 3.0 * k3 * r2)
            below_slope = k4 + r2 * (2.0 * k5 + 3.0 * k6 * r2)
            radial_slope = (above_slope - radial * below_slope) / below  # by r2
            bent = np.column_stack(
                [
                    x * radial + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x),
                    y * radial + p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y,
                ]
            )
            slope = np.empty((len(flat), 2, 2))
            slope[:, 0, 0] = radial + 2.0 * x * x * radial_slope + 2.0 * p1 * y + 6.0 * p2 * x
            slope[:, 0, 1] = 2.0 * x * y * radial_slope + 2.0 * p1 * x + 2.0 * p2 * y
            slope[:, 1, 0] = slope[:, 0, 1]
            slope[:, 1, 1] = radial + 2.0 * y * y * radial_slope + 6.0 * p1 * y + 2.0 * p2 * x
        return bent, slope


def _upright(slopes: Array) -> Mask:
    """
    Return where (n,) the distortion keeps neighbours in order; slopes (n, 2, 2).

    It does so around the axis; beyond, it returns into the image, which no lens does.
    """
    determinant = slopes[:, 0, 0] * slopes[:, 1, 1] - slopes[:, 0, 1] * slopes[:, 1, 0]
    upright: Mask = (determinant > 0.0) & (slopes[:, 0, 0] + slopes[:, 1, 1] > 0.0)
    return upright
