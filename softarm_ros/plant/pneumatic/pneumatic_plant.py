"""The complete simulated pneumatic arm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softarm_ros.drivers.play_compensation import PlayCompensationConfig
from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.fluid import Fluid
from softarm_ros.plant.plant import BaseWrench, Gripping, Plant
from softarm_ros.plant.pneumatic.body import PneumaticBody
from softarm_ros.plant.pneumatic.config import PneumaticPlantConfig, SoftFingersConfig
from softarm_ros.plant.pneumatic.drives import PneumaticDrives
from softarm_ros.plant.pneumatic.gripper import Gripper
from softarm_ros.plant.pneumatic.gripper import build as soft_fingers

NO_COMPENSATION = PlayCompensationConfig()


class PneumaticPlant(Plant[PneumaticBody, PneumaticDrives]):
    """
    A body in air or water with regulators; optional gripper and force-torque sensor at the base.

    It starts at rest, hanging, without pressure.

    Parameters
    ----------
    config
        Properties of the plant; the controller knows none of them.
    gravity_m_s2 : (3,)
        In the base frame.
    seed
        Seed of all random numbers.
    fluid
        Around the arm; None: air.
    tip_load_kg
        Permanent payload in the gripper, or at the tip.
    compensation
        Compensation of play by the driver of the regulators.
    names
        Names of the chambers, for faults; by default their numbers.
    gripper
        At the tip; None: soft fingers if `config` has a gripper, otherwise none.

    """

    config: PneumaticPlantConfig

    def __init__(
        self,
        config: PneumaticPlantConfig,
        gravity_m_s2: Sequence[float],
        seed: int,
        fluid: Fluid | None = None,
        tip_load_kg: float = 0.0,
        compensation: PlayCompensationConfig = NO_COMPENSATION,
        names: Sequence[str] = (),
        gripper: Gripper | None = None,
    ) -> None:
        body = PneumaticBody(config, gravity_m_s2, fluid, tip_load_kg)
        if gripper is None and config.gripper is not None:
            gripper = soft_fingers(SoftFingersConfig.model_validate(config.gripper))
        drives = PneumaticDrives(config, compensation, names, body, gripper, seed)
        super().__init__(config, body, drives)
        self._wrench_noise = np.random.default_rng(np.random.SeedSequence([seed, 1]))
        c = config.wrench_sensor
        if c is not None:
            self._wrench_sigma = np.repeat([c.force_noise_N, c.moment_noise_N_m], 3)
            self._most_wrench = np.repeat([c.force_range_N, c.moment_range_N_m], 3)

    @property
    def gripping(self) -> Gripping | None:
        """The plant, if it has a gripper, else None."""
        return None if self.config.gripper is None else self

    @property
    def weighed(self) -> BaseWrench | None:
        """The plant, if it has a force-torque sensor under its base, else None."""
        return None if self.config.wrench_sensor is None else self

    def chamber_pressures(self) -> Array:
        """Return the measured gauge pressures (m,) [Pa]."""
        return self.drives.chamber_pressures()

    def command_gripper(self, pressure_Pa: float) -> None:
        """Set the gripper's pressure target [Pa gauge]; negative is vacuum."""
        self.drives.command_gripper(pressure_Pa)

    def gripper_pressure(self) -> float:
        """Return the measured pressure of the gripper [Pa gauge]."""
        return self.drives.gripper_pressure()

    def base_wrench(self) -> Array:
        """Return the measured load of the arm on its base (6,) [N, N m], about its origin."""
        if self.config.wrench_sensor is None:
            raise ValueError('plant.wrench_sensor: this arm has none')
        noise = self._wrench_noise.standard_normal(6) * self._wrench_sigma
        most = self._most_wrench
        return np.minimum(np.maximum(self.body.base_wrench() + noise, -most), most)
