"""Interface of every device that moves an arm, as the control loop sees it, whatever its link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from softarm_ros.drivers.problems import Problem
from softarm_ros.geometry.arrays import Array

# A driver that refuses commands for longer does not follow: drives are switched on by the first.
REFUSED_S = 2.0


@dataclass(frozen=True)
class ActuatorReading:
    """
    Measurement of a driver: arrays (m,) in the order of the rig's actuators, SI units.

    Attributes
    ----------
    stamp_s
        Monotonic time of the measurement.
    position, velocity
        In the unit of the actuation, and in that unit per second.
    effort
        In the rig's effort unit; (0,) if no sensor measures it.

    """

    stamp_s: float
    position: Array
    velocity: Array
    effort: Array


class DeviceDriver(Protocol):
    """A device of an arm. No method waits for the device."""

    def start(self) -> None:
        """Connect in the background and stay connected; nothing moves."""
        ...

    def close(self) -> None:
        """Stop, switch off and disconnect; may be called twice."""
        ...

    def reset(self) -> None:
        """Clear latched problems; those that persist are reported again."""
        ...

    def not_ready(self) -> str:
        """Return '' if motion could start now; else the reason, with the device's own code."""
        ...

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems since the last reset."""
        ...

    def values(self) -> dict[str, str]:
        """Return values for diagnostics: connection, latencies, losses, state of the device."""
        ...


class ActuatorDriver(DeviceDriver, Protocol):
    """
    All actuators of an arm behind one device. No method waits for the device.

    The arm moves only after `follow`, and after `home` if it `HomesByMoving`; after any problem,
    only after `reset` and a new request. Connections are restored automatically, motion is not.
    """

    def home(self) -> None:
        """
        Declare that the actuators are at the arm's rest actuation, or bring them there.

        Called only on a person's request. Continues in the background: see `not_ready`.

        Raises
        ------
        DriverError
            If homing is not possible now.

        """
        ...

    def follow(self, command: Array) -> str | None:
        """
        Follow an actuation target (m,) from now on; return why it is refused, or None.

        A device that refuses for longer than `REFUSED_S` without a break counts as not ready.

        Raises
        ------
        ValueError
            If the command has the wrong shape, is not finite or is beyond the device's limits.
            Nothing changes.

        """
        ...

    def hold(self) -> None:
        """Stop as fast as the device can and stay there until the next `follow`."""
        ...

    def reading(self) -> ActuatorReading | None:
        """Return the newest measurement; None before the first, or while it is unknown."""
        ...


@runtime_checkable
class HomesByMoving(Protocol):
    """A driver whose homing moves the arm."""

    def stop_homing(self) -> None:
        """Stop where the arm is if it is being homed; then only another `home` moves it."""
        ...


@runtime_checkable
class FedByPressures(Protocol):
    """A driver that needs the chamber pressures measured by another device."""

    def set_pressures(self, pressure_Pa: Array, stamp_s: float) -> None:
        """Take gauge pressures (m,) [Pa] measured at a monotonic time; NaN for a failed sensor."""
        ...
