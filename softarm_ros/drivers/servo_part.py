"""The part `drives.servo`: servo cylinders on Modbus TCP, with a DAQ for the pressures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softarm_ros.drivers.pressure_servo_config import PressureServoConfig
from softarm_ros.geometry.parts import Part

if TYPE_CHECKING:
    from softarm_ros.drivers.attachments import WaterCylinders
    from softarm_ros.drivers.connections import Connections
    from softarm_ros.drivers.daq_config import DaqConfig
    from softarm_ros.drivers.pressure_servo import PressureServo

PART = Part(
    'drives',
    'servo',
    PressureServoConfig,
    {
        'water_cylinders': f'{__name__}:build',
        'water_cylinders, emulated': 'softarm_ros.emulation.emulated_hydraulic_arm:build',
    },
    'servo drives in torque control on Modbus TCP; pressures come from `drives.daq`',
    ('softarm_ros.rigs.arms.hydraulic_devices:CHECKS',),
    needs={'daq': 'softarm_ros.drivers.daq_config:DaqConfig'},
)


def build(
    drives: WaterCylinders,
    servo: PressureServoConfig,
    daq: DaqConfig,
    connections: Connections | None = None,
) -> PressureServo:
    """Return the driver of all cylinders; it gets the DAQ's pressures through their topic."""
    from softarm_ros.drivers.connections import OF_THIS_COMPUTER
    from softarm_ros.drivers.pressure_servo import PressureServo

    by = connections or OF_THIS_COMPUTER
    return PressureServo(servo, drives.loop, drives.axes, by.clock, by.make_client)
