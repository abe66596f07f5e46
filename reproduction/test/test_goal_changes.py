"""The effect of a single motor step on the tip, compared with static equilibria; longest plans."""

import numpy as np
import pytest

from softarm_reproduction.goal_changes import one_step
from softarm_reproduction.longest_plans import longest_plans
from softarm_reproduction.nominal import NOMINAL
from softarm_ros import load_rig
from softarm_ros.runtime.arm_assembly import build_plant

FREE = (*NOMINAL, 'plant.cable_friction_coefficient=0')


def test_motor_step_moves_the_tip_by_the_distance_of_the_equilibria():
    rig = load_rig('cable_arm_single', FREE)
    plant, config = build_plant(rig, 0), rig.plant_for('sim')
    step, backlash = config.stepper.step_m, config.stepper.backlash_m
    wound = np.array([step * np.ceil(backlash / step + 1.0) - 0.5 * backlash, 0.0, 0.0])
    at, further = (
        plant.drives.static_equilibrium(wound + extra).section_tips[-1, :3, 3]
        for extra in (np.zeros(3), np.array([step, 0.0, 0.0]))
    )
    found = one_step(rig)
    assert found.way_m == pytest.approx(float(np.linalg.norm(further - at)), rel=0.02)
    # The acceleration of a suddenly displaced oscillator exceeds its way over a window squared.
    assert found.tip_m_s2 > found.way_m / 0.1**2
    assert found.limits == (rig.tracker.max_acceleration_m_s2, rig.tracker.max_jerk_m_s3)


def test_arm_without_steppers_is_refused():
    with pytest.raises(ValueError, match='pam_arm: has no stepper motors'):
        one_step(load_rig('pam_arm', NOMINAL))


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
