"""The part `body.chamber_chain`: pneumatic sections on end parts that sag, optional gripper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softarm_ros.geometry.parts import Part
from softarm_ros.plant.pneumatic.config import PneumaticPlantConfig

if TYPE_CHECKING:
    from softarm_ros.drivers.attachments import RegulatedChambers
    from softarm_ros.plant.pneumatic.pneumatic_plant import PneumaticPlant
    from softarm_ros.plant.world import World

PART = Part(
    'body',
    'chamber_chain',
    PneumaticPlantConfig,
    {'regulated_chambers': f'{__name__}:build'},
    'pneumatic sections on elastic joints with hysteresis; regulators; gripper, wrench sensor',
    (
        'softarm_ros.rigs.arms.regulator_checks:CHECKS',
        'softarm_ros.rigs.arms.regulator_checks:OTHER_ARM',
    ),
)


def build(
    config: PneumaticPlantConfig, drives: RegulatedChambers, world: World, seed: int
) -> PneumaticPlant:
    """Return the arm, vented; every random number follows from `seed`."""
    from softarm_ros.plant.pneumatic.pneumatic_plant import PneumaticPlant

    return PneumaticPlant(
        config,
        world.gravity_m_s2,
        seed,
        world.fluid,
        world.tip_load_kg,
        drives.compensation,
        drives.names,
        world.gripper,
    )
