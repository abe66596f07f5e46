"""Triangulation of projected points; covariance against the scatter of many noisy pairs."""

import numpy as np
import pytest
from stereo_cases import RATIONAL, a_pair, points_around

from softarm_ros.perception.stereo.triangulation import triangulate
from softarm_ros.perception.stereo.window import FlatWindow

WINDOW = FlatWindow(np.array([0.0, 0.0, 1.0]), 0.06, 0.01)


@pytest.mark.parametrize('window', [None, WINDOW])
@pytest.mark.parametrize('lens', [(0.0, 0.0, 0.0, 0.0), RATIONAL])
def test_triangulation_recovers_projected_points(lens, window):
    pair, points = a_pair(lens, window), points_around(5)
    found = triangulate(pair, pair.project('left', points), pair.project('right', points))
    assert np.abs(found.points - points).max() < 1e-9
    assert found.misfit.max() < 1e-10


@pytest.mark.parametrize('window', [None, WINDOW])
def test_covariance_and_misfit_match_the_scatter_of_noisy_points(window):
    sd, count = 0.3, 4000
    pair, point = a_pair(window=window), np.array([[0.05, -0.03, 0.62]])
    rng = np.random.default_rng(11)
    left = pair.project('left', point) + rng.normal(0.0, sd, (count, 2))
    right = pair.project('right', point) + rng.normal(0.0, sd, (count, 2))
    noise = np.broadcast_to(sd**2 * np.eye(2), (count, 2, 2))
    found = triangulate(pair, left, right, noise, noise)
    miss = found.points - point
    measured = miss.T @ miss / count
    claimed = found.covariances.mean(axis=0)
    # 4000 samples: standard error of a variance is 2.2 %.
    assert np.abs(np.linalg.eigvals(np.linalg.solve(claimed, measured)) - 1.0).max() < 0.09
    nees = np.einsum('ni,nij,nj->n', miss, np.linalg.inv(found.covariances), miss)
    assert nees.mean() == pytest.approx(3.0, abs=4.0 * np.sqrt(6.0 / count))
    assert found.misfit.mean() == pytest.approx(1.0, abs=4.0 * np.sqrt(2.0 / count))


def test_pixels_of_different_points_have_a_large_misfit():
    pair = a_pair()
    points = np.array([[0.0, 0.0, 0.6], [0.0, 0.02, 0.6]])
    found = triangulate(pair, pair.project('left', points), pair.project('right', points[::-1]))
    assert found.misfit.min() > 20.0**2


def test_diverging_rays_give_no_point():
    pair = a_pair()
    found = triangulate(pair, [[100.0, 480.0]], [[1250.0, 480.0]])
    assert np.isnan(found.points).all()


def test_swapped_pair_projects_like_the_original():
    pair, points = a_pair(window=WINDOW), points_around(7)
    other = pair.swapped()
    in_right = points @ pair.X_RL[:3, :3].T + pair.X_RL[:3, 3]
    assert other.project('left', in_right) == pytest.approx(pair.project('right', points))
    assert other.project('right', in_right) == pytest.approx(pair.project('left', points))
    assert other.baseline_m == pytest.approx(0.3)
