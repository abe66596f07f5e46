"""The attachments of a DAQ's regulators: the air-filled chambers of an arm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from softarm_ros.drivers.attachments import RegulatedChambers
from softarm_ros.drivers.play_compensation import PlayCompensationConfig
from softarm_ros.rigs.arms.base import Surrounded

if TYPE_CHECKING:
    from softarm_ros.control.limits import ActuatorLimits


class ChamberArm(Protocol):
    """An arm whose actuators are chambers under pressure [Pa]."""

    play_compensation: PlayCompensationConfig

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names in the order of every actuation vector."""
        ...

    def actuator_limits(self) -> ActuatorLimits:
        """Return the limits of all chambers, arrays (m,) in Pa, Pa/s, Pa/s^2."""
        ...


def regulated_chambers(arm: ChamberArm, around: Surrounded) -> RegulatedChambers:
    """Return the chambers, their pressure rates and the play compensation of their regulators."""
    rates = arm.actuator_limits().max_speed
    return RegulatedChambers(arm.actuator_names, rates, arm.play_compensation)
