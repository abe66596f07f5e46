"""
A flat window between cameras in air and an arm in water: Snell's law at its two faces.

Triangulation traces rays from the camera; projection solves for the ray towards a point. These two
computations are independent except for the parameters of the window.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array, finite_array
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.window_kernels import continue_rays, directions_into


@dataclass(frozen=True)
class FlatWindow:
    """
    A plane-parallel window, in the frame of the left camera.

    Attributes
    ----------
    normal : (3,)
        Unit vector from the air into the water.
    distance_m : float
        Distance of the dry face from the frame's origin, along the normal.
    thickness_m : float
        Thickness of the glass.
    air, glass, water : float
        Refractive indices; water at 20 C and 589 nm 1.333, acrylic 1.491, soda-lime glass 1.52.

    Raises
    ------
    CameraError
        If an attribute is out of range.

    """

    normal: Array
    distance_m: float
    thickness_m: float
    air: float = 1.0003
    glass: float = 1.49
    water: float = 1.333

    def __post_init__(self) -> None:
        normal = finite_array(self.normal, (3,), 'normal of the window')
        length = float(np.linalg.norm(normal))
        if not 0.999 < length < 1.001:
            raise CameraError(f'window: normal has length {length:.4g}: expected 1')
        object.__setattr__(self, 'normal', normal / length)
        for name in ('distance_m', 'thickness_m'):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise CameraError(f'window: {name} = {value}: expected 0 or more')
        for name in ('air', 'glass', 'water'):
            value = getattr(self, name)
            if not 1.0 <= value < 3.0:
                raise CameraError(f'window: index of {name} = {value}: expected 1 to 3')

    def rays_in_water(self, origin: ArrayLike, directions: ArrayLike) -> tuple[Array, Array]:
        """
        Trace rays from a point in air through the window.

        Parameters
        ----------
        origin : (3,)
            Start of the rays, in front of the dry face.
        directions : (n, 3)
            Unit vectors.

        Returns
        -------
        starts, directions : (n, 3)
            Points where the rays leave the wet face, and their unit vectors in water; nan if a ray
            does not reach the window or is totally reflected.

        """
        rays = np.array(directions, dtype=np.float64, order='C').reshape(-1, 3)
        starts = np.empty_like(rays)
        starts[:] = origin
        continue_rays(starts, rays, self.numbers)
        return starts, rays

    def directions_to(self, origin: ArrayLike, points: ArrayLike) -> Array:
        """
        Return the directions (n, 3) in air along which a camera at a point sees points in water.

        The directions of points that are not behind the window are nan.
        """
        targets = np.ascontiguousarray(points, dtype=np.float64).reshape(-1, 3)
        rays = np.empty_like(targets)
        directions_into(targets, np.array(origin, dtype=np.float64), self.numbers, rays)
        return rays

    @cached_property
    def numbers(self) -> Array:
        """All parameters (8,), for compiled code."""
        sizes = self.distance_m, self.thickness_m, self.air, self.glass, self.water
        return np.array([*self.normal, *sizes])
