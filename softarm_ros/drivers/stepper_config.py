"""Configuration of a stepper board, and the limits of the board."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, model_validator

from softarm_ros.drivers.command_check import checked_command
from softarm_ros.drivers.messages import MAX_BRAKING_S, MOTORS, StepperConfig
from softarm_ros.drivers.serial_config import Baud, SerialConfig
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import ConfigBlock, Positive, PulleyRadius

MICROSTEPS = 16  # per full step, set by the firmware
# Limits of the firmware (docs/protocol.md, STEPPER_CONFIG).
MAX_SPEED = 4000  # microsteps/s
MIN_ACCELERATION, MAX_ACCELERATION = 100, 120_000  # microsteps/s^2
MAX_POSITION = 1 << 28  # microsteps
MAX_BRAKING_STEPS = 16_000
_ROUNDING_M = 1e-9


class MotorConfig(ConfigBlock):
    """One motor and the pulley on it."""

    name: Annotated[str, Field(pattern=r'^[a-z][a-z0-9_]*$')] = Field(
        description='name of the actuator that it drives'
    )
    motor: int = Field(
        ge=0,
        lt=MOTORS,
        description='0 and 1: M1/M2 and M3/M4 of the first shield; 2 and 3: of the second ...',
    )
    pulley_radius_m: PulleyRadius = Field(description='radius to the middle of the cable')
    full_steps_per_turn: int = Field(default=200, ge=4, le=1000, description='200: 1.8 degrees')
    reversed: bool = Field(default=False, description='counting up pays out the cable')

    @property
    def step_m(self) -> float:
        """Cable pulled in by one microstep upwards [m]; negative if reversed."""
        step = 2.0 * math.pi * self.pulley_radius_m / (MICROSTEPS * self.full_steps_per_turn)
        return -step if self.reversed else step


class SteppersConfig(SerialConfig):
    """A stepper board that winds the cables (firmware/steppers)."""

    baud: Baud = Field(default=250_000, description='baud rate of the firmware')
    acceleration_m_s2: Positive = Field(
        description='acceleration of the motors, within their ability; at least that of commands'
    )
    command_timeout_s: float = Field(
        default=0.15, ge=0.02, le=1.0, description='an older command stops all motors'
    )
    motors: tuple[MotorConfig, ...] = Field(
        min_length=1, max_length=MOTORS, description='one for each actuator, in the same order'
    )

    @model_validator(mode='after')
    def _unique(self) -> SteppersConfig:
        for field in ('name', 'motor'):
            seen = [getattr(motor, field) for motor in self.motors]
            for value in seen:
                if seen.count(value) > 1:
                    raise ValueError(f'motors: {field} {value!r} is there twice')
        return self


@dataclass(frozen=True)
class CableLimits:
    """Limits of the commands of every cable, each (m,): contraction [m], speed, acceleration."""

    position_min: Array
    position_max: Array
    max_speed: Array
    max_acceleration: Array

    def checked(self, command: ArrayLike, names: Sequence[str]) -> Array:
        """Return contractions (m,) [m] as an array; raise ValueError as `checked_command`."""
        low, high = self.position_min, self.position_max
        return checked_command(command, names, low, high, 'm', slack=_ROUNDING_M)


class BoardLimitError(ValueError):
    """The board cannot meet a requirement of a motor; `motor` is its index in the list."""

    def __init__(self, motor: int, field: str, text: str) -> None:
        super().__init__(f'motors[{motor}].{field}: {text}')
        self.motor, self.field, self.text = motor, field, text


def board_limits(config: SteppersConfig, limits: CableLimits) -> tuple[StepperConfig, ...]:
    """
    Return the configuration message of each motor, in the order of the actuators.

    The maximum speed is that of commands, the acceleration that of the config, and the braking is
    fast enough to stop within the 40 ms that the board requires.

    Raises
    ------
    BoardLimitError
        If a value exceeds the board's limits; the message names motor, value and limit.

    """
    return tuple(_of_motor(config, limits, i) for i in range(len(config.motors)))


def _of_motor(config: SteppersConfig, limits: CableLimits, i: int) -> StepperConfig:
    motor = config.motors[i]
    step = abs(motor.step_m)
    speed = math.ceil(limits.max_speed[i] / step)
    acceleration = math.floor(config.acceleration_m_s2 / step)
    braking = max(acceleration, math.ceil(speed / MAX_BRAKING_S))
    ends = to_microsteps(np.array([limits.position_min[i], limits.position_max[i]]), motor.step_m)
    pulley = (
        f'{motor.pulley_radius_m:g} m with full_steps_per_turn = {motor.full_steps_per_turn} and '
        'the'
    )
    fastest = f"{pulley} actuator's max_speed_m_s = {limits.max_speed[i]:g}"
    stated = (
        f'{config.acceleration_m_s2:g} m/s^2 with pulley_radius_m = {motor.pulley_radius_m:g} and '
        f'full_steps_per_turn = {motor.full_steps_per_turn}'
    )
    if speed > MAX_SPEED:
        _refuse(i, 'pulley_radius_m', f'{fastest} is {speed} microsteps/s', f'at most {MAX_SPEED}')
    if config.acceleration_m_s2 < limits.max_acceleration[i]:
        raise BoardLimitError(
            i,
            'acceleration_m_s2',
            f'{config.acceleration_m_s2:g} m/s^2 is less than commands ask for, '
            f'{limits.max_acceleration[i]:g}',
        )
    if not MIN_ACCELERATION <= acceleration <= MAX_ACCELERATION:
        _refuse(
            i,
            'acceleration_m_s2',
            f'{stated} is {acceleration} microsteps/s^2',
            f'{MIN_ACCELERATION}..{MAX_ACCELERATION}',
        )
    if braking > MAX_ACCELERATION:
        _refuse(
            i,
            'pulley_radius_m',
            f'{fastest} needs {braking} microsteps/s^2 of braking',
            f'at most {MAX_ACCELERATION}',
        )
    way = speed**2 / (2 * acceleration)
    if way > MAX_BRAKING_STEPS:
        _refuse(
            i,
            'acceleration_m_s2',
            f"{stated} needs {way:.0f} microsteps to stop from the actuator's max_speed_m_s = "
            f'{limits.max_speed[i]:g}',
            f'at most {MAX_BRAKING_STEPS}',
        )
    if max(map(abs, ends)) > MAX_POSITION:
        _refuse(
            i,
            'pulley_radius_m',
            f"{pulley} actuator's position_min_m = {limits.position_min[i]:g} and position_max_m "
            f'= {limits.position_max[i]:g} is {max(map(abs, ends))} microsteps',
            f'at most {MAX_POSITION}',
        )
    return StepperConfig(motor.motor, speed, acceleration, braking, min(ends), max(ends))


def _refuse(motor: int, field: str, value: str, limit: str) -> None:
    raise BoardLimitError(motor, field, f'{value} where the board takes {limit}')


def to_microsteps(contraction: Array, step_m: float | Array) -> Sequence[int]:
    """Convert contractions (n,) [m] to whole microsteps."""
    return [int(count) for count in np.rint(contraction / step_m)]
