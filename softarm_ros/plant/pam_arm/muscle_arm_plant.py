"""The complete simulated muscle arm."""

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
    A backbone with muscles on valves, measured by an electromagnetic tracker.

    It starts at rest, hanging, all muscles homed: vented, as long as in the straight arm, with the
    errors of homing. Only the tip is measured.

    Parameters
    ----------
    config
        Properties of the plant; the controller knows none of them.
    drive
        The driver's table and the timing of its board.
    home_length_m : (m,)
        Lengths that the driver assumes at the start, three muscles per module from base to tip.
    names : (m,)
        Names of the muscles, for messages and faults.
    load_of
        The driver's model of the muscles' pull (m,) [N] at lengths (m,) [m]: see `MuscleDrive`.
    gravity_m_s2 : (3,)
        In the base frame.
    seed
        Seed of all random numbers.
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
