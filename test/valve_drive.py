"""The driver's table of muscles that fill and empty exponentially, for tests of several rooms."""

import numpy as np

T = np.linspace(0.0, 24.0, 25)
DRIVE = {
    'deflating': {'times_s': T, 'lengths_m': 0.05 + 0.06 * np.exp(-T / 10.0)},
    'inflating': {
        'times_s': 0.4 * T,
        'lengths_m': 0.145 - (0.145 - 0.05) * np.exp(-0.4 * T / 9.6 * np.log(95.0 / 35.0)),
    },
    'max_pull_N': 22.7,
    'supply_push_N': 13.5,
    'shortest_pulse_s': 0.02,
    'longest_pulse_s': 0.2,
    'guard_s': 0.03,
}
