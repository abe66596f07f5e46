"""What a simulated arm hangs in and carries."""

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
    Gravity (base frame), fluid around the arm (None: air), payload and gripper (None: no other).

    The payload's density gives what it displaces.
    """

    gravity_m_s2: tuple[float, float, float]
    fluid: Fluid | None = None
    tip_load_kg: float = 0.0
    tip_load_density_kg_m3: float = STEEL_KG_M3
    gripper: Gripper | None = None
