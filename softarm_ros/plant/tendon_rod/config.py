"""Parameters of the simulated tendon-driven rod; the controller knows none of them."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field, model_validator

from softarm_ros.geometry.configs import (
    ConfigBlock,
    Finite,
    Length,
    Mass,
    NonNegative,
    NonNegativeStiffness,
    Positive,
    ShortLength,
    Stiffness,
)
from softarm_ros.models.cosserat.config import CableRoute, Profile, RigidConnector
from softarm_ros.plant.config import PlantBase


class PlantRodSegmentConfig(ConfigBlock):
    """One flexible piece of the simulated arm: an elastic core in a sleeve, and its connector."""

    length_m: Length
    profile: Profile = Field(description='profile of the elastic core, as in segments of the rig')
    rest_curvature_1_m: tuple[Finite, Finite, Finite] = Field(
        default=(0.0, 0.0, 0.0),
        description='curvature about local x, y, z at rest: the core is not quite straight',
    )
    sleeve_mass_kg: Mass = Field(description='mass of the sleeve, distributed along it')
    sleeve_bending_stiffness_N_m2: NonNegativeStiffness
    sleeve_torsion_stiffness_N_m2: NonNegativeStiffness
    damping_time_s: NonNegative = Field(
        description='Kelvin-Voigt: damping = damping_time * stiffness, of bending and torsion'
    )
    connector: RigidConnector
    cable_radius_m: ShortLength | None = Field(
        default=None,
        description="radius of its cables, as drawn; default: that of the arm's routes, which "
        'identification must then not change',
    )
    cable_radius_error_m: Finite = Field(
        default=0.0, description='distance by which its cables run farther out than drawn'
    )

    @model_validator(mode='after')
    def _about_the_axis(self) -> PlantRodSegmentConfig:
        if any(self.connector.rotation_vector_deg[:2]):
            raise ValueError(
                f'connector.rotation_vector_deg = {list(self.connector.rotation_vector_deg)}: '
                'connectors of the simulated rod turn about its axis only, expected [0, 0, angle]'
            )
        coupling = self.profile.stiffness(0.5)[:3, 5]
        if coupling.any():
            raise ValueError(
                f'profile couples stretch with bending or torsion ({coupling.tolist()} N m): the '
                'simulated rod has none, expected zeros'
            )
        return self


class WinchConfig(ConfigBlock):
    """A winch that controls a cable's tension by a load cell, and the guide to the arm."""

    time_constant_s: Positive = Field(description='time constant of the tension control')
    max_tension_rate_N_s: Positive
    cable_stiffness_N_m: Stiffness = Field(
        description="stiffness from the winch to the cable's end: the stretch slides in the "
        'guide too'
    )
    load_cell_resolution_N: NonNegative
    load_cell_gain_sd: NonNegative = Field(description='standard deviation between the cells')
    load_cell_zero_sd_N: NonNegative = Field(description='standard deviation between the cells')
    guide_loss: NonNegative = Field(
        description='share of the tension lost between load cell and arm: 0.01 to 0.02 for a '
        'pulley on ball bearings, friction_coefficient times the angle for a sliding guide'
    )
    guide_presliding_stiffness_N_m: Stiffness = Field(
        description='stiffness of that guide along the cable before it slides'
    )
    span_N: Positive = Field(
        default=50.0,
        description='tension at 10 V of the set point and at 5 V of the load cell; their zeros '
        'are 0 and 1 V',
    )


class TendonRodPlantConfig(PlantBase):
    """The simulated tendon-driven rod."""

    pieces_per_segment: int = Field(ge=2, le=64, default=5, description='number of elastic joints')
    outer_radius_m: ShortLength = Field(description='radius of the sleeve')
    connector_radius_m: ShortLength = Field(
        description='radius of the connectors, for their inertia'
    )
    payload_radius_m: ShortLength = Field(
        default=0.01, description='radius of the tip load as a ball, for its inertia'
    )
    passage_radius_m: Finite = Field(
        description='position of cables in segments before their own: offset towards their own '
        'side'
    )
    friction_coefficient: NonNegative = Field(
        description='Coulomb friction of a cable in its guides'
    )
    presliding_stiffness_N_m2: Stiffness = Field(
        description="stiffness of a cable's guides along it before it slides, per length"
    )
    segments: tuple[PlantRodSegmentConfig, ...] = Field(min_length=1)
    winch: WinchConfig


@dataclass(frozen=True)
class PlantTendon:
    """
    Path of a cable.

    `routes` are its paths in its own segments, `segment_indices` the indices of these segments (0:
    at the base). It passes earlier segments at the plant's `passage_radius_m`.
    """

    name: str
    routes: tuple[CableRoute, ...]
    segment_indices: tuple[int, ...]
