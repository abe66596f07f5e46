"""The interface of an emulated sensor of poses: what a real driver reads, fed by a plant."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from softarm_ros.plant.mocap import PoseMeasurement
from softarm_ros.plant.plant import Plant


class EmulatedSensor(Protocol):
    """
    A device that a `PoseSensor` reads over its real protocol.

    What a part of the family `sensors` with the role `emulated` builds:
    `build(config, sections, seed) -> EmulatedSensor`, `sections` being the names of the sections.
    """

    def start(self) -> dict[str, object]:
        """
        Begin; return the fields of the sensor's config that lead to this device.

        Raises
        ------
        EmulationError
            If it cannot be emulated here, saying what to install.

        """
        ...

    def deliver(self, measured: Sequence[PoseMeasurement], now_s: float) -> None:
        """Send what cameras have measured, at a simulated time [s]; also without any, often."""
        ...

    def inject(self, fault: str) -> str:
        """Break or mend something; ValueError, listing what there is, for anything else."""
        ...

    def report(self) -> dict[str, str]:
        """Return the truth on the device's side."""
        ...

    def close(self) -> None:
        """End; may be called twice."""
        ...


@runtime_checkable
class LookingSensor(Protocol):
    """An emulated sensor that looks at the arm itself, not at what other cameras measured."""

    def look(self, plant: Plant, now_s: float) -> None:
        """See the arm as it is at a simulated time [s]; often."""
        ...

    def load_code(self) -> None:
        """Compile, once after installation, what draws its images and what reads them."""
        ...


def address_file(folder: Path, name: str) -> Path:
    """Return where the address of an emulated sensor is written."""
    return folder / f'{name}.sensor.json'


def write_address(folder: Path, name: str, fields: Mapping[str, object]) -> None:
    """Write the fields that lead to an emulated sensor; whole at once, for who waits for it."""
    where = address_file(folder, name)
    draft = where.with_suffix('.draft')
    draft.write_text(json.dumps(dict(fields)), encoding='utf-8')
    draft.replace(where)
