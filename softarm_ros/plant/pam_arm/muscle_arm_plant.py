"""The simulated muscle arm, put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.drivers.valve_config import ValveDriveConfig
from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.pam_arm.backbone import MovingBackbone
from softarm_ros.plant.pam_arm.config import PamPlantConfig
from softarm_ros.plant.pam_arm.muscles import Muscles
from softarm_ros.plant.plant import Plant


class MuscleArmPlant(Plant[MovingBackbone, Muscles]):
    """
    Backbone with muscles on valves, electromagnetic tracker.

    It starts at rest, hanging, all muscles homed: vented, as long as in the straight arm, with
    what homing gets wrong. Only the tip is measured.

    Parameters
    ----------
    config
        Everything that the controller does not know.
    drive
        The driver's table and the timing of its board.
    home_length_m : (m,)
        What the driver takes the gas for at the start, three muscles a module from base to tip.
    names : (m,)
        Of the muscles, for messages and faults.
    load_of
        What the driver knows of the muscles' pull (m,) [N] at lengths (m,) [m]: `MuscleDrive`.
    gravity_m_s2 : (3,)
        In the base frame.
    seed
        Of every random number.
    tip_load_kg
        Payload at the tip.

    """

    config: PamPlantConfig

    def __init__(
        self,
        config: PamPlantConfig,
        drive: ValveDriveConfig,
        home_length_m: ArrayLike,
        names: Sequence[str],
        load_of: Callable[[Array], Array],
        gravity_m_s2: ArrayLike,
        seed: int,
        tip_load_kg: float = 0.0,
    ) -> None:
        gravity = np.asarray(gravity_m_s2, dtype=np.float64)
        body = MovingBackbone(config, np.size(home_length_m) // 3, gravity, tip_load_kg)
        muscles = Muscles(config, drive, home_length_m, names, load_of, body, seed)
        super().__init__(config, body, muscles)
