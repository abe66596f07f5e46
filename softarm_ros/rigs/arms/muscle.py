"""Rigs of modules of parallel muscles on an elastic backbone."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.drivers.attachments import ValvedMuscles
from softarm_ros.drivers.valve_config import ValveDriveConfig
from softarm_ros.geometry.configs import Positive
from softarm_ros.geometry.parts import Part
from softarm_ros.models.minimum_energy.config import BackboneConfig, ParallelModulesConfig
from softarm_ros.models.minimum_energy.mechanics import MuscleModules, minimum_energy
from softarm_ros.models.parts import MinimumEnergySettings
from softarm_ros.plant.config import PlantBase
from softarm_ros.rigs.arms.base import ActuatorBase, ArmBase, Surrounded
from softarm_ros.rigs.outline import SpreadMass, Strand

if TYPE_CHECKING:
    from softarm_ros.models.arm_model import ArmModel
    from softarm_ros.models.minimum_energy.arm import MinimumEnergyArm

# Share of the range of pulls that drawn configurations use.
_DRAWN_SHARE = 0.9
# Least number of backbone intervals in the model from which the valves are timed.
_LEAST_INTERVALS = 40


class MuscleConfig(ActuatorBase):
    """One muscle with its two valves."""

    unit: Literal['m'] = Field(default='m', description='of the command: length without load')
    position_min_m: Positive = Field(description='least gas')
    position_max_m: Positive = Field(description='most gas')
    max_speed_m_s: Positive = Field(description='slower than gas flows through its valves')
    max_acceleration_m_s2: float = Field(gt=0.0, le=100.0)


class MuscleArm(ArmBase):
    """An arm of modules of three parallel muscles (Chen et al. 2022)."""

    KIND: ClassVar[str] = 'muscle'
    BODY: ClassVar[str] = 'muscle_chain'

    backbone: BackboneConfig
    modules: ParallelModulesConfig
    actuators: tuple[MuscleConfig, ...] = Field(
        min_length=3, description='three per module, from base to tip'
    )
    valves: ValveDriveConfig = Field(description='how the driver turns lengths into valve times')

    @property
    def section_names(self) -> tuple[str, ...]:
        """Names of the modules from base to tip."""
        return tuple(f'module_{t + 1}' for t in range(self.modules.modules))

    @property
    def mechanics_name(self) -> str:
        """Kind of mechanics: muscles along a backbone."""
        return 'muscles'

    def mechanics(self, around: Surrounded) -> MuscleModules:
        """Return the mechanics: backbone, modules, gravity and the load at the tip."""
        low = max(actuator.position_min_m for actuator in self.actuators)
        high = min(actuator.position_max_m for actuator in self.actuators)
        return MuscleModules(
            self.backbone, self.modules, around.gravity_m_s2, around.tip_load_kg, (low, high)
        )

    def commanded(self, around: Surrounded) -> MuscleModules:
        """Return `mechanics` with the range of the commanded lengths."""
        return replace(self.mechanics(around), within=self.range_of_lengths())

    def muscle_model(self, around: Surrounded) -> MinimumEnergyArm:
        """Return the model of the muscles' tensions, from which the valves are timed."""
        modules = self.modules.modules  # the modules' disks lie on nodes
        settings = MinimumEnergySettings(intervals=modules * math.ceil(_LEAST_INTERVALS / modules))
        return minimum_energy(settings, self.mechanics(around))

    def actuator_limits(self) -> ActuatorLimits:
        """Return the limits of all muscles, arrays (m,) in m, m/s, m/s^2."""
        return self.limits_of_lengths()

    def configuration_limits(self) -> ConfigurationLimits:
        """Return the range of the lengths; the configuration is the actuation."""
        limits = self.actuator_limits()
        return ConfigurationLimits.of_range(limits.position_min, limits.position_max)

    def sample_configurations(
        self, model: ArmModel, rng: np.random.Generator, n: int
    ) -> NDArray[np.float64]:
        """
        Return n configurations (n, dof): the arm bent by a vector that changes along it.

        The vector sets the pull of each muscle at its length in the straight arm, around the
        middle of the commands' range. Commands drawn one by one would set the muscles of a
        module against each other.
        """
        from softarm_ros.models.minimum_energy.muscles import muscle_anchors

        limits, law = self.actuator_limits(), self.valves.law
        straight = self.backbone.length_m / self.modules.modules
        range_m = np.array([limits.position_max.min(), limits.position_min.max()])
        least, most = law.pull(np.array(straight), range_m).tolist()
        anchors = muscle_anchors(self.modules)[:, :, :2]  # (modules, 3, 2)
        along = np.linspace(0.0, 1.0, self.modules.modules)[:, None]
        drawn = np.empty((n, len(limits.names)))
        for k in range(n):
            size, angle = np.sqrt(rng.uniform(size=2)), rng.uniform(0.0, 2.0 * np.pi, 2)
            ends = (size * np.stack([np.cos(angle), np.sin(angle)])).T  # at base and tip
            lever = ends[0] + (ends[1] - ends[0]) * along
            bend = np.einsum('tij,tj->ti', anchors, lever) / self.modules.anchor_radius_m
            pull = 0.5 * (least + most) + 0.5 * _DRAWN_SHARE * (most - least) * bend.ravel()
            drawn[k] = law.free(pull, straight)
        return drawn

    def strands(self) -> tuple[Strand, ...]:
        """Return the lines of the muscles, three per module."""
        from softarm_ros.models.minimum_energy.muscles import muscle_anchors

        radius = self.modules.anchor_radius_m
        anchors = muscle_anchors(self.modules).reshape(-1, 3)
        return tuple(
            Strand(i, i // 3, float(np.arctan2(y, x)), radius, radius)
            for i, (x, y, _) in enumerate(anchors)
        )

    def body_radii_m(self, plant: PlantBase | None) -> tuple[float, ...]:
        """Return the outer radius of each module [m]."""
        return (self.modules.anchor_radius_m,) * self.modules.modules

    def masses(self, plant: PlantBase | None) -> tuple[tuple[SpreadMass, ...], ...]:
        """Return the mass of each module, an equal share of the arm's."""
        of_module = self.backbone.mass_per_length_kg_m * self.backbone.length_m
        return ((SpreadMass(of_module / self.modules.modules),),) * self.modules.modules


def valved_muscles(arm: MuscleArm, around: Surrounded) -> ValvedMuscles:
    """Return the muscles, their valves and the model of their tensions."""
    model = arm.muscle_model(around)
    return ValvedMuscles(
        arm.actuator_names,
        arm.valves,
        model.rest_configuration,
        arm.actuator_limits().max_speed,
        model.muscle_tensions,
    )


PART = Part(
    'arm',
    MuscleArm.KIND,
    MuscleArm,
    {
        'valved_muscles': f'{__name__}:valved_muscles',
    },
    'modules of parallel vacuum muscles on an elastic backbone',
    ('softarm_ros.rigs.arms.muscle_checks:CHECKS',),
)
