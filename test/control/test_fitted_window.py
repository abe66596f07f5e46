"""Fitted window, which reuses its last fit, against a fit of all states at once."""

import numpy as np
import pytest
from test_estimation_kernels import OPEN, chain, places, process

from softarm_ros.control.estimation.deviation import DeviationModel
from softarm_ros.control.estimation.fitted_window import Arrived, Begin, FittedWindow
from softarm_ros.control.estimation.measurements import Measured

N, PERIOD, MEMORY = 12, 0.01, 0.3
SECTIONS, FRACTIONS = np.array([0, 1]), np.array([0.6, 1.0])
OFFSETS = np.tile(np.eye(4), (2, 1, 1))


class Case:
    """Seven exposures of two places on two sections; `size` scales deviations and noise."""

    def __init__(self, size, seed=8, steps=7):
        rng = np.random.default_rng(seed)
        self.size, self.steps = size, steps
        self.commanded = chain(rng, sections=2)
        self.density = size**2 * np.diag(rng.uniform(0.5, 2.0, N))
        self.P0 = size**2 * np.diag(rng.uniform(0.5, 2.0, 2 * N))
        self.R = size**2 * np.diag(rng.uniform(0.5, 2.0, 6))
        self.foreseen, self.H = places(self.commanded, SECTIONS, FRACTIONS, OFFSETS)
        self.sizes = np.tile([3, 6], (steps, 1))
        self.sizes[2] = [0, 6]  # the first place is hidden
        self.measured = []
        for step in range(steps):
            poses = self.foreseen.copy()
            poses[:, :3, 3] += size * rng.normal(size=(2, 3))
            self.measured.append(
                Measured(
                    PERIOD * step, ('low', 'tip'), SECTIONS, FRACTIONS, OFFSETS, poses,
                    np.tile(self.R, (2, 1, 1)), self.sizes[step],
                )
            )  # fmt: skip

    def window(self, iterations, tolerance):
        deviation = DeviationModel(
            np.arange(N), np.ones(N), (0, 1), np.ones(N), self.density, np.zeros(N), np.ones(1),
            MEMORY,
        )  # fmt: skip
        return FittedWindow(deviation, OPEN, iterations, tolerance)

    def fitted(self, window, held):
        """Return the fit of the exposures `held`; the window may have fitted some before."""
        of_window = [self.measured[k] for k in held]
        new = window.newcomers(of_window)
        arrived = [
            Arrived(one, self.commanded, np.zeros(N)) for one in of_window[len(of_window) - new :]
        ]
        begin = Begin(0, 0.0, np.zeros(2 * N), self.P0)
        return window.fit(begin, arrived, 0.5 * MEMORY * self.density)

    def least_squares(self):
        """Return all states (steps, 2 n) and the covariance of the last, linearised at rest."""
        F, Q = process(self.density, MEMORY, PERIOD)
        size = 2 * N * self.steps
        information, right = np.zeros((size, size)), np.zeros(size)
        for step in range(self.steps):
            D = np.zeros((2 * N, size))
            D[:, 2 * N * step : 2 * N * (step + 1)] = np.eye(2 * N)
            if step:
                D[:, 2 * N * (step - 1) : 2 * N * step] = -F
            information += D.T @ np.linalg.solve(Q if step else self.P0, D)
            for block, m in enumerate(self.sizes[step]):
                C = np.zeros((m, size))
                C[:, 2 * N * step : 2 * N * step + N] = self.H[block, :m]
                moved = np.zeros(6)
                moved[:3] = (self.measured[step].poses[block] - self.foreseen[block])[:3, 3]
                information += C.T @ np.linalg.solve(self.R[:m, :m], C)
                right += C.T @ np.linalg.solve(self.R[:m, :m], moved[:m])
        states = np.linalg.solve(information, right).reshape(self.steps, 2 * N)
        return states, np.linalg.inv(information)[-2 * N :, -2 * N :]


LINEAR = 1e-7  # so small that the chain is linear


@pytest.mark.parametrize('ends', [[7], [1, 2, 3, 4, 5, 6, 7], [3, 4, 7]])
def test_window_matches_batch_least_squares_for_any_grouping_of_measurements(ends):
    case = Case(LINEAR)
    window = case.window(2, np.inf)
    for end in ends:
        x, P = case.fitted(window, range(end))
        assert window.updates == end - max([0, *(one for one in ends if one < end)])
    states, covariance = case.least_squares()
    rows = [(window._first + k) % len(window._rows.smoothed) for k in range(7)]
    np.testing.assert_allclose(window._rows.smoothed[rows], states[:, :N], atol=1e-4 * LINEAR)
    np.testing.assert_allclose(x, states[-1], atol=1e-3 * LINEAR)
    np.testing.assert_allclose(P, covariance, rtol=1e-4, atol=1e-4 * LINEAR**2)


def test_measurements_that_left_the_window_still_count():
    case = Case(LINEAR)
    window = case.window(2, np.inf)
    for end in range(1, 8):
        x, P = case.fitted(window, range(max(end - 3, 0), end))
    states, covariance = case.least_squares()
    np.testing.assert_allclose(x, states[-1], atol=1e-3 * LINEAR)
    np.testing.assert_allclose(P, covariance, rtol=1e-4, atol=1e-4 * LINEAR**2)


def test_incremental_nonlinear_fit_converges_to_the_fit_of_all_at_once():
    case = Case(0.02)
    at_once, bit_by_bit = case.window(10, 1e-13), case.window(10, 1e-13)
    expected = case.fitted(at_once, range(7))
    for end in range(1, 8):
        found = case.fitted(bit_by_bit, range(end))
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-10)
    linear = case.fitted(case.window(1, np.inf), range(7))
    assert np.abs(linear[0] - expected[0]).max() > 1e-6  # the case is not linear


def test_old_measurements_are_refitted_only_if_the_fit_moved_beyond_tolerance():
    case = Case(0.02)
    strict, loose = case.window(2, 1e-13), case.window(2, 0.05)
    for window in (strict, loose):
        case.fitted(window, range(6))
        case.fitted(window, range(7))
    assert strict.updates == 1 + 7
    assert loose.updates == 1


def test_late_measurement_or_new_begin_triggers_a_full_refit():
    case = Case(LINEAR)
    window = case.window(1, np.inf)
    case.fitted(window, [0, 1, 3])
    case.fitted(window, [0, 1, 2, 3])  # one arrives late
    assert window.updates == 4
    window.forget()
    case.fitted(window, [1, 2, 3])
    assert window.updates == 3
