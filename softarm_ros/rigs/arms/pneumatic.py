"""Rigs of pneumatic sections of three chambers in series, with a soft gripper."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.control.gripper import GripperConfig
from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.drivers.play_compensation import PlayCompensationConfig
from softarm_ros.geometry.configs import PressureRate, WatchedPressure
from softarm_ros.geometry.parts import Part
from softarm_ros.models.actuation_range import ActuationRange
from softarm_ros.models.pneumatic.config import ChamberSectionConfig, MountConfig
from softarm_ros.models.pneumatic.mechanics import AirChambers
from softarm_ros.plant.config import PlantBase
from softarm_ros.plant.pneumatic.config import PneumaticPlantConfig
from softarm_ros.rigs.arms.base import ActuatorBase, ArmBase, Surrounded
from softarm_ros.rigs.outline import SpreadMass, Strand, strand

WATER_KG_M3 = 998.0


class ChamberConfig(ActuatorBase):
    """One chamber and its regulator; named <section>_chamber_<1, 2, 3>, base section first."""

    unit: Literal['Pa'] = Field(default='Pa', description='of the command: gauge pressure')
    pressure_max_Pa: WatchedPressure
    max_rate_Pa_s: PressureRate
    max_acceleration_Pa_s2: float = Field(gt=0.0, le=1e11)


class PneumaticArm(ArmBase):
    """An arm of pneumatic sections with sagging mounts (Gong et al. 2018)."""

    KIND: ClassVar[str] = 'pneumatic'
    BODY: ClassVar[str] = 'chamber_chain'

    sections: tuple[ChamberSectionConfig, ...] = Field(
        min_length=1, description='from base to tip'
    )
    mount: MountConfig = Field(description='soft part at the base of every section, which sags')
    actuators: tuple[ChamberConfig, ...] = Field(
        min_length=3, description='three a section, in the order of every actuation vector'
    )
    play_compensation: PlayCompensationConfig = Field(
        default=PlayCompensationConfig(), description='of the regulators, by their driver'
    )

    @property
    def section_names(self) -> tuple[str, ...]:
        """Names of the sections from base to tip."""
        return tuple(section.name for section in self.sections)

    @property
    def mechanics_name(self) -> str:
        """Kind of mechanics: air chambers."""
        return 'air_chambers'

    def mechanics(self, around: Surrounded) -> AirChambers:
        """Return the mechanics: sections, mounts and the mass at the tip."""
        density = WATER_KG_M3 if around.medium == 'water' else 0.0
        gripper = around.gripper or GripperConfig(open_pressure_Pa=0.0, close_pressure_Pa=0.0)
        return AirChambers(
            self.sections,
            self.mount,
            around.gravity_m_s2,
            fluid_density_kg_m3=density,
            tip_mass_kg=gripper.mass_kg + around.tip_load_kg - density * gripper.volume_m3,
            tip_offset_m=gripper.centre_m,
        )

    def commanded(self, around: Surrounded) -> AirChambers:
        """Return `mechanics` with the range of the pressures."""
        limits = self.actuator_limits()
        within = ActuationRange(limits.names, limits.position_min, limits.position_max, 'Pa')
        return replace(self.mechanics(around), within=within)

    def actuator_limits(self) -> ActuatorLimits:
        """Return the limits of all chambers, arrays (m,) in Pa, Pa/s, Pa/s^2."""
        return ActuatorLimits(
            names=self.actuator_names,
            unit='Pa',
            position_min=np.zeros(len(self.actuators)),
            position_max=self.column('pressure_max_Pa'),
            max_speed=self.column('max_rate_Pa_s'),
            max_acceleration=self.column('max_acceleration_Pa_s2'),
            effort_unit='Pa',
        )

    def configuration_limits(self) -> ConfigurationLimits:
        """Return the range of the chambers' extensions, from rest to the largest pressure."""
        from softarm_ros.models.pneumatic.common_softening import curves_of

        most = np.array([actuator.pressure_max_Pa for actuator in self.actuators]).reshape(-1, 3)
        upper = [curves_of(s).largest_extensions(three) for s, three in zip(self.sections, most)]
        return ConfigurationLimits.of_range(np.zeros(most.size), np.concatenate(upper))

    def strands(self) -> tuple[Strand, ...]:
        """Return the lines of the chambers, three per section."""
        from softarm_ros.models.pneumatic.chambers import CHAMBER_ANGLES_RAD

        return tuple(
            strand(
                i,
                i // 3,
                float(np.degrees(CHAMBER_ANGLES_RAD[i % 3])),
                self.sections[i // 3].chamber_radius_m,
            )
            for i in range(len(self.actuators))
        )

    def body_radii_m(self, plant: PlantBase | None) -> tuple[float, ...]:
        """Return the outer radius of each section [m]."""
        if not isinstance(plant, PneumaticPlantConfig):
            return tuple(section.chamber_radius_m for section in self.sections)
        return tuple(section.outer_radius_m for section in plant.sections)

    def masses(self, plant: PlantBase | None) -> tuple[tuple[SpreadMass, ...], ...]:
        """Return the mass of each section, spread over it."""
        return tuple((SpreadMass(section.mass_kg),) for section in self.sections)


PART = Part(
    'arm',
    PneumaticArm.KIND,
    PneumaticArm,
    {
        'regulated_chambers': 'softarm_ros.rigs.arms.on_regulators:regulated_chambers',
    },
    'pneumatic sections of three chambers on mounts that sag',
    (
        'softarm_ros.rigs.arms.pneumatic_checks:CHECKS',
        'softarm_ros.rigs.arms.regulator_checks:CHECKS',
    ),
)
