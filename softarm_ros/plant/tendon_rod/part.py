"""The part `body.tendon_chain`: elastic segments bent by cables under tension."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.geometry.parts import Part
from softarm_ros.plant.tendon_rod.config import PlantTendon, TendonRodPlantConfig

if TYPE_CHECKING:
    from softarm_ros.drivers.attachments import PulledTendons
    from softarm_ros.plant.tendon_rod.plant import TendonRodPlant
    from softarm_ros.plant.world import World

PART = Part(
    'body',
    'tendon_chain',
    TendonRodPlantConfig,
    {'pulled_tendons': f'{__name__}:build'},
    'a rod of elastic joints with friction of its cables; winches with load cells, pose sensor',
)


def build(
    config: TendonRodPlantConfig, drives: PulledTendons, world: World, seed: int
) -> TendonRodPlant:
    """Return the arm with every cable at its rest tension; randomness follows from `seed`."""
    from softarm_ros.plant.tendon_rod.plant import TendonRodPlant

    tendons = [PlantTendon(*one) for one in zip(drives.names, drives.routes, drives.segments)]
    return TendonRodPlant(
        config,
        tendons,
        world.gravity_m_s2,
        world.tip_load_kg,
        np.full(len(tendons), drives.rest_tension_N),
        seed,
    )
