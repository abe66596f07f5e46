"""Parameters of the simulated muscle arm."""

from __future__ import annotations

import math

from pydantic import Field, model_validator

from softarm_ros.geometry.configs import (
    ConfigBlock,
    Length,
    Mass,
    Modulus,
    NonNegative,
    Positive,
    ShortLength,
    Stiffness,
)
from softarm_ros.plant.config import PlantBase, TimeStep


class RelayConfig(ConfigBlock):
    """Relay and solenoid valve: delays between the board's output and the valve."""

    shortest_delay_s: Positive
    longest_delay_s: Positive = Field(description='each valve has its own delay in this range')
    closing_spread_s: NonNegative = Field(
        description='standard deviation of the difference between the delays of closing and '
        'opening'
    )
    jitter_s: NonNegative = Field(
        description="standard deviation of a valve's delay from one operation to the next"
    )
    link_delay_s: NonNegative = Field(description='delay from the driver to the board')

    @model_validator(mode='after')
    def _ordered(self) -> RelayConfig:
        if not self.shortest_delay_s <= self.longest_delay_s:
            raise ValueError(
                f'shortest_delay_s = {self.shortest_delay_s} exceeds longest_delay_s = '
                f'{self.longest_delay_s}'
            )
        swing = 2.0 * self.closing_spread_s + 3.0 * self.jitter_s
        if swing > self.shortest_delay_s + 1e-12:
            raise ValueError(
                f'2 closing_spread_s + 3 jitter_s = {swing:.4g}: expected at most '
                f'shortest_delay_s = {self.shortest_delay_s}, else a valve moves before its relay'
            )
        return self


class PneumaticsConfig(ConfigBlock):
    """Filling and emptying of the muscles, and the changes of length that follow."""

    max_pull_N: Positive = Field(
        description='largest pull of a muscle at full length: atmospheric pressure times '
        'cross-section'
    )
    supply_push_N: NonNegative = Field(
        description='supply pressure times the cross-section of a bag'
    )
    filling_time_s: Positive = Field(
        description='time in which a full muscle without load would shorten as far as it can at '
        'its first rate'
    )
    filling_spread: float = Field(
        ge=0.0, lt=0.4, description='spread of the throttles, relative, two standard deviations'
    )
    leak_time_s: Positive = Field(
        description='time in which a closed muscle would lengthen to its full length at its '
        'first rate'
    )
    play_m: NonNegative = Field(description='half-width of the play of the folds at a reversal')
    offset_m: NonNegative = Field(description='standard deviation of the length after homing')


class PlantBackboneConfig(ConfigBlock):
    """Round elastic rod in the middle of the simulated arm."""

    length_m: Length
    diameter_m: ShortLength
    youngs_modulus_Pa: Modulus
    shear_modulus_Pa: Modulus
    mass_per_length_kg_m: Mass = Field(description='mass of the whole arm, distributed along it')

    @property
    def bending_stiffness_N_m2(self) -> float:
        """E pi d^4 / 64."""
        return self.youngs_modulus_Pa * math.pi * self.diameter_m**4 / 64.0

    @property
    def torsional_stiffness_N_m2(self) -> float:
        """G pi d^4 / 32."""
        return self.shear_modulus_Pa * math.pi * self.diameter_m**4 / 32.0

    @property
    def axial_stiffness_N(self) -> float:
        """E pi d^2 / 4."""
        return self.youngs_modulus_Pa * math.pi * self.diameter_m**2 / 4.0


class PamPlantConfig(PlantBase):
    """The simulated muscle arm."""

    time_step_s: TimeStep = 0.005
    intervals: int = Field(
        ge=4,
        le=100,
        default=20,
        description='number of intervals of the backbone: a multiple of its modules',
    )
    backbone: PlantBackboneConfig
    anchor_radius_m: ShortLength
    gyration_radius_m: ShortLength = Field(
        description='radius of gyration of a cross-section about its own axes'
    )
    full_length_m: Length = Field(description='length of a vented muscle without load')
    skeleton_stiffness_N_m: Stiffness = Field(description='stiffness of the folds of a muscle')
    stiffness_spread: float = Field(
        ge=0.0,
        lt=0.4,
        description="spread of the skeletons' stiffness, relative, two standard deviations",
    )
    film_stiffness_N_m: Stiffness = Field(description='stiffness of a bag that is stretched taut')
    muscle_damping_time_s: NonNegative = Field(description='Kelvin-Voigt: damping over stiffness')
    backbone_damping_time_s: NonNegative = Field(
        description='Kelvin-Voigt: damping over stiffness, of bending and twist'
    )
    drag_rate_1_s: NonNegative = Field(description='drag of air and sleeve: force over momentum')
    pneumatics: PneumaticsConfig
    relays: RelayConfig
