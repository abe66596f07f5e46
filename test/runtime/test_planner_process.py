"""The process that plans goals: the loop does not wait while it loads, hangs or ends."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from manual_clock import ManualClock, wait_until

from softarm_ros.control.goals.goal import MAX_POINTS, configuration_goal, point_goal
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.planner_process import ANSWER_S, POINT_S, RESTARTS, PlannerProcess

RIG = load_rig('pam_arm')
MODEL = RIG.model()
WITHIN_S = 120.0


def long_goal():
    """Return a trajectory at rest with the maximum number of points: a megabyte."""
    rest = MODEL.rest_configuration
    times = 0.05 * np.arange(1, MAX_POINTS + 1)
    names = MODEL.configuration_names
    still = np.zeros_like(rest)
    return configuration_goal(
        1, names, times, [rest] * MAX_POINTS, [still] * MAX_POINTS, expected=names
    )


def configuration_at_rest(number):
    """Return a goal that is planned quickly."""
    names = MODEL.configuration_names
    return configuration_goal(number, names, [0.0], [MODEL.rest_configuration], [], expected=names)


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def planner(clock):
    process = PlannerProcess(RIG, clock=clock)
    yield process
    process.close()


def plan_of(planner):
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        for plan in planner.take():
            return plan
        time.sleep(0.01)
    raise AssertionError('no plan')


def asked_of_a_frozen_process(planner, goal):
    """Freeze the process and request a plan; check that the request does not wait."""
    os.kill(planner._process.pid, signal.SIGSTOP)
    asking = threading.Thread(
        target=planner.request, args=(goal, MODEL.rest_configuration), daemon=True
    )
    asking.start()
    asking.join(WITHIN_S / 8.0)
    assert not asking.is_alive()
    assert planner.take() == []


def ended(planner):
    """Kill the present planner process; return its id."""
    process = planner._process
    process.kill()
    process.wait()
    return process.pid


def news_of(planner):
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        planner.take()
        for news in planner.take_news():
            return news
        time.sleep(0.01)
    raise AssertionError('no news')


def test_request_does_not_wait_for_a_frozen_process(planner):
    planner.request(configuration_at_rest(1), MODEL.rest_configuration)
    assert plan_of(planner).course is not None
    asked_of_a_frozen_process(planner, long_goal())
    os.kill(planner._process.pid, signal.SIGCONT)
    assert plan_of(planner).course is not None


def test_plan_that_is_no_longer_needed_is_broken_off(planner):
    planner.request(long_goal(), MODEL.rest_configuration)
    wait_until(lambda: planner._at_work == 1, WITHIN_S, 'it is being planned')
    planner.request(configuration_at_rest(2), MODEL.rest_configuration)
    planner.break_off(2)  # its planning has not begun
    planner.break_off(1)
    plan = plan_of(planner)
    assert (plan.goal.number, plan.course, plan.refusal) == (1, None, 'the plan was broken off')
    planner.break_off(1)  # its planning is over
    planner.request(configuration_at_rest(3), MODEL.rest_configuration)
    plan = plan_of(planner)
    assert plan.goal.number == 3
    assert plan.course is not None


def given_up(planner, clock, goal, limit_s):
    """Request a plan of a frozen process, let time pass until it is killed; return the news."""
    process = planner._process
    asked_of_a_frozen_process(planner, goal)
    wait_until(lambda: planner._awaited, WITHIN_S, 'an answer is awaited')
    clock.sleep(limit_s)
    assert planner.take() == []
    assert process.poll() is None
    clock.sleep(1.0)
    planner.take()
    assert process.wait(WITHIN_S) == -signal.SIGKILL
    wait_until(lambda: planner._news, WITHIN_S, 'news')
    return planner.take_news()[0]


def test_frozen_process_is_killed_and_the_goal_it_was_planning_is_refused(planner, clock):
    why = given_up(planner, clock, long_goal(), ANSWER_S)  # it has not loaded
    assert why == 'the planner has not answered within 600 s and was killed; it is started again'
    assert plan_of(planner).course is not None  # made by the next process
    why = given_up(planner, clock, point_goal(2, (0.0, 0.0, 0.9)), POINT_S)
    assert 'has not answered within 60 s' in why
    refused = plan_of(planner)
    assert (refused.goal.number, refused.course, refused.refusal) == (2, None, why)


def test_ended_process_is_restarted_and_the_goal_it_was_planning_is_refused(planner):
    first = ended(planner)  # before it listens; a request waits for the next process
    planner.request(configuration_at_rest(1), MODEL.rest_configuration)
    assert 'the planner has ended (exit status -9); it is started again' in news_of(planner)
    assert plan_of(planner).course is not None
    assert planner._process.pid != first

    os.kill(planner._process.pid, signal.SIGSTOP)  # in the middle of a search
    planner.request(configuration_at_rest(2), MODEL.rest_configuration)
    while planner._next is not None:
        time.sleep(0.01)
    planner.request(configuration_at_rest(3), MODEL.rest_configuration)
    ended(planner)
    refused = plan_of(planner)
    assert (refused.goal.number, refused.course) == (2, None)
    assert 'it is started again' in refused.refusal
    plan = plan_of(planner)
    assert plan.goal.number == 3
    assert plan.course is not None

    ended(planner)  # without a request
    assert 'it is started again' in news_of(planner)
    planner.request(configuration_at_rest(4), MODEL.rest_configuration)
    assert plan_of(planner).course is not None


def test_repeated_ends_without_a_plan_stop_restarts_and_refuse_every_goal(planner):
    for _ in range(RESTARTS):
        ended(planner)
        assert 'it is started again' in news_of(planner)
    last = ended(planner)
    assert 'the tracker must be restarted' in news_of(planner)
    for number in (1, 2):
        planner.request(configuration_at_rest(number), MODEL.rest_configuration)
        plan = plan_of(planner)
        assert plan.goal.number == number
        assert f'{RESTARTS + 1} times without a plan' in plan.refusal
    assert planner._process.pid == last
