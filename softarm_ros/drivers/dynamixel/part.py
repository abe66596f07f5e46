"""The part `drives.dynamixel`: a bus with a servo for each cable, or pair of cables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softarm_ros.drivers.dynamixel.config import DynamixelConfig
from softarm_ros.geometry.parts import Part

if TYPE_CHECKING:
    from softarm_ros.drivers.attachments import WoundCables
    from softarm_ros.drivers.connections import Connections
    from softarm_ros.drivers.dynamixel.driver import DynamixelServos

PART = Part(
    'drives',
    'dynamixel',
    DynamixelConfig,
    {
        'wound_cables': f'{__name__}:build',
        'wound_cables, emulated': 'softarm_ros.emulation.emulated_servo_arm:build',
    },
    'Dynamixel X servos on one serial bus, by position with a limit of the current',
    ('softarm_ros.rigs.arms.servo_bus_checks:CHECKS',),
)


def build(
    drives: WoundCables, dynamixel: DynamixelConfig, connections: Connections | None = None
) -> DynamixelServos:
    """Return the driver of the bus."""
    from softarm_ros.drivers.connections import OF_THIS_COMPUTER
    from softarm_ros.drivers.dynamixel.driver import DynamixelServos

    by = connections or OF_THIS_COMPUTER
    return DynamixelServos(dynamixel, drives.limits, by.clock, by.open_port)
