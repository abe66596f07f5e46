"""The part `drives.steppers`: a board with a stepper motor for each cable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softarm_ros.drivers.stepper_config import SteppersConfig
from softarm_ros.geometry.parts import Part

if TYPE_CHECKING:
    from softarm_ros.drivers.attachments import WoundCables
    from softarm_ros.drivers.cable_steppers import CableSteppers
    from softarm_ros.drivers.connections import Connections

PART = Part(
    'drives',
    'steppers',
    SteppersConfig,
    {
        'wound_cables': f'{__name__}:build',
        'wound_cables, emulated': 'softarm_ros.emulation.emulated_cable_arm:build',
    },
    'motor shields on a serial board, firmware/steppers',
    ('softarm_ros.rigs.arms.cable_devices:CHECKS',),
)


def build(
    drives: WoundCables, steppers: SteppersConfig, connections: Connections | None = None
) -> CableSteppers:
    """Return the driver of the board."""
    from softarm_ros.drivers.cable_steppers import CableSteppers
    from softarm_ros.drivers.connections import OF_THIS_COMPUTER

    by = connections or OF_THIS_COMPUTER
    return CableSteppers(steppers, drives.limits, by.clock, by.open_port)
