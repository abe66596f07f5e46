"""The least error of linear estimators."""

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

from softarm_reproduction.estimation_bound import FRAMES, Rows, bounds, least_errors, motion
from softarm_reproduction.estimation_runs import DELAY_S, NOISE_M, rig_of
from softarm_reproduction.estimation_study import outlier_lines

LEFT, STEP, NOISE = 0.9, 1.0e-3, 2.0e-3


def walk(seed: int, count: int) -> Rows:
    """Return three coordinates of a decaying random walk, each to be predicted one step ahead."""
    rng = np.random.default_rng(seed)
    x = np.zeros((count + FRAMES + 1, 3))
    for k in range(1, len(x)):
        x[k] = LEFT * x[k - 1] + STEP * rng.standard_normal(3)
    inputs = np.array([x[k : k + FRAMES].ravel() for k in range(count)])
    group = np.zeros(count, dtype=int)
    return Rows(inputs, x[FRAMES:-1], np.full(3 * FRAMES, NOISE**2), group)


@pytest.mark.parametrize('each', [False, True])
def test_bound_of_a_random_walk_is_the_error_of_its_kalman_filter(each):
    one = np.eye(1)
    ahead = solve_discrete_are(LEFT * one, one, STEP**2 * one, NOISE**2 * one)[0, 0]
    runs = [walk(seed, 20000) for seed in (1, 2)]
    hindsight, known = least_errors(runs[:1], runs[:1], each)
    other, _ = least_errors(runs[1:], runs[:1], each)
    assert known.all()
    assert hindsight.mean() == pytest.approx(ahead, rel=0.03)
    assert other.mean() == pytest.approx(ahead, rel=0.03)
    assert hindsight.mean() < other.mean()


def test_times_of_groups_that_are_too_small_are_left_out():
    seen = walk(1, 300)
    seen.group[:50], seen.group[50:60] = 1, -1
    errors, known = least_errors([seen], [seen])
    assert not known[:60].any()
    assert known[60:].all()
    assert (errors[60:] > 0.0).all()


def test_bounds_of_an_arm_fall_in_order_and_lie_below_the_measurement():
    rig = rig_of('cable_arm_single')
    runs = [motion(rig, seed, 4.0) for seed in (11, 12)]
    noise = np.repeat([NOISE_M, 10.0 * NOISE_M], 3)
    found = bounds(runs, DELAY_S, noise)
    least = [one.least_m for one in found]
    assert least == sorted(least, reverse=True)
    for one in found:
        assert one.least_m < min(one.of_others_m, one.raw_m)
        assert one.filter_m < one.raw_m


def test_outlier_frames_affect_the_tip_like_missing_ones():
    (line,) = outlier_lines('cable_arm_single', ['filter'], 2.0, [11])
    outliers, missing, noise = (
        float(part.split('at most ')[1].split(' mm')[0]) for part in line.split(';')
    )
    assert outliers == missing < 0.3
    assert noise > 0.0
