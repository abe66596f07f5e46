"""Parameters of the simulated muscle arm."""

from __future__ import annotations

import math

from pydantic import Field, model_validator

from softarm_ros.geometry.configs import ConfigBlock, NonNegative, Positive
from softarm_ros.plant.config import PlantBase


class RelayConfig(ConfigBlock):
    """Relay and solenoid valve: when the valve follows the board's output."""

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
    """How gas makes a muscle longer and shorter."""

    max_pull_N: Positive = Field(description='of a full-length muscle under the pump')
    supply_push_N: NonNegative = Field(
        description='supply pressure times the cross-section of a bag'
    )
    filling_time_s: Positive = Field(description='of the bag through its throttle')
    filling_spread: float = Field(
        ge=0.0, lt=0.4, description='of the throttles, relative, twice the standard deviation'
    )
    leak_time_s: Positive = Field(description='of the bag with closed valves')
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
    min_length_m: Positive = Field(description='of an empty muscle')
    full_length_m: Positive = Field(description='of a full one')
    muscle_stiffness_N_m: Positive = Field(description='axial, closed valves, full length')
    stiffness_spread: float = Field(
        ge=0.0, lt=0.4, description='of the muscles, relative, twice the standard deviation'
    )
    softening: float = Field(ge=0.0, lt=1.0, description='share of it that an empty one has lost')
    gas_springs: bool = Field(
        default=False,
        description='stiffness of gas and skeleton instead of muscle_stiffness_N_m and softening',
    )
    muscle_damping_time_s: NonNegative = Field(description='Kelvin-Voigt: damping by stiffness')
    backbone_damping_time_s: NonNegative = Field(description='likewise, of bending and twist')
    drag_rate_1_s: NonNegative = Field(description='of air and sleeve: force by momentum')
    pneumatics: PneumaticsConfig
    relays: RelayConfig

    def full_stiffness_and_softening(self) -> tuple[float, float]:
        """
        Return the stiffness of a full muscle [N/m], and which share of it an empty one has lost.

        Of gas springs: behind closed valves the gas keeps its amount and, a film bag of 20 ml, the
        temperature of the room, so that at pressure P and length l it has the stiffness A P / l.
        Unloaded, A P is what the skeleton, a spring k = max_pull / (full - min), leaves of the
        full pull: k (l - min). That makes k + k (l - min) / l, here linear in l between its ends:
        within 8 %.
        """
        if not self.gas_springs:
            return self.muscle_stiffness_N_m, self.softening
        full, span = self.full_length_m, self.full_length_m - self.min_length_m
        skeleton = self.pneumatics.max_pull_N / span
        gas = skeleton * span / full
        return skeleton + gas, gas / (skeleton + gas)

    @model_validator(mode='after')
    def _lengths(self) -> PamPlantConfig:
        if not self.min_length_m < self.full_length_m:
            raise ValueError(
                f'min_length_m = {self.min_length_m} must be below full_length_m = '
                f'{self.full_length_m}'
            )
        return self
