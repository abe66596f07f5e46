"""The part `drives.daq`: regulators or winches at the outputs of a DAQ, and a gripper."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from softarm_ros.drivers.daq_config import DaqConfig
from softarm_ros.geometry.parts import Part

if TYPE_CHECKING:
    from softarm_ros.drivers.attachments import PulledTendons, RegulatedChambers
    from softarm_ros.drivers.connections import Connections
    from softarm_ros.drivers.daq import DaqDriver
    from softarm_ros.drivers.daq_actuators import DaqActuators
    from softarm_ros.drivers.gripper import GripperDriver

PART = Part(
    'drives',
    'daq',
    DaqConfig,
    {
        'regulated_chambers': f'{__name__}:build',
        'regulated_chambers, emulated': 'softarm_ros.emulation.emulated_pneumatic_arm:build',
        'pulled_tendons': f'{__name__}:build_winches',
        'pulled_tendons, emulated': 'softarm_ros.emulation.emulated_tendon_arm:build',
    },
    'NI-DAQmx outputs to regulators or winches, inputs from their sensors and a force sensor',
    (
        'softarm_ros.rigs.arms.pneumatic_devices:CHECKS',
        'softarm_ros.rigs.arms.winch_checks:CHECKS',
    ),
    takes={'gripper': 'softarm_ros.drivers.gripper_logic:GripperDriveConfig'},
)


def build(
    drives: RegulatedChambers,
    daq: DaqConfig,
    gripper: Callable[[DaqDriver], GripperDriver] | None = None,
    connections: Connections | None = None,
) -> DaqActuators:
    """Return the driver of chambers and of a gripper at one DAQ."""
    from softarm_ros.drivers.connections import OF_THIS_COMPUTER
    from softarm_ros.drivers.daq import DaqDriver
    from softarm_ros.drivers.daq_actuators import DaqActuators

    by = connections or OF_THIS_COMPUTER
    device = DaqDriver(daq, by.clock, by.open_channel)
    return DaqActuators(
        device,
        drives.names,
        drives.max_rate_Pa_s,
        drives.compensation,
        None if gripper is None else gripper(device),
    )


def build_winches(
    drives: PulledTendons, daq: DaqConfig, connections: Connections | None = None
) -> DaqActuators:
    """Return the driver of winches with tension control at a DAQ."""
    from dataclasses import replace

    from softarm_ros.drivers.connections import OF_THIS_COMPUTER
    from softarm_ros.drivers.daq import DaqDriver
    from softarm_ros.drivers.daq_actuators import WINCHES, DaqActuators
    from softarm_ros.drivers.play_compensation import PlayCompensationConfig

    by = connections or OF_THIS_COMPUTER
    return DaqActuators(
        DaqDriver(daq, by.clock, by.open_channel),
        drives.names,
        drives.max_rate_N_s,
        PlayCompensationConfig(),
        kind=replace(WINCHES, rest=drives.rest_tension_N),
    )
