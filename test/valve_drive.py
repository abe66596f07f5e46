"""The valve driver's tables for muscles behind throttles, for tests in several folders."""

import numpy as np

LOW, FULL, PULL, PUSH = 0.05, 0.11, 22.7, 13.5
SKELETON = PULL / (FULL - LOW)
THROTTLE = (2.0 * FULL - LOW) / 10.0  # [m/s]: full muscles would be empty in 10 s
END = FULL + PUSH / SKELETON  # length at which the supply would stop filling, without the film

_DOWN = np.linspace(0.13, 0.0515, 80)
_UP = np.linspace(0.0505, 0.13, 80)
# (2 g - low) g' = -c (g - low) and = c (end - g), by g.
_EMPTYING = 2.0 * (_DOWN[0] - _DOWN) + LOW * np.log((_DOWN[0] - LOW) / (_DOWN - LOW))
_FILLING = 2.0 * (_UP[0] - _UP) + (2.0 * END - LOW) * np.log((END - _UP[0]) / (END - _UP))

DRIVE = {
    'deflating': {'times_s': _EMPTYING / THROTTLE, 'lengths_m': _DOWN},
    'inflating': {'times_s': _FILLING / THROTTLE, 'lengths_m': _UP},
    'empty_length_m': LOW,
    'full_length_m': FULL,
    'max_pull_N': PULL,
    'supply_push_N': PUSH,
    'shortest_pulse_s': 0.02,
    'longest_pulse_s': 0.2,
    'guard_s': 0.03,
}
