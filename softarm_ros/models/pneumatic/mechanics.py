"""The mechanics of pneumatic sections, and the models built on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from softarm_ros.models.actuation_range import ActuationRange
from softarm_ros.models.parts import CosseratSettings, NoSettings
from softarm_ros.models.pneumatic.config import ChamberSectionConfig, MountConfig

if TYPE_CHECKING:
    from softarm_ros.models.arm_model import ArmModel


@dataclass(frozen=True)
class AirChambers:
    """
    Sections of three chambers in series from base to tip, each on a mount that sags.

    `tip_mass_kg` is a mass at `tip_offset_m` beyond the tip, minus the mass of the fluid that it
    displaces. Gravity is in the base frame. Models refuse pressures outside the range `within`.
    """

    sections: tuple[ChamberSectionConfig, ...]
    mount: MountConfig
    gravity_m_s2: tuple[float, float, float]
    fluid_density_kg_m3: float = 0.0
    tip_mass_kg: float = 0.0
    tip_offset_m: float = 0.0
    within: ActuationRange | None = None


def angle_correction(_: NoSettings, mechanics: AirChambers) -> ArmModel:
    """Return the model of arcs on mounts that sag."""
    from softarm_ros.models.pneumatic.angle_correction import PneumaticArm
    from softarm_ros.models.pneumatic.chamber_arm import ChamberArm

    arm = PneumaticArm(
        mechanics.sections,
        mechanics.mount,
        mechanics.gravity_m_s2,
        fluid_density_kg_m3=mechanics.fluid_density_kg_m3,
        tip_mass_kg=mechanics.tip_mass_kg,
        tip_offset_m=mechanics.tip_offset_m,
    )
    return ChamberArm(arm, 'angle_correction', mechanics.within)


def constant_curvature(_: NoSettings, mechanics: AirChambers) -> ArmModel:
    """Return the model of arcs without mounts, weight and load."""
    from softarm_ros.models.pneumatic.angle_correction import PneumaticArm
    from softarm_ros.models.pneumatic.chamber_arm import ChamberArm

    rigid = [s.model_copy(update={'bend_per_moment_rad_N_m': 0.0}) for s in mechanics.sections]
    return ChamberArm(PneumaticArm(rigid), 'constant_curvature', mechanics.within)


def cosserat(settings: CosseratSettings, mechanics: AirChambers) -> ArmModel:
    """Return the model of arcs and mounts as one Cosserat rod."""
    from softarm_ros.models.pneumatic.rod import RodByExtensions, RodOfChambers

    arm = RodOfChambers(
        mechanics.sections,
        mechanics.mount,
        mechanics.gravity_m_s2,
        mechanics.fluid_density_kg_m3,
        mechanics.tip_mass_kg,
        mechanics.tip_offset_m,
        settings.steps,
    )
    return RodByExtensions(arm, mechanics.within)
