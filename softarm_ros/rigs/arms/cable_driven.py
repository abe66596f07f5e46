"""Rigs of cable-driven sections in series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.drivers.attachments import CableRun, WoundCables
from softarm_ros.geometry.configs import Angle, Finite, NonNegative, Positive, PulleyRadius
from softarm_ros.geometry.parts import Part
from softarm_ros.models.cable_driven.mechanics import CableMechanics
from softarm_ros.models.config import BendConfig, CableConfig, SectionConfig
from softarm_ros.plant.config import PlantBase, PlantConfig, PlantSectionConfig
from softarm_ros.rigs.arms.base import ActuatorBase, ArmBase, Surrounded
from softarm_ros.rigs.arms.cable_devices import cable_limits
from softarm_ros.rigs.arms.pair_checks import mechanics_name
from softarm_ros.rigs.outline import SpreadMass, Strand, strand

_ROUNDING = 1e-9  # share of the largest matrix entry


class ActuatorConfig(ActuatorBase):
    """One motor with its cable (or pair): the route of the cable and the limits of the motor."""

    section: str = Field(description='name of the section the cable bends')
    angle_deg: Angle = Field(description='around the backbone, from the section x axis')
    unit: Literal['m'] = Field(default='m', description='of the command: cable contraction')
    position_min_m: Finite = Field(description='largest length paid out, negative')
    position_max_m: Finite = Field(description='largest length pulled in')
    max_speed_m_s: Positive
    max_acceleration_m_s2: Positive
    pair: bool = Field(
        default=False, description='the cable on the opposite side is paid out by as much'
    )
    pulley_radius_m: PulleyRadius | None = Field(
        default=None, description='converts recorded motor angles to contractions'
    )
    bends: tuple[BendConfig, ...] = Field(
        default=(), description='bends of the sections per contraction; default: from geometry'
    )
    stretch_m_N: NonNegative = Field(
        default=0.0,
        description='elongation of the thread per newton; used by `cosserat` only',
    )


class CableArm(ArmBase):
    """An arm of cable-driven sections in series (Qi et al. 2024)."""

    KIND: ClassVar[str] = 'cable_driven'
    BODY: ClassVar[str] = 'cable_chain'

    sections: tuple[SectionConfig, ...] = Field(min_length=1, description='from base to tip')
    actuators: tuple[ActuatorConfig, ...] = Field(
        min_length=1, description='in the order of every actuation vector'
    )

    @property
    def section_names(self) -> tuple[str, ...]:
        """Names of the sections from base to tip."""
        return tuple(section.name for section in self.sections)

    @property
    def mechanics_name(self) -> str:
        """Kind of mechanics: single cables or pairs."""
        return mechanics_name(self)

    def mechanics(self, around: Surrounded) -> CableMechanics:
        """Return the mechanics: sections, cables and the load at the tip."""
        x, y, z = (around.tip_load_kg * g for g in around.gravity_m_s2)
        return CableMechanics(self.sections, self.cables(), (x, y, z), around.gravity_m_s2)

    def commanded(self, around: Surrounded) -> CableMechanics:
        """Return `mechanics` with the range of the motors."""
        return replace(self.mechanics(around), within=self.range_of_lengths())

    def cables(self) -> tuple[CableConfig, ...]:
        """Return the cable configurations, one per actuator."""
        return tuple(
            CableConfig(
                name=a.name,
                section=a.section,
                angle_deg=a.angle_deg,
                pair=a.pair,
                bends=a.bends,
                stretch_m_N=a.stretch_m_N,
            )
            for a in self.actuators
        )

    def spelled_out(self) -> CableArm:
        """Return the arm with `bends` of every pair, computed from geometry if none has any."""
        if self.mechanics_name == 'cables' or any(a.bends for a in self.actuators):
            return self
        # Imported here: it compiles, and few rigs need it.
        from softarm_ros.models.cable_driven.paired_cables import PairedCablesArm, bends_of_matrix

        matrix = PairedCablesArm(self.sections, self.cables()).bends_per_contraction
        matrix[np.abs(matrix) < _ROUNDING * np.abs(matrix).max()] = 0.0
        actuators = tuple(
            a.model_copy(update={'bends': bends_of_matrix(matrix, self.sections, j)})
            for j, a in enumerate(self.actuators)
        )
        return self.model_copy(update={'actuators': actuators})

    def actuator_limits(self) -> ActuatorLimits:
        """Return the limits of all cables, arrays (m,) in m, m/s, m/s^2."""
        return self.limits_of_lengths()

    def configuration_limits(self) -> ConfigurationLimits:
        """Return the bending limits of the sections."""
        return ConfigurationLimits.of_bending(
            np.deg2rad([section.max_bending_angle_deg for section in self.sections])
        )

    def strands(self) -> tuple[Strand, ...]:
        """Return the cables, each in the section it bends."""
        radii = {section.name: section.cable_radius_m for section in self.sections}
        return tuple(
            strand(i, self.section_names.index(a.section), a.angle_deg, radii[a.section])
            for i, a in enumerate(self.actuators)
        )

    def body_radii_m(self, plant: PlantBase | None) -> tuple[float, ...]:
        """Return the outer radius of each section [m]."""
        if not isinstance(plant, PlantConfig):
            return tuple(section.cable_radius_m for section in self.sections)
        return tuple(section.outer_radius_m for section in plant.sections)

    def masses(self, plant: PlantBase | None) -> tuple[tuple[SpreadMass, ...], ...]:
        """Return the masses of body and endcaps of each section."""
        weighed: Sequence[SectionConfig | PlantSectionConfig] = self.sections
        if not any(section.body_mass_kg + section.endcap_mass_kg for section in weighed):
            if not isinstance(plant, PlantConfig):
                return ()
            weighed = plant.sections
        masses = []
        for config, body in zip(self.sections, weighed):
            cap = config.endcap_length_m / (config.length_m + 2.0 * config.endcap_length_m)
            spread = [SpreadMass(body.body_mass_kg, cap, 1.0 - cap)]
            if body.endcap_mass_kg > 0.0:
                # A cap without length is a disk; here it takes a hundredth of the section.
                thick = max(cap, 0.01)
                spread.append(SpreadMass(body.endcap_mass_kg, 0.0, thick))
                spread.append(SpreadMass(body.endcap_mass_kg, 1.0 - thick, 1.0))
            masses.append(tuple(spread))
        return tuple(masses)


def wound_cables(arm: CableArm, around: Surrounded) -> WoundCables:
    """Return the cables, one or a pair per actuator, and the limits of their commands."""
    cables = []
    for motor, a in enumerate(arm.actuators):
        section, angle = arm.section_names.index(a.section), float(np.deg2rad(a.angle_deg))
        cables.append(CableRun(section, angle, motor))
        if a.pair:
            cables.append(CableRun(section, angle + np.pi, motor, -1.0))
    return WoundCables(arm.actuator_names, tuple(cables), cable_limits(arm.actuator_limits()))


PART = Part(
    'arm',
    CableArm.KIND,
    CableArm,
    {
        'wound_cables': f'{__name__}:wound_cables',
    },
    'soft sections in series, bent by cables that motors wind',
    (
        'softarm_ros.rigs.arms.cable_checks:CHECKS',
        'softarm_ros.rigs.arms.pair_checks:CHECKS',
    ),
)
