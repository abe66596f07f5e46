"""Arm of parallel muscle modules on a Cosserat rod: muscle lengths <-> shape."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.actuation_range import ActuationRange
from softarm_ros.models.arm_model import ZERO3, Shape, Vector3
from softarm_ros.models.minimum_energy.arm import MinimumEnergyArm
from softarm_ros.models.minimum_energy.config import BackboneConfig, ParallelModulesConfig
from softarm_ros.models.minimum_energy.rod_modules import RodModules


class RodOfMuscles(MinimumEnergyArm):
    """
    Arm whose muscles are springs of commanded rest length around a Cosserat rod.

    As `MinimumEnergyArm`, with a backbone that also stretches and shears, whose shape is accurate
    to 1e-7 m with three steps per module of the shipped arm, and that takes moments at the tip.

    Parameters
    ----------
    backbone, modules, gravity, tip_load_kg, commands_m, within
        As in `MinimumEnergyArm`.
    steps
        Integration steps per module.
    intervals
        Intervals of the backbone of least energy that only `preferred_configuration` uses.

    """

    name = 'cosserat'

    def __init__(
        self,
        backbone: BackboneConfig,
        modules: ParallelModulesConfig,
        steps: int,
        intervals: int,
        gravity: Vector3 = (0.0, 0.0, 9.81),
        tip_load_kg: float = 0.0,
        commands_m: tuple[float, float] | None = None,
        within: ActuationRange | None = None,
    ) -> None:
        own = (gravity, tip_load_kg, commands_m, within)
        super().__init__(backbone, modules, intervals, *own)
        self._least_energy = MinimumEnergyArm(backbone, modules, intervals, *own)
        self.rods = RodModules(backbone, modules, steps, gravity, tip_load_kg)
        self.statics = self.rods

    def preferred_from(self, tip: Array, configuration: Array) -> Array:
        """
        Return `preferred_configuration` from a solved tip (3,) [m].

        It is that of the backbone of least energy, whose tip is the same but for 0.1 mm.
        """
        return self._least_energy.preferred_from(tip, configuration)

    def forward(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """
        Return the shape under commanded lengths (3 modules,) [m] and a load at the tip [N, N m].

        Raises
        ------
        ValueError, ModelError
            As `equilibrium`; also for a length outside the range of its actuator.

        """
        lengths = self._commanded(actuation).reshape(-1, 3)
        state = self.rods.equilibrium(lengths, tip_force, tip_moment=tip_moment)
        return self.rods.shape(state, np.array(actuation))

    def compliance(self, actuation: Array, tip_force: Vector3 = ZERO3) -> Array:
        """Return the tip twist per force and moment at the tip (6, 6), base frame."""
        lengths = self._commanded(actuation).reshape(-1, 3)
        return self.rods.compliance(self.rods.equilibrium(lengths, tip_force))
