import numpy as np
import pytest

from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.control.controller import AnswerError, Controller, Motion
from softarm_ros.control.controllers.resolved_rate import ResolvedRate, ResolvedRateConfig
from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.control.tracker import Tracker
from softarm_ros.models.config import CableConfig, SectionConfig
from softarm_ros.models.factory import build_model

PERIOD = 0.01
SECTIONS = [
    SectionConfig(
        name=name,
        length_m=0.093,
        endcap_length_m=0.015,
        cable_radius_m=0.0125,
        bending_stiffness_N_m2=2.0e-3,
        cutting_in_stiffness_N_m2=3.1e4,
    )
    for name in ('base', 'tip')
]
CABLES = [
    CableConfig(name=f'{s}_{i}', section=s, angle_deg=120.0 * i)
    for s in ('base', 'tip')
    for i in range(3)
]
MAX_BENDING = np.deg2rad([130.0, 130.0])


def limits(speed=0.02, acceleration=0.5, low=-0.045, high=0.055):
    n = len(CABLES)
    return ActuatorLimits(
        tuple(c.name for c in CABLES),
        'm',
        np.full(n, low),
        np.full(n, high),
        np.full(n, speed),
        np.full(n, acceleration),
    )


def make(model='cable_statics', bounds=None, max_bending=MAX_BENDING, **gains):
    config = ResolvedRateConfig(
        **{
            'feedback_gain_1_s': 3.0,
            'damping': 1e-4,
            'max_correction_speed_m_s': 0.05,
            **gains,
        }
    )
    arm = build_model(model, SECTIONS, CABLES)
    tracker = Tracker(
        arm,
        ResolvedRate(config, arm),
        bounds or limits(),
        ConfigurationLimits.of_bending(max_bending),
    )
    tracker.reset(np.array([0.8, 0.1, 0.5, -0.2]))
    return tracker


@pytest.mark.parametrize('model', ['constant_curvature', 'cable_statics'])
@pytest.mark.parametrize('straightening', [0.0, 0.5])
def test_resolved_rate_without_active_limits_matches_the_papers_formula(model, straightening):
    tracker = make(
        model, limits(speed=10.0, acceleration=1e4), straightening_gain_1_s=straightening
    )
    q = tracker.configuration.copy()
    v, e = np.array([0.01, -0.02, 0.005]), np.array([1e-3, 2e-3, -1e-3])
    _, J = tracker.model.tip_and_jacobian(q)
    eps = 1e-4 * tracker.model.rest_length_m**2
    pinv = J.T @ np.linalg.inv(J @ J.T + eps * np.eye(3))
    bends = q.reshape(2, 2)
    w = straightening * (bends.mean(axis=0) - bends).ravel()
    expected = pinv @ (v + 3.0 * e) + (np.eye(4) - pinv @ J) @ w
    step = tracker.step(v, e, PERIOD)
    np.testing.assert_allclose((step.configuration - q) / PERIOD, expected, rtol=1e-5, atol=1e-7)
    assert not step.limited


def track_circle(tracker, radius, height, seconds, lap_s=8.0):
    """Track a circle with the model as the arm; return tip errors, actuations and bends."""
    errors, actuations, bends = [], [tracker.actuation.copy()], []
    for k in range(int(seconds / PERIOD)):
        a = 2 * np.pi * k * PERIOD / lap_s
        p = np.array([radius * np.cos(a), radius * np.sin(a), height])
        v = radius * 2 * np.pi / lap_s * np.array([-np.sin(a), np.cos(a), 0.0])
        error = p - tracker.tip()
        step = tracker.step(v, error, PERIOD)
        errors.append(np.linalg.norm(error))
        actuations.append(step.actuation)
        bends.append(np.linalg.norm(step.configuration.reshape(-1, 2), axis=1))
    return np.array(errors), np.array(actuations), np.array(bends)


def test_tracker_follows_its_own_model_within_0_2_mm():
    errors, _, _ = track_circle(make(feedback_gain_1_s=5.0), 0.10, 0.20, 24.0, lap_s=24.0)
    assert errors[-800:].max() < 2e-4


@pytest.mark.parametrize('speed', [0.002, 0.01])
def test_speed_limits_hold_in_every_period(speed):
    bounds = limits(speed=speed, acceleration=0.1)
    tracker = make(bounds=bounds, max_correction_speed_m_s=1.0)
    _, actuations, _ = track_circle(tracker, 0.13, 0.19, 10.0, lap_s=3.0)
    rates = np.diff(actuations, axis=0) / PERIOD
    assert np.abs(rates).max() <= speed * (1 + 1e-6)
    assert np.abs(rates).max() > 0.9 * speed  # the limit was active


def test_range_limits_hold_while_actuators_keep_moving():
    bounds = limits(low=-0.012, high=0.012)
    tracker = make(bounds=bounds)
    tracker.reset(np.array([0.4, 0.0, 0.4, 0.0]))
    errors, actuations, _ = track_circle(tracker, 0.13, 0.19, 16.0)
    assert actuations.max() <= 0.012 + 1e-9
    assert actuations.min() >= -0.012 - 1e-9
    assert np.ptp(actuations[-800:], axis=0).max() > 0.01
    assert np.all(np.isfinite(errors))


def test_bending_limits_hold():
    tracker = make(max_bending=np.deg2rad([60.0, 60.0]))
    tracker.reset(np.array([0.4, 0.0, 0.4, 0.0]))
    _, _, bends = track_circle(tracker, 0.16, 0.10, 16.0)
    assert bends.max() <= np.deg2rad(60.0) + 1e-9


def test_tip_slides_along_the_bending_limit_during_a_full_turn():
    limit = np.deg2rad(60.0)
    tracker = make(max_bending=np.array([limit, limit]))
    tracker.reset(np.array([limit, 0.0, limit, 0.0]))
    height = tracker.tip()[2]
    for azimuth in np.linspace(0.0, 2.0 * np.pi, 3000):
        # A wider circle than the limit admits: the tip has to go round next to the target.
        goal = np.array([0.2 * np.cos(azimuth), 0.2 * np.sin(azimuth), height])
        step = tracker.step(np.zeros(3), goal - tracker.tip(), PERIOD)
        theta = np.linalg.norm(step.configuration.reshape(2, 2), axis=1)
        assert theta.max() <= limit + 1e-9
        x, y, _ = tracker.tip()
        behind = np.angle(np.exp(1j * (azimuth - np.arctan2(y, x))))
        assert abs(behind) < np.deg2rad(15.0)


def test_unreachable_target_is_approached_without_jumps_or_integral_windup():
    tracker = make(integral_gain_1_s2=1.0)
    target = np.array([0.30, 0.0, 0.20])
    distances, previous = [], tracker.configuration.copy()
    for _ in range(3000):
        step = tracker.step(np.zeros(3), target - tracker.tip(), PERIOD)
        assert np.linalg.norm(step.configuration - previous) < 0.05
        previous = step.configuration
        distances.append(np.linalg.norm(target - tracker.tip()))
    assert distances[-1] < distances[0]
    assert np.std(distances[-500:]) < 1e-4  # it came to rest
    # A reachable target is then tracked at once: the integral has not wound up.
    goal = np.array([0.10, 0.0, 0.20])
    for _ in range(800):
        tracker.step(np.zeros(3), goal - tracker.tip(), PERIOD)
    assert np.linalg.norm(goal - tracker.tip()) < 1e-3


def test_tracker_passes_through_the_straight_pose_without_a_jump():
    tracker = make()
    tracker.reset(np.array([0.3, 0.0, 0.3, 0.0]))
    for k in range(1500):
        x = tracker.tip()[0]
        goal = np.array([0.06 - 0.12 * min(k / 1000, 1.0), 0.0, tracker.tip()[2]])
        tracker.step(np.zeros(3), goal - tracker.tip(), PERIOD)
        assert abs(tracker.tip()[0] - x) < 1e-3
    assert tracker.tip()[0] == pytest.approx(-0.06, abs=1e-3)


def test_halt_clears_the_velocity_but_keeps_the_command():
    tracker = make()
    track_circle(tracker, 0.1, 0.2, 0.5)
    before = tracker.configuration.copy()
    tracker.halt()
    step = tracker.step(np.zeros(3), np.zeros(3), PERIOD)
    np.testing.assert_allclose(step.configuration, before, atol=1e-4)


class Writing(Controller):
    """Asks for a velocity far beyond the limits, after it has changed one array it was given."""

    def __init__(self, place, name):
        self.place, self.name = place, name

    def velocity(self, state, reference, bounds, period_s):
        array = getattr(
            {'command': state.command, 'state': state}.get(self.place, bounds), self.name
        )
        array[...] = 1e3 if self.name == 'high' else -1e3
        return Motion(np.full(len(state.scale), 50.0), np.ones(3), bounded=False)


@pytest.mark.parametrize(
    ('place', 'name', 'said'),
    [
        ('bounds', 'rows', 'bounds.rows'),
        ('bounds', 'low', 'bounds.low'),
        ('bounds', 'high', 'bounds.high'),
        ('state', 'jacobian', 'state.jacobian'),
        ('command', 'actuation', 'state.command.actuation'),
        ('command', 'configuration', 'state.command.configuration'),
    ],
)
def test_a_controller_that_changes_its_arguments_is_named_and_moves_nothing(place, name, said):
    tracker = make()
    before = tracker.configuration.copy(), tracker.actuation.copy()
    tracker.controller = Writing(place, name)
    with pytest.raises(AnswerError, match=f'controller Writing changed {said}, an array'):
        tracker.step(np.zeros(3), np.zeros(3), PERIOD)
    np.testing.assert_array_equal(tracker.configuration, before[0])
    np.testing.assert_array_equal(tracker.actuation, before[1])


def test_a_motion_that_does_not_say_whether_it_is_bounded_is_refused():
    tracker = make()
    tracker.controller.velocity = lambda *given: Motion(np.zeros(4), np.zeros(3), bounded='no')
    with pytest.raises(
        AnswerError, match=r"returned bounded 'no' \(str\); expected true or false"
    ):
        tracker.step(np.zeros(3), np.zeros(3), PERIOD)
