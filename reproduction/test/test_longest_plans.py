"""Planning times of the longest goals."""

import pytest

from softarm_reproduction.longest_plans import longest_plans
from softarm_ros import load_rig


def test_longest_plans_are_not_refused_and_too_many_points_are():
    found = longest_plans(load_rig('cable_arm'), targets=3, points=40, lasts_s=90.0)
    assert {name: refusal for name, (_, refusal) in found.items()} == {
        'a target': '',
        'a path': '',
        'a trajectory': '',
    }
    assert all(duration > 0.0 for duration, _ in found.values())
    with pytest.raises(ValueError, match='poses has 2001'):
        longest_plans(load_rig('cable_arm'), targets=3, points=2001)
