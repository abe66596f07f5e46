"""Parameters of the simulated muscle arm."""

from __future__ import annotations

import math

from pydantic import Field, model_validator

from softarm_ros.geometry.configs import ConfigBlock, NonNegative, Positive
from softarm_ros.plant.config import PlantBase


class RelayConfig(ConfigBlock):
    """Relay and solenoid valve: delays between the board's output and the valve."""

    shortest_delay_s: Positive
    longest_delay_s: Positive = Field(description='each valve has its own delay in this range')
    closing_spread_s: NonNegative = Field(
        description='standard deviation of what closing takes longer, or less, than opening'
    )
    jitter_s: NonNegative = Field(description='standard deviation from one operation to the next')
    link_delay_s: NonNegative = Field(description='from the driver to the board')

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
        description='of a full-length muscle under the pump: pressure of the air by cross-section'
    )
    supply_push_N: NonNegative = Field(
        description='supply pressure times the cross-section of a bag'
    )
    filling_time_s: Positive = Field(
        description='in which a full muscle without load would shorten as far as it can, if it '
        'went on as at first'
    )
    filling_spread: float = Field(
        ge=0.0, lt=0.4, description='of the throttles, relative, twice the standard deviation'
    )
    leak_time_s: Positive = Field(description='likewise, towards its full length, valves closed')
    play_m: NonNegative = Field(description='half-width of the play of the folds at a reversal')
    offset_m: NonNegative = Field(description='standard deviation of length at homing')


class PlantBackboneConfig(ConfigBlock):
    """Round elastic rod in the middle of the simulated arm."""

    length_m: Positive
    diameter_m: Positive
    youngs_modulus_Pa: Positive
    shear_modulus_Pa: Positive
    mass_per_length_kg_m: Positive = Field(description='of the whole arm, spread along it')

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

    time_step_s: float = Field(gt=0.0, le=0.01, default=0.005)
    intervals: int = Field(
        ge=4, le=100, default=20, description='of the backbone: a multiple of its modules'
    )
    backbone: PlantBackboneConfig
    anchor_radius_m: Positive
    gyration_radius_m: Positive = Field(description='of a cross-section about its own axes')
    full_length_m: Positive = Field(description='of a vented muscle without load')
    skeleton_stiffness_N_m: Positive = Field(description='of the folds of a muscle')
    stiffness_spread: float = Field(
        ge=0.0, lt=0.4, description='of the skeletons, relative, twice the standard deviation'
    )
    film_stiffness_N_m: Positive = Field(description='of a bag drawn longer than it is, taut')
    muscle_damping_time_s: NonNegative = Field(description='Kelvin-Voigt: damping by stiffness')
    backbone_damping_time_s: NonNegative = Field(description='likewise, of bending and twist')
    drag_rate_1_s: NonNegative = Field(description='of air and sleeve: force by momentum')
    pneumatics: PneumaticsConfig
    relays: RelayConfig
