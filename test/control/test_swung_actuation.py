"""Actuation filtered by a mass on a spring, against an integrated equation of motion."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from softarm_ros.control.estimation.swung_actuation import SwungActuation
from softarm_ros.control.estimation.tip_weight import step_answer

DAMPINGS = np.array([0.05, 0.3, 0.9])


def test_swung_actuation_matches_an_oscillator_with_input_held_between_samples():
    rng = np.random.default_rng(0)
    stamps = np.cumsum(rng.uniform(0.005, 0.2, 30))
    held, w = rng.standard_normal((30, 2)), rng.uniform(2.0, 12.0, 30)
    swung = SwungActuation(DAMPINGS)
    found = []
    for stamp, actuation, natural in zip(stamps, held, w):
        swung.take(stamp, actuation, natural)
        found.append(swung.value.copy())
    state = np.stack([np.repeat(held[:1], 3, axis=0), np.zeros((3, 2))])
    for k in range(1, 30):

        def motion(t, y, k=k):
            x, v = y.reshape(2, 3, 2)
            pull = w[k] ** 2 * (held[k - 1] - x) - 2.0 * DAMPINGS[:, None] * w[k] * v
            return np.concatenate([v, pull]).ravel()

        run = solve_ivp(motion, stamps[k - 1 : k + 1], state.ravel(), rtol=1e-10, atol=1e-12)
        state = run.y[:, -1].reshape(2, 3, 2)
        np.testing.assert_allclose(found[k], state[0], atol=1e-7)


@pytest.mark.parametrize('period', [0.003, 0.05, 0.4])
def test_step_response_does_not_depend_on_the_sample_period(period):
    swung = SwungActuation(DAMPINGS)
    swung.take(-period, np.zeros(1), 5.0)
    for now in np.arange(0.0, 2.0 + 0.5 * period, period):
        swung.take(now, np.ones(1), 5.0)
        expected = step_answer(np.full(3, 5.0 * now), DAMPINGS)
        np.testing.assert_allclose(swung.value[:, 0], expected, atol=1e-9)


def test_swung_actuation_starts_at_rest_and_follows_fast_swings_at_once():
    swung = SwungActuation(DAMPINGS)
    swung.take(0.0, np.array([2.0, -1.0]), 5.0)
    swung.take(1.0, np.array([2.0, -1.0]), 5.0)
    np.testing.assert_array_equal(swung.value, np.repeat([[2.0, -1.0]], 3, axis=0))
    swung.take(1.0, np.array([5.0, 0.0]), np.inf)  # same time: nothing has moved yet
    np.testing.assert_array_equal(swung.value, np.repeat([[2.0, -1.0]], 3, axis=0))
    swung.take(1.1, np.array([5.0, 0.0]), np.inf)
    np.testing.assert_allclose(swung.value[1:], np.repeat([[5.0, 0.0]], 2, axis=0), atol=1e-10)
    swung.reset()
    swung.take(0.0, np.array([7.0]), 5.0)
    np.testing.assert_array_equal(swung.value, 7.0 * np.ones((3, 1)))
