"""Boxes near an arm that are drawn beside it."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import Angle, ConfigBlock, Finite, Length
from softarm_ros.geometry.rotations import exp_so3, quaternion_from_matrix
from softarm_ros.rigs.arms.base import Name


class ObstacleConfig(ConfigBlock):
    """A box such as a table, a wall or a tank; drawn, but not known to any controller."""

    name: Name = Field(description='unique name of the box')
    centre_m: tuple[Finite, Finite, Finite] = Field(description='its centre, base frame')
    size_m: tuple[Length, Length, Length] = Field(description='lengths along its own axes')
    turn_deg: tuple[Angle, Angle, Angle] = Field(
        default=(0.0, 0.0, 0.0), description='rotation vector from the base frame to its axes'
    )

    @property
    def quaternion(self) -> Array:
        """Attitude (x, y, z, w) in the base frame."""
        return quaternion_from_matrix(exp_so3(np.deg2rad(self.turn_deg)))
