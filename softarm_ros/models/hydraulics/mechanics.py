"""What models of sections with water chambers are built on, and how."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from softarm_ros.models.hydraulics.section_config import (
    ChamberConfig,
    HydraulicSectionConfig,
    Surroundings,
)
from softarm_ros.models.parts import CosseratSettings, HydraulicStaticsSettings, NoSettings

if TYPE_CHECKING:
    from softarm_ros.geometry.arrays import Array
    from softarm_ros.models.arm_model import ArmModel


@dataclass(frozen=True)
class WaterChambers:
    """
    Sections in series from base to tip with a chamber per actuator.

    Attributes
    ----------
    pressure_min_Pa, pressure_max_Pa : (m,)
        Range of each chamber, gauge.
    preload_Pa : float
        What the least filled chamber keeps.

    """

    sections: tuple[HydraulicSectionConfig, ...]
    chambers: tuple[ChamberConfig, ...]
    surroundings: Surroundings
    pressure_min_Pa: Array
    pressure_max_Pa: Array
    preload_Pa: float


def hydraulic_statics(settings: HydraulicStaticsSettings, mechanics: WaterChambers) -> ArmModel:
    """Return the statics under weight, load and, where there is any, water."""
    return _statics(mechanics, settings.segments_per_section, 'hydraulic_statics')


def constant_curvature(_: NoSettings, mechanics: WaterChambers) -> ArmModel:
    """Return the same of one segment a section, without weight and load."""
    weightless = Surroundings(
        gravity_m_s2=(0.0, 0.0, 0.0), base_tilt_deg=mechanics.surroundings.base_tilt_deg
    )
    return _statics(replace(mechanics, surroundings=weightless), 1, 'constant_curvature')


def cosserat(settings: CosseratSettings, mechanics: WaterChambers) -> ArmModel:
    """Return the rod that the chambers stretch and bend, under weight, load and, maybe, water."""
    from softarm_ros.models.hydraulics.rod import WaterRod

    return WaterRod(
        mechanics.sections,
        mechanics.chambers,
        mechanics.surroundings,
        mechanics.pressure_min_Pa,
        mechanics.pressure_max_Pa,
        mechanics.preload_Pa,
        settings.steps,
    )


def _statics(mechanics: WaterChambers, segments: int, name: str) -> ArmModel:
    from softarm_ros.models.hydraulics.statics import HydraulicStatics

    return HydraulicStatics(
        mechanics.sections,
        mechanics.chambers,
        mechanics.surroundings,
        mechanics.pressure_min_Pa,
        mechanics.pressure_max_Pa,
        mechanics.preload_Pa,
        segments,
        name,
    )
