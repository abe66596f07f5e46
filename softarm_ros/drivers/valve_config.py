"""Configuration of valve tables, pulses and of the board that times the valves of muscles."""

from __future__ import annotations

from pydantic import Field, model_validator

from softarm_ros.drivers.messages import VALVES
from softarm_ros.drivers.serial_config import Baud, SerialConfig
from softarm_ros.geometry.configs import ConfigBlock, NonNegative, Positive
from softarm_ros.models.minimum_energy.gas_springs import GasSprings
from softarm_ros.models.minimum_energy.valves import MuscleValves
from softarm_ros.models.monotone_curve import MonotoneCurve


class ValveTableConfig(ConfigBlock):
    """
    Length of an unloaded muscle against the time its valve has been open.

    Beyond the full length, where the film limits a bag, the length expresses the gas
    (`GasSprings`).
    """

    times_s: tuple[NonNegative, ...] = Field(
        min_length=2, description='opening times from the start of the curve, rising'
    )
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
    Conversion of lengths to valve times: the driver's tables and the valve board's timing.

    These are properties of the arm, not of the simulation. The board is a micro-controller with a
    tick of 1 ms.
    """

    deflating: ValveTableConfig = Field(description='lengths from full, falling')
    inflating: ValveTableConfig = Field(description='lengths from empty, rising')
    shortest_pulse_s: float = Field(
        ge=1e-3, description='shortest pulse that opens a valve reliably'
    )
    longest_pulse_s: Positive = Field(
        description='longest pulse; larger changes take several pulses'
    )
    empty_length_m: Positive = Field(
        description='length to which the pump contracts an unloaded muscle'
    )
    full_length_m: Positive = Field(description='length of a vented, unloaded muscle')
    max_pull_N: Positive = Field(description='pull at full length; zero at empty length')
    supply_push_N: NonNegative = Field(description='supply pressure times cross-section of a bag')
    guard_s: Positive = Field(
        description='pause between two pulses of a muscle, longer than relay and valve need'
    )
    leak_time_s: Positive | None = Field(
        default=None,
        description='time constant of the leak with closed valves; none: no leak',
    )

    @model_validator(mode='after')
    def _usable(self) -> ValveDriveConfig:
        self.table()
        if not self.empty_length_m < self.full_length_m:
            raise ValueError(
                f'empty_length_m = {self.empty_length_m} must be below full_length_m = '
                f'{self.full_length_m}'
            )
        if self.shortest_pulse_s >= self.longest_pulse_s:
            raise ValueError(
                f'shortest_pulse_s = {self.shortest_pulse_s} must be below longest_pulse_s = '
                f'{self.longest_pulse_s}'
            )
        return self

    def table(self) -> MuscleValves:
        """Return both curves; raise `ValueError` if one is not monotone in its direction."""
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
    def law(self) -> GasSprings:
        """Elasticity of the muscles, from which their gas flow under load follows."""
        return GasSprings(
            self.empty_length_m, self.full_length_m, self.max_pull_N, self.supply_push_N
        )

    @property
    def range_m(self) -> tuple[float, float]:
        """Shortest and longest length [m] within both tables."""
        fall, rise = self.deflating.lengths_m, self.inflating.lengths_m
        return max(min(fall), min(rise)), min(max(fall), max(rise))


class ValveBoardConfig(SerialConfig):
    """The board that times the valves, and its outputs for each muscle."""

    baud: Baud = Field(default=115200, description='baud rate of firmware/valves')
    rate_hz: float = Field(
        default=50.0, ge=20.0, le=200.0, description='rate of commands to the board'
    )
    pairs: tuple[int, ...] = Field(
        min_length=1,
        description='output pair of each muscle, in actuator order; pair p: output 2 p '
        '(inflates) and output 2 p + 1 (deflates)',
    )

    @model_validator(mode='after')
    def _outputs(self) -> ValveBoardConfig:
        for i, pair in enumerate(self.pairs):
            if not 0 <= pair < VALVES // 2:
                raise ValueError(f'pairs[{i}] = {pair}: the board has 0 to {VALVES // 2 - 1}')
            if pair in self.pairs[:i]:
                raise ValueError(f'pairs[{i}] = {pair}: two muscles have it')
        return self
