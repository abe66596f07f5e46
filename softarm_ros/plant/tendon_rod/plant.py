"""The complete simulated tendon-driven rod."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from softarm_ros.plant.plant import Plant
from softarm_ros.plant.tendon_rod.config import PlantTendon, TendonRodPlantConfig
from softarm_ros.plant.tendon_rod.rod import RodBody
from softarm_ros.plant.tendon_rod.winches import Winches


class TendonRodPlant(Plant[RodBody, Winches]):
    """
    A rod with cables on winches.

    It starts at rest under its own weight with the given tension in every cable, without friction
    forces (as after shaking the arm).

    Parameters
    ----------
    config
        Properties of the plant; the controller knows none of them.
    tendons
        One per actuator, in the order of the commands.
    gravity_m_s2 : (3,)
        In the base frame.
    tip_load_kg : float
        Payload at the tip.
    tension_N : (m,)
        Initial tensions at the winches.
    seed
        Seed of all random numbers: errors of the load cells, noise.

    """

    config: TendonRodPlantConfig

    def __init__(
        self,
        config: TendonRodPlantConfig,
        tendons: Sequence[PlantTendon],
        gravity_m_s2: ArrayLike,
        tip_load_kg: float,
        tension_N: ArrayLike,
        seed: int,
    ) -> None:
        body = RodBody(config, tendons, gravity_m_s2, tip_load_kg)
        names = [tendon.name for tendon in tendons]
        super().__init__(config, body, Winches(config, names, tension_N, body, seed))
