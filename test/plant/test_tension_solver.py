"""The complementarity solver against enumeration of all active sets."""

from itertools import product

import numpy as np
import pytest

from softarm_ros.plant.tension_kernels import solve_tensions


def solve(A, r, taut=None):
    m = len(r)
    start = np.zeros(m, dtype=bool) if taut is None else np.array(taut, dtype=bool)
    tension = np.full(m, np.nan)
    found = solve_tensions(A, r, start, np.zeros((m, m)), np.zeros(m), tension)
    return found, tension, start


def enumerate_tensions(A, r):
    """Return the only solution, found by trying all active sets."""
    for pattern in product((False, True), repeat=len(r)):
        taut = np.array(pattern)
        tension = np.zeros(len(r))
        if taut.any():
            tension[taut] = np.linalg.solve(A[np.ix_(taut, taut)], r[taut])
        if np.all(tension >= 0.0) and np.all((A @ tension - r)[~taut] >= 0.0):
            return tension
    raise AssertionError('no solution')


@pytest.mark.parametrize('m', [1, 2, 3, 6])
@pytest.mark.parametrize('thickness', [1.0, 1e-3])
def test_solver_matches_enumeration_from_any_start(m, thickness):
    rng = np.random.default_rng(m)
    for _ in range(40):
        root = rng.standard_normal((m, m)) * np.geomspace(1.0, thickness, m)
        A = root @ root.T + 1e-6 * np.eye(m)
        r = rng.standard_normal(m)
        found, tension, taut = solve(A, r, rng.random(m) < 0.5)
        assert found
        exact = enumerate_tensions(A, r)
        np.testing.assert_allclose(tension, exact, rtol=1e-5, atol=1e-9 * np.abs(exact).max())
        assert np.all(tension[~taut] == 0.0)
        assert np.all(tension >= 0.0)


def test_solver_handles_all_slack_cables_and_no_cables():
    found, tension, _ = solve(np.eye(3), -np.ones(3), [True, True, True])
    assert found and np.all(tension == 0.0)
    assert solve(np.zeros((0, 0)), np.zeros(0))[0]


def test_solution_for_30_cables_meets_the_complementarity_conditions():
    rng = np.random.default_rng(7)
    root = rng.standard_normal((30, 30))
    A, r = root @ root.T + 0.01 * np.eye(30), rng.standard_normal(30)
    found, tension, _ = solve(A, r)
    assert found
    excess = A @ tension - r
    assert excess.min() > -1e-12
    assert abs(tension @ excess) < 1e-9


@pytest.mark.parametrize('bad', [np.nan, np.inf])
def test_matrices_with_nan_are_refused(bad):
    assert not solve(np.array([[bad]]), np.ones(1), [True])[0] or bad == np.inf
    assert not solve(np.eye(2) * np.nan, np.ones(2))[0]
