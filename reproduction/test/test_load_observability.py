"""The least standard deviation of a load, compared with estimates from many draws."""

import numpy as np
import pytest

from softarm_reproduction.load_observability import least_sds


def test_bound_equals_the_spread_of_weighted_least_squares():
    rng = np.random.default_rng(4)
    root = np.diag([2.0, 3.0, 1.0, 9.0, 7.0, 6.0]) @ (np.eye(6) + 0.3 * rng.normal(size=(6, 6)))
    changes = 1e-3 * rng.normal(size=(50_000, 6)) @ root.T
    slope = 1e-2 * rng.normal(size=(6, 3)) * [1.0, 1.0, 0.05]  # stiff along z
    along = np.array([0.0, 0.6, 0.8])
    of_weight, of_force = least_sds(changes, slope, along)
    whiten = np.linalg.inv(np.linalg.cholesky(np.cov(changes.T)))
    weights = np.linalg.lstsq(whiten @ slope @ along[:, None], whiten @ changes.T, rcond=None)[0]
    forces = np.linalg.lstsq(whiten @ slope, whiten @ changes.T, rcond=None)[0]
    assert of_weight == pytest.approx(weights.std(), rel=0.02)
    assert of_force == pytest.approx((along @ forces).std(), rel=0.02)
    assert of_force > 5.0 * of_weight
