"""Kinematics of a segment: exact exponential map, smooth at zero, rates by differences."""

import math
from fractions import Fraction

import numpy as np
import pytest
from dynamics_cases import cantilever, full_arm, random_state, seeds, sizes
from hypothesis import given, settings
from scipy.integrate import quad_vec
from scipy.linalg import expm

from softarm_ros.models.dynamics.segment_kernels import segment_rates, stumpff_to_8

quick = settings(deadline=None, max_examples=25)


@pytest.mark.parametrize('u', [0.0, 1e-12, 0.0599, 0.0601, 1.0, 3.999, 4.001, 9.0, 30.0])
def test_stumpff_functions_match_their_series_in_rational_arithmetic(u):
    exact = Fraction(u)
    for k, value in enumerate(stumpff_to_8(u), start=1):
        series = sum((-exact) ** j / math.factorial(2 * j + k) for j in range(40))
        assert value == pytest.approx(float(series), rel=2e-11)


def _twist(q):
    """Return se(3) matrix of a segment of rest length 1."""
    eps, x, y, z = q
    return np.array([[0, -z, y, 0], [z, 0, -x, 0], [-y, x, 0, 1 + eps], [0, 0, 0, 0]])


@quick
@given(seed=seeds, size=sizes)
def test_node_poses_are_products_of_matrix_exponentials(seed, size):
    """The centreline solves the frame equation of the rod exactly."""
    arm = cantilever(4)
    q, _ = random_state(arm, seed, 3.0 * size)
    pose = np.eye(4)
    poses = arm.node_poses(q)
    for k in range(4):
        pose = pose @ expm(arm.body.length[k] * _twist(q[k]))
        assert np.allclose(poses[k + 1], pose, atol=1e-13)


@quick
@given(seed=seeds, size=sizes)
def test_centre_of_mass_is_the_mean_of_the_centreline(seed, size):
    """Closed form against quadrature."""
    arm = cantilever(2)
    q, _ = random_state(arm, seed, 3.0 * size)
    arm.node_poses(q)
    length = arm.body.length[0]
    mean, _ = quad_vec(lambda s: expm(s * length * _twist(q[0]))[:3, 3], 0.0, 1.0)
    assert np.allclose(arm.scratch.centre[0], mean, atol=1e-12)


def test_segment_rates_are_time_derivatives_of_its_frames():
    """First and second time derivatives of all four frames along q(t) = q + v t."""
    arm = cantilever(2)
    q, v = random_state(arm, 3)
    length = float(arm.body.length[0])
    end, centre, turn, middle = segment_rates(length, q, v, 0)
    h = 1e-4

    def at(t):
        arm.node_poses(q + t * v)
        scratch = arm.scratch
        return (
            scratch.end[0].copy(),
            scratch.centre[0].copy(),
            scratch.end_turn[0] @ v[0, 1:],
            scratch.middle_turn[0] @ v[0, 1:],
        )

    back, here, ahead = at(-h), at(0.0), at(h)
    for rates, b, c, a in zip((end, centre), back, here, ahead):
        assert np.allclose(rates[:3], (a - b) / (2 * h), rtol=1e-5, atol=1e-8)
        assert np.allclose(rates[3:], (a - 2 * c + b) / h**2, rtol=1e-3, atol=1e-6)
    for rates, b, c, a in zip((turn, middle), back[2:], here[2:], ahead[2:]):
        assert np.allclose(rates[:3], c, rtol=1e-12)
        assert np.allclose(rates[3:], (a - b) / (2 * h), rtol=1e-4, atol=1e-6)


@quick
@given(seed=seeds, size=sizes)
def test_node_twists_are_derivatives_of_node_poses(seed, size):
    """Velocities of all nodes, with connectors."""
    arm = full_arm(seed)
    q, v = random_state(arm, seed, size)
    h = 1e-6
    ahead, back = arm.node_poses(q + h * v), arm.node_poses(q - h * v)
    here, twists = arm.node_poses(q), arm.node_twists(q, v)
    rate = (ahead - back)[1:] / (2 * h)
    assert np.allclose(rate[:, :3, 3], twists[:, :3], atol=1e-6)
    spin = rate[:, :3, :3] @ here[1:, :3, :3].transpose(0, 2, 1)
    axial = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)
    assert np.allclose(axial, twists[:, 3:], atol=1e-5)
    assert np.allclose(arm.tip_jacobian(q) @ v.ravel(), twists[-1], atol=1e-12)


def test_centreline_runs_through_the_nodes():
    """Evenly spaced points, base to tip."""
    arm = cantilever(4)
    q, _ = random_state(arm, 1)
    shape = arm.shape(q)
    points = shape.centerline(5)
    assert np.allclose(points, arm.node_poses(q)[:, :3, 3], atol=1e-14)
    assert np.allclose(shape.section_tips[-1], shape.tip)
    with pytest.raises(ValueError, match='n = 1'):
        shape.centerline(1)
