"""What muscles can pull and push bounds where an arm is led, not only how long they are."""

import numpy as np
import pytest

from softarm_ros.control.goals.goal import configuration_goal, point_goal
from softarm_ros.control.tracker import Tracker
from softarm_ros.rigs.arms.muscle import MuscleArm
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.part_choice import chosen_part
from softarm_ros.runtime.assembly import build_goal_loop, build_planner

RIG = load_rig('pam_arm')
MODEL = RIG.model()
FORCES = RIG.arm.force_limits()
PERIOD = 1.0 / RIG.tracker.rate_hz
OVER_N = 0.5  # by which a force passes its limit in motion, being bounded to first order


def least_room(posture):
    """Return by how much [N] the muscle nearest to a limit is still within it."""
    _, down, up = FORCES.room(posture)
    return min(down.min(), up.min())


def test_tensions_change_with_lengths_as_their_derivative_says():
    rng = np.random.default_rng(0)
    for lengths in RIG.sample_configurations(rng, 3):
        change = 1e-6 * rng.normal(size=lengths.size)
        ahead, behind = (MODEL.posture_of(lengths + s * change).tensions for s in (1.0, -1.0))
        expected = 0.5 * (ahead - behind)
        found = MODEL.posture_of(lengths).tension_jacobian @ change
        np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_the_limits_are_those_of_vacuum_and_supply_on_an_unloaded_skeleton():
    """At full length the supply pushes with its own force; at the shortest nothing pulls."""
    _, down, up = FORCES.room(MODEL.posture_of(MODEL.rest_configuration))
    valves, rest = MuscleArm.of(RIG).valves, MODEL.rest_configuration
    k = valves.max_pull_N / 0.06
    np.testing.assert_allclose(up, k * (rest - 0.05), rtol=1e-6)
    np.testing.assert_allclose(down, valves.supply_push_N + k * (0.11 - rest), rtol=1e-6)


def led_beyond_reach(forces):
    """Ask for a place just longer than the arm, aside; return the least room on the way [N]."""
    part, config = chosen_part('controller', RIG.tracker)
    # Muscles are let go by searches that take long, and not fast enough.
    config = config.model_copy(update={'straightening_gain_1_s': 0.0})
    tracker = Tracker(
        MODEL,
        part.builder('controller')(config, MODEL),
        RIG.actuator_limits(),
        RIG.configuration_limits(),
        forces=forces,
    )
    target = 1.002 * np.array([0.05, 0.0, np.sqrt(1.0 - 0.05**2)])
    least = np.inf
    for _ in range(300):
        tracker.step(np.zeros(3), 0.5 * (target - tracker.tip()), PERIOD)
        least = min(least, least_room(tracker.posture))
    return least


def test_an_arm_asked_to_be_longer_than_it_is_does_not_set_its_muscles_against_each_other():
    assert led_beyond_reach(FORCES) > -OVER_N
    assert led_beyond_reach(None) < -5.0  # so the limits were in play


def test_plans_lead_to_what_muscles_hold_and_say_where_they_cannot():
    planner = build_planner(RIG, build_goal_loop(RIG).tracker)
    rest, names = MODEL.rest_configuration, MODEL.configuration_names
    aside = planner.plan(point_goal(1, (0.3, 0.0, 0.9)), rest)
    assert not aside.out_of_reach
    final = aside.course.advance(rest, 1e9, lambda way: 0.0, resting=True)
    assert least_room(MODEL.posture_of(final)) > -0.011
    longer = configuration_goal(1, names, [30.0], [[0.1003] * 30], expected=names)
    plan = planner.plan(longer, rest)
    assert plan.course is None
    assert 'would have to push' in plan.refusal


def test_a_model_without_forces_is_not_bounded_by_them():
    other = load_rig('cable_arm_single').model()
    assert FORCES.room(other.posture_of(other.rest_configuration)) is None


def test_a_muscle_that_would_have_to_push_too_hard_is_named_with_force_and_limit():
    with pytest.raises(ValueError, match=r'module_\d+_muscle_\d would have to push .* N at most'):
        FORCES.check(MODEL.posture_of(np.full(30, 0.1003)), RIG.actuator_names)
