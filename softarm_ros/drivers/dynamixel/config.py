"""Configuration of a Dynamixel bus, and the limits of its servos."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from softarm_ros.drivers.dynamixel.control_table import (
    ACCELERATION_RAD_S2,
    COUNTS_PER_TURN,
    MAX_CURRENT,
    MAX_PROFILE,
    VELOCITY_RAD_S,
)
from softarm_ros.drivers.dynamixel.packets import MAX_ID
from softarm_ros.drivers.serial_config import Baud, SerialConfig
from softarm_ros.drivers.stepper_config import BoardLimitError, CableLimits
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import ConfigBlock, Positive, PulleyRadius


class DynamixelServo(ConfigBlock):
    """One servo and the pulley on its horn."""

    name: Annotated[str, Field(pattern=r'^[a-z][a-z0-9_]*$')] = Field(
        description='name of the actuator that it drives'
    )
    id: int = Field(ge=0, le=MAX_ID, description='id on the bus')
    pulley_radius_m: PulleyRadius = Field(description='radius to the middle of the cable')
    zero_deg: float = Field(
        default=180.0, gt=0.0, lt=360.0, description='encoder angle of the arm at rest'
    )
    reversed: bool = Field(default=False, description='counting up pays out the cable')

    @property
    def step_m(self) -> float:
        """Cable pulled in by one count upwards [m]; negative if reversed."""
        step = 2.0 * math.pi * self.pulley_radius_m / COUNTS_PER_TURN
        return -step if self.reversed else step

    @property
    def zero(self) -> int:
        """Encoder count of the arm at rest."""
        return round(self.zero_deg / 360.0 * COUNTS_PER_TURN)


class DynamixelConfig(SerialConfig):
    """Dynamixel servos (X series, protocol 2.0) on one bus, which wind the cables."""

    baud: Baud = Field(default=1_000_000, description='baud rate of all servos')
    answer_timeout_s: float = Field(
        default=0.03,
        ge=0.002,
        le=0.1,
        description='time for the next answer; set the latency timer of the USB adapter to 1 ms',
    )
    acceleration_m_s2: Positive = Field(
        description='acceleration of the servos, within their ability; at least that of commands'
    )
    current_limit_A: Positive = Field(
        description='current limit of each servo in position control'
    )
    current_unit_A: Positive = Field(
        default=2.69e-3, description='current of one count; XL330: 1.0e-3'
    )
    torque_per_current_N_m_A: Positive | None = Field(
        default=None,
        description='torque per current, for the tension; without it, no tension is reported',
    )
    command_timeout_s: float = Field(
        default=0.15, ge=0.02, le=1.0, description='an older command stops all servos'
    )
    watchdog_s: float = Field(
        default=0.2,
        ge=0.04,
        le=2.54,
        description='time without a packet after which each servo stops by itself',
    )
    servos: tuple[DynamixelServo, ...] = Field(
        min_length=1, description='one for each actuator, in the same order'
    )

    @model_validator(mode='after')
    def _unique(self) -> DynamixelConfig:
        for field in ('name', 'id'):
            seen = [getattr(servo, field) for servo in self.servos]
            for value in seen:
                if seen.count(value) > 1:
                    raise ValueError(f'servos: {field} {value!r} is there twice')
        return self

    @model_validator(mode='after')
    def _current(self) -> DynamixelConfig:
        if self.current_limit_A < self.current_unit_A:
            raise ValueError(
                f'current_limit_A = {self.current_limit_A:g}: expected at least one count, '
                f'current_unit_A = {self.current_unit_A:g}'
            )
        most = MAX_CURRENT * self.current_unit_A
        if self.current_limit_A > most:
            raise ValueError(
                f'current_limit_A = {self.current_limit_A:g}: expected at most {most:.4g}, which '
                f'is {MAX_CURRENT} counts of current_unit_A = {self.current_unit_A:g}'
            )
        return self

    @model_validator(mode='after')
    def _silence(self) -> DynamixelConfig:
        if self.watchdog_s <= self.link_timeout_s:
            raise ValueError(
                f'watchdog_s = {self.watchdog_s:g}: expected more than link_timeout_s = '
                f'{self.link_timeout_s:g}, or a servo stops before the loss is reported'
            )
        return self

    @property
    def steps(self) -> Array:
        """Cable pulled in by one count of each servo [m]."""
        return np.array([servo.step_m for servo in self.servos])

    def pulls(self, current_A: Array) -> Array:
        """Return the cable tensions (m,) [N]; (0,) if torque per current is unknown."""
        per_A = self.torque_per_current_N_m_A
        if per_A is None:
            return np.empty(0)
        radii = np.array([servo.pulley_radius_m for servo in self.servos])
        return np.asarray(np.sign(self.steps) * current_A * per_A / radii)

    @property
    def zeros(self) -> NDArray[np.int64]:
        """Encoder counts (m,) of the arm at rest."""
        return np.array([servo.zero for servo in self.servos], dtype=np.int64)


def profiles(config: DynamixelConfig, limits: CableLimits) -> list[tuple[int, int]]:
    """
    Return acceleration and velocity of each servo's profile, in the servo's units.

    The velocity is the maximum speed of commands, the acceleration that of the config.

    Raises
    ------
    BoardLimitError
        If a value exceeds a servo's limits, or the range exceeds one turn, so that the position
        would be ambiguous after a power cut.

    """
    found = []
    for i, servo in enumerate(config.servos):
        radius = servo.pulley_radius_m
        if config.acceleration_m_s2 < limits.max_acceleration[i]:
            raise BoardLimitError(
                i,
                'acceleration_m_s2',
                f'{config.acceleration_m_s2:g} m/s^2 is less than commands ask for, '
                f'{limits.max_acceleration[i]:g}',
            )
        velocity = math.ceil(limits.max_speed[i] / radius / VELOCITY_RAD_S)
        if velocity > MAX_PROFILE:
            raise BoardLimitError(
                i,
                'pulley_radius_m',
                f"{radius:g} m with the actuator's max_speed_m_s = {limits.max_speed[i]:g} is "
                f'{velocity} x 0.229 rev/min where a servo takes at most {MAX_PROFILE}',
            )
        most = MAX_PROFILE * ACCELERATION_RAD_S2 * radius
        if config.acceleration_m_s2 > most:
            raise BoardLimitError(
                i,
                'acceleration_m_s2',
                f'{config.acceleration_m_s2:g} m/s^2 with pulley_radius_m = {radius:g}: a servo '
                f'takes at most {most:g}',
            )
        acceleration = math.floor(config.acceleration_m_s2 / radius / ACCELERATION_RAD_S2)
        ends = servo.zero + np.array([limits.position_min[i], limits.position_max[i]]) / (
            servo.step_m
        )
        if min(ends) < 0.0 or max(ends) > COUNTS_PER_TURN - 1:
            turned = sorted(360.0 * ends / COUNTS_PER_TURN)
            raise BoardLimitError(
                i,
                'zero_deg',
                f"{servo.zero_deg:g} deg with pulley_radius_m = {radius:g} and the actuator's "
                f'position_min_m = {limits.position_min[i]:g} and position_max_m = '
                f'{limits.position_max[i]:g} takes the servo from {turned[0]:.0f} to '
                f'{turned[1]:.0f} deg; beyond 0..360 its position would be ambiguous after a '
                'power cut',
            )
        found.append((max(acceleration, 1), max(velocity, 1)))
    return found
