"""Node of one device of a rig: `device:=steppers`, `valves`, `servo` or `daq`."""

from __future__ import annotations

import sys
from typing import Any

from rclpy.node import Node

from softarm_ros.nodes.actuator_node import ActuatorNode
from softarm_ros.nodes.daq_nodes import DaqActuatorNode, DaqSensorsNode
from softarm_ros.nodes.driver_node import DriverNode
from softarm_ros.nodes.node_errors import RefusedError
from softarm_ros.nodes.node_parameters import declare, declare_rig
from softarm_ros.nodes.run_nodes import run_node
from softarm_ros.rigs.errors import listed

DAQ = 'daq'


def build_node(**options: Any) -> DriverNode:
    """
    Return the node of the device named in this process's parameters.

    Raises
    ------
    RefusedError
        If the rig has no such device; the message lists the devices it has.

    """
    asking = Node('device', start_parameter_services=False, enable_rosout=False, **options)
    try:
        device = declare(asking, 'device', '', 'name of the device in the rig file')
        rig = declare_rig(asking)
    finally:
        asking.destroy_node()
    names = rig.devices.names if rig.devices is not None else ()
    if rig.devices is None or device not in names:
        known = listed(names) if names else 'none'
        raise RefusedError(f'device = {device!r}: rig {rig.name!r} has {known}')
    if device == rig.devices.DRIVING:
        return DaqActuatorNode(**options) if device == DAQ else ActuatorNode(device, **options)
    return DaqSensorsNode(**options)


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run_node(build_node, 'device', args)


if __name__ == '__main__':
    sys.exit(main())
