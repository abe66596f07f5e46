"""The part `drives.valves`: a board that times the valves of vacuum muscles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softarm_ros.drivers.valve_config import ValveBoardConfig
from softarm_ros.geometry.parts import Part

if TYPE_CHECKING:
    from softarm_ros.drivers.attachments import ValvedMuscles
    from softarm_ros.drivers.connections import Connections
    from softarm_ros.drivers.muscle_valves import MuscleValves

PART = Part(
    'drives',
    'valves',
    ValveBoardConfig,
    {
        'valved_muscles': f'{__name__}:build',
        'valved_muscles, emulated': 'softarm_ros.emulation.emulated_muscle_arm:build',
    },
    'pairs of two-way valves on a serial board, firmware/valves',
    ('softarm_ros.rigs.arms.muscle_devices:CHECKS',),
)


def build(
    drives: ValvedMuscles, valves: ValveBoardConfig, connections: Connections | None = None
) -> MuscleValves:
    """Return the driver of the valve board."""
    from softarm_ros.drivers.connections import OF_THIS_COMPUTER
    from softarm_ros.drivers.muscle_valves import MuscleValves

    by = connections or OF_THIS_COMPUTER
    return MuscleValves(
        valves,
        drives.valves,
        drives.names,
        drives.home_length_m,
        drives.max_speed_m_s,
        drives.tensions,
        by.clock,
        by.open_port,
    )
