"""The part `body.cable_chain`: sections as chains of elastic joints, wound by steppers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softarm_ros.geometry.parts import Part
from softarm_ros.plant.config import PlantCable, PlantConfig

if TYPE_CHECKING:
    from softarm_ros.drivers.attachments import WoundCables
    from softarm_ros.plant.arm_plant import ArmPlant
    from softarm_ros.plant.world import World

PART = Part(
    'body',
    'cable_chain',
    PlantConfig,
    {'wound_cables': f'{__name__}:build'},
    'chains of elastic joints, bent by cables that cut into the body; steppers, pose sensor',
)


def build(config: PlantConfig, drives: WoundCables, world: World, seed: int) -> ArmPlant:
    """Return the arm at rest; every random number follows from `seed`."""
    from softarm_ros.plant.arm_plant import ArmPlant

    cables = [PlantCable(c.section_index, c.angle_rad, c.motor, c.sign) for c in drives.cables]
    return ArmPlant(config, cables, world.gravity_m_s2, world.tip_load_kg, names=drives.names)
