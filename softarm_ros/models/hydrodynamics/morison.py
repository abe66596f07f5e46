"""Morison drag, added mass and buoyancy of an arm's centreline in still or moving water."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ZERO3, ModelError, Vector3
from softarm_ros.models.hydrodynamics.config import WaterConfig
from softarm_ros.models.hydrodynamics.morison_kernels import added_mass_into, drag_into


@dataclass(frozen=True)
class PieceMotion:
    """
    Motion of the pieces of a centreline in the base frame; all arrays are (n, 3).

    `position` [m], unit `tangent`, `velocity` [m/s], `acceleration` [m/s^2], and the angular
    velocity `spin` [rad/s], whose part along the tangent has no effect.
    """

    position: Array
    tangent: Array
    velocity: Array
    acceleration: Array
    spin: Array


@dataclass(frozen=True)
class WaterLoads:
    """
    Loads of the water on each piece, in the base frame.

    Attributes
    ----------
    drag, buoyancy, displaced_inertia : (n, 3)
        Forces [N]; `displaced_inertia` is rho S ds du/dt of accelerating water.
    added_mass : (n, 6)
        Force [N] and moment [N m] about the piece.
    damping : (n, 3, 3)
        -d drag / d velocity of the piece [N s/m], symmetric, positive semidefinite.
    drag_power_W : float
        Power that drag removes from the motion relative to the water, >= 0.
    added_mass_energy_J : float

    """

    drag: Array
    buoyancy: Array
    displaced_inertia: Array
    added_mass: Array
    damping: Array
    drag_power_W: float
    added_mass_energy_J: float

    @property
    def wrench(self) -> Array:
        """Force and moment on each piece (n, 6), without the added mass."""
        out = np.zeros((len(self.drag), 6))
        out[:, :3] = self.drag + self.buoyancy + self.displaced_inertia
        return out

    @property
    def total(self) -> Array:
        """Force and moment on each piece (n, 6), with the added mass."""
        return self.wrench + self.added_mass


class Hydrodynamics:
    """
    Loads of water on n pieces of a centreline, for any motion and any flow.

    Source: Morison et al. 1950; docs/models_hydrodynamics.md lists the neglected effects.

    Parameters
    ----------
    water : WaterConfig
    length_m, diameter_m : (n,)
        Length and diameter of each piece.

    Raises
    ------
    ModelError
        If a length or diameter is not positive, or their numbers differ.

    """

    def __init__(self, water: WaterConfig, length_m: ArrayLike, diameter_m: ArrayLike) -> None:
        """Build the constant arrays."""
        self.water = water
        self.length = np.array(length_m, float, ndmin=1)
        self.diameter = np.array(np.broadcast_to(diameter_m, self.length.shape), float)
        for name, value in (('length_m', self.length), ('diameter_m', self.diameter)):
            if value.ndim != 1 or not (np.isfinite(value).all() and value.min() > 0.0):
                raise ModelError(f'{name} = {value}: finite numbers above 0 m are needed')
        self.coefficients = np.array(
            [
                water.density_kg_m3,
                water.drag_across,
                water.drag_along,
                water.added_mass_across,
                water.added_mass_along,
            ]
        )

    @property
    def displaced_kg(self) -> Array:
        """Mass of the water that each piece displaces (n,) [kg]."""
        area = 0.25 * math.pi * self.diameter**2
        return np.asarray(self.water.density_kg_m3 * area * self.length)

    def loads(
        self,
        motion: PieceMotion,
        current: ArrayLike = ZERO3,
        current_rate: ArrayLike = ZERO3,
        gravity_m_s2: Vector3 = ZERO3,
    ) -> WaterLoads:
        """
        Return the loads of the water.

        Parameters
        ----------
        motion : PieceMotion
            Motion of the pieces, base frame.
        current, current_rate : (3,) or (n, 3)
            Velocity [m/s] of the undisturbed water at the pieces and its acceleration [m/s^2].
        gravity_m_s2 : (3,)
            Gravity for the buoyancy, base frame.

        Raises
        ------
        ModelError
            For a wrong shape, values that are not finite or tangents that are not unit vectors.

        """
        n = len(self.length)
        for name in ('position', 'tangent', 'velocity', 'acceleration', 'spin'):
            value = getattr(motion, name)
            if value.shape != (n, 3) or not np.isfinite(value).all():
                raise ModelError(f'{name} of shape {value.shape}: finite numbers {(n, 3)} needed')
        off = float(np.abs(np.linalg.norm(motion.tangent, axis=1) - 1.0).max())
        if off > 1e-6:
            raise ModelError(f'tangent: length off 1 by {off:.3g}, at most 1e-6')
        flow = np.broadcast_to(np.asarray(current, float), (n, 3))
        rate = np.broadcast_to(np.asarray(current_rate, float), (n, 3))
        drag, slope, added = np.empty((n, 3)), np.empty((n, 3, 3)), np.empty((n, 6))
        relative = flow - motion.velocity
        args = (self.coefficients, self.length, self.diameter, motion.tangent, relative)
        power = drag_into(*args, drag, slope)
        energy = added_mass_into(*args, rate - motion.acceleration, motion.spin, added)
        displaced = self.displaced_kg[:, None]
        return WaterLoads(
            drag=drag,
            buoyancy=-displaced * np.asarray(gravity_m_s2, float),
            displaced_inertia=displaced * rate,
            added_mass=added,
            damping=slope,
            drag_power_W=power,
            added_mass_energy_J=energy,
        )

    def added_mass_matrices(self) -> Array:
        """
        Return the added mass (n, 6, 6) of each piece in its own axes; the third is the tangent.

        Linear rows come first. The angular rows hold the added moment of inertia for rotation
        about axes across the tangent, C_a rho S ds^3 / 12.
        """
        out = np.zeros((len(self.length), 6, 6))
        across = self.water.added_mass_across * self.displaced_kg
        out[:, 0, 0] = out[:, 1, 1] = across
        out[:, 2, 2] = self.water.added_mass_along * self.displaced_kg
        out[:, 3, 3] = out[:, 4, 4] = across * self.length**2 / 12.0
        return out


def base_wrench(position: Array, wrench: Array, about: Vector3 = ZERO3) -> Array:
    """Return the sum (6,) of wrenches (n, 6) at positions (n, 3) [m]; moment about a point [m]."""
    force = wrench[:, :3]
    moment = wrench[:, 3:] + np.cross(position - np.asarray(about), force)
    return np.concatenate((force.sum(axis=0), moment.sum(axis=0)))


def lengths_at_nodes(segment_length_m: ArrayLike) -> Array:
    """
    Return the length (n,) [m] that each node, at the far end of a segment, stands for.

    It is half of the segments on either side (trapezoidal rule). The half segment next to the base
    is omitted, because the base does not move.
    """
    segment = np.array(segment_length_m, float, ndmin=1)
    out = 0.5 * segment
    out[:-1] += 0.5 * segment[1:]
    return np.asarray(out)
