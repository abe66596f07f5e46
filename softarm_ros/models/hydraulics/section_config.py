"""Parameters of soft sections with water chambers and of their surroundings."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field, model_validator

from softarm_ros.geometry.configs import (
    Angle,
    ConfigBlock,
    Finite,
    Length,
    Mass,
    NonNegative,
    NonNegativeMass,
    Positive,
    ShortLength,
    Stiffness,
)
from softarm_ros.models.dynamics.config import RigidBodyConfig

WATER_DENSITY_KG_M3 = 998.0


class ChamberedSection(ConfigBlock):
    """
    One soft section with three chambers in parallel (Chen et al. 2022).

    Stiffnesses are per rest length. `lever_factors` are the levers of the section's chambers, in
    the order of the actuators, over the nominal pitch radius: the "non-axisymmetric" layout with
    which the paper explains the difference between the two bending directions.
    """

    length_m: Length
    mass_kg: Mass = Field(description='mass with the water in the chambers')
    plate_mass_kg: NonNegativeMass | None = Field(
        default=None,
        description='part of mass_kg at the end; the rest is spread along the section. '
        'None: each segment has its mass at its far end, as in the paper',
    )
    displaced_volume_m3: NonNegative = Field(
        description='volume of fabric, frames and water, on which buoyancy acts'
    )
    outer_radius_m: ShortLength
    chamber_area_m2: Positive = Field(description='bore area of one chamber')
    chamber_pitch_radius_m: ShortLength
    lever_factors: tuple[Positive, Positive, Positive] = (1.0, 1.0, 1.0)
    axial_stiffness_N: Stiffness
    bending_stiffness_N_m2: Stiffness
    torsion_stiffness_N_m2: Stiffness

    @model_validator(mode='after')
    def _plate_is_part_of_it(self) -> ChamberedSection:
        if self.plate_mass_kg is not None and self.plate_mass_kg >= self.mass_kg:
            raise ValueError(
                f'plate_mass_kg = {self.plate_mass_kg:g} kg; expected less than mass_kg = '
                f'{self.mass_kg:g} kg'
            )
        return self


class HydraulicSectionConfig(ChamberedSection):
    """One section as the controller models it."""

    name: str = Field(pattern=r'^[a-z][a-z0-9_]*$')
    max_bending_angle_deg: float = Field(gt=0.0, le=170.0, default=120.0)
    rest_bend_deg: tuple[Angle, Angle] = Field(
        default=(0.0, 0.0), description='bend without pressure and weight, towards x and y'
    )


class ChamberConfig(ConfigBlock):
    """Place of one chamber: its section and its angle around the centreline from x."""

    name: str = Field(pattern=r'^[a-z][a-z0-9_]*$')
    section: int = Field(ge=0, description='0 is the section at the base')
    angle_deg: Finite


@dataclass(frozen=True)
class Damping:
    """Damping of a whole section: of its stretching, its translation and its rotation."""

    axial_N_s_m: float = 0.0
    drag_N_s_m: float = 0.0
    turning_N_m_s: float = 0.0


@dataclass(frozen=True)
class Surroundings:
    """
    Gravity, fluid, payload and mount of the arm.

    Attributes
    ----------
    gravity_m_s2 : (3,)
        Gravity in the base frame.
    fluid_density_kg_m3 : float
        0 for air.
    tip_load_kg, tip_load_density_kg_m3 : float
        Payload, a point at the tip; its density gives the fluid it displaces.
    base_tilt_deg : (2,)
        Tilt of the mount about x and about y in the base frame; rotated about y, then about x.

    """

    gravity_m_s2: tuple[float, float, float]
    fluid_density_kg_m3: float = 0.0
    tip_load_kg: float = 0.0
    tip_load_density_kg_m3: float = 7850.0
    base_tilt_deg: tuple[float, float] = (0.0, 0.0)

    def payload(self) -> RigidBodyConfig:
        """Return the payload as a rigid body at the tip."""
        share = self.fluid_density_kg_m3 / self.tip_load_density_kg_m3
        return RigidBodyConfig(
            mass_kg=self.tip_load_kg, displaced_fluid_kg=share * self.tip_load_kg
        )
