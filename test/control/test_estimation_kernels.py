"""Geometry of the chain and Kalman kernels against closed forms."""

import numpy as np
import pytest
from scipy.linalg import expm, solve_discrete_lyapunov

from softarm_ros.control.estimation.bank_kernels import take_in
from softarm_ros.control.estimation.belief import Hindsight
from softarm_ros.control.estimation.chain_kernels import places_into, strains_of, tangent_into
from softarm_ros.control.estimation.commanded import CommandedStrains
from softarm_ros.control.estimation.kalman_kernels import (
    absorb,
    merged,
    predict,
    predict_past,
)
from softarm_ros.geometry.rotations import exp_so3, log_so3

OPEN = np.full(7, 1e9)  # gates that pass everything


def no_past(bank, n):
    """Return the arrays of a bank that keeps no past states."""
    return np.zeros((bank, 0)), np.zeros((bank, 0, 2 * n)), np.zeros((bank, 0, 0))


def chain(rng, sections=3):
    return rng.normal(size=(sections, 6)) * [0.02, 0.02, 0.3, 0.9, 0.9, 0.5]


def places(strains, sections, fractions, offsets):
    poses = np.empty((len(sections), 4, 4))
    jacobians = np.empty((len(sections), 6, strains.size))
    places_into(strains, sections, fractions, offsets, poses, jacobians)
    return poses, jacobians


def matrix_of(strain):
    v, w = strain[:3], strain[3:]
    out = np.zeros((4, 4))
    out[:3, :3] = [[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]]
    out[:3, 3] = v
    return out


def test_chain_poses_are_products_of_matrix_exponentials():
    rng = np.random.default_rng(1)
    for _ in range(20):
        strains = chain(rng)
        poses, _ = places(
            strains,
            np.array([0, 1, 2, 1]),
            np.array([1, 1, 1, 0.3]),
            np.tile(np.eye(4), (4, 1, 1)),
        )
        one, two, three = (expm(matrix_of(s)) for s in strains)
        partly = one @ expm(0.3 * matrix_of(strains[1]))
        for pose, expected in zip(poses, (one, one @ two, one @ two @ three, partly)):
            np.testing.assert_allclose(pose, expected, atol=1e-13)


def test_strains_of_recovers_the_strains_from_section_tips():
    rng = np.random.default_rng(2)
    for scale in (1.0, 1e-3, 0.0):
        strains = scale * chain(rng)
        tips, _ = places(strains, np.arange(3), np.ones(3), np.tile(np.eye(4), (3, 1, 1)))
        np.testing.assert_allclose(strains_of(tips), strains, atol=1e-13)


def test_jacobians_of_places_match_finite_differences():
    rng = np.random.default_rng(3)
    offsets = np.tile(np.eye(4), (5, 1, 1))
    offsets[2] = expm(matrix_of(rng.normal(size=6)))
    where = np.array([0, 1, 2, 2, -1]), np.array([1.0, 0.3, 1.0, 0.6, 1.0]), offsets
    for _ in range(5):
        strains, h = chain(rng), 1e-6
        _, jacobians = places(strains, *where)
        for i in range(strains.size):
            moved = np.zeros(strains.size)
            moved[i] = h
            after, _ = places(strains + moved.reshape(3, 6), *where)
            before, _ = places(strains - moved.reshape(3, 6), *where)
            for n in range(5):
                linear = (after[n, :3, 3] - before[n, :3, 3]) / (2 * h)
                angular = log_so3(after[n, :3, :3] @ before[n, :3, :3].T) / (2 * h)
                np.testing.assert_allclose(jacobians[n, :3, i], linear, atol=1e-8)
                np.testing.assert_allclose(jacobians[n, 3:, i], angular, atol=1e-8)


def process(densities, memory, period):
    """Return transition and noise of (c, v) by Van Loan's method; densities (n,) or (n, n)."""
    density = np.diag(densities) if densities.ndim == 1 else densities
    n = len(density)
    A = np.zeros((2 * n, 2 * n))
    A[:n, n:] = np.eye(n)
    A[n:, n:] = -np.eye(n) / memory
    W = np.zeros((2 * n, 2 * n))
    W[n:, n:] = density
    big = np.block([[-A, W], [np.zeros_like(A), A.T]]) * period
    e = expm(big)
    F = e[2 * n :, 2 * n :].T
    return F, F @ e[: 2 * n, 2 * n :]


@pytest.mark.parametrize('period', [1e-4, 0.01, 0.3, 2.0])
def test_prediction_matches_the_exact_discrete_process(period):
    rng = np.random.default_rng(4)
    n, memory = 3, 0.25
    shape = rng.normal(size=(n, n))
    density, scales = shape @ shape.T, rng.uniform(0.1, 10.0, 2)
    x = rng.normal(size=(2, 2 * n))
    root = rng.normal(size=(2, 2 * n, 2 * n))
    P = root @ root.transpose(0, 2, 1)
    expected = []
    for k in range(2):
        F, Q = process(scales[k] * density, memory, period)
        expected.append((F @ x[k], F @ P[k] @ F.T + Q))
    predict(x, P, scales, density, memory, period)
    for k in range(2):
        np.testing.assert_allclose(x[k], expected[k][0], rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(P[k], expected[k][1], rtol=1e-8, atol=1e-13)


def linear_case(rng, steps=30, n=2):
    densities, memory, period = rng.uniform(0.5, 1.5, n), 0.4, 0.02
    F, Q = process(densities, memory, period)
    H = rng.normal(size=(steps, 6, n))
    R = np.diag(rng.uniform(0.5, 2.0, 6))
    y = rng.normal(size=(steps, 6))
    return densities, memory, period, F, Q, H, R, y


def filtered(densities, memory, period, H, R, y, x0, P0, gates=OPEN):
    x, P, weights = x0[None].copy(), P0[None].copy(), np.zeros(1)
    n = len(densities)
    for step in range(len(y)):
        if step:
            predict(x, P, np.ones(1), np.diag(densities), memory, period)
        absorb(
            x, P, weights, np.zeros(n), H[step][None], y[step][None], R[None], np.array([6]),
            gates, np.zeros(1, dtype=np.int64), np.zeros(1), *no_past(1, n),
        )  # fmt: skip
    return x[0], P[0]


def test_linear_case_matches_the_kalman_filter_and_batch_least_squares():
    rng = np.random.default_rng(5)
    densities, memory, period, F, Q, H, R, y = linear_case(rng)
    n, steps = len(densities), len(y)
    root = rng.normal(size=(2 * n, 2 * n))
    x0, P0 = rng.normal(size=2 * n), root @ root.T + np.eye(2 * n)
    x, P = filtered(densities, memory, period, H, R, y, x0, P0)

    # Textbook Kalman filter.
    xk, Pk = x0.copy(), P0.copy()
    for step in range(steps):
        if step:
            xk, Pk = F @ xk, F @ Pk @ F.T + Q
        C = np.hstack([H[step], np.zeros((6, n))])
        K = Pk @ C.T @ np.linalg.inv(C @ Pk @ C.T + R)
        xk, Pk = xk + K @ (y[step] - C @ xk), (np.eye(2 * n) - K @ C) @ Pk
    np.testing.assert_allclose(x, xk, atol=1e-9)
    np.testing.assert_allclose(P, Pk, atol=1e-9)

    # All states at once: least squares on whitened rows.
    rows, right = [], []

    def add(block, values, covariance):
        W = np.linalg.inv(np.linalg.cholesky(covariance))
        rows.append(W @ block)
        right.append(W @ values)

    size = 2 * n * steps
    for step in range(steps):
        here = np.zeros((2 * n, size))
        here[:, 2 * n * step : 2 * n * (step + 1)] = np.eye(2 * n)
        if step == 0:
            add(here, x0, P0)
        else:
            before = np.zeros((2 * n, size))
            before[:, 2 * n * (step - 1) : 2 * n * step] = F
            add(here - before, np.zeros(2 * n), Q)
        add(np.hstack([H[step], np.zeros((6, n))]) @ here, y[step], R)
    A, b = np.vstack(rows), np.concatenate(right)
    solution, *_ = np.linalg.lstsq(A, b, rcond=None)
    np.testing.assert_allclose(x, solution[-2 * n :], atol=1e-9)
    information = A.T @ A
    np.testing.assert_allclose(P, np.linalg.inv(information)[-2 * n :, -2 * n :], atol=1e-9)


@pytest.mark.parametrize('angle', [0.0, 1e-6, 0.1, 0.7, 2.0, 2.6])
def test_tangent_matches_its_power_series_in_the_adjoint(angle):
    rng = np.random.default_rng(3)
    axis = rng.normal(size=3)
    strain = np.concatenate([rng.normal(size=3), angle * axis / np.linalg.norm(axis)])
    adjoint = np.zeros((6, 6))
    adjoint[:3, :3] = adjoint[3:, 3:] = matrix_of(np.r_[0.0, 0.0, 0.0, strain[3:]])[:3, :3]
    adjoint[:3, 3:] = matrix_of(np.r_[0.0, 0.0, 0.0, strain[:3]])[:3, :3]
    whole, power = np.zeros((6, 6)), np.eye(6)
    for k in range(1, 60):
        whole += power
        power = power @ -adjoint / (k + 1)
    turn, mixed = np.empty((3, 3)), np.empty((3, 3))
    tangent_into(strain, 1.0, turn, mixed)
    np.testing.assert_allclose(turn, whole[:3, :3], atol=1e-11)
    np.testing.assert_allclose(mixed, whole[:3, 3:], atol=1e-11)


def test_nees_and_nis_are_consistent_on_data_drawn_from_the_model():
    rng = np.random.default_rng(6)
    runs, steps, n = 200, 40, 2
    densities, memory, period = np.array([1.0, 2.0]), 0.4, 0.02
    F, Q = process(densities, memory, period)
    root = np.linalg.cholesky(Q)
    H, R = rng.normal(size=(steps, 6, n)), 0.01 * np.eye(6)
    P0 = np.diag([1.0] * n + [0.5] * n)
    nees, nis = [], []
    for _ in range(runs):
        truth = np.sqrt(np.diag(P0)) * rng.standard_normal(2 * n)
        x, P, weights = np.zeros((1, 2 * n)), P0[None].copy(), np.zeros(1)
        distance = np.zeros(1)
        for step in range(steps):
            if step:
                truth = F @ truth + root @ rng.standard_normal(2 * n)
                predict(x, P, np.ones(1), np.diag(densities), memory, period)
            y = H[step] @ truth[:n] + 0.1 * rng.standard_normal(6)
            absorb(
                x, P, weights, np.zeros(n), H[step][None], y[None], R[None], np.array([6]),
                OPEN, np.zeros(1, dtype=np.int64), distance, *no_past(1, n),
            )  # fmt: skip
            nis.append(distance[0])
        error = truth - x[0]
        nees.append(error @ np.linalg.solve(P[0], error))
    # Means of chi-square variables: 95 % bands, 1.96 standard deviations.
    assert abs(np.mean(nees) - 2 * n) < 1.96 * np.sqrt(4 * n / runs)
    assert abs(np.mean(nis) - 6) < 1.96 * np.sqrt(12 / (runs * steps))


def test_past_states_are_updated_as_in_an_augmented_kalman_filter():
    rng = np.random.default_rng(9)
    densities, memory, period, F, Q, H, R, y = linear_case(rng)
    n, earlier = len(densities), rng.normal(size=(3, 4))
    root = rng.normal(size=(4, 4))
    x, P = rng.normal(size=(1, 4)), (root @ root.T + np.eye(4))[None]
    past = earlier @ x[0], earlier @ P[0], earlier @ P[0] @ earlier.T
    past = tuple(one[None].copy() for one in past)
    wide = np.vstack([np.eye(4), earlier])  # textbook filter of the state with its past
    z, Z = wide @ x[0], wide @ P[0] @ wide.T
    for step in range(len(y)):
        if step:
            predict(x, P, np.ones(1), np.diag(densities), memory, period)
            predict_past(past[1], memory, period)
            z[:4], Z[:4] = F @ z[:4], F @ Z[:4]
            Z[:, :4] = Z[:, :4] @ F.T
            Z[:4, :4] += Q
        absorb(
            x, P, np.zeros(1), np.zeros(n), H[step][None], y[step][None], R[None], np.array([6]),
            OPEN, np.zeros(1, dtype=np.int64), np.zeros(1), *past,
        )  # fmt: skip
        C = np.hstack([H[step], np.zeros((6, 5))])
        K = Z @ C.T @ np.linalg.inv(C @ Z @ C.T + R)
        z, Z = z + K @ (y[step] - C @ z), Z - K @ C @ Z
    for ours, textbook in zip((x, *past), (z[:4], z[4:], Z[4:, :4], Z[4:, 4:])):
        np.testing.assert_allclose(ours[0], textbook, rtol=1e-8, atol=1e-10)


def test_gated_measurement_changes_nothing_and_a_flipped_body_keeps_its_position():
    n = 6
    P0 = np.diag([1e-4] * 2 * n)
    H, R = np.eye(6), 1e-6 * np.eye(6)
    gates = np.array([0.0, 15.1, 18.4, 21.1, 23.5, 25.7, 27.9])

    def update(residual):
        x, P, weights = np.zeros((1, 2 * n)), P0[None].copy(), np.zeros(1)
        rows = np.zeros(1, dtype=np.int64)
        absorb(
            x, P, weights, np.zeros(n), H[None], residual[None], R[None], np.array([6]),
            gates, rows, np.zeros(1), *no_past(1, n),
        )  # fmt: skip
        return x[0], P[0], rows[0]

    x, P, rows = update(np.array([0.5, 0, 0, 0, 0, 0.0]))
    assert rows == 0
    assert np.array_equal(x, np.zeros(2 * n))
    assert np.array_equal(P, P0)
    x, P, rows = update(np.array([0.01, 0, 0, 3.1, 0, 0.0]))
    assert rows == 3
    assert x[0] == pytest.approx(0.01, rel=0.02)
    assert x[3] == 0.0


def test_filter_with_the_true_process_noise_gets_the_largest_weight_in_a_bank():
    rng = np.random.default_rng(7)
    memory, period, steps = 0.3, 0.01, 400
    scales, density = np.array([1e-3, 1.0, 1e3]), np.array([[0.1]])
    F, Q = process(density, memory, period)
    root, truth = np.linalg.cholesky(Q), np.zeros(2)
    P = np.tile(np.diag([1e-2, 1e-2]), (3, 1, 1))
    x, weights = np.zeros((3, 2)), np.zeros(3)
    H = np.zeros((1, 6, 1))
    H[0, 0, 0] = 1.0
    for _ in range(steps):
        truth = F @ truth + root @ rng.standard_normal(2)
        predict(x, P, scales, density, memory, period)
        y = np.zeros((1, 6))
        y[0, 0] = truth[0] + 1e-3 * rng.standard_normal()
        absorb(
            x, P, weights, np.zeros(1), H, y, 1e-6 * np.eye(6)[None], np.array([3]), OPEN,
            np.zeros(1, dtype=np.int64), np.zeros(1), *no_past(3, 1),
        )  # fmt: skip
    assert np.argmax(weights) == 1
    mean, covariance, _ = merged(x, P, weights)
    np.testing.assert_allclose(mean, x[1], atol=3 * np.sqrt(P[1, 0, 0]))
    assert np.all(np.linalg.eigvalsh(covariance) > 0.0)


def test_velocity_variance_settles_at_its_stationary_value():
    memory, density = 0.3, 2.0
    x, P = np.zeros((1, 2)), np.zeros((1, 2, 2))
    predict(x, P, np.ones(1), np.array([[density]]), memory, 20.0)
    F, Q = process(np.array([density]), memory, 0.05)
    assert P[0, 1, 1] == pytest.approx(solve_discrete_lyapunov(F[1:, 1:], Q[1:, 1:])[0, 0])


def test_commanded_strains_follow_two_lags_exactly_at_any_command_rate():
    lag = 0.05
    steps = {0.0: 0.0, 0.1: 1.0, 0.13: -0.5}

    def followed(repeat_s):
        follower = CommandedStrains(2 * lag, 10.0)
        for at in np.arange(0.0, 0.5, repeat_s):
            value = [v for t, v in steps.items() if t <= at + 1e-12][-1]
            follower.take(at, np.full((1, 6), value))
        return follower

    rare, often = followed(0.01), followed(0.001)
    for time in (0.05, 0.1, 0.117, 0.2, 0.4, 0.6):
        expected, rate = 0.0, 0.0
        for since, change in ((0.1, 1.0), (0.13, -1.5)):
            u = max(time - since, 0.0) / lag
            expected += change * (1.0 - (1.0 + u) * np.exp(-u))
            rate += change * u * np.exp(-u) / lag
        for follower in (rare, often):
            value, speed = follower.at(time)
            assert value[0, 3] == pytest.approx(expected, abs=1e-12)
            assert speed[0, 3] == pytest.approx(rate, abs=1e-10)


def test_take_in_matches_predict_merge_absorb_and_learning_in_sequence():
    rng = np.random.default_rng(8)
    bank, sections, period, memory, learning = 3, 2, 0.02, 0.3, 3.0
    n = 6 * sections
    root = 0.05 * rng.standard_normal((bank, 2 * n, 2 * n))
    x, P = 0.01 * rng.standard_normal((bank, 2 * n)), root @ np.swapaxes(root, 1, 2)
    weights, rates, scales = np.log([0.2, 0.7, 0.1]), 1e-4 * np.eye(n), np.array([1.0, 0.1, 9.0])
    commanded = np.tile([0.0, 0.0, 0.1, 0.4, 0.2, 0.1], (sections, 1))
    which, whole, frames = np.arange(sections), np.ones(sections), np.tile(np.eye(4), (2, 1, 1))
    noise = np.tile(1e-4 * np.eye(6), (sections, 1, 1))
    sizes, gates = np.array([6, 3]), np.full(7, 1e6)
    share = 1.0 - np.exp(-period / memory)
    doubted = np.log((1.0 - share) * np.exp(weights) + share / bank)
    moved_x, moved_P = x.copy(), P.copy()
    predict(moved_x, moved_P, scales, 2.0 / memory * rates, memory, period)
    mean, *_ = merged(moved_x, moved_P, doubted)
    poses, jacobians = np.empty((2, 4, 4)), np.empty((2, 6, n))
    places_into(commanded + mean[:n].reshape(2, 6), which, whole, frames, poses, jacobians)
    seen = poses.copy()
    seen[:, :3, 3] += 0.01 * rng.standard_normal((2, 3))
    turn = np.array([0.02, -0.01, 0.03])
    seen[0, :3, :3] = exp_so3(turn) @ seen[0, :3, :3]
    r = np.zeros((2, 6))
    r[:, :3], r[0, 3:] = seen[:, :3, 3] - poses[:, :3, 3], turn
    one, other = (moved_x, moved_P, doubted), (x.copy(), P.copy(), weights.copy())
    far, near = np.empty(2), np.empty(2)
    rows = np.empty(2, dtype=np.int64)
    absorb(*one, mean[:n].copy(), jacobians, r, noise, sizes, gates, rows, far, *no_past(bank, n))
    hindsight = Hindsight.first(bank, n)
    take_in(
        *other, learnt := rates.copy(), scales, memory, learning, np.full(n, 1e-9), period,
        commanded, np.arange(n), np.ones(n), which, whole, frames, seen, noise, sizes, gates,
        rows, near, hindsight.expected, hindsight.past, hindsight.past_with_now, hindsight.past_P,
        hindsight.tests,
    )  # fmt: skip
    for ours, theirs in zip((*other, near), (*one, far)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    likely = np.exp(one[2]) / np.exp(one[2]).sum()
    moments = [v @ v.T + C for v, C in zip(one[0][:, n:, None], one[1][:, n:, n:])]
    new = np.einsum('k,kij->ij', likely / scales, moments)
    kept = np.exp(-period / learning)
    np.testing.assert_allclose(learnt, kept * rates + (1.0 - kept) * new, rtol=1e-9, atol=1e-15)
