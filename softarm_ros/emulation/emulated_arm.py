"""The interface of an arm with emulated devices, moved by the simulated arm."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from softarm_ros.plant.plant import Plant

# Report key: the worst delay of a device with its own time behind the wall clock.
BOARD_LATE_MS = 'board_late_ms'
# Devices answer in threads of their own; with Python's default they may wait 5 ms for the GIL.
SWITCH_S = 5e-4
# Largest gain error: relative difference of a simulated pulley from the driver's.
_PULLEY_OFF = 0.1


class EmulatedArm(Protocol):
    """
    Devices that real drivers talk to, wired to a simulated arm.

    Attributes
    ----------
    plant
        The simulated arm: its measured poses, and the truth.

    """

    plant: Plant

    @property
    def time_s(self) -> float:
        """Simulated time [s]; follows the wall clock through the calls of `advance`."""
        ...

    def start(self, folder: Path) -> None:
        """
        Start the devices and write their addresses into a folder.

        A serial board becomes a link with the device's name (`steppers`, `valves`); any other
        device becomes a file with its TCP port on 127.0.0.1 (`servo.port`, `daq.port`).

        Raises
        ------
        EmulationError
            If a device cannot be emulated here; the message says what to install.

        """
        ...

    def advance(self, duration_s: float) -> None:
        """
        Advance by a time [s]: outputs of the devices move the arm, the arm sets their inputs.

        Raises
        ------
        EmulationError
            If a device has ended by itself.
        PlantError
            If the arm leaves the range of the simulation.

        """
        ...

    def close(self) -> None:
        """End all devices; may be called twice."""
        ...

    def inject(self, fault: str) -> str:
        """
        Inject or repair a fault, for example `steppers unplug`; return what was done.

        Raises
        ------
        ValueError
            If there is no such fault; the message lists the known ones.

        """
        ...

    def report(self) -> dict[str, str]:
        """Return the true state on the devices' side: steps made, pulses, torques, faults."""
        ...


class EmulationError(RuntimeError):
    """An emulated device cannot run; the message says why and what to do."""


def check_winding(step_m: float, pulleys: Mapping[str, float]) -> None:
    """
    Refuse simulated motors whose step winds another length than the driver assumes.

    Parameters
    ----------
    step_m : float
        Cable length that a step of the simulated motors winds [m].
    pulleys : mapping
        Cable length that the driver assumes per step [m], by name of the actuator.

    Raises
    ------
    EmulationError
        If they differ by more than a tenth.

    """
    for name, wound_m in pulleys.items():
        if abs(step_m - abs(wound_m)) > _PULLEY_OFF * abs(wound_m):
            raise EmulationError(
                f'plant.stepper.step_m = {step_m:g} m: a step of {name} winds {abs(wound_m):g} m '
                f'by its pulley_radius_m; expected within {100 * _PULLEY_OFF:g} % of that'
            )
