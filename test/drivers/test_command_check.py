"""Commands that a driver accepts, and its messages for all others."""

import numpy as np
import pytest

from softarm_ros.drivers.command_check import checked_command

NAMES = ('left', 'right')


def test_valid_command_is_returned_as_a_copy():
    given = np.array([0.01, -0.02])
    taken = checked_command(given, NAMES, -0.02, [0.01, 0.03], 'm')
    np.testing.assert_array_equal(taken, given)
    given[:] = 1.0
    assert taken[0] == 0.01
    assert checked_command([1, 2], NAMES, 0, 2, 'N').dtype == np.float64


def test_values_beyond_the_range_are_accepted_within_the_slack():
    assert checked_command([1.0 + 9e-10, 0.0], NAMES, 0.0, 1.0, 'Pa', slack=1e-9)[0] > 1.0
    for slack in (0.0, 1e-10):
        with pytest.raises(ValueError, match='left = 1 Pa outside'):
            checked_command([1.0 + 9e-10, 0.0], NAMES, 0.0, 1.0, 'Pa', slack=slack)


@pytest.mark.parametrize(
    ('command', 'message'),
    [
        ([0.0], r'command has shape \(1,\); expected \(2,\)'),
        ([[0.0, 0.0]], r'command has shape \(1, 2\); expected \(2,\)'),
        ([0.0, np.nan], 'right = nan: expected a finite number of N m'),
        ([np.inf, 0.0], 'left = inf: expected a finite number of N m'),
        ([0.0, 2.5], r'right = 2.5 N m outside \[-2, 2\] N m'),
        ([-2.5, 0.0], r'left = -2.5 N m outside \[-1, 1\] N m'),
    ],
)
def test_invalid_command_is_refused_with_name_value_and_range(command, message):
    most = np.array([1.0, 2.0])
    with pytest.raises(ValueError, match=message):
        checked_command(command, NAMES, -most, most, 'N m')
