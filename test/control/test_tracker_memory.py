"""Tracker with a memory of hysteresis: its tip, compensation and limits."""

import numpy as np
import pytest

from softarm_ros.control.tracker import Tracker
from softarm_ros.models.hysteresis import Hysteresis
from softarm_ros.models.memory import ArmMemory
from softarm_ros.models.residual import Residual
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.assembly import build_tracker

RIG = load_rig('pneumatic_arm')
PERIOD = 1.0 / RIG.tracker.rate_hz


def hysteresis(rig, lag=0.1):
    limits = rig.actuator_limits()
    low, high = limits.position_min, limits.position_max
    rows = np.tile(np.array([0.1, 0.15, lag])[:, None], (1, len(low)))
    return Hysteresis((0.02, 0.1), 0.8, rows, 0.5 * (high + low), 0.5 * (high - low))


def residual(rig):
    """Return a residual by the play of each actuator, a few millimetres large."""
    limits, rng = rig.actuator_limits(), np.random.default_rng(5)
    low, high = limits.position_min, limits.position_max
    count, tips = len(low), len(rig.section_names)
    weights = np.vstack([np.zeros(6 * tips), rng.normal(0.0, 0.02, (count, 6 * tips))])
    return Residual(
        ('play 0.1',), tips, (0,) * count, 0.5 * (high + low), 0.5 * (high - low),
        np.zeros(count), np.ones(count), weights, 1e-9 * np.eye(count + 1),
        np.full(6 * tips, 1e-3), 1.0, 0.5,
    )  # fmt: skip


def tracker_of(rig, memory):
    plain = build_tracker(rig, rig.model())
    return Tracker(
        plain.model, plain.controller, plain.limits, plain.configuration_limits,
        plain.pretension, memory,
    )  # fmt: skip


def there_and_back(tracker, seconds=8.0):
    """Swing the tip, fed back by the tracker's own tip; return commands, goals and tips."""
    start = RIG.model().rest_configuration + 0.25 * RIG.model().configuration_scale
    tracker.reset(RIG.configuration_limits().clipped(start))
    begin = tracker.tip()
    commands, goals, tips = [tracker.actuation], [begin], [begin]
    for k in range(int(seconds / PERIOD)):
        phase = 2.0 * np.pi * (k + 1) * PERIOD / 4.0
        goal = begin + np.array([0.012 * np.sin(phase), 0.006 * (1.0 - np.cos(phase)), 0.0])
        speed = 2.0 * np.pi / 4.0 * np.array([0.012 * np.cos(phase), 0.006 * np.sin(phase), 0.0])
        step = tracker.step(speed, goal - tracker.tip(), PERIOD)
        commands.append(step.actuation)
        goals.append(goal)
        tips.append(tracker.tip())
    return np.array(commands), np.array(goals), np.array(tips)


def real_tips(rig, operator, commands):
    """Return the tips of an arm with this hysteresis, computed without the tracker."""
    time = PERIOD * np.arange(len(commands))
    # The memory begins with the motion from rest to the first command.
    states = operator.remembered(commands, time)
    done = commands - operator.lacking(states)
    model = rig.model()
    return np.array([model.forward(one).tip[:3, 3] for one in done])


def test_known_hysteresis_is_compensated():
    operator = hysteresis(RIG, lag=0.0)
    plain, goals, _ = there_and_back(tracker_of(RIG, None))
    with_memory, goals_now, believed = there_and_back(tracker_of(RIG, ArmMemory(operator)))
    real = real_tips(RIG, operator, with_memory)
    np.testing.assert_allclose(believed, real, atol=3e-4)  # first order in the hysteresis
    # Relative to where each arm began, so that motions are compared.
    missed = [
        np.linalg.norm((tips - tips[0]) - (goal - goal[0]), axis=1)[200:].mean()
        for tips, goal in ((real_tips(RIG, operator, plain), goals), (real, goals_now))
    ]
    assert missed[0] > 1e-3
    assert missed[1] < 0.25 * missed[0]


def test_tracker_tip_includes_the_current_residual():
    learned = residual(RIG)
    tracker = tracker_of(RIG, ArmMemory(None, learned))
    commands, _, tips = there_and_back(tracker, 4.0)
    features = learned.remembered(commands, PERIOD * np.arange(len(commands)))
    errors = learned.at(features)[0][-1, -1, :3]
    settled = learned.settled(commands[-1])[-1, :3]
    expected = tracker.settled.tip + errors - settled
    np.testing.assert_allclose(tips[-1], expected, atol=1e-9)
    assert np.linalg.norm(tips[-1] - tracker.settled.tip) > 1e-4


@pytest.mark.parametrize('name', ['pneumatic_arm', 'cable_arm', 'trunk'])
def test_actuator_limits_hold_with_a_memory(name):
    rig, rng = load_rig(name), np.random.default_rng(0)
    limits, period = rig.actuator_limits(), 1.0 / rig.tracker.rate_hz
    tracker = tracker_of(rig, ArmMemory(hysteresis(rig)))
    goals = rig.model().tips_of(rig.sample_configurations(rng, 5))
    commands = [tracker.actuation]
    for k in range(200):
        v = rng.normal(0.0, 0.05, 3) if k % 20 == 0 else v  # noqa: F821
        goal = goals[k // 40]
        commands.append(tracker.step(v, goal - tracker.tip(), period).actuation)
        limits.check(commands[-1])
    rate = np.diff(commands, axis=0, prepend=commands[:1]) / period
    assert np.max(np.abs(rate) / limits.max_speed) <= 1.001
    assert np.max(np.abs(np.diff(rate, axis=0)) / period / limits.max_acceleration) <= 1.001


def test_hysteresis_with_zero_weights_changes_nothing():
    operator = hysteresis(RIG)
    zero = Hysteresis(
        operator.widths, operator.lag_s, 0.0 * operator.weights, operator.middle, operator.half
    )
    plain, _, _ = there_and_back(tracker_of(RIG, None), 2.0)
    same, _, _ = there_and_back(tracker_of(RIG, ArmMemory(zero)), 2.0)
    np.testing.assert_allclose(same, plain, rtol=1e-9)
    assert RIG.memory() is None


def test_lag_continues_while_the_tracker_waits_and_reset_clears_it():
    tracker = tracker_of(RIG, ArmMemory(hysteresis(RIG, lag=0.3)))
    there_and_back(tracker, 1.0)
    late = tracker.tip()
    for _ in range(50):
        tracker.wait(0.2)
    assert np.linalg.norm(tracker.tip() - late) > 1e-4
    twice = tracker_of(RIG, ArmMemory(hysteresis(RIG, lag=0.3)))
    twice.reset(tracker.configuration)
    tracker.reset(tracker.configuration)
    np.testing.assert_array_equal(tracker.tip(), twice.tip())
