"""Rigs of sections with water chambers, driven by servo cylinders."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.drivers.attachments import WaterCylinders
from softarm_ros.drivers.play_compensation import PlayCompensationConfig
from softarm_ros.drivers.pressure_loop import PressureLoopConfig
from softarm_ros.drivers.pressure_servo_config import CylinderAxes
from softarm_ros.geometry.configs import (
    Angle,
    NonNegative,
    Positive,
    PressureRate,
    WatchedPressure,
)
from softarm_ros.geometry.parts import Part
from softarm_ros.models.hydraulics.mechanics import WaterChambers
from softarm_ros.models.hydraulics.section_config import (
    WATER_DENSITY_KG_M3,
    ChamberConfig,
    HydraulicSectionConfig,
    Surroundings,
)
from softarm_ros.plant.config import PlantBase
from softarm_ros.plant.hydraulic.config import HydraulicPlantConfig
from softarm_ros.rigs.arms.base import ActuatorBase, ArmBase, Surrounded
from softarm_ros.rigs.outline import SpreadMass, Strand, strand

if TYPE_CHECKING:
    from softarm_ros.models.arm_model import ArmModel

_TRIES_PER_SAMPLE = 20


class HydraulicActuatorConfig(ActuatorBase):
    """One chamber with its servo cylinder."""

    section: str = Field(description='name of the section the chamber is in')
    angle_deg: Angle = Field(description='of the chamber around the centreline, from base x')
    unit: Literal['Pa'] = Field(default='Pa', description='of the command: chamber pressure')
    pressure_min_Pa: NonNegative = Field(description='gauge')
    pressure_max_Pa: WatchedPressure = Field(description='gauge; safe for the chamber')
    max_rate_Pa_s: PressureRate
    max_acceleration_Pa_s2: float = Field(gt=0.0, le=1e11)
    torque_per_pressure_N_m_Pa: Positive | None = Field(
        default=None,
        description='nominal motor torque per chamber pressure, for servo cylinders',
    )


class HydraulicArm(ArmBase):
    """An arm of sections with three water chambers each (Chen et al. 2022)."""

    KIND: ClassVar[str] = 'hydraulic'
    BODY: ClassVar[str] = 'water_chain'

    sections: tuple[HydraulicSectionConfig, ...] = Field(
        min_length=1, description='from base to tip, as the controller knows them'
    )
    preload_Pa: NonNegative = Field(
        description='pressure of all chambers at the start; the least filled one keeps it'
    )
    pressure_loop: PressureLoopConfig = Field(
        default=PressureLoopConfig(),
        description='of servo cylinders, around the pressure sensors',
    )
    play_compensation: PlayCompensationConfig = Field(
        default=PlayCompensationConfig(), description='of pressure regulators, by their driver'
    )
    tip_load_density_kg_m3: Positive = Field(
        default=7850.0, description='density of the payload, for its buoyancy in water'
    )
    base_tilt_deg: tuple[Angle, Angle] = Field(
        default=(0.0, 0.0), description='of the mount in the base frame, about its x and y'
    )
    actuators: tuple[HydraulicActuatorConfig, ...] = Field(
        min_length=1, description='in the order of every actuation vector'
    )

    @property
    def section_names(self) -> tuple[str, ...]:
        """Names of the sections from base to tip."""
        return tuple(section.name for section in self.sections)

    def chambers(self) -> tuple[ChamberConfig, ...]:
        """Return the chamber configurations, one per actuator."""
        return tuple(
            ChamberConfig(
                name=a.name, section=self.section_names.index(a.section), angle_deg=a.angle_deg
            )
            for a in self.actuators
        )

    def surroundings(self, around: Surrounded, fluid_density_kg_m3: float) -> Surroundings:
        """Return gravity and payload, and a fluid of this density if the medium is water."""
        return Surroundings(
            gravity_m_s2=around.gravity_m_s2,
            fluid_density_kg_m3=fluid_density_kg_m3 if around.medium == 'water' else 0.0,
            tip_load_kg=around.tip_load_kg,
            tip_load_density_kg_m3=self.tip_load_density_kg_m3,
            base_tilt_deg=self.base_tilt_deg,
        )

    @property
    def mechanics_name(self) -> str:
        """Kind of mechanics: water chambers."""
        return 'water_chambers'

    def mechanics(self, around: Surrounded) -> WaterChambers:
        """Return the mechanics: sections, chambers, surroundings and pressure limits."""
        limits = self.actuator_limits()
        return WaterChambers(
            self.sections,
            self.chambers(),
            self.surroundings(around, WATER_DENSITY_KG_M3),
            limits.position_min,
            limits.position_max,
            self.preload_Pa,
        )

    def _torques(self) -> list[float | None]:
        return [actuator.torque_per_pressure_N_m_Pa for actuator in self.actuators]

    def actuator_limits(self) -> ActuatorLimits:
        """Return the limits of all chambers, arrays (m,) in Pa, Pa/s, Pa/s^2."""
        return ActuatorLimits(
            names=self.actuator_names,
            unit='Pa',
            position_min=self.column('pressure_min_Pa'),
            position_max=self.column('pressure_max_Pa'),
            max_speed=self.column('max_rate_Pa_s'),
            max_acceleration=self.column('max_acceleration_Pa_s2'),
            effort_unit='Pa' if None in self._torques() else 'N m',
        )

    def configuration_limits(self) -> ConfigurationLimits:
        """Return the bending limits, and the elongation limits that follow from the pressures."""
        count = len(self.sections)
        lower, upper = np.full(3 * count, -np.inf), np.full(3 * count, np.inf)
        limits = self.actuator_limits()
        for k, section in enumerate(self.sections):
            own = [i for i, a in enumerate(self.actuators) if a.section == section.name]
            most = section.chamber_area_m2 * float(limits.position_max[own].sum())
            reach = section.length_m / section.axial_stiffness_N
            # The weight of the arm also stretches or shortens the section.
            lower[3 * k + 2], upper[3 * k + 2] = -0.5 * most * reach, 1.5 * most * reach
        return ConfigurationLimits(
            lower,
            upper,
            np.array([[3 * k, 3 * k + 1] for k in range(count)], dtype=np.int64),
            np.deg2rad([section.max_bending_angle_deg for section in self.sections]),
        )

    def sample_configurations(
        self, model: ArmModel, rng: np.random.Generator, n: int
    ) -> NDArray[np.float64]:
        """Return up to n configurations (n, dof) within the limits of pressures and bends."""
        from softarm_ros.models.arm_model import ModelError

        limits = self.actuator_limits()
        bending = np.deg2rad([section.max_bending_angle_deg for section in self.sections])
        found: list[NDArray[np.float64]] = []
        for _ in range(_TRIES_PER_SAMPLE * n):
            pressures = rng.uniform(limits.position_min, limits.position_max)
            try:
                configuration = model.configuration_of(pressures)
            except ModelError:
                continue  # beyond a fold
            bends = np.linalg.norm(configuration.reshape(-1, 3)[:, :2], axis=1)
            if np.all(bends <= bending):
                found.append(configuration)
            if len(found) == n:
                break
        return np.array(found).reshape(-1, 3 * len(self.sections))

    @property
    def payload_density_kg_m3(self) -> float:
        """Density of the payload, which determines the water it displaces."""
        return self.tip_load_density_kg_m3

    def strands(self) -> tuple[Strand, ...]:
        """Return the lines of the chambers."""
        radii = {section.name: section.chamber_pitch_radius_m for section in self.sections}
        return tuple(
            strand(i, self.section_names.index(a.section), a.angle_deg, radii[a.section])
            for i, a in enumerate(self.actuators)
        )

    def body_radii_m(self, plant: PlantBase | None) -> tuple[float, ...]:
        """Return the outer radius of each section [m]."""
        if not isinstance(plant, HydraulicPlantConfig):
            return tuple(section.outer_radius_m for section in self.sections)
        return tuple(section.outer_radius_m for section in plant.sections)

    def masses(self, plant: PlantBase | None) -> tuple[tuple[SpreadMass, ...], ...]:
        """Return the mass of each section, spread over it."""
        return tuple((SpreadMass(section.mass_kg),) for section in self.sections)


def water_cylinders(arm: HydraulicArm, around: Surrounded) -> WaterCylinders:
    """Return the cylinders, their chambers and the pressure loop."""
    limits = arm.actuator_limits()
    axes = CylinderAxes(
        names=arm.actuator_names,
        torque_per_pressure=arm.column('torque_per_pressure_N_m_Pa'),
        pressure_min_Pa=limits.position_min,
        pressure_max_Pa=limits.position_max,
        max_rate_Pa_s=limits.max_speed,
        preload_Pa=np.full(len(arm.actuators), arm.preload_Pa),
    )
    return WaterCylinders(axes, arm.chambers(), arm.pressure_loop)


PART = Part(
    'arm',
    HydraulicArm.KIND,
    HydraulicArm,
    {
        'water_cylinders': f'{__name__}:water_cylinders',
        'regulated_chambers': 'softarm_ros.rigs.arms.on_regulators:regulated_chambers',
    },
    'sections of three chambers, filled with water by servo cylinders or with air by regulators',
    ('softarm_ros.rigs.arms.hydraulic_checks:CHECKS',),
)
