"""Rigs for commands that run many machines."""

from __future__ import annotations

from collections.abc import Sequence

from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.schema import Rig


def load_for_machines(name: str, settings: Sequence[str]) -> Rig:
    """Return a rig without `plant.machine.number`, which would make all machines that one."""
    rig = load_rig(name, settings)
    machine = rig.plant_for('sim').machine
    if machine is None or machine.number is None:
        return rig
    return load_rig(name, [*settings, 'plant.machine.number=null'])
