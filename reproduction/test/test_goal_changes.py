"""What a single motor step does to the tip, beside the arm at rest by its own equations."""

import numpy as np
import pytest

from softarm_reproduction.goal_changes import one_step
from softarm_reproduction.longest_plans import longest_plans
from softarm_reproduction.nominal import NOMINAL
from softarm_ros import load_rig
from softarm_ros.runtime.arm_assembly import build_plant

FREE = (*NOMINAL, 'plant.cable_friction_coefficient=0')


def test_a_step_moves_the_tip_as_far_as_the_equilibria_are_apart():
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
    # An oscillator that is displaced at once is accelerated by more than its way over a window.
    assert found.tip_m_s2 > found.way_m / 0.1**2
    assert found.limits == (rig.tracker.max_acceleration_m_s2, rig.tracker.max_jerk_m_s3)


def test_an_arm_without_steppers_says_so():
    with pytest.raises(ValueError, match='pam_arm: has no stepper motors'):
        one_step(load_rig('pam_arm', NOMINAL))


def test_longest_plans_are_of_goals_that_the_arm_can_follow():
    found = longest_plans(load_rig('cable_arm'), targets=3, points=40, lasts_s=90.0)
    assert {name: refusal for name, (_, refusal) in found.items()} == {
        'a target': '',
        'a path': '',
        'a trajectory': '',
    }
    assert all(duration > 0.0 for duration, _ in found.values())
    with pytest.raises(ValueError, match='poses has 2001'):
        longest_plans(load_rig('cable_arm'), targets=3, points=2001)
