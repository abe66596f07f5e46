"""What every device that moves an arm looks like from the loop, whatever its wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from softarm_ros.drivers.problems import Problem
from softarm_ros.geometry.arrays import Array


@dataclass(frozen=True)
class ActuatorReading:
    """
    What the drivers measure, arrays (m,) in the order of the rig's actuators, SI units.

    Attributes
    ----------
    stamp_s
        Monotonic time of the measurement.
    position, velocity
        In the unit of the actuation, and that a second.
    effort
        In the rig's effort unit; (0,) where nothing measures it.

    """

    stamp_s: float
    position: Array
    velocity: Array
    effort: Array


class DeviceDriver(Protocol):
    """A device of an arm. No method waits for it."""

    def start(self) -> None:
        """Connect, in the background, and stay connected; nothing moves."""
        ...

    def close(self) -> None:
        """Stop, switch off, disconnect; may be called twice."""
        ...

    def reset(self) -> None:
        """Forget latched problems; what is still wrong comes back."""
        ...

    def not_ready(self) -> str:
        """Return '' if motion could start now, or why not, with the device's own code."""
        ...

    def problems(self) -> tuple[Problem, ...]:
        """Return what has gone wrong since the last reset."""
        ...

    def values(self) -> dict[str, str]:
        """Return what diagnostics show: connection, latencies, losses, state of the device."""
        ...


class ActuatorDriver(DeviceDriver, Protocol):
    """
    All actuators of an arm behind one device. No method waits for the device.

    Nothing moves before `follow`. After any problem nothing moves before `reset` and a new
    `follow`; connections come back by themselves, motion does not.
    """

    def home(self) -> None:
        """
        Declare that the actuators are at the arm's rest actuation, or bring them there.

        Only ever called because a person said so. Goes on in the background: see `not_ready`.

        Raises
        ------
        DriverError
            If that is not possible now.

        """
        ...

    def follow(self, command: Array) -> str | None:
        """
        Follow an actuation target (m,) from now on; return why it is not followed, or None.

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
        """Return the newest measurement; None before the first, and while it is not known."""
        ...


@runtime_checkable
class FedByPressures(Protocol):
    """A driver that needs the pressures of the chambers, which another device measures."""

    def set_pressures(self, pressure_Pa: Array, stamp_s: float) -> None:
        """Take measured gauge pressures (m,) [Pa] of a monotonic time; NaN for one that fails."""
        ...
