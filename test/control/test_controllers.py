"""With any controller, the tracker keeps the limits and refuses an invalid velocity."""

import numpy as np
import pytest

from softarm_ros.control.controller import Controller, Motion
from softarm_ros.control.controllers.damped_inverse import DampedInverse, DampedInverseConfig
from softarm_ros.control.tracker import Tracker
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.assembly import build_pretension

RIG = load_rig('cable_arm')
MODEL = RIG.model()
LIMITS = RIG.actuator_limits()
PERIOD = 0.01


class Fixed(Controller):
    """Returns a constant configuration velocity and ignores the bounds."""

    def __init__(self, velocity):
        self.answer = np.asarray(velocity, dtype=float)
        self.outcomes = []

    def velocity(self, state, reference, bounds, period_s):
        return Motion(self.answer, state.jacobian @ self.answer, False)

    def on_outcome(self, outcome):
        self.outcomes.append(outcome)


def tracker_of(controller):
    return Tracker(MODEL, controller, LIMITS, RIG.configuration_limits(), build_pretension(RIG))


@pytest.mark.parametrize('velocity', [[40.0, 0.0, 0.0, 0.0], [-3.0, 2.0, 5.0, -1.0]])
def test_tracker_keeps_limits_with_a_controller_that_ignores_them(velocity):
    controller = Fixed(velocity)
    tracker = tracker_of(controller)
    commands = [tracker.actuation]
    for _ in range(800):
        commands.append(tracker.step(np.zeros(3), np.zeros(3), PERIOD).actuation)
        RIG.configuration_limits().check(tracker.configuration, MODEL.configuration_names)
        LIMITS.check(commands[-1])
    speed = np.abs(np.diff(np.array(commands), axis=0)) / PERIOD
    assert np.all(speed <= LIMITS.max_speed * (1.0 + 1e-6))
    assert all(outcome.limited for outcome in controller.outcomes)


@pytest.mark.parametrize('answer', [[np.nan] * 4, [0.0] * 3, [np.inf, 0.0, 0.0, 0.0]])
def test_invalid_controller_velocity_is_refused_and_moves_nothing(answer):
    controller = Fixed(np.zeros(4))
    tracker = tracker_of(controller)
    controller.answer = np.array(answer)
    controller.velocity = lambda *_: Motion(controller.answer, np.zeros(3), False)
    before = tracker.configuration.copy()
    with pytest.raises(
        ValueError, match=r'controller Fixed returned .* expected 4 finite numbers'
    ):
        tracker.step(np.zeros(3), np.zeros(3), PERIOD)
    np.testing.assert_array_equal(tracker.configuration, before)


def test_damped_inverse_without_active_bounds_matches_its_formula():
    config = DampedInverseConfig(feedback_gain_1_s=3.0, damping=1e-4, max_correction_speed_m_s=1.0)
    tracker = tracker_of(DampedInverse(config, MODEL))
    tracker.reset(np.array([0.8, 0.1, 0.5, -0.2]))
    q = tracker.configuration.copy()
    _, J = MODEL.tip_and_jacobian(q)
    v, e = np.array([1e-4, -2e-4, 5e-5]), np.array([1e-5, 2e-5, -1e-5])
    eps = 1e-4 * MODEL.rest_length_m**2
    scale = MODEL.configuration_scale
    Js = J * scale
    expected = scale * (Js.T @ np.linalg.inv(Js @ Js.T + eps * np.eye(3)) @ (v + 3.0 * e))
    step = tracker.step(v, e, PERIOD)
    np.testing.assert_allclose((step.configuration - q) / PERIOD, expected, rtol=1e-6, atol=1e-9)
    assert not step.limited


def test_damped_inverse_reaches_a_target_within_speed_and_acceleration_limits():
    config = DampedInverseConfig(
        feedback_gain_1_s=3.0, damping=1e-4, max_correction_speed_m_s=0.06
    )
    tracker = tracker_of(DampedInverse(config, MODEL))
    tracker.reset(np.array([0.3, 0.0, 0.3, 0.0]))
    goal, commands = np.array([0.03, 0.08, 0.21]), [tracker.actuation]
    for _ in range(1500):
        commands.append(tracker.step(np.zeros(3), goal - tracker.tip(), PERIOD).actuation)
    assert np.linalg.norm(goal - tracker.tip()) < 1e-4
    speed = np.diff(np.array(commands), axis=0) / PERIOD
    assert np.abs(speed).max() <= LIMITS.max_speed[0] * (1.0 + 1e-6)
    acceleration = np.abs(np.diff(speed, axis=0)) / PERIOD
    assert acceleration.max() <= LIMITS.max_acceleration[0] * 1.001
