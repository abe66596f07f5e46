"""What every simulated arm offers, whatever its mechanics."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from numpy.typing import ArrayLike

from softarm_ros.plant.actuator_state import ActuatorState, Array
from softarm_ros.plant.faults import Faults
from softarm_ros.plant.mocap import PoseMeasurement


class Plant(Protocol):
    """
    Stands in for drivers, arm and sensors in simulation. It never sleeps.

    It starts at rest under its own weight, with every actuator where the model's
    `rest_configuration` has it.
    """

    time_s: float

    @property
    def mocap_enabled(self) -> bool:
        """Whether the pose sensor sees the arm."""
        ...

    @mocap_enabled.setter
    def mocap_enabled(self, enabled: bool) -> None: ...

    def step(self, command: ArrayLike | None, duration_s: float) -> None:
        """
        Advance the simulation under actuator targets (m,), in the actuators' unit; None holds.

        Raises
        ------
        ValueError
            If the command has the wrong shape or is not finite, naming the actuator, or the
            duration is not positive. Nothing moves.
        PlantError
            If the arm leaves the range of the simulation.

        """
        ...

    def hold(self) -> None:
        """Let the actuators stop as fast as they can and stay where they are."""
        ...

    def actuator_state(self) -> ActuatorState:
        """Return what the drivers measure, in the actuators' units, each (m,)."""
        ...

    def poll_poses(self) -> list[PoseMeasurement]:
        """Return the measured poses that have arrived since the last call, oldest first."""
        ...

    @property
    def next_poses_s(self) -> float:
        """Simulated time at which the next measured poses can arrive [s]."""
        ...

    def faults(self) -> Faults:
        """Return what can break in it."""
        ...

    def inject(self, fault: str) -> str:
        """Break something, `cameras freeze`; return it. ValueError lists what can break."""
        ...

    def true_section_tips(self) -> Array:
        """Return the true pose (sections, 4, 4) of every measured tip in the base frame."""
        ...

    def true_centerline(self, n: int) -> Array:
        """Return n points (n, 3) [m] of the true centreline, evenly spaced in arc length."""
        ...


@runtime_checkable
class ChamberPressures(Protocol):
    """A plant whose chambers have pressure sensors."""

    def chamber_pressures(self) -> Array:
        """Return the measured gauge pressures (chambers,) [Pa]."""
        ...


@runtime_checkable
class BaseWrench(Protocol):
    """A plant that stands on a force-torque sensor."""

    def base_wrench(self) -> Array:
        """Return the measured load of the arm on its base (6,) [N, N m], force first."""
        ...


@runtime_checkable
class Gripping(Protocol):
    """A plant with a gripper at the tip, driven by pressure: vacuum opens it, pressure closes."""

    def command_gripper(self, pressure_Pa: float) -> None:
        """Set the gripper's pressure target [Pa gauge]; negative is vacuum."""
        ...

    def gripper_pressure(self) -> float:
        """Return the measured pressure of the gripper [Pa gauge]."""
        ...
