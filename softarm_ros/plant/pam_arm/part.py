"""The part `body.muscle_chain`: a backbone with vacuum muscles and their valves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softarm_ros.geometry.parts import Part
from softarm_ros.plant.pam_arm.config import PamPlantConfig

if TYPE_CHECKING:
    from softarm_ros.drivers.attachments import ValvedMuscles
    from softarm_ros.plant.pam_arm.muscle_arm_plant import MuscleArmPlant
    from softarm_ros.plant.world import World

PART = Part(
    'body',
    'muscle_chain',
    PamPlantConfig,
    {'valved_muscles': f'{__name__}:build'},
    'a backbone of elastic joints, with muscles; valves and relays, pose sensor',
)


def build(
    config: PamPlantConfig, drives: ValvedMuscles, world: World, seed: int
) -> MuscleArmPlant:
    """Return the arm, homed: vented, hanging straight; all randomness follows from `seed`."""
    from softarm_ros.plant.pam_arm.muscle_arm_plant import MuscleArmPlant

    return MuscleArmPlant(
        config,
        drives.valves,
        drives.home_length_m,
        drives.names,
        drives.tensions,
        world.gravity_m_s2,
        seed,
        world.tip_load_kg,
    )
