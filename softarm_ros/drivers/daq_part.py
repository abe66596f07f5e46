"""The part `drives.daq`: pressure regulators at the outputs of a DAQ, and a gripper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softarm_ros.drivers.daq_config import DaqConfig
from softarm_ros.geometry.parts import Part

if TYPE_CHECKING:
    from softarm_ros.drivers.attachments import RegulatedChambers
    from softarm_ros.drivers.connections import Connections
    from softarm_ros.drivers.gripper_logic import GripperDriveConfig
    from softarm_ros.drivers.pressure_outputs import PressureOutputs

PART = Part(
    'drives',
    'daq',
    DaqConfig,
    {
        'regulated_chambers': f'{__name__}:build',
        'regulated_chambers, emulated': 'softarm_ros.emulation.emulated_pneumatic_arm:build',
    },
    'NI-DAQmx outputs to regulators, inputs from pressure sensors and a force sensor',
    ('softarm_ros.rigs.arms.pneumatic_devices:CHECKS',),
    takes={'gripper': 'softarm_ros.drivers.gripper_logic:GripperDriveConfig'},
)


def build(
    drives: RegulatedChambers,
    daq: DaqConfig,
    gripper: GripperDriveConfig | None = None,
    connections: Connections | None = None,
) -> PressureOutputs:
    """Return the driver of chambers and gripper behind one DAQ."""
    from softarm_ros.drivers.connections import OF_THIS_COMPUTER
    from softarm_ros.drivers.daq import DaqDriver
    from softarm_ros.drivers.gripper import GripperDriver
    from softarm_ros.drivers.pressure_outputs import PressureOutputs

    by = connections or OF_THIS_COMPUTER
    device = DaqDriver(daq, by.clock, by.open_channel)
    return PressureOutputs(
        device,
        drives.names,
        drives.max_rate_Pa_s,
        drives.compensation,
        GripperDriver(gripper, device) if gripper is not None else None,
    )
