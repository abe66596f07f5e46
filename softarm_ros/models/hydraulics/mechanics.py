"""The mechanics of sections with water chambers, and the models built on them."""

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
    Sections in series from base to tip, with one chamber per actuator.

    Attributes
    ----------
    pressure_min_Pa, pressure_max_Pa : (m,)
        Pressure range of each chamber, gauge.
    preload_Pa : float
        Pressure that the least filled chamber keeps.

    """

    sections: tuple[HydraulicSectionConfig, ...]
    chambers: tuple[ChamberConfig, ...]
    surroundings: Surroundings
    pressure_min_Pa: Array
    pressure_max_Pa: Array
    preload_Pa: float


def hydraulic_statics(settings: HydraulicStaticsSettings, mechanics: WaterChambers) -> ArmModel:
    """Return the static model under weight, load and, if the arm is immersed, buoyancy."""
    return _statics(mechanics, settings.segments_per_section, 'hydraulic_statics')


def constant_curvature(_: NoSettings, mechanics: WaterChambers) -> ArmModel:
    """Return the static model with one segment per section, without weight and payload."""
    weightless = Surroundings(
        gravity_m_s2=(0.0, 0.0, 0.0), base_tilt_deg=mechanics.surroundings.base_tilt_deg
    )
    return _statics(replace(mechanics, surroundings=weightless), 1, 'constant_curvature')


def cosserat(settings: CosseratSettings, mechanics: WaterChambers) -> ArmModel:
    """Return the Cosserat rod driven by the chambers, under weight, load and buoyancy."""
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
