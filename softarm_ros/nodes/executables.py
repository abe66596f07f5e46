"""
The installed executables of the nodes.

They set up signal handling, and report missing packages, before they import the node: that import
takes time and may fail.
"""

from __future__ import annotations

import importlib
import sys
from functools import partial

from softarm_ros.nodes.process import EXIT_BAD_INPUT, StopSignals, end_with_parent
from softarm_ros.requirements import missing_package


def run(module: str) -> int:
    """Import a node's module and run it; report a missing package in one line."""
    StopSignals()
    end_with_parent()
    try:
        node = importlib.import_module(f'softarm_ros.nodes.{module}')
    except ImportError as error:
        print(f'{module}: {missing_package(error)}', file=sys.stderr, flush=True)
        return EXIT_BAD_INPUT
    return int(node.main())


device_node = partial(run, 'device_node')
emulator_node = partial(run, 'emulator_node')
inverse_kinematics_node = partial(run, 'inverse_kinematics_node')
markers_node = partial(run, 'markers_node')
node_group = partial(run, 'node_group')
outcome_node = partial(run, 'outcome_node')
plant_node = partial(run, 'plant_node')
prepare_kernels = partial(run, 'prepare_kernels')
recorder_node = partial(run, 'recorder_node')
sensor_node = partial(run, 'sensor_node')
supervisor_node = partial(run, 'supervisor_node')
tracker_node = partial(run, 'tracker_node')
