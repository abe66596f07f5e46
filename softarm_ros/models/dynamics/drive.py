"""
Drives of an arm: soft chambers under pressure, straight cables under tension.

Chen et al. (Micromachines 2022, 13, 130), eq. 20 and 21: a chamber of bore area A at (r, psi)
pushes its section apart with A P and bends it with A r P (sin psi, -cos psi, 0). The same factors
give the volume that a chamber gains per strain, so pressure and flow transmit the same power.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.dynamics.arm import ArmDynamics, checked


@dataclass(frozen=True)
class Chamber:
    """A soft chamber along one section: bore area, pitch radius, angle from x about z."""

    section: int
    area_m2: float
    radius_m: float
    angle_deg: float


class ChamberDrive:
    """
    Chambers of one arm: map pressures (m,) [Pa] to drive resultants, and strains to volumes.

    Attributes
    ----------
    map : (n, 4, m)
        Drive resultants per pressure [N/Pa, N m/Pa]; also `linearise(..., inputs=map)`.

    Raises
    ------
    ModelError
        If a chamber names a section that the arm does not have.

    """

    def __init__(self, arm: ArmDynamics, chambers: Sequence[Chamber]) -> None:
        """Build the map."""
        self.arm = arm
        self.chambers = tuple(chambers)
        self.map = np.zeros((arm.segments, 4, len(self.chambers)))
        for i, chamber in enumerate(self.chambers):
            lever = chamber.area_m2 * chamber.radius_m
            angle = math.radians(chamber.angle_deg)
            column = (chamber.area_m2, lever * math.sin(angle), -lever * math.cos(angle), 0.0)
            self.map[section_slice(arm, chamber.section), :, i] = column

    def drive(self, pressures_Pa: ArrayLike) -> Array:
        """Return the drive resultants (n, 4) of pressures (m,), for `ArmDynamics.loads`."""
        return self.map @ checked('pressures_Pa', pressures_Pa, (len(self.chambers),))

    def volume_change(self, strains: ArrayLike) -> Array:
        """Return the volume (m,) [m^3] that each chamber gains against the unstrained arm."""
        q = checked('strains', strains, (self.arm.segments, 4))
        return np.einsum('k,kji,kj->i', self.arm.body.length, self.map, q)

    def volume_flow(self, rates: ArrayLike) -> Array:
        """Return the flow (m,) [m^3/s] into each chamber for strain rates (n, 4)."""
        return self.volume_change(rates)


class CableDrive:
    """
    Straight cables parallel to the resting arm, each from the base to the end of one section.

    Parameters
    ----------
    offsets_m : (m, 2)
        Position x, y of each cable in the cross-sections.
    end_sections : (m,)
        Index of the section in which each cable ends.

    """

    def __init__(
        self, arm: ArmDynamics, offsets_m: ArrayLike, end_sections: Sequence[int]
    ) -> None:
        """Mark the segments that each cable passes."""
        count = len(end_sections)
        self.arm = arm
        self.offset = np.tile(checked('offsets_m', offsets_m, (count, 2)), (arm.segments, 1, 1))
        self.passes = np.zeros((arm.segments, count))
        for i, section in enumerate(end_sections):
            self.passes[: section_slice(arm, section).stop, i] = 1.0

    def tensions(self, tensions_N: ArrayLike) -> Array:
        """Return the tension in every segment (n, m), for `ArmDynamics.loads`."""
        return self.passes * checked('tensions_N', tensions_N, (self.passes.shape[1],))

    def lengths(self, strains: ArrayLike) -> Array:
        """Return the lengths (m,) [m] of the cables inside the soft segments."""
        q = checked('strains', strains, (self.arm.segments, 4))[:, None]
        x, y = self.offset[..., 0], self.offset[..., 1]
        along = 1.0 + q[..., 0] + q[..., 1] * y - q[..., 2] * x
        stretched = np.hypot(along, q[..., 3] * np.hypot(x, y))
        return self.arm.body.length @ (self.passes * stretched)


def section_slice(arm: ArmDynamics, section: int) -> slice:
    """Return the segments of a section as a slice."""
    if not 0 <= section < len(arm.sections):
        raise ModelError(f'section {section}: the arm has sections 0..{len(arm.sections) - 1}')
    begin = sum(part.segments for part in arm.sections[:section])
    return slice(begin, begin + arm.sections[section].segments)
