"""Tolerances of configuration goals against the measured configuration, and their results."""

from typing import NamedTuple

import numpy as np
import pytest

from softarm_ros.control.goals.arrival import SETTLED_S, Arrival
from softarm_ros.control.goals.course import Through, Timetable
from softarm_ros.control.goals.goal import (
    BELATED_S,
    GoalKind,
    GoalReport,
    GoalState,
    configuration_goal,
    point_goal,
)
from softarm_ros.control.goals.goal_errors import GoalError, JointNamesError, OldStampError
from softarm_ros.control.goals.plan import Plan
from softarm_ros.control.goals.tolerance import tolerance_of
from softarm_ros.control.goals.tolerance_watch import SILENT_S, ToleranceWatch
from softarm_ros.control.goals.trajectory_result import Ending, ErrorCode, code_of, result_of
from softarm_ros.control.goals.under_way import UnderWay

NAMES = ('a', 'b')


class Joint(NamedTuple):
    name: str
    position: float = 0.0
    velocity: float = 0.0
    acceleration: float = 0.0


# -- requested tolerances


def test_tolerance_is_used_if_positive_default_if_zero_and_unlimited_if_negative():
    asked = tolerance_of([Joint('b', 0.1)], [Joint('a', -1.0, -1.0, -1.0)], 0.0, NAMES)
    np.testing.assert_array_equal(asked.path, [np.inf, 0.1])
    np.testing.assert_array_equal(asked.goal, [np.inf, np.inf])
    assert asked.time_s is None
    assert asked.asks
    assert tolerance_of([], [], 2.5, NAMES).time_s == 2.5
    assert tolerance_of([], [], -1.0, NAMES).time_s == np.inf
    assert not tolerance_of([Joint('a', 0.0)], [], 1.0, NAMES).asks


@pytest.mark.parametrize(
    ('path', 'goal', 'kind', 'words'),
    [
        ([Joint('c', 0.1)], [], JointNamesError, r"path_tolerance\[0\].name = 'c' is unknown"),
        (
            [],
            [Joint('a'), Joint('a')],
            JointNamesError,
            r"goal_tolerance\[1\].name = 'a' is named",
        ),
        ([Joint('a', np.nan)], [], GoalError, r'path_tolerance\[0\].position = nan; expected'),
        ([], [Joint('b', np.inf)], GoalError, r'goal_tolerance\[0\].position = inf; expected'),
        ([Joint('a', 0.1, 0.5)], [], GoalError, r'path_tolerance\[0\].velocity = 0.5: only'),
        ([Joint('a', 0.1, np.nan)], [], GoalError, r'path_tolerance\[0\].velocity = nan: only'),
        ([], [Joint('a', 0.1, 0, 2)], GoalError, r'goal_tolerance\[0\].acceleration = 2: only'),
    ],
)
def test_invalid_tolerances_are_refused_with_field_and_value(path, goal, kind, words):
    with pytest.raises(kind, match=words):
        tolerance_of(path, goal, 0.0, NAMES)


@pytest.mark.parametrize('ahead', [None, 0.4, 0.0, -4.0 - 0.9 * BELATED_S])
def test_missing_or_current_header_stamp_is_accepted(ahead):
    goal = configuration_goal(1, NAMES, [4.0], [[0.0, 0.1]], expected=NAMES, ahead_s=ahead)
    assert goal.times_s[-1] == 4.0


@pytest.mark.parametrize(
    ('ahead', 'kind', 'words'),
    [
        (0.6, GoalError, r'header.stamp lies 0.6 s in the future; expected 0 or now'),
        (-7.0, OldStampError, r'header.stamp lies 7 s in the past, and .* lasts 4 s; expected'),
    ],
)
def test_header_stamp_in_the_future_or_long_past_is_refused(ahead, kind, words):
    with pytest.raises(kind, match=words):
        configuration_goal(1, NAMES, [4.0], [[0.0, 0.1]], expected=NAMES, ahead_s=ahead)


def test_wrong_joint_names_raise_joint_names_error():
    with pytest.raises(JointNamesError, match='expected all of'):
        configuration_goal(1, ['a', 'c'], [4.0], [[0.0, 0.1]], expected=NAMES)


# -- measured deviations


def ramp(until_s=2.0, rate=0.1):
    """Return a watch of a command of `a` that grows by `rate` a second until `until_s`."""
    watch = ToleranceWatch(NAMES, 1.5)
    for k in range(round(100 * until_s) + 1):
        watch.command(0.01 * k, np.array([rate * 0.01 * k, 0.0]))
    return watch


def test_measurement_is_compared_with_the_command_at_its_stamp():
    watch = ramp()
    watch.measure(1.505, np.array([0.16, 0.02]))
    np.testing.assert_allclose(watch.deviation.commanded, [0.1505, 0.0], atol=1e-12)
    np.testing.assert_allclose(watch.deviation.error, [-0.0095, -0.02], atol=1e-12)
    for unknown in (None, np.array([np.nan, 0.0])):
        watch.measure(1.6, unknown)
        assert watch.deviation.stamp_s == 1.505


def test_coordinate_beyond_its_path_tolerance_is_named():
    watch = ramp()
    watch.begin(tolerance_of([Joint('b', 0.05)], [], 0.0, NAMES))
    watch.measure(2.0, np.array([9.0, 0.049]))  # no tolerance for the other coordinate
    assert watch.strayed(2.0) == ''
    watch.measure(2.0, np.array([0.2, -0.06]))
    words = 'path_tolerance: b is measured at -0.06 and commanded to 0, 0.06 apart; tolerance 0.05'
    assert watch.strayed(2.0) == words
    watch.begin(None)
    assert watch.strayed(2.0) == ''


def test_missing_measurements_violate_the_path_tolerance():
    watch = ramp()
    watch.begin(tolerance_of([Joint('b', 0.05)], [], 0.0, NAMES))
    watch.measure(2.0, np.array([0.2, 0.0]))
    assert watch.strayed(2.0 + 0.9 * SILENT_S) == ''
    assert 'not measured any more' in watch.strayed(2.0 + 1.1 * SILENT_S)


def test_tolerance_is_refused_if_the_configuration_is_not_measured():
    watch = ramp()
    asked = tolerance_of([], [Joint('a', 0.05)], 0.0, NAMES)
    assert watch.refusal(asked, 2.0).startswith('goal_tolerance: the configuration of this arm')
    assert watch.refusal(None, 2.0) == watch.refusal(tolerance_of([], [], 1.0, NAMES), 2.0) == ''
    watch.measure(2.0, np.array([0.2, 0.0]))
    assert watch.refusal(asked, 2.1) == ''
    assert watch.refusal(asked, 2.1 + SILENT_S) != ''


def arrivals(watch, error, seconds):
    """Return the verdict of each cycle, with a constant error of `a`."""
    said = []
    for k in range(round(100 * seconds)):
        now = 2.0 + 0.01 * k
        watch.command(now, np.array([0.2, 0.0]))
        watch.measure(now, np.array([0.2 - error, 0.0]))
        said.append(watch.arrived(now))
    return said


def test_goal_settles_only_after_staying_within_tolerance_for_settled_s():
    watch = ramp()
    watch.begin(tolerance_of([], [Joint('a', 0.05)], 0.0, NAMES))
    said = [arrival for arrival, _ in arrivals(watch, 0.04, 0.5)]
    first = said.index(Arrival.SETTLED)
    assert set(said[:first]) == {Arrival.AWAITED}
    assert 0.01 * first == pytest.approx(SETTLED_S, abs=0.011)


@pytest.mark.parametrize(('given', 'allowed'), [(0.0, 1.5), (0.4, 0.4)])
def test_goal_is_missed_after_goal_time_tolerance_or_settle_timeout_if_not_set(given, allowed):
    watch = ramp()
    watch.begin(tolerance_of([], [Joint('a', 0.05)], given, NAMES))
    said = arrivals(watch, 0.06, allowed + 1.0)
    first = [arrival for arrival, _ in said].index(Arrival.MISSED)
    assert 0.01 * first == pytest.approx(allowed + SETTLED_S, abs=0.011)
    assert said[first][1].endswith('0.06 apart; tolerance 0.05')


def test_goal_with_negative_time_tolerance_is_awaited_without_limit():
    watch = ramp()
    watch.begin(tolerance_of([], [Joint('a', 0.05)], -1.0, NAMES))
    assert {arrival for arrival, _ in arrivals(watch, 0.06, 30.0)} == {Arrival.AWAITED}


def test_goal_without_tolerance_settles_at_once():
    watch = ramp()
    watch.begin(tolerance_of([], [], 0.0, NAMES))
    assert watch.arrived(2.0) == (Arrival.SETTLED, '')


# -- results


@pytest.mark.parametrize(
    ('state', 'asked', 'ending', 'code'),
    [
        (GoalState.REACHED, False, Ending.SUCCEEDED, ErrorCode.SUCCESSFUL),
        (GoalState.STRAYED, False, Ending.ABORTED, ErrorCode.PATH_TOLERANCE_VIOLATED),
        (GoalState.MISSED, False, Ending.ABORTED, ErrorCode.GOAL_TOLERANCE_VIOLATED),
        (GoalState.REFUSED, False, Ending.ABORTED, ErrorCode.INVALID_GOAL),
        (GoalState.PREEMPTED, False, Ending.ABORTED, ErrorCode.INVALID_GOAL),
        (GoalState.CANCELLED, False, Ending.ABORTED, ErrorCode.INVALID_GOAL),
        (GoalState.CANCELLED, True, Ending.CANCELED, ErrorCode.SUCCESSFUL),
        (GoalState.REACHED, True, Ending.SUCCEEDED, ErrorCode.SUCCESSFUL),
        (GoalState.PREEMPTED, True, Ending.ABORTED, ErrorCode.INVALID_GOAL),
    ],
)
def test_goal_state_determines_ending_and_error_code(state, asked, ending, code):
    report = GoalReport(3, GoalKind.CONFIGURATION, state, 'why')
    result = result_of(report, None, cancel_asked=asked)
    assert (result.ending, result.code) == (ending, code)
    assert result.text.endswith('why')


def test_result_of_every_goal_state_has_a_code_and_a_text():
    for state in GoalState:
        result = result_of(
            GoalReport(1, GoalKind.CONFIGURATION, state, ''), None, cancel_asked=False
        )
        assert (
            (result.code == 0)
            == (state is GoalState.REACHED)
            == (result.ending is Ending.SUCCEEDED)
        )
        assert result.text


def test_goal_error_determines_the_error_code():
    report = GoalReport(3, GoalKind.CONFIGURATION, GoalState.REFUSED, 'why')
    for error, code in (
        (GoalError('x'), ErrorCode.INVALID_GOAL),
        (JointNamesError('x'), ErrorCode.INVALID_JOINTS),
        (OldStampError('x'), ErrorCode.OLD_HEADER_TIMESTAMP),
    ):
        assert code_of(error) is result_of(report, error, cancel_asked=False).code is code


# -- unfinished goals


def configuration(number):
    return configuration_goal(number, NAMES, [0.0], [[0.0, 0.1]], expected=NAMES)


def test_giving_up_one_goal_keeps_the_others():
    first, second, third = map(configuration, (1, 2, 3))
    goals = UnderWay(third, Plan(second, None), Plan(first, None))
    assert [goal.number for goal in goals.goals] == [3, 2, 1]
    assert goals.give_up(7) == []
    assert goals.give_up(2) == [second]
    assert goals.next is None
    assert (goals.asked, goals.plan.goal) == (third, first)
    assert goals.give_up() == [third, first]
    assert goals == UnderWay()


def test_targets_of_a_stream_count_as_one_goal():
    under_way = point_goal(4, (0.0, 0.0, 0.2), stream=True)
    goals = UnderWay(point_goal(4, (0.0, 0.1, 0.2), stream=True), None, Plan(under_way, None))
    assert goals.stream == 4
    assert [goal.number for goal in goals.give_up(4)] == [4]
    assert goals == UnderWay()


def test_course_index_increases_as_points_are_passed():
    table = Timetable(np.array([1.0, 2.0]), np.array([[1.0], [0.0]]), np.zeros((0, 0)))
    here, seen = np.array([0.0]), []
    for _ in range(25):
        here = table.advance(here, 0.1, lambda way: 0.0, resting=True)
        seen.append(table.index)
    assert seen[5] == seen[15] == 0
    assert seen[-1] == 1
    through = Through(np.array([[1.0], [2.0], [3.0]]))
    here, seen = np.array([0.0]), [through.index]
    while not through.done:
        here = through.advance(here, 0.25, lambda way: abs(float(way[0])), resting=True)
        seen.append(through.index)
    assert seen == sorted(seen)
    assert set(seen) == {0, 1, 2}
