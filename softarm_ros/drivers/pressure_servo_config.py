"""Configuration of servo cylinders that press water into chambers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pydantic import Field, model_validator

from softarm_ros.drivers.command_check import checked_command
from softarm_ros.drivers.servo_config import ServoConfig
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import LongTimeout, Timeout, WatchedPressure


class PressureServoConfig(ServoConfig):
    """Servo drives, one axis per chamber, and limits of the measured pressures."""

    pressure_timeout_s: Timeout = Field(
        default=0.1, description='measured pressures older than this are a problem'
    )
    sensor_low_Pa: float = Field(
        ge=-1e8,
        le=1e8,
        default=-1.3e5,
        description='lowest reading of a sound sensor; lower ones are rejected',
    )
    sensor_high_Pa: WatchedPressure = Field(
        description='highest reading of a sound sensor; higher ones are rejected'
    )
    home_tolerance_Pa: WatchedPressure = Field(
        default=2.0e4,
        description='largest deviation of any pressure from the preload at the end of homing',
    )
    home_timeout_s: LongTimeout = Field(
        default=10.0, description='time for homing; sticking seals or a leaking hose take longer'
    )

    @model_validator(mode='after')
    def _ordered(self) -> PressureServoConfig:
        if self.sensor_low_Pa >= self.sensor_high_Pa:
            raise ValueError(
                f'sensor_low_Pa = {self.sensor_low_Pa:g} is not less than sensor_high_Pa = '
                f'{self.sensor_high_Pa:g}'
            )
        return self


@dataclass(frozen=True)
class CylinderAxes:
    """
    Properties of the axes that the arm defines, arrays (m,) in the order of the axes.

    Attributes
    ----------
    names :
        Names of the actuators.
    torque_per_pressure :
        Nominal ratio [N m/Pa].
    pressure_min_Pa, pressure_max_Pa :
        Limits of the command.
    max_rate_Pa_s :
        Rate at which homing changes a pressure, and largest rate of the commands.
    preload_Pa :
        Pressure at the end of homing.

    """

    names: tuple[str, ...]
    torque_per_pressure: Array
    pressure_min_Pa: Array
    pressure_max_Pa: Array
    max_rate_Pa_s: Array
    preload_Pa: Array

    def check(self, command: Array) -> Array:
        """Return commanded pressures (m,) as floats; raise ValueError for an invalid command."""
        low, high = self.pressure_min_Pa, self.pressure_max_Pa
        return checked_command(command, self.names, low, high, 'Pa', slack=self._slack_Pa)

    @cached_property
    def _slack_Pa(self) -> Array:
        return 1e-9 * (self.pressure_max_Pa - self.pressure_min_Pa)
