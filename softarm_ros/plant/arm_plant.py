"""The complete simulated cable-driven arm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.plant.cable_drives import CableDrives
from softarm_ros.plant.config import PlantCable, PlantConfig
from softarm_ros.plant.plant import Plant
from softarm_ros.plant.soft_arm import SoftArm


class ArmPlant(Plant[SoftArm, CableDrives]):
    """
    A body with cables and steppers.

    It starts at rest, hanging, with all contractions zero.

    Parameters
    ----------
    config
        Properties of the plant; the controller knows none of them.
    cables
        One per actuator, in the order of the commands; or both cables of every pair that a motor
        winds, each naming its motor.
    gravity_m_s2 : (3,)
        In the base frame.
    tip_load_kg
        Payload: its weight acts on the tip, without inertia.
    names
        Names of the motors, for faults; by default their numbers.

    """

    config: PlantConfig

    def __init__(
        self,
        config: PlantConfig,
        cables: Sequence[PlantCable],
        gravity_m_s2: ArrayLike,
        tip_load_kg: float = 0.0,
        names: Sequence[str] = (),
    ) -> None:
        body = SoftArm(config, cables, gravity_m_s2)
        weight = tip_load_kg * np.asarray(gravity_m_s2, dtype=float)
        super().__init__(config, body, CableDrives(config, cables, body, weight, names))
