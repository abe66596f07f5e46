"""Parts of the goal loop: reference history, arrival watch and goal reports."""

import numpy as np
import pytest

from softarm_ros.control.goals.arrival import SETTLED_S, Arrival, ArrivalWatch
from softarm_ros.control.goals.goal import GoalState, point_goal
from softarm_ros.control.goals.plan import Plan
from softarm_ros.control.goals.reference_history import REMEMBERED_S, ReferenceHistory
from softarm_ros.control.goals.reports import GoalReports

PERIOD = 0.01


@pytest.fixture
def straight():
    """Return a history of two seconds along x at 1 m/s."""
    history = ReferenceHistory()
    for k in range(201):
        history.add(k * PERIOD, np.array([k * PERIOD, 0.0, 0.0]))
    return history


@pytest.mark.parametrize('stamp', [1.0, 1.237, 1.9999, 2.0])
def test_reference_history_interpolates_linearly(straight, stamp):
    np.testing.assert_allclose(straight.at(stamp), [stamp, 0.0, 0.0], atol=1e-12)


def test_reference_history_returns_its_ends_outside_its_range(straight):
    np.testing.assert_allclose(straight.at(2.5), [2.0, 0.0, 0.0])
    assert straight.at(0.0)[0] == pytest.approx(2.0 - REMEMBERED_S, abs=1.5 * PERIOD)
    straight.clear()
    assert straight.at(1.0) is None


def test_newer_reference_replaces_one_of_the_same_time():
    history = ReferenceHistory()
    for x in (0.0, 1.0):
        history.add(0.5, np.full(3, x))
    assert history.at(0.5)[0] == 1.0


def test_references_are_forgotten_when_the_clock_is_set_back():
    history = ReferenceHistory()
    for time_s in (100.0, 100.1, 50.0, 50.1):
        history.add(time_s, np.full(3, time_s))
    assert history.at(50.05) == pytest.approx(np.full(3, 50.05))
    assert history.at(49.9) == pytest.approx(np.full(3, 50.0))


def ends(watch, errors):
    """Feed a watch one error per period; return its verdict and the time of it [s]."""
    for k, error in enumerate(errors):
        arrival = watch.update(k * PERIOD, error)
        if arrival is not Arrival.AWAITED:
            return arrival, k * PERIOD
    return Arrival.AWAITED, None


def test_arrival_settles_after_the_settling_time_within_tolerance_and_no_sooner():
    arrival, after = ends(ArrivalWatch(1e-3, 2.0), [5e-4] * 100)
    assert arrival is Arrival.SETTLED
    assert after == pytest.approx(SETTLED_S)
    late = [5e-3] * 50 + [5e-4] * 100
    arrival, after = ends(ArrivalWatch(1e-3, 2.0), late)
    assert arrival is Arrival.SETTLED
    assert after == pytest.approx(0.5 + SETTLED_S, abs=1.5 * PERIOD)


def test_error_beyond_tolerance_restarts_settling_until_the_goal_is_missed():
    errors = [5e-4 if k % 20 else 5e-3 for k in range(1000)]
    watch = ArrivalWatch(1e-3, 2.0)
    arrival, after = ends(watch, errors)
    assert arrival is Arrival.MISSED
    assert after == pytest.approx(2.0 + SETTLED_S)
    assert watch.worst_m == 5e-3


def test_report_of_a_missed_goal_names_the_final_and_the_largest_tip_error():
    reports = GoalReports(lambda *_: None)
    plan = Plan(point_goal(9, (0.0, 0.0, 0.2)), course=None)
    reports.ended(plan, GoalState.MISSED, 1.44e-3, 2.31e-3, 2e-3)
    assert reports.take()[0].message == (
        '1.44 mm from it, in the last 0.3 s up to 2.31 mm (tolerance 2.0 mm)'
    )


def test_arrival_watch_reset_restarts_settling():
    watch = ArrivalWatch(1e-3, 2.0)
    assert ends(watch, [5e-4] * 20) == (Arrival.AWAITED, None)
    watch.reset()
    assert ends(watch, [5e-4] * 20) == (Arrival.AWAITED, None)
