"""Configuration of an NI DAQ device in a rig file: sensors, valves and their channels."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, field_validator, model_validator

from softarm_ros.drivers.command_check import check_rate
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import (
    ConfigBlock,
    Delay,
    Finite,
    Ipv4Host,
    Positive,
    Timeout,
)

Name = Annotated[str, Field(pattern=r'^[a-z][a-z0-9_]*$')]
Channel = Annotated[str, Field(pattern=r'^[A-Za-z0-9_\-]+/(ai|ao)\d+$')]
Line = Annotated[str, Field(pattern=r'^[A-Za-z0-9_\-]+/port\d+/line\d+$')]
Terminal = Literal['default', 'rse', 'nrse', 'differential', 'pseudo_differential']
Row = tuple[Finite, Finite, Finite, Finite, Finite, Finite]
_ROUNDING = 1e-9  # relative to a range


class AnalogInput(ConfigBlock):
    """A sensor with a linear characteristic: value = scale * V + zero."""

    name: Name
    channel: Channel = Field(description='name in NI MAX, such as Dev1/ai0')
    terminal: Terminal = 'default'
    min_V: Finite = Field(
        default=-10.0, description='with max_V, selects the input range of the device'
    )
    max_V: Finite = 10.0
    scale: Finite = Field(default=1.0, description='SI units per volt')
    zero: Finite = Field(default=0.0, description='SI value at 0 V')
    unit: str = 'V'
    low: Finite | None = Field(default=None, description='a value below stops the outputs')
    high: Finite | None = Field(default=None, description='a value above stops the outputs')
    open_below_V: Finite | None = Field(
        default=None,
        description='a lower voltage means an open circuit, for a sensor with live zero',
    )
    open_above_V: Finite | None = Field(
        default=None, description='a higher voltage means an open circuit or a short'
    )
    stuck_after_s: Timeout | None = Field(
        default=None, description='constant voltage for this time means that the sensor is stuck'
    )

    @model_validator(mode='after')
    def _ordered(self) -> AnalogInput:
        _require_order('min_V', self.min_V, 'max_V', self.max_V)
        _require_order('low', self.low, 'high', self.high)
        _require_order('open_below_V', self.open_below_V, 'open_above_V', self.open_above_V)
        if self.scale == 0.0:
            raise ValueError('scale = 0: the value would not depend on the voltage')
        for name in ('open_below_V', 'open_above_V'):
            limit = getattr(self, name)
            if limit is not None and not self.min_V < limit < self.max_V:
                raise ValueError(
                    f'{name} = {limit} V outside ({self.min_V}, {self.max_V}) V: never reached'
                )
        ends = sorted(self.value([self.min_V, self.max_V]).tolist())
        slack = _ROUNDING * (ends[1] - ends[0])
        for name in ('low', 'high'):
            limit = getattr(self, name)
            if limit is not None and not ends[0] - slack <= limit <= ends[1] + slack:
                raise ValueError(
                    f'{name} = {limit:g} {self.unit} outside [{ends[0]:g}, {ends[1]:g}] '
                    f'{self.unit}, which scale and zero give for min_V to max_V: never reached'
                )
        return self

    def value(self, volts: ArrayLike) -> Array:
        """Return the SI values of voltages."""
        return self.scale * np.asarray(volts, dtype=float) + self.zero

    def volts(self, value: ArrayLike) -> Array:
        """Return the voltages of SI values."""
        return (np.asarray(value, dtype=float) - self.zero) / self.scale


class ForceSensorConfig(ConfigBlock):
    """A six-axis force and torque sensor with six gauge voltages, such as those of ATI."""

    channels: tuple[Channel, Channel, Channel, Channel, Channel, Channel]
    terminal: Terminal = 'differential'
    min_V: Finite = -10.0
    max_V: Finite = 10.0
    calibration: tuple[Row, Row, Row, Row, Row, Row] = Field(
        description='rows Fx Fy Fz [N/V], Tx Ty Tz [N m/V]; columns in the order of the channels'
    )
    bias_V: Row = Field(default=(0.0,) * 6, description='voltages without load')
    limits: tuple[Positive, Positive, Positive, Positive, Positive, Positive] = Field(
        description='rated forces [N] and torques [N m]; a larger load stops the outputs'
    )

    @field_validator('calibration')
    @classmethod
    def _regular(cls, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        matrix = np.array(rows)
        scaled = matrix / np.maximum(np.abs(matrix).max(axis=1, keepdims=True), 1e-300)
        if np.linalg.matrix_rank(scaled, tol=1e-6) < 6:
            raise ValueError('calibration is singular: some load would not be measured')
        return rows

    @model_validator(mode='after')
    def _measurable(self) -> ForceSensorConfig:
        _require_order('min_V', self.min_V, 'max_V', self.max_V)
        volts = np.abs(np.subtract.outer([self.min_V, self.max_V], self.bias_V)).max(axis=0)
        largest = np.abs(self.calibration) @ volts
        for k, (limit, most) in enumerate(zip(self.limits, largest)):
            if limit > most:
                raise ValueError(
                    f'limits[{k}] = {limit:g}: expected at most {most:.4g}, the largest load that '
                    'the calibration gives for voltages of min_V to max_V: never reached'
                )
        return self


class AnalogOutput(ConfigBlock):
    """A proportional valve or regulator: value = scale * V + zero."""

    name: Name
    channel: Channel
    min_V: Finite = 0.0
    max_V: Finite = 10.0
    scale: Finite = Field(default=1.0, description='SI units per volt')
    zero: Finite = Field(default=0.0, description='SI value at 0 V')
    unit: str = 'V'
    low: Finite = Field(description='lowest allowed command')
    high: Finite = Field(description='highest allowed command')
    safe: Finite | None = Field(
        description='value while not enabled and after any problem; null: keeps its last value'
    )
    streamed: bool = Field(
        default=True, description='needs a stream of commands, and is stopped when they cease'
    )

    @model_validator(mode='after')
    def _within(self) -> AnalogOutput:
        _require_order('min_V', self.min_V, 'max_V', self.max_V)
        _require_order('low', self.low, 'high', self.high)
        if self.scale == 0.0:
            raise ValueError('scale = 0: no value could be commanded')
        slack = _ROUNDING * (self.max_V - self.min_V)
        for name in ('low', 'high', 'safe'):
            value = getattr(self, name)
            if value is None:
                continue
            volts = float(self.volts(value))
            if not self.min_V - slack <= volts <= self.max_V + slack:
                raise ValueError(
                    f'{name} = {value} {self.unit} takes {volts:.4g} V, outside '
                    f'[{self.min_V}, {self.max_V}] V'
                )
        return self

    def volts(self, value: ArrayLike) -> Array:
        """Return the voltages of SI values."""
        return (np.asarray(value, dtype=float) - self.zero) / self.scale

    def value(self, volts: ArrayLike) -> Array:
        """Return the SI values of voltages."""
        return self.scale * np.asarray(volts, dtype=float) + self.zero

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest allowed command, with a margin for rounding."""
        slack = _ROUNDING * (self.high - self.low)
        return self.low - slack, self.high + slack

    def check(self, value: float) -> float:
        """Return the value; raise ValueError if it is not finite or beyond its limits."""
        if not math.isfinite(value):
            raise ValueError(f'{self.name} = {value}: expected a finite number of {self.unit}')
        least, most = self.bounds
        if not least <= value <= most:
            raise ValueError(
                f'{self.name} = {value:.6g} {self.unit} outside [{self.low:.6g}, '
                f'{self.high:.6g}] {self.unit}'
            )
        return float(value)


class DigitalOutput(ConfigBlock):
    """A switching valve."""

    name: Name
    line: Line = Field(description='name in NI MAX, such as Dev1/port0/line0')
    inverted: bool = Field(default=False, description='low level switches on')
    safe: bool | None = Field(
        default=False,
        description='state while not enabled and after any problem; null: keeps its last state',
    )


class DaqHost(ConfigBlock):
    """A computer that runs the NI gRPC device server; the connection is not encrypted."""

    host: Ipv4Host
    port: int = Field(default=31763, ge=1, le=65535)


class DaqConfig(ConfigBlock):
    """One NI DAQ device with all its sensors and outputs."""

    host: DaqHost | None = Field(
        default=None, description='remote computer of the device; none: this computer'
    )
    session: Name = Field(default='softarm', description='prefix of the task names')
    inputs: tuple[AnalogInput, ...] = ()
    force_sensor: ForceSensorConfig | None = None
    outputs: tuple[AnalogOutput, ...] = ()
    lines: tuple[DigitalOutput, ...] = ()
    sample_rate_hz: Positive = Field(default=1000.0, description='sample clock of the device')
    block_samples: int = Field(
        default=10, ge=1, description='samples per read; values are means of a block'
    )
    buffer_samples: int = Field(
        default=1000,
        ge=2,
        description='buffer size per channel; more unread samples are an overrun',
    )
    read_margin_s: Timeout = Field(
        default=0.08, description='largest delay of a block before it is reported'
    )
    call_timeout_s: Timeout = Field(
        default=0.1, description='time for the host to answer, in addition to its wait for samples'
    )
    open_after_s: Delay = Field(
        default=0.05, description='time of open-circuit voltages before it is reported'
    )
    output_rate_hz: Positive = Field(
        default=50.0, description='minimum rate at which outputs are written'
    )
    command_timeout_s: Timeout = Field(
        default=0.1, description='older streamed outputs count as stale'
    )
    tare_s: Timeout = Field(default=0.5, description='duration of the bias measurement')
    reopen_s: Timeout = Field(
        default=0.25, description='pause between attempts to open the device'
    )

    @model_validator(mode='after')
    def _consistent(self) -> DaqConfig:
        names = [part.name for part in self.inputs]
        names += [part.name for part in self.outputs] + [part.name for part in self.lines]
        _require_different('names', names)
        _require_different('input channels', [*self.input_channels])
        _require_different('output channels', [output.channel for output in self.outputs])
        _require_different('lines', [line.line for line in self.lines])
        for channel in self.input_channels:
            _require_kind(channel, 'ai')
        for output in self.outputs:
            _require_kind(output.channel, 'ao')
        if self.buffer_samples < 2 * self.block_samples:
            raise ValueError(
                f'buffer_samples = {self.buffer_samples} is less than two blocks of '
                f'{self.block_samples}'
            )
        if self.streamed:
            check_rate('output_rate_hz', self.output_rate_hz, 'output', self.command_timeout_s)
        return self

    @property
    def input_channels(self) -> tuple[str, ...]:
        """Physical channels in reading order: inputs, then gauges."""
        gauges = self.force_sensor.channels if self.force_sensor is not None else ()
        return (*(part.channel for part in self.inputs), *gauges)

    @property
    def streamed(self) -> tuple[AnalogOutput, ...]:
        """Outputs that need a continuous stream of commands, in the order of `outputs`."""
        return tuple(output for output in self.outputs if output.streamed)

    @property
    def block_s(self) -> float:
        """Duration of a block [s]."""
        return self.block_samples / self.sample_rate_hz


def _require_order(low_name: str, low: float | None, high_name: str, high: float | None) -> None:
    if low is not None and high is not None and not low < high:
        raise ValueError(f'{low_name} = {low} is not less than {high_name} = {high}')


def _require_different(what: str, values: list[str]) -> None:
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        raise ValueError(f'{what} are not all different: {", ".join(twice)}')


def _require_kind(channel: str, kind: str) -> None:
    if not channel.rpartition('/')[2].startswith(kind):
        raise ValueError(f'{channel}: expected a channel {kind}<number>')
