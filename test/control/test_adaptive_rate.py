"""Adaptive rate: its Jacobian learns from measured motion that differs from the model."""

import numpy as np
import pytest
from pydantic import ValidationError

from softarm_ros.control.controllers.adaptive_rate import AdaptiveRate, AdaptiveRateConfig
from softarm_ros.control.controllers.resolved_rate import ResolvedRate, ResolvedRateConfig
from softarm_ros.control.tracker import Tracker
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.assembly import build_pretension

RIG = load_rig('cable_arm')
MODEL = RIG.model()
PERIOD, SPEED, GAIN = 0.01, 0.003, 2.0
START = np.array([0.6, 0.0, 0.6, 0.0])
FIELDS = {'feedback_gain_1_s': GAIN, 'damping': 1e-4, 'max_correction_speed_m_s': 0.06}
TURN = np.kron(np.eye(2), np.array([[0.8, -0.6], [0.6, 0.8]]))  # turns every bend by 37 degrees
CONTROLLERS = {
    'resolved': lambda: ResolvedRate(ResolvedRateConfig(**FIELDS), MODEL),
    'adaptive': lambda: AdaptiveRate(AdaptiveRateConfig(**FIELDS), MODEL),
}


def driven(controller, response, seconds=9.0, speed=SPEED, noise_m=0.0, every=1):
    """
    Track a circle with an arm whose bends change by `response` (4, 4) times the command's.

    Returns errors (n, 3) and configurations (n, dof). Only every `every`-th cycle has a new pose.
    """
    limits = RIG.actuator_limits()
    tracker = Tracker(MODEL, controller, limits, RIG.configuration_limits(), build_pretension(RIG))
    tracker.reset(START)
    begin, rng = tracker.tip(), np.random.default_rng(5)
    radius = float(np.hypot(*begin[:2]))
    errors, commands, seen = [], [], np.zeros(3)
    for k in range(int(seconds / PERIOD)):
        tip = MODEL.tip_and_jacobian(START + response @ (tracker.configuration - START))[0]
        angle = speed / radius * k * PERIOD
        there = np.array([radius * np.cos(angle), radius * np.sin(angle), begin[2]])
        ahead = speed * np.array([-np.sin(angle), np.cos(angle), 0.0])
        if k % every == 0:
            seen = there - tip + rng.normal(0.0, noise_m, 3)
        tracker.step(ahead, seen, PERIOD)
        errors.append(there - tip)
        commands.append(tracker.configuration.copy())
    return np.array(errors), np.array(commands)


@pytest.mark.parametrize('response', [0.5 * np.eye(4), 1.6 * np.eye(4), TURN])
def test_adaptive_rate_cuts_the_steady_error_of_a_wrong_model_below_a_third(response):
    lag = {name: driven(make(), response)[0][-200:] for name, make in CONTROLLERS.items()}
    mean = {name: np.linalg.norm(e, axis=1).mean() for name, e in lag.items()}
    # Steady error of proportional feedback: missing velocity over gain.
    missing = SPEED * abs(1.0 / response[0, 0] - 1.0) / GAIN
    assert mean['resolved'] > 0.7 * missing
    assert mean['adaptive'] < 0.3 * mean['resolved']


def test_adaptive_rate_needs_a_new_pose_only_every_fifth_cycle():
    each, _ = driven(CONTROLLERS['adaptive'](), 0.5 * np.eye(4))
    fifth, _ = driven(CONTROLLERS['adaptive'](), 0.5 * np.eye(4), every=5)
    last = [np.linalg.norm(e[-200:], axis=1).mean() for e in (each, fifth)]
    assert last[1] < 3.0 * last[0] + 2e-4


def test_adaptive_rate_equals_resolved_rate_on_an_arm_that_matches_its_model():
    (errors, commands), (_, known) = (driven(make(), np.eye(4)) for make in CONTROLLERS.values())
    assert np.linalg.norm(errors, axis=1).max() < 1e-4
    np.testing.assert_allclose(commands, known, atol=2e-3)


def test_noise_at_rest_hardly_changes_the_jacobian_and_at_most_doubles_the_error():
    spread = {}
    for name, make in CONTROLLERS.items():
        controller = make()
        errors, _ = driven(controller, np.eye(4), 10.0, speed=0.0, noise_m=2e-4)
        spread[name] = np.linalg.norm(errors[500:], axis=1).max()
    assert np.linalg.norm(controller._change, 2) < 0.3  # of the adaptive controller, the last one
    assert spread['adaptive'] < 2.0 * spread['resolved']


def test_learned_jacobian_change_is_bounded_and_cleared_by_reset():
    controller = AdaptiveRate(AdaptiveRateConfig(**FIELDS, max_change=0.3), MODEL)
    driven(controller, 0.2 * np.eye(4))
    assert np.linalg.norm(controller._change, 2) == pytest.approx(0.3)
    controller.reset()
    assert not np.any(controller._change)


def test_learning_time_below_three_filter_times_is_refused():
    with pytest.raises(ValidationError, match=r'learning_time_s is 0.5, below 3 times filter_ti'):
        AdaptiveRateConfig(**FIELDS, learning_time_s=0.5)


def test_adaptive_rate_tracks_the_simulated_arm_closer_than_resolved_rate():
    from softarm_ros.runtime.direct import run_direct

    mean = {}
    for kind in ('resolved_rate', 'adaptive_rate'):
        rig = load_rig('cable_arm', [f'controller.kind={kind}'])
        record = run_direct(rig, 'line_small', laps=1, seed=0)
        assert record.completed
        mean[kind] = record.error().mean
    assert mean['adaptive_rate'] < 0.85 * mean['resolved_rate']
