"""Surroundings and loads of a simulated arm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from softarm_ros.plant.fluid import Fluid

if TYPE_CHECKING:
    from softarm_ros.plant.pneumatic.gripper import Gripper

STEEL_KG_M3 = 7850.0


@dataclass(frozen=True)
class World:
    """
    Gravity (base frame), fluid around the arm (None: air), payload and gripper (None: no gripper).

    The payload's density determines the fluid that it displaces.
    """

    gravity_m_s2: tuple[float, float, float]
    fluid: Fluid | None = None
    tip_load_kg: float = 0.0
    tip_load_density_kg_m3: float = STEEL_KG_M3
    gripper: Gripper | None = None
