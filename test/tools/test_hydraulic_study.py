"""The hydraulic arm's identified set and its experiments, coupled."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from softarm_ros.tools.hydraulic_arm_set import (
    build_arm,
    build_drive,
    build_hydraulic_arm,
    identify,
    section_pose,
)
from softarm_ros.tools.hydraulic_study import (
    experiments,
    settling,
    simulate_coupled,
    simulate_in_turn,
)


@pytest.fixture(scope='module', params=[1, 5])
def values(request):
    return identify(request.param)


def test_limit_poses(values):
    arm = build_arm(values, 1)
    drive = build_drive(arm, values)
    length, two = section_pose(arm, drive, np.array([0.0, 1e6, 1e6]))
    _, one = section_pose(arm, drive, np.array([1e6, 0.0, 0.0]))
    assert length == pytest.approx(0.401, abs=5e-4)
    assert math.degrees(abs(two)) == pytest.approx(165.7, rel=1e-4)
    assert math.degrees(abs(one)) == pytest.approx(168.0, rel=1e-4)
    assert two * one < 0.0


def test_experiments_settle_as_reported(values):
    """Steady within 1 s and 1.5 s; ramps overshoot less and settle sooner than steps."""
    uni, bi, ramps, jumps, steps, slow = (
        (found, settling(simulate_coupled(build_hydraulic_arm(values), found, 4e-3), found))
        for found in experiments()
    )
    assert max(*uni[1].curvature_s, uni[1].tip_s) < 1.0
    assert max(*bi[1].curvature_s, bi[1].tip_s) < 1.5
    assert ramps[1].overshoot < 0.6 * jumps[1].overshoot
    assert ramps[1].tip_speed < 0.6 * min(jumps[1].tip_speed, uni[1].tip_speed)
    assert ramps[1].tip_s < uni[1].tip_s
    assert slow[1].overshoot < 0.5 * steps[1].overshoot
    assert slow[1].tip_s < steps[1].tip_s


def test_one_system_is_more_accurate_than_two_in_turn():
    values = identify(1)
    first = replace(experiments()[0], duration_s=0.5)
    system = build_hydraulic_arm(values)
    truth = simulate_coupled(system, first, 5e-4).tips[9::10, 1]
    together = simulate_coupled(system, first, 5e-3).tips[:, 1]
    in_turn = simulate_in_turn(values, first, 5e-3)
    error = np.linalg.norm(together - truth, axis=1).max()
    assert error < 5e-4
    if in_turn is not None:
        assert np.linalg.norm(in_turn.tips[:, 1] - truth, axis=1).max() > 3.0 * error
