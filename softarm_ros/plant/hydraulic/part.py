"""The part `body.water_chain`: sections with water chambers on servo cylinders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softarm_ros.geometry.parts import Part
from softarm_ros.plant.hydraulic.config import HydraulicPlantConfig

if TYPE_CHECKING:
    from softarm_ros.drivers.attachments import WaterCylinders
    from softarm_ros.plant.hydraulic.hydraulic_plant import HydraulicPlant
    from softarm_ros.plant.world import World

PART = Part(
    'body',
    'water_chain',
    HydraulicPlantConfig,
    {'water_cylinders': f'{__name__}:build'},
    'chains of elastic joints with water chambers; servo cylinders, pose sensor',
)


def build(
    config: HydraulicPlantConfig, drives: WaterCylinders, world: World, seed: int
) -> HydraulicPlant:
    """Return the arm under its preload; every random number follows from `seed`."""
    from softarm_ros.plant.hydraulic.hydraulic_plant import HydraulicPlant

    return HydraulicPlant(
        config,
        drives.chambers,
        drives.axes.torque_per_pressure,
        drives.loop,
        drives.axes.preload_Pa,
        world,
        seed,
    )
