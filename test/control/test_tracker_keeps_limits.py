"""For any goal, commands keep range, speed and acceleration limits in every period."""

import numpy as np
import pytest

from softarm_ros.control.bound_kernels import fastest_towards
from softarm_ros.control.controller import Controller, Motion
from softarm_ros.control.tracker import Tracker
from softarm_ros.rigs.loader import list_rigs, load_rig
from softarm_ros.runtime.assembly import build_pretension, build_tracker

NAMES = [info.name for info in list_rigs()]
PERIODS, NEW_GOAL, NEW_VELOCITY = 250, 0.02, 0.05
FIRST_ORDER = 1e-3  # relative tolerance for rounding in the solvers


class Restless(Controller):
    """Returns a new configuration velocity every now and then, and ignores the limits."""

    def __init__(self, rng, scale):
        self._rng, self._scale, self._asked = rng, scale, np.zeros(len(scale))

    def velocity(self, state, reference, bounds, period_s):
        if self._rng.random() < NEW_VELOCITY:
            self._asked = self._scale * self._rng.normal(size=len(self._scale))
        return Motion(self._asked, state.jacobian @ self._asked, False)


def commands_of(tracker, goals, rng, period):
    """Return the commands (n, m) while the goal jumps from tip to tip."""
    goal, commands = tracker.tip(), [tracker.actuation]
    for _ in range(PERIODS):
        if rng.random() < NEW_GOAL:
            goal = goals[rng.integers(len(goals))]
        commands.append(tracker.step(np.zeros(3), goal - tracker.tip(), period).actuation)
    return np.array(commands)


def largest_shares(commands, limits, period):
    """Return the largest speed and acceleration, as shares of the limits, from rest on."""
    rate = np.diff(commands, axis=0, prepend=commands[:1]) / period
    change = np.diff(rate, axis=0) / period
    return (
        np.max(np.abs(rate) / limits.max_speed),
        np.max(np.abs(change) / limits.max_acceleration),
    )


@pytest.mark.parametrize('name', NAMES)
def test_jumping_goal_exceeds_no_actuator_limit(name):
    rig, rng = load_rig(name), np.random.default_rng(0)
    model, limits, period = rig.model(), rig.actuator_limits(), 1.0 / rig.tracker.rate_hz
    goals = model.tips_of(rig.sample_configurations(rng, 20))
    commands = commands_of(build_tracker(rig, model), goals, rng, period)
    for command in commands:
        limits.check(command)
    speed, acceleration = largest_shares(commands, limits, period)
    assert speed <= 1.0 + FIRST_ORDER
    assert 0.5 < acceleration <= 1.0 + FIRST_ORDER  # the limit was active


@pytest.mark.parametrize('name', [n for n in NAMES if n != 'pam_arm'])
def test_controller_that_ignores_limits_is_held_within_them(name):
    """Range and speed always; at several limits at once they take precedence."""
    rig, rng = load_rig(name), np.random.default_rng(1)
    model, limits, period = rig.model(), rig.actuator_limits(), 1.0 / rig.tracker.rate_hz
    restless = Restless(rng, np.asarray(model.configuration_scale))
    tracker = Tracker(model, restless, limits, rig.configuration_limits(), build_pretension(rig))
    commands = commands_of(tracker, [tracker.tip()], rng, period)
    for command in commands:
        limits.check(command)
    rate = np.diff(commands, axis=0) / period
    assert 0.9 < np.max(np.abs(rate) / limits.max_speed) <= 1.0 + FIRST_ORDER
    change = np.max(np.abs(np.diff(rate, axis=0)) / period / limits.max_acceleration, axis=1)
    assert 0.9 < np.quantile(change, 0.99) <= 1.0 + FIRST_ORDER


@pytest.mark.parametrize('speed', [0.3, 1.0, 2.5, 7.1])
def test_braking_in_whole_periods_stops_exactly_at_the_end_of_the_room(speed):
    """The continuous law, v^2 = 2 a x, overshoots by up to half a period of motion."""
    period, brake = 0.1, 10.0  # brakes by 1 m/s per period
    place, here = 0.0, speed
    n = int(np.ceil(speed / (brake * period)))
    room = n * speed * period - 0.5 * brake * period**2 * n * (n - 1)
    for _ in range(n + 2):
        before = here
        here = min(here, fastest_towards(room - place, brake, period))
        assert before - here <= brake * period * (1.0 + 1e-9)
        place += here * period
    assert place == pytest.approx(room, abs=1e-9)
