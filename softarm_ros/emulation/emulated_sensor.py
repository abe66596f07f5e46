"""The interface of an emulated pose sensor, which a real driver reads and a plant feeds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from softarm_ros.plant.mocap import PoseMeasurement
from softarm_ros.plant.plant import Plant
from softarm_ros.whole_file import write_text


class EmulatedSensor(Protocol):
    """
    A device that a `PoseSensor` reads over its real protocol.

    A part of the family `sensors` with the role `emulated` builds it:
    `build(config, sections, seed) -> EmulatedSensor`, where `sections` are the section names.
    """

    def start(self) -> dict[str, object]:
        """
        Start; return the fields of the sensor's configuration that address this device.

        Raises
        ------
        EmulationError
            If it cannot be emulated here; the message says what to install.

        """
        ...

    def deliver(self, measured: Sequence[PoseMeasurement], now_s: float) -> None:
        """Send measured poses at a simulated time [s]; called often, also without any poses."""
        ...

    def inject(self, fault: str) -> str:
        """Inject or repair a fault; ValueError lists the known faults."""
        ...

    def report(self) -> dict[str, str]:
        """Return the true state on the device's side."""
        ...

    def close(self) -> None:
        """Stop; may be called twice."""
        ...


@runtime_checkable
class LookingSensor(Protocol):
    """An emulated sensor that observes the arm itself, rather than poses measured by cameras."""

    def look(self, plant: Plant, now_s: float) -> None:
        """Observe the arm at a simulated time [s]; EmulationError if the sensor has ended."""
        ...

    def load_code(self) -> None:
        """Compile the code that draws and reads its images; needed once after installation."""
        ...


def address_file(folder: Path, name: str) -> Path:
    """Return the path of the file with the address of an emulated sensor."""
    return folder / f'{name}.sensor.json'


def write_address(folder: Path, name: str, fields: Mapping[str, object]) -> None:
    """Write the address fields of an emulated sensor atomically, for a driver that waits."""
    write_text(address_file(folder, name), json.dumps(dict(fields)))
