"""Configuration of the tests' DAQ: pressures, a force sensor, valves and a gripper."""

import numpy as np

from softarm_ros.drivers.daq_config import DaqConfig

CALIBRATION = np.diag([4.0, 4.0, 12.0, 0.2, 0.2, 0.2]) + 0.05 * np.arange(36).reshape(6, 6) / 36


def daq_config(port=None, **changes):
    """Return six pressures (1..5 V: 0..1 MPa), six regulators, force sensor, gripper, one line."""
    fields = {
        'host': None if port is None else {'host': '127.0.0.1', 'port': port},
        'command_timeout_s': 0.15,
        'call_timeout_s': 0.13,  # for a busy machine; with the block and its margin still < 300 ms
        'inputs': [
            {
                'name': f'pressure_{i + 1}',
                'channel': f'Dev1/ai{i}',
                'terminal': 'rse',
                'min_V': -10.0,
                'max_V': 10.0,
                'scale': 0.25e6,
                'zero': -0.25e6,
                'unit': 'Pa',
                'high': 1.0e6,
                'open_below_V': 0.5,
                'open_above_V': 5.5,
                'stuck_after_s': 0.2,
            }
            for i in range(6)
        ],
        'force_sensor': {
            'channels': [f'Dev1/ai{i}' for i in range(16, 22)],
            'calibration': CALIBRATION.tolist(),
            'limits': [40.0, 40.0, 120.0, 2.0, 2.0, 2.0],
        },
        'outputs': [
            {
                'name': f'valve_{i + 1}',
                'channel': f'Dev1/ao{i}',
                'scale': 1e4,
                'unit': 'Pa',
                'low': 0.0,
                'high': 9e4,
                'safe': 0.0,
            }
            for i in range(6)
        ]
        + [
            {
                'name': 'gripper_pressure',
                'channel': 'Dev1/ao6',
                'scale': 1e4,
                'unit': 'Pa',
                'low': 0.0,
                'high': 9e4,
                'safe': None,
                'streamed': False,
            }
        ],
        'lines': [{'name': 'vacuum', 'line': 'Dev1/port0/line0', 'safe': None}],
    }
    return DaqConfig.model_validate(fields | changes)
