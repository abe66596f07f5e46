"""The loop that waits for goals, on the simulated arm under its supervisor."""

from dataclasses import replace

import numpy as np
import pytest

from softarm_ros.control.goals.goal import (
    GoalState,
    configuration_goal,
    path_goal,
    point_goal,
)
from softarm_ros.control.goals.plan import Plan
from softarm_ros.control.goals.tolerance import Tolerance
from softarm_ros.control.supervisor import SafetyState
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.assembly import build_goal_loop, goal_speed_m_s
from softarm_ros.runtime.goal_loop import STALE_S
from softarm_ros.runtime.loop import Phase, PoseSample
from softarm_ros.runtime.supervised_run import SupervisedArm

A, B = (0.04, 0.0, 0.235), (0.0, 0.04, 0.235)
# Half the rates of the rig files, so half the cycles, where results do not depend on them.
HALF_RATES = ('controller.rate_hz=50', 'sensors.pose_topic.rate_hz=50')


class Arm:
    """A supervised arm with the goal loop, and its reports."""

    def __init__(self, name='cable_arm', rates=HALF_RATES, **options):
        self.rig = load_rig(name, rates)
        self.loop = build_goal_loop(self.rig, **options)
        self.arm = SupervisedArm(self.rig, loop=self.loop)
        self.reports, self.references, self.commands = [], [], []

    def cycle(self):
        output = self.arm.cycle()
        self.reports += self.loop.take_reports()
        self.references.append(output.reference_position.copy())
        self.commands.append(output.configuration.copy())
        for _ in range(self.arm.looks):
            self.arm.advance()
        return output

    def run(self, seconds):
        end = self.arm.now_s + seconds
        while self.arm.now_s < end - 1e-9:
            output = self.cycle()
        return output

    def started(self):
        self.run(0.5)
        assert self.arm.start()[0]
        self.run(0.1)
        return self

    def states(self, number):
        return [report.state for report in self.reports if report.number == number]

    def until(self, number, state, seconds=40.0):
        end = self.arm.now_s + seconds
        while state not in self.states(number):
            assert self.arm.now_s < end, (self.states(number), self.arm.status)
            self.cycle()

    def smooth(self, rows):
        """Check that references of successive cycles keep speed, acceleration and jerk."""
        config, period = self.rig.tracker, self.loop.period_s
        place = np.array(rows)
        for order, limit in (
            (1, goal_speed_m_s(self.rig)),
            (2, config.max_acceleration_m_s2),
            (3, config.max_jerk_m_s3),
        ):
            size = np.linalg.norm(np.diff(place, order, axis=0), axis=1) / period**order
            assert size.max() <= limit


def test_arm_stands_still_until_a_goal_arrives():
    arm = Arm()
    arm.loop.submit(point_goal(1, A))  # before the arm may move
    arm.started()
    output = arm.run(1.0)
    assert arm.states(1) == [GoalState.REFUSED]
    assert output.phase is Phase.WAIT
    assert np.ptp(arm.commands, axis=0).max() == 0.0
    assert arm.arm.status.state is SafetyState.RUNNING


def test_new_goal_in_motion_preempts_smoothly_and_is_reached_and_held():
    arm = Arm().started()
    arm.loop.submit(point_goal(1, A))
    arm.until(1, GoalState.ACTIVE)
    first = len(arm.references)
    arm.run(1.5)
    arm.loop.submit(point_goal(2, B))
    arm.until(2, GoalState.REACHED)
    assert arm.states(1) == [GoalState.PLANNING, GoalState.ACTIVE, GoalState.PREEMPTED]
    arm.smooth(arm.references[first:])
    arm.run(2.0)
    tip = arm.arm.plant.true_section_tips()[-1, :3, 3]
    assert np.linalg.norm(tip - B) < arm.rig.tracker.settle_tolerance_m


def test_reference_of_a_goal_begins_at_the_measured_tip():
    arm = Arm().started()
    arm.loop.submit(point_goal(1, A))
    arm.until(1, GoalState.ACTIVE)
    apart = np.linalg.norm(arm.references[-1] - arm.arm.plant.true_section_tips()[-1, :3, 3])
    assert apart < 1e-3  # the noise of the poses
    arm.until(1, GoalState.REACHED)
    assert np.linalg.norm(arm.references[-1] - A) < 1e-4


def test_path_goal_passes_through_its_points():
    arm = Arm().started()
    points = np.array([(0.04, 0.0, 0.235), (0.03, 0.03, 0.234), (0.0, 0.04, 0.235)])
    arm.loop.submit(path_goal(1, points))
    arm.until(1, GoalState.REACHED, 60.0)
    travelled = np.array(arm.references)
    for point in points:
        assert np.linalg.norm(travelled - point, axis=1).min() < 5e-4
    np.testing.assert_allclose(arm.loop.path(5)[-1], points[-1], atol=1e-4)


def test_configuration_after_a_point_must_begin_at_the_present_command():
    arm = Arm().started()
    names = arm.loop.model.configuration_names
    arm.loop.submit(point_goal(1, (0.10, 0.02, 0.20)))
    arm.until(1, GoalState.REACHED)
    there, planned = arm.commands[-1], arm.loop._motion.setpoint
    apart = np.abs(there - planned)
    assert apart.max() > 0.1

    def trajectory(number, first):
        rows = [first, 0.5 * there]
        arm.loop.submit(configuration_goal(number, names, [0.0, 8.0], rows, expected=names))

    trajectory(2, planned)
    arm.until(2, GoalState.REFUSED)
    assert f'commanded to {there[np.argmax(apart)]:.2f}' in arm.reports[-1].message
    trajectory(3, arm.commands[-1])
    began = len(arm.commands)
    arm.until(3, GoalState.REACHED)
    rates = np.diff(arm.commands[began:], axis=0) / arm.loop.period_s
    assert np.abs(rates).max() < 1.2 * np.abs(0.5 * there).max() / 8.0


def test_configuration_after_a_cancelled_one_begins_where_that_comes_to_rest():
    arm = Arm().started()
    names = arm.loop.model.configuration_names
    arm.loop.submit(configuration_goal(1, names, [4.0], [[0.3, 0.0, 0.3, 0.0]], expected=names))
    arm.until(1, GoalState.ACTIVE)
    arm.run(2.0)
    arm.loop.cancel()
    rest = arm.loop._motion.setpoint
    assert np.abs(rest - arm.commands[-1]).max() > 0.01  # the command is still moving there
    rows = [rest, 0.5 * rest]
    arm.loop.submit(configuration_goal(2, names, [0.0, 4.0], rows, expected=names))
    arm.until(2, GoalState.REACHED)


def test_configurations_are_reached_exactly_and_a_point_between_causes_no_jump():
    arm = Arm(rates=()).started()
    names = arm.loop.model.configuration_names
    goal = [[0.2, 0.0, 0.1, 0.0], [0.3, 0.1, 0.1, 0.0]]
    arm.loop.submit(configuration_goal(1, names, [6.0, 12.0], goal, expected=names))
    arm.until(1, GoalState.REACHED)
    np.testing.assert_allclose(arm.commands[-1], goal[-1], atol=1e-9)
    arm.loop.submit(point_goal(2, A))
    arm.until(2, GoalState.ACTIVE)
    arm.run(0.5)
    arm.loop.submit(configuration_goal(3, names, [0.0], [[0.0] * 4], expected=names))
    arm.until(3, GoalState.REACHED)
    assert arm.states(2)[-1] is GoalState.PREEMPTED
    np.testing.assert_allclose(arm.commands[-1], 0.0, atol=1e-9)
    steps = np.abs(np.diff(np.array(arm.commands), axis=0)).max(axis=0)
    assert steps.max() < 0.003  # rad per period: no jump between the two kinds of goals


def test_goal_out_of_reach_leads_to_the_nearest_point_and_is_reported():
    arm = Arm().started()
    arm.loop.submit(point_goal(1, (0.1, 0.0, 0.245)))
    arm.until(1, GoalState.OUT_OF_REACH, 60.0)
    report = arm.reports[-1]
    assert report.miss_m > 0.01
    assert np.linalg.norm(arm.references[-1] - report.nearest) < 1e-3
    assert 'out of reach' in next(r for r in arm.reports if r.state is GoalState.ACTIVE).message


def test_cancel_stops_smoothly_and_the_next_goal_is_reached():
    arm = Arm().started()
    arm.loop.submit(point_goal(1, A))
    arm.until(1, GoalState.ACTIVE)
    begun = len(arm.references)
    arm.run(1.5)
    assert arm.loop.cancel()
    assert not arm.loop.cancel()
    arm.run(1.5)
    assert arm.states(1)[-1] is GoalState.CANCELLED
    assert np.ptp(np.array(arm.references[-30:]), axis=0).max() < 1e-9
    arm.smooth(arm.references[begun:])
    arm.loop.submit(point_goal(2, B))
    arm.until(2, GoalState.REACHED)


@pytest.mark.parametrize('rate_hz', [10.0, 30.0, 100.0])
def test_stream_is_followed_and_held_when_it_stops(rate_hz):
    arm = Arm(rates=()).started()
    start = arm.references[-1]
    sent = number = 0
    begun = arm.arm.now_s
    while arm.arm.now_s < begun + 4.0:
        if arm.arm.now_s >= begun + sent / rate_hz - 1e-9:
            sent, number = sent + 1, number + 1
            last = arm.arm.now_s
            target = start + np.array([0.01 * (last - begun), 0.0, -0.001])
            arm.loop.submit(point_goal(number, target, stream=True))
        arm.cycle()
    assert not any(report.state.final for report in arm.reports)
    assert arm.references[-1][0] > start[0] + 0.015
    arm.until(1, GoalState.CANCELLED, 1.0)
    assert arm.arm.now_s - last <= STALE_S + 2.5 * arm.loop.period_s < 0.2
    arm.run(1.0)
    assert np.ptp(np.array(arm.references[-10:]), axis=0).max() < 1e-9
    arm.smooth(arm.references[100:])


@pytest.mark.parametrize('stop', ['estop', 'stop'])
def test_stop_cancels_the_goal_and_a_start_alone_does_not_move_the_arm(stop):
    arm = Arm().started()
    arm.loop.submit(point_goal(1, A))
    arm.until(1, GoalState.ACTIVE)
    arm.run(1.0)
    getattr(arm.arm.supervisor, f'request_{stop}')(arm.arm.now_s)
    arm.run(0.5)
    assert arm.states(1)[-1] is GoalState.CANCELLED
    assert 'held' in arm.reports[-1].message
    arm.loop.submit(point_goal(2, B))
    arm.run(0.1)
    assert arm.states(2) == [GoalState.REFUSED]
    arm.arm.supervisor.request_reset(arm.arm.now_s)
    assert arm.arm.start()[0]
    held = len(arm.commands)
    arm.run(1.0)
    assert np.ptp(arm.commands[held + 5 :], axis=0).max() == 0.0
    arm.loop.submit(point_goal(3, B))
    arm.until(3, GoalState.REACHED)


class SlowPlanner:
    """A planner that answers only when the test says so; it keeps all requests."""

    def __init__(self, planner):
        self.planner, self.asked, self.ready, self.broken_off = planner, [], [], []

    def request(self, goal, start, motion=None):
        self.asked.append((goal, start, motion))

    def break_off(self, number):
        self.broken_off.append(number)

    def answer(self, index):
        self.ready.append(self.planner.plan(*self.asked[index]))

    def take(self):
        ready, self.ready = self.ready, []
        return ready

    def take_news(self):
        return []


def test_stream_to_a_held_arm_is_refused_once_and_again_after_a_pause():
    arm = Arm().started()
    arm.loop.hold(arm.arm.now_s)
    for number in range(1, 21):
        arm.loop.submit(point_goal(number, A, stream=True))
        arm.run(0.02)
    arm.loop.submit(point_goal(21, A))  # not part of the stream
    arm.run(1.5 * STALE_S)
    arm.loop.submit(point_goal(22, A, stream=True))
    arm.cycle()
    refused = [r.number for r in arm.reports if r.state is GoalState.REFUSED]
    assert refused == [1, 21, 22]


def streamed(arm, number, seconds, target):
    """Stream one target at 50 Hz for a while; return the next number."""
    end = arm.arm.now_s + seconds
    while arm.arm.now_s < end - 1e-9:
        arm.loop.submit(point_goal(number, target, stream=True))
        number += 1
        arm.run(0.02)
    return number


def test_cancelled_stream_does_not_move_the_arm_until_it_has_paused():
    arm = Arm().started()
    number = streamed(arm, 1, 1.0, A)
    assert arm.loop.cancel()
    cancelled = len(arm.references)
    number = streamed(arm, number, 1.0, A)
    assert not arm.loop.cancel()
    number = streamed(arm, number, 2.0, A)
    assert arm.states(1) == [GoalState.PLANNING, GoalState.ACTIVE, GoalState.CANCELLED]
    assert arm.reports[-1].number == 1
    assert 'pause of 150 ms' in arm.reports[-1].message
    assert np.ptp(arm.references[-50:], axis=0).max() < 1e-9
    assert np.linalg.norm(arm.references[-1] - A) > 0.02
    arm.smooth(arm.references[cancelled - 50 :])
    arm.run(1.5 * STALE_S)
    streamed(arm, number, 0.1, A)
    assert arm.states(number) == [GoalState.PLANNING, GoalState.ACTIVE]


def test_goal_after_a_cancelled_stream_is_reached_while_targets_still_arrive():
    arm = Arm().started()
    number = streamed(arm, 1, 1.0, A)
    arm.loop.cancel()
    number = streamed(arm, number, 0.1, A)
    arm.loop.submit(point_goal(1000, B))
    streamed(arm, number, 1.0, A)
    assert arm.states(1000) == [GoalState.PLANNING, GoalState.ACTIVE]
    arm.until(1000, GoalState.REACHED)


@pytest.mark.parametrize('stop', ['estop', 'stop'])
def test_start_alone_does_not_resume_a_stopped_stream(stop):
    arm = Arm().started()
    number = streamed(arm, 1, 1.0, A)
    getattr(arm.arm.supervisor, f'request_{stop}')(arm.arm.now_s)
    number = streamed(arm, number, 0.5, A)
    arm.arm.supervisor.request_reset(arm.arm.now_s)
    assert arm.arm.start()[0]
    held = len(arm.commands)
    number = streamed(arm, number, 1.0, A)
    assert np.ptp(arm.commands[held + 5 :], axis=0).max() == 0.0
    assert arm.states(1)[-1] is GoalState.CANCELLED
    assert {report.number for report in arm.reports} == {1}
    arm.run(1.5 * STALE_S)
    streamed(arm, number, 0.1, A)
    assert arm.states(number) == [GoalState.PLANNING, GoalState.ACTIVE]


def test_stream_with_a_refused_target_ends_once(slow):
    planner, start = slow.loop._planner, slow.references[-1]
    targets = [start + np.array([0.0, 0.0, -0.001 * k]) for k in range(1, 12)]
    for number, target in enumerate(targets, 1):
        slow.loop.submit(point_goal(number, target, stream=True))
        slow.run(0.05)
        if number == 2:
            planner.ready.append(Plan(planner.asked[-1][0], None, 'the planner has ended'))
        elif len(planner.asked) == number:
            planner.answer(-1)
        slow.run(0.05)
    assert slow.states(1) == [GoalState.PLANNING, GoalState.ACTIVE, GoalState.REFUSED]
    assert {report.number for report in slow.reports} == {1}
    assert not slow.loop.goal_state


@pytest.fixture
def slow():
    arm = Arm(rates=()).started()
    arm.loop._planner = SlowPlanner(arm.loop._planner._planner)
    return arm


def test_late_plan_of_a_preempted_goal_is_not_used(slow):
    planner = slow.loop._planner
    slow.loop.submit(point_goal(1, A))
    slow.run(0.5)
    slow.loop.submit(point_goal(2, B))
    slow.run(0.2)
    planner.answer(0)
    slow.run(0.2)
    assert slow.states(1) == [GoalState.PLANNING, GoalState.PREEMPTED]
    assert slow.states(2) == [GoalState.PLANNING]
    assert planner.broken_off == [1]
    planner.answer(1)
    slow.until(2, GoalState.REACHED)
    slow.loop.submit(point_goal(3, A))
    assert slow.loop.cancel()
    assert planner.broken_off == [1, 3]


def test_last_target_of_a_stream_is_used_even_if_plans_arrive_late(slow):
    planner, start = slow.loop._planner, slow.references[-1]
    targets = [start + np.array([0.002 * k, 0.0, 0.0]) for k in range(1, 9)]
    for number, target in enumerate(targets, 1):
        slow.loop.submit(point_goal(number, target, stream=True))
        slow.run(0.05)
        if number > 1:
            planner.answer(number - 2)  # each while the next one is already awaited
        slow.run(0.05)
    planner.answer(-1)
    slow.run(0.03)
    assert slow.states(1) == [GoalState.PLANNING, GoalState.ACTIVE]
    np.testing.assert_array_equal(slow.loop.under_way.plan.target, targets[-1])


def test_stream_that_stops_while_a_target_is_planned_is_cancelled_once(slow):
    planner, start = slow.loop._planner, slow.references[-1]
    slow.loop.submit(point_goal(1, start + np.array([0.0, 0.0, -0.002]), stream=True))
    slow.run(0.1)
    planner.answer(0)
    slow.run(0.02)
    slow.loop.submit(point_goal(2, start + np.array([0.0, 0.0, -0.003]), stream=True))
    slow.run(0.5)
    planner.answer(1)  # too late: the stream has ended
    slow.run(0.5)
    assert slow.states(1) == [GoalState.PLANNING, GoalState.ACTIVE, GoalState.CANCELLED]
    assert not slow.loop.goal_state


def test_cancelling_a_goal_in_planning_leaves_the_active_one(slow):
    planner = slow.loop._planner
    slow.loop.submit(point_goal(1, A))
    slow.run(0.1)
    planner.answer(0)
    slow.run(0.1)
    slow.loop.submit(point_goal(2, B))
    slow.run(0.1)
    assert slow.loop.cancel(number=2)
    assert not slow.loop.cancel(number=2)
    planner.answer(1)  # of a cancelled goal
    slow.until(1, GoalState.REACHED)
    assert slow.states(2) == [GoalState.PLANNING, GoalState.CANCELLED]


def test_stream_cancelled_while_a_target_is_planned_ends_once(slow):
    planner, start = slow.loop._planner, slow.references[-1]
    slow.loop.submit(point_goal(1, start + np.array([0.0, 0.0, -0.002]), stream=True))
    slow.run(0.1)
    planner.answer(0)
    slow.run(0.02)
    slow.loop.submit(point_goal(2, start + np.array([0.0, 0.0, -0.003]), stream=True))
    slow.run(0.02)
    assert slow.loop.cancel()
    slow.run(0.1)
    assert slow.states(1) == [GoalState.PLANNING, GoalState.ACTIVE, GoalState.CANCELLED]


def lifted(arm, **tolerance):
    """Return a goal for the configuration with tolerances, the same for all coordinates."""
    names = arm.loop.model.configuration_names
    wide = np.full(len(names), np.inf)
    asked = Tolerance(wide * 1.0, wide * 1.0)
    for name, value in tolerance.items():
        share = {'time_s': value}.get(name, np.full(len(names), value))
        asked = replace(asked, **{name: share})
    return configuration_goal(
        1, names, [4.0], [[0.4, 0.0, 0.3, 0.0]], expected=names, tolerance=asked
    )


def test_tolerances_apply_to_the_measured_configuration():
    kept = Arm().started()
    kept.loop.submit(lifted(kept, path=0.03, goal=0.03))
    kept.until(1, GoalState.REACHED)
    seen = kept.loop.tolerances.deviation
    np.testing.assert_allclose(seen.commanded, [0.4, 0.0, 0.3, 0.0], atol=1e-9)
    assert 1e-4 < np.abs(seen.error).max() < 0.03  # measured, not a copy of the command

    left = Arm().started()
    left.loop.submit(lifted(left, path=0.03))
    left.until(1, GoalState.ACTIVE)
    left.run(2.0)
    left.arm.plant.inject('cable slip proximal_1 1')
    left.until(1, GoalState.STRAYED, 1.0)
    assert 'path_tolerance: proximal_bend_x is measured at' in left.reports[-1].message
    moving = len(left.commands)
    left.run(1.5)
    assert np.ptp(left.commands[moving:], axis=0).max() > 1e-3  # smoothly
    assert np.ptp(left.commands[-20:], axis=0).max() < 1e-12
    assert left.states(1) == [GoalState.PLANNING, GoalState.ACTIVE, GoalState.STRAYED]

    missed = Arm().started()
    missed.loop.submit(lifted(missed, goal=0.002, time_s=0.5))  # less than the noise of the poses
    missed.until(1, GoalState.MISSED)
    assert 'goal_tolerance: ' in missed.reports[-1].message
    assert missed.reports[-1].message.endswith('tolerance 0.002')


def test_tolerance_is_refused_if_the_configuration_is_not_measured():
    arm = Arm()
    loop = arm.loop
    loop.start(0.0)
    loop.cycle(0.0, PoseSample(0.0, loop.tracker.tip()))  # the tip alone
    loop.submit(lifted(arm, goal=0.1))
    (report,) = loop.take_reports()
    assert report.state is GoalState.REFUSED
    assert report.message.startswith('goal_tolerance: the configuration of this arm is not')


def test_open_loop_goal_is_reached_by_the_model():
    arm = Arm(open_loop=True).started()
    arm.loop.submit(point_goal(1, A))
    arm.until(1, GoalState.REACHED)
    np.testing.assert_allclose(arm.loop.tracker.tip(), A, atol=1e-4)


def test_same_goals_at_the_same_times_give_bit_identical_commands():
    runs = []
    for _ in range(2):
        arm = Arm('cable_arm_single').started()
        arm.loop.submit(point_goal(1, (0.03, 0.0, 0.115)))
        arm.run(1.0)
        arm.loop.submit(point_goal(2, (0.0, 0.03, 0.115)))
        arm.run(1.0)
        runs.append(np.array(arm.commands))
    np.testing.assert_array_equal(*runs)


def test_command_brakes_before_a_configuration_goal_follows_feedback():
    rig = load_rig('cable_arm', HALF_RATES)
    loop, limits = build_goal_loop(rig, open_loop=True), rig.actuator_limits()
    names, bent = loop.model.configuration_names, (-0.089, -1.193, 0.574, 0.229)
    commands, reports = [], []
    now = 0.0

    def run(cycles):
        nonlocal now
        for _ in range(cycles):
            now += loop.period_s
            commands.append(loop.cycle(now, None).actuation)
            reports.extend((report.number, report.state) for report in loop.take_reports())

    loop.start(now)
    loop.submit(configuration_goal(1, names, (8.0,), (bent,), expected=names))
    run(500)
    # The tip hardly moves, but the sections straighten quickly: the reference rests before them.
    loop.submit(point_goal(2, loop.tracker.tip() - (0.0, 0.0, 1e-4)))
    run(10)
    loop.submit(configuration_goal(3, names, (8.0,), (bent,), expected=names))
    run(600)
    assert (3, GoalState.REACHED) in reports
    change = np.abs(np.diff(commands, 2, axis=0)) / loop.period_s**2
    assert np.all(change <= 1.001 * limits.max_acceleration)
