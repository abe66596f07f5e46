"""The process that plans goals: it may load or end whenever it likes, the loop does not wait."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from softarm_ros.control.goals.goal import MAX_POINTS, configuration_goal
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.planner_process import PlannerProcess

RIG = load_rig('pam_arm')
MODEL = RIG.model()
WITHIN_S = 120.0


def long_goal():
    """Return a trajectory at rest of as many points as are allowed: a megabyte."""
    rest = MODEL.rest_configuration
    times = 0.05 * np.arange(1, MAX_POINTS + 1)
    names = MODEL.configuration_names
    still = np.zeros_like(rest)
    return configuration_goal(
        1, names, times, [rest] * MAX_POINTS, [still] * MAX_POINTS, expected=names
    )


@pytest.fixture
def planner():
    process = PlannerProcess(RIG)
    yield process
    process.close()


def plan_of(planner):
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        for plan in planner.take():
            return plan
        time.sleep(0.01)
    raise AssertionError('no plan')


def test_a_long_trajectory_does_not_wait_for_a_process_that_loads(planner):
    process = planner._process.pid
    os.kill(process, signal.SIGSTOP)  # it loads for as long as this test wants
    try:
        asking = threading.Thread(
            target=planner.request, args=(long_goal(), MODEL.rest_configuration), daemon=True
        )
        asking.start()
        asking.join(WITHIN_S / 8.0)
        assert not asking.is_alive()
        assert planner.take() == []
    finally:
        os.kill(process, signal.SIGCONT)
    assert plan_of(planner).goal.number == 1


def test_a_process_that_ends_before_it_listens_refuses_every_goal(planner):
    planner._process.kill()
    planner._process.wait()
    for _ in range(2):
        planner.request(long_goal(), MODEL.rest_configuration)
        assert 'the planner has ended' in plan_of(planner).refusal
