"""Parameters of the simulated muscle arm, and of the valve drive it stands in for."""

from __future__ import annotations

from pydantic import Field, model_validator

from softarm_ros.geometry.configs import ConfigBlock, NonNegative, Positive
from softarm_ros.models.minimum_energy.config import BackboneConfig
from softarm_ros.models.minimum_energy.valves import MuscleValves
from softarm_ros.models.monotone_curve import MonotoneCurve
from softarm_ros.plant.config import PlantBase


class ValveTableConfig(ConfigBlock):
    """Length of an unloaded muscle against the time its valve has been open."""

    times_s: tuple[NonNegative, ...] = Field(min_length=2, description='from the end, rising')
    lengths_m: tuple[Positive, ...]

    @model_validator(mode='after')
    def _pairs(self) -> ValveTableConfig:
        if len(self.lengths_m) != len(self.times_s):
            raise ValueError(
                f'{len(self.times_s)} times_s but {len(self.lengths_m)} lengths_m: expected pairs'
            )
        return self


class ValveDriveConfig(ConfigBlock):
    """
    What turns lengths into valve times: the driver's tables and the valve board's timing.

    Part of what is known of the arm, not of the simulation: the board is a micro-controller with a
    tick of 1 ms.
    """

    deflating: ValveTableConfig = Field(description='from full, falling')
    inflating: ValveTableConfig = Field(description='from empty, rising')
    shortest_pulse_s: float = Field(ge=1e-3, description='less does not open a valve reliably')
    longest_pulse_s: Positive = Field(description='a longer way takes several commands')
    max_pull_N: Positive = Field(description='of a full muscle; zero for an empty one')
    supply_push_N: NonNegative = Field(description='supply pressure by cross-section of a bag')
    guard_s: Positive = Field(
        description='all off between two pulses of a muscle: longer than relay and valve take'
    )

    @model_validator(mode='after')
    def _usable(self) -> ValveDriveConfig:
        self.table()
        if self.shortest_pulse_s >= self.longest_pulse_s:
            raise ValueError(
                f'shortest_pulse_s = {self.shortest_pulse_s} must be below longest_pulse_s = '
                f'{self.longest_pulse_s}'
            )
        return self

    def table(self) -> MuscleValves:
        """Return both curves; raises `ValueError` if one is not monotone the right way."""
        fall, rise = self.deflating, self.inflating
        return MuscleValves(
            MonotoneCurve(
                fall.times_s, fall.lengths_m, 'deflating.times_s', 'deflating.lengths_m'
            ),
            MonotoneCurve(
                rise.times_s, rise.lengths_m, 'inflating.times_s', 'inflating.lengths_m'
            ),
        )

    @property
    def range_m(self) -> tuple[float, float]:
        """Shortest and longest length [m] that both tables have."""
        fall, rise = self.deflating.lengths_m, self.inflating.lengths_m
        return max(min(fall), min(rise)), min(max(fall), max(rise))


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


class PamPlantConfig(PlantBase):
    """The simulated muscle arm."""

    time_step_s: float = Field(gt=0.0, le=0.01, default=0.005)
    intervals: int = Field(ge=4, le=100, default=20, description='of the backbone')
    backbone: BackboneConfig
    anchor_radius_m: Positive
    gyration_radius_m: Positive = Field(description='of a cross-section about its own axes')
    min_length_m: Positive = Field(description='of an empty muscle')
    full_length_m: Positive = Field(description='of a full one')
    muscle_stiffness_N_m: Positive = Field(description='axial, closed valves, full length')
    stiffness_spread: float = Field(
        ge=0.0, lt=0.4, description='of the muscles, relative, twice the standard deviation'
    )
    softening: float = Field(ge=0.0, lt=1.0, description='share of it that an empty one has lost')
    muscle_damping_time_s: NonNegative = Field(description='Kelvin-Voigt: damping by stiffness')
    backbone_damping_time_s: NonNegative = Field(description='likewise, of bending and twist')
    drag_rate_1_s: NonNegative = Field(description='of air and sleeve: force by momentum')
    pneumatics: PneumaticsConfig
    relays: RelayConfig

    @model_validator(mode='after')
    def _lengths(self) -> PamPlantConfig:
        if not self.min_length_m < self.full_length_m:
            raise ValueError(
                f'min_length_m = {self.min_length_m} must be below full_length_m = '
                f'{self.full_length_m}'
            )
        return self
