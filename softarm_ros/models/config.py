"""Parameters of the arm models in a rig file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from softarm_ros.geometry.configs import (
    Angle,
    ConfigBlock,
    Finite,
    Length,
    NonNegative,
    NonNegativeMass,
    NonNegativeShortLength,
    ShortLength,
    Stiffness,
)

ModelName = Literal['constant_curvature', 'cable_statics']
MODEL_NAMES: tuple[ModelName, ...] = ('constant_curvature', 'cable_statics')
# Models of arms whose motors wind pairs of cables.
PAIRED_MODEL_NAMES: tuple[ModelName, ...] = ('constant_curvature',)


class SectionConfig(ConfigBlock):
    """
    One cable-driven section as the controller knows it (Qi et al. 2024, table 1).

    The bending part of length `length_m` lies between two rigid endcaps of `endcap_length_m` each.
    """

    name: str = Field(pattern=r'^[a-z][a-z0-9_]*$')
    length_m: Length
    endcap_length_m: NonNegativeShortLength
    cable_radius_m: ShortLength = Field(description='distance of the cables from the backbone, d')
    bending_stiffness_N_m2: Stiffness = Field(description='K_b: moment = K_b * curvature')
    cutting_in_stiffness_N_m2: Stiffness = Field(description='K_t: force per length = K_t * depth')
    max_bending_angle_deg: float = Field(gt=0.0, le=170.0, default=130.0)
    body_mass_kg: NonNegativeMass = Field(
        default=0.0, description='mass between the endcaps, for models with weight'
    )
    endcap_mass_kg: NonNegativeMass = Field(
        default=0.0, description='mass of each of the two endcaps'
    )
    passing_radius_m: NonNegativeShortLength = Field(
        default=0.0,
        description='distance from the backbone at which cables of later sections pass through',
    )
    rest_bend_deg: tuple[Angle, Angle] = Field(
        default=(0.0, 0.0), description='bending vector with all contractions zero'
    )
    bend_per_moment_rad_N_m: NonNegative = Field(
        default=0.0, description='compliance under a tip load, of an arm with pairs of cables'
    )
    axial_stiffness_N: Stiffness | None = Field(
        default=None,
        description='E A, by which the backbone shortens under its cables, for `cosserat`; '
        'without it the backbone is inextensible',
    )


class BendConfig(ConfigBlock):
    """The bend of one section when one pair of cables is pulled, identified from recordings."""

    section: str
    gain_rad_m: NonNegative = Field(description='bending per contraction')
    angle_deg: Angle = Field(description='direction in which it bends, from the x axis')


class CableConfig(ConfigBlock):
    """
    Route of one cable: the section it bends and its angle around the backbone from x.

    A `pair` is this cable and its counterpart on the opposite side: one motor pulls one in and
    pays the other out by the same length. `bends` replaces the bends that follow from geometry.
    `stretch_m_N` is the elongation per newton of the thread between motor and attachment point.
    """

    name: str = Field(pattern=r'^[a-z][a-z0-9_]*$')
    section: str
    angle_deg: Finite
    pair: bool = False
    bends: tuple[BendConfig, ...] = ()
    stretch_m_N: NonNegative = 0.0
