"""Goals without an arm: smoothed motion, courses, refusals and nearest configurations."""

import itertools

import numpy as np
import pytest

from softarm_ros.control.goals.course import Through, Timetable
from softarm_ros.control.goals.goal import (
    GoalError,
    GoalKind,
    configuration_goal,
    path_goal,
    point_goal,
)
from softarm_ros.control.goals.smoothed import SmoothedMotion
from softarm_ros.control.nearest import nearest_configuration
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.assembly import build_goal_loop, build_planner

WINDOWS = (0.3, 0.4)
SPEED = 2.0


def wander(seed, cycles, period=0.01, jitter=0.0):
    """Follow a setpoint that turns at random at full speed; return times, motion, setpoints."""
    rng = np.random.default_rng(seed)
    motion = SmoothedMotion(np.array([3.0, -1.0, 0.5]), WINDOWS)
    times, rows, setpoints = [0.0], [motion.state()], [motion.setpoint]
    way = np.zeros(3)
    for _ in range(cycles):
        if rng.random() < 0.1:
            way = rng.normal(size=3)
            way *= SPEED / np.linalg.norm(way)
        dt = period * (1.0 + jitter * rng.uniform(-1.0, 1.0))
        motion.advance(dt, motion.setpoint + dt * way)
        times.append(times[-1] + dt)
        rows.append(motion.state())
        setpoints.append(motion.setpoint)
    return np.array(times), *(np.array(column) for column in zip(*rows)), np.array(setpoints)


@pytest.mark.parametrize('seed', range(5))
def test_smoothed_motion_keeps_its_bounds_for_random_setpoint_motion(seed):
    _, place, rate, change, setpoints = wander(seed, 3000)
    a, b = WINDOWS
    assert np.linalg.norm(rate, axis=1).max() <= SPEED * (1 + 1e-9)
    assert np.linalg.norm(change, axis=1).max() <= 2 * SPEED / a * (1 + 1e-6)
    jerk = np.diff(change, axis=0) / 0.01
    assert np.linalg.norm(jerk, axis=1).max() <= 4 * SPEED / (a * b) * (1 + 1e-6)
    # Within the hull of past setpoints, hence within every convex limit.
    assert np.all(place >= setpoints.min(axis=0) - 1e-9)
    assert np.all(place <= setpoints.max(axis=0) + 1e-9)


def test_smoothed_velocity_matches_smoothed_position_at_irregular_cycles():
    times, place, rate, _, _ = wander(7, 4000, jitter=0.9)
    dt = np.diff(times)[:, None]
    # Equal to the average of both ends of a cycle, up to changes of acceleration within it.
    mean = np.diff(place, axis=0) / dt
    assert np.abs(mean - 0.5 * (rate[1:] + rate[:-1])).max() < 4 * SPEED / 0.12 * 0.019**2


def test_smoothed_motion_accumulates_no_rounding_error_over_an_hour():
    motion = SmoothedMotion(np.array([1.0]), WINDOWS)
    for k in range(36000):
        motion.advance(0.1, np.array([1.0 + np.sin(0.05 * k)]))
    for _ in range(10):
        motion.advance(0.1, motion.setpoint)
    assert motion.resting
    place, rate, change = motion.state()
    assert abs(place[0] - motion.setpoint[0]) < 1e-10
    assert abs(rate[0]) < 1e-9
    assert abs(change[0]) < 1e-8


def test_a_period_too_short_for_the_clock_leaves_the_smoothed_motion_unchanged():
    """At the end of a gap of the estimate, the share of speed may be 1e-16 instead of 0."""
    motion = SmoothedMotion(np.zeros(2), WINDOWS)
    for k in range(20):
        motion.advance(0.01, np.array([0.01 * k, 0.0]))
    before, setpoint = np.array(motion.state()), motion.setpoint + 1e-18
    motion.advance(1e-18, setpoint)
    assert np.array_equal(motion.state(), before)
    motion.advance(0.01, setpoint)
    assert np.isfinite(motion.state()).all()


def test_through_course_rests_at_the_first_point_and_then_continues():
    course = Through(np.array([[1.0], [2.0], [3.0]]))
    here, seen = np.array([0.0]), []
    for k in range(60):
        resting = k >= 20
        here = course.advance(here, 0.1, lambda way: abs(float(way[0])), resting=resting)
        seen.append(float(here[0]))
        if course.done:
            break
    assert seen[12] == seen[19] == 1.0
    assert seen[-1] == 3.0
    assert max(np.abs(np.diff(seen))) <= 0.1 + 1e-9


def test_timetable_passes_its_points_on_time_with_and_without_velocities():
    times, points = np.array([1.0, 2.0]), np.array([[1.0], [0.0]])
    for rates in (np.zeros((0, 0)), np.zeros((2, 1))):
        table = Timetable(times, points, rates)
        here = np.array([0.0])
        values = []
        for _ in range(20):
            here = table.advance(here, 0.1, lambda way: 0.0, resting=True)
            values.append(float(here[0]))
        assert values[4] == pytest.approx(0.5)
        assert values[9] == pytest.approx(1.0)
        assert values[-1] == pytest.approx(0.0)
        assert table.done
        assert (values[0] < 0.05) == (len(rates) > 0)  # a cubic begins at rest


@pytest.mark.parametrize(
    ('make', 'words'),
    [
        (lambda: point_goal(1, (np.nan, 0, 0)), 'pose.position.x = nan'),
        (lambda: point_goal(1, (0, 200.0, 0)), 'position.y = 200 m; expected at most 100'),
        (lambda: point_goal(1, (0, 0, 0.2), (0, 0, 0, 0)), 'orientation .* length 0; expected 1'),
        (lambda: point_goal(1, (0, 0, 0.2), (0, 0, np.nan, 1)), 'orientation'),
        (lambda: path_goal(1, []), 'poses has 0 entries; expected 1 to 2000'),
        (lambda: path_goal(1, [(0, 0, 0), (0, 0, 0)]), r'poses\[0\] and poses\[1\] are 0 m'),
        (lambda: path_goal(1, [(0, 0, np.inf)]), r'poses\[0\].*z = inf'),
        (
            lambda: configuration_goal(1, ['a'], [1.0], [[0.0]], expected=['a', 'b']),
            r'joint_names are \[a\]; expected all of \[a, b\]',
        ),
        (
            lambda: configuration_goal(1, ['a'], [], [], expected=['a']),
            'points has 0 entries',
        ),
        (
            lambda: configuration_goal(1, ['a'], [1.0, 1.0], [[0.0], [1.0]], expected=['a']),
            r'points\[1\].time_from_start = 1 s; expected a time after 1 s',
        ),
        (
            lambda: configuration_goal(1, ['a'], [3600.0, 7e8], [[0.0], [1.0]], expected=['a']),
            r'points\[1\].time_from_start = 7e\+08 s; expected at most 3600 s',
        ),
        (
            lambda: configuration_goal(1, ['a'], [1.0], [[np.nan]], expected=['a']),
            r'points\[0\].positions: a = nan',
        ),
        (
            lambda: configuration_goal(1, ['a'], [1.0], [[0.0, 1.0]], expected=['a']),
            r'points\[0\].positions has 2 values; expected 1',
        ),
        (
            lambda: configuration_goal(
                1, ['a'], [1.0, 2.0], [[0.0], [1.0]], [[0.0], []], expected=['a']
            ),
            'velocities: expected in every point or in none',
        ),
    ],
)
def test_invalid_goals_are_refused_with_field_and_value(make, words):
    with pytest.raises(GoalError, match=words):
        make()


def test_configuration_goal_accepts_joint_names_in_any_order():
    goal = configuration_goal(1, ['b', 'a'], [1.0], [[2.0, 1.0]], expected=['a', 'b'])
    assert goal.kind is GoalKind.CONFIGURATION
    np.testing.assert_array_equal(goal.configurations, [[1.0, 2.0]])


@pytest.fixture(scope='module')
def planner():
    rig = load_rig('cable_arm')
    return build_planner(rig, build_goal_loop(rig).tracker)


def test_nearest_configuration_reaches_reachable_points_within_limits(planner):
    rig, rng = load_rig('cable_arm'), np.random.default_rng(0)
    configurations = rig.sample_configurations(rng, 30)
    rest = planner.model.rest_configuration
    for point in planner.model.tips_of(configurations):
        plan = planner.plan(point_goal(1, point), rest)
        assert plan.miss_m < 1e-4, point
        final = plan.course.advance(rest, 1e9, lambda way: 0.0, resting=True)
        planner.limits.check(final, planner.model.configuration_names)
        planner.room.check(planner.model.posture_of(final).actuation)
        np.testing.assert_allclose(planner.model.posture_of(final).tip, point, atol=1e-4)


@pytest.mark.parametrize('name', ['cable_arm', 'hydraulic_arm', 'trunk'])
def test_no_sampled_tip_is_nearer_to_an_unreachable_point_than_the_planned_one(name):
    rig, rng = load_rig(name), np.random.default_rng(1)
    planner = build_planner(rig, build_goal_loop(rig).tracker)
    length = planner.model.rest_length_m
    configurations = rig.sample_configurations(rng, 300)
    tips = planner.model.tips_of(configurations)
    for direction, start in zip(rng.normal(size=(10, 3)), configurations, strict=False):
        target = 2.5 * length * direction / np.linalg.norm(direction)
        plan = planner.plan(point_goal(1, target), start)
        assert plan.out_of_reach
        nearest_sampled = np.linalg.norm(tips - target, axis=1).min()
        assert plan.miss_m <= nearest_sampled + 0.01 * length


@pytest.mark.parametrize('stream', [False, True])
def test_straight_arm_can_plan_to_a_point_on_its_own_axis(planner, stream):
    rest = planner.model.rest_configuration
    plan = planner.plan(point_goal(1, (0.0, 0.0, 0.235), stream=stream), rest)
    assert plan.miss_m < 1e-4


def test_search_started_at_a_bending_limit_stays_within_it(planner):
    limits = planner.limits
    start = np.zeros(4)
    start[:2] = limits.max_bending_rad[0], 0.0
    found = nearest_configuration(
        planner.model, planner.room, limits, np.array([0.5, 0.0, -0.3]), start
    )
    limits.check(found.configuration, planner.model.configuration_names)


def test_path_out_of_reach_is_refused_and_a_partly_reachable_one_is_reported(planner):
    rest = planner.model.rest_configuration
    away = planner.plan(path_goal(1, [(0.5, 0, 0), (0.6, 0, 0), (0.6, 0.1, 0)]), rest)
    assert away.course is None
    assert 'no point of the path is within reach' in away.refusal
    partly = planner.plan(path_goal(1, [(0.0, 0.05, 0.23), (0.0, 0.4, 0.23)]), rest)
    assert partly.out_of_reach
    assert partly.miss_m > 0.1


def test_interrupted_planning_ends_at_the_next_point(planner):
    rest, names = planner.model.rest_configuration, planner.model.configuration_names
    path = path_goal(1, [(0.0, 0.05, 0.23), (0.02, 0.05, 0.23)])
    timetable = configuration_goal(2, names, [30.0, 60.0], [rest, rest], expected=names)
    for goal in (path, timetable):
        asked = itertools.count()
        plan = planner.plan(goal, rest, None, lambda asked=asked: next(asked) >= 3)
        assert (plan.course, plan.refusal) == (None, 'the plan was broken off')
        assert next(asked) == 4


@pytest.mark.parametrize(
    ('times', 'points', 'words'),
    [
        ([1.0], [[9.0, 0, 0, 0]], r'points\[0\].positions: .*bends by'),
        ([0.05], [[1.0, 0, 0, 0]], 'limit'),
        ([0.0, 1.0], [[0.5, 0, 0, 0], [0.6, 0, 0, 0]], 'at 0 s, but the arm is commanded to'),
        # A short segment of a timetable of five minutes counts like one of a short timetable.
        ([121.0, 121.2, 300.0], [[0.0] * 4, [1.5, 0, 0, 0], [1.5, 0, 0, 0]], 'after 121.* limit'),
    ],
)
def test_configurations_that_the_actuators_cannot_follow_are_refused(
    planner, times, points, words
):
    import re

    names = planner.model.configuration_names
    goal = configuration_goal(1, names, times, points, expected=names)
    plan = planner.plan(goal, planner.model.rest_configuration)
    assert plan.course is None
    assert re.search(words, plan.refusal), plan.refusal


def test_timetable_that_the_arm_can_follow_only_from_rest_is_refused_in_motion(planner):
    """Braking the motion under way adds to the acceleration of a motion that reverses it."""
    rest, names = planner.model.rest_configuration, planner.model.configuration_names
    motion, bent = SmoothedMotion(rest, planner.windows_s), rest + np.array([0.5, 0, 0, 0])

    def fastest(place, start, motion=None):
        for time in np.geomspace(0.05, 20.0, 60):
            goal = configuration_goal(1, names, [time], [place], expected=names)
            if planner.plan(goal, start, motion).course is not None:
                return time, goal

    course = planner.plan(fastest(bent, rest)[1], rest).course
    while motion.state()[0][0] < 0.25:
        setpoint = course.advance(motion.setpoint, planner.period_s, None, resting=False)
        motion.advance(planner.period_s, setpoint)
    before, now = np.array(motion.state()), motion.setpoint
    from_rest, back = fastest(rest, now)
    refusal = planner.plan(back, now, motion).refusal
    assert 'is accelerated by' in refusal and ', as the arm is still moving; limit' in refusal
    assert fastest(rest, now, motion)[0] > from_rest
    assert np.array_equal(motion.state(), before)


def test_velocities_that_overshoot_the_limits_between_two_points_are_refused(planner):
    names, most = planner.model.configuration_names, planner.limits.max_bending_rad[0]
    bent = np.array([0.9 * most, 0.0, 0.0, 0.0])

    def plan(rate):
        velocities = np.outer([1.0, -1.0], [rate, 0.0, 0.0, 0.0])
        goal = configuration_goal(1, names, [10.0, 20.0], [bent] * 2, velocities, expected=names)
        return planner.plan(goal, planner.model.rest_configuration)

    assert plan(0.039 * most).course is not None  # 0.9 + 0.039 * 10 / 4 = 0.9975 of the limit
    beyond = plan(0.06 * most)
    assert beyond.course is None
    assert 'points: (proximal_bend_x, proximal_bend_y) bends by' in beyond.refusal
    assert 'expected at most 150 deg after 1' in beyond.refusal
