"""The interface of an arm whose devices are emulated, with the simulated arm behind them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from softarm_ros.plant.plant import Plant

# Key of a report: how far a device with its own time was behind the wall clock at worst.
BOARD_LATE_MS = 'board_late_ms'
# By how much a simulated pulley may differ from the one that the driver believes in: a gain error.
_PULLEY_OFF = 0.1


class EmulatedArm(Protocol):
    """
    Devices that real drivers talk to, wired to a simulated arm.

    Attributes
    ----------
    plant
        The arm: poses as measured, and the truth.

    """

    plant: Plant

    @property
    def time_s(self) -> float:
        """Simulated time [s]; follows the wall clock, as `advance` is called."""
        ...

    def start(self, folder: Path) -> None:
        """
        Start the devices and put their addresses into a folder.

        Serial boards as links of the device's name (`steppers`, `valves`), others as a file
        with the TCP port on 127.0.0.1 (`servo.port`, `daq.port`).

        Raises
        ------
        EmulationError
            If a device cannot be emulated here, saying what to install.

        """
        ...

    def advance(self, duration_s: float) -> None:
        """
        Let time pass: outputs of the devices move the arm, and the arm moves their inputs.

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
        Break or repair something, `steppers unplug` for example; return what was done.

        Raises
        ------
        ValueError
            If there is no such fault; lists those there are.

        """
        ...

    def report(self) -> dict[str, str]:
        """Return the truth on the devices' side: steps made, pulses, torques, faults."""
        ...


class EmulationError(RuntimeError):
    """An emulated device cannot run; the message says why and what to do."""


def check_winding(step_m: float, pulleys: Mapping[str, float]) -> None:
    """
    Refuse simulated motors that wind other lengths than those the driver reckons with.

    Parameters
    ----------
    step_m : float
        Cable that a step of the simulated motors winds [m].
    pulleys : mapping
        The same by the driver, of each motor by the name of its actuator [m].

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
