"""A Jacobian that learns: an arm that moves otherwise than its model says is followed, too."""

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
TURN = np.kron(np.eye(2), np.array([[0.8, -0.6], [0.6, 0.8]]))  # of every bend, by 37 degrees
CONTROLLERS = {
    'resolved': lambda: ResolvedRate(ResolvedRateConfig(**FIELDS), MODEL),
    'adaptive': lambda: AdaptiveRate(AdaptiveRateConfig(**FIELDS), MODEL),
}


def driven(controller, response, seconds=9.0, speed=SPEED, noise_m=0.0, every=1):
    """
    Lead an arm around, whose bends change by `response` (4, 4) of what the command's do.

    Returns errors (n, 3) and configurations (n, dof). Only each `every`-th cycle has a new pose.
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
def test_it_takes_up_what_the_model_does_not_know(response):
    lag = {name: driven(make(), response)[0][-200:] for name, make in CONTROLLERS.items()}
    mean = {name: np.linalg.norm(e, axis=1).mean() for name, e in lag.items()}
    # The steady error of proportional feedback is the velocity that is missing over its gain.
    missing = SPEED * abs(1.0 / response[0, 0] - 1.0) / GAIN
    assert mean['resolved'] > 0.7 * missing
    assert mean['adaptive'] < 0.3 * mean['resolved']


def test_a_pose_every_fifth_cycle_teaches_as_much():
    each, _ = driven(CONTROLLERS['adaptive'](), 0.5 * np.eye(4))
    fifth, _ = driven(CONTROLLERS['adaptive'](), 0.5 * np.eye(4), every=5)
    last = [np.linalg.norm(e[-200:], axis=1).mean() for e in (each, fifth)]
    assert last[1] < 3.0 * last[0] + 2e-4


def test_of_an_arm_that_is_its_model_nothing_is_learned():
    (errors, commands), (_, known) = (driven(make(), np.eye(4)) for make in CONTROLLERS.values())
    assert np.linalg.norm(errors, axis=1).max() < 1e-4
    np.testing.assert_allclose(commands, known, atol=2e-3)


def test_noise_at_rest_teaches_little_and_moves_no_more_than_without():
    spread = {}
    for name, make in CONTROLLERS.items():
        controller = make()
        errors, _ = driven(controller, np.eye(4), 10.0, speed=0.0, noise_m=2e-4)
        spread[name] = np.linalg.norm(errors[500:], axis=1).max()
    assert np.linalg.norm(controller._change, 2) < 0.3  # of the adaptive one, the last
    assert spread['adaptive'] < 2.0 * spread['resolved']


def test_what_is_learned_is_bounded_and_forgotten_at_a_reset():
    controller = AdaptiveRate(AdaptiveRateConfig(**FIELDS, max_change=0.3), MODEL)
    driven(controller, 0.2 * np.eye(4))
    assert np.linalg.norm(controller._change, 2) == pytest.approx(0.3)
    controller.reset()
    assert not np.any(controller._change)


def test_a_loop_that_would_learn_from_its_own_lag_is_refused():
    with pytest.raises(ValidationError, match=r'learning_time_s is 0.5, below 3 times filter_ti'):
        AdaptiveRateConfig(**FIELDS, learning_time_s=0.5)


def test_it_drives_the_simulated_arm_closer_than_without():
    from softarm_ros.runtime.direct import run_direct

    mean = {}
    for kind in ('resolved_rate', 'adaptive_rate'):
        rig = load_rig('cable_arm', [f'controller.kind={kind}'])
        record = run_direct(rig, 'line_small', laps=1, seed=0)
        assert record.completed
        mean[kind] = record.error().mean
    assert mean['adaptive_rate'] < 0.85 * mean['resolved_rate']
