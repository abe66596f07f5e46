"""One elastic segment: its arc, its rotation, its moment."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from softarm_ros.geometry.pose_kernels import matrix_of_quaternion
from softarm_ros.plant.joint_kernels import (
    arc_shape,
    elastic_load,
    log_of_quaternion,
    turn,
)


@pytest.mark.parametrize('beta', [1e-6, 1e-3, 0.1, 0.39, 0.41, 1.0, 2.0, 3.0])
def test_arc_shape_matches_a_circle(beta):
    f, _, _, arc, _ = arc_shape(2.0 * np.sin(0.5 * beta) ** 2)
    assert f == pytest.approx(np.tan(0.5 * beta) / (0.5 * beta), rel=1e-13)
    assert arc == pytest.approx(0.5 * beta / np.sin(0.5 * beta), rel=1e-13)


def test_arc_shape_of_a_straight_segment_has_its_limit_values():
    assert arc_shape(0.0) == pytest.approx((1.0, -1 / 6, 11 / 90, 1.0, -1 / 12), abs=1e-15)


@pytest.mark.parametrize('deficit', [1e-3, 0.05, 0.0768, 0.078, 0.5, 1.5])
def test_arc_shape_derivatives_match_central_differences(deficit):
    h = 1e-5 * max(deficit, 1e-1)
    low, mid, high = (arc_shape(deficit + s * h) for s in (-1, 0, 1))
    # The cosine falls as the deficit grows.
    assert mid[1] == pytest.approx(-(high[0] - low[0]) / (2 * h), rel=1e-8)
    assert mid[2] == pytest.approx(-(high[1] - low[1]) / (2 * h), rel=1e-8)
    assert mid[4] == pytest.approx(-(high[3] - low[3]) / (2 * h), rel=1e-8)


@pytest.mark.parametrize('angle', [0.0, 1e-12, 1e-5, 0.2, 0.23, 1.0, 2.5, 3.1])
def test_rotations_agree_with_scipy(angle):
    vector = angle * np.array([0.6, -0.48, 0.64])
    q = np.array([0.0, 0.0, 0.0, 1.0])
    turn(q, *vector)
    matrix = np.empty((3, 3))
    matrix_of_quaternion(q, matrix)
    np.testing.assert_allclose(matrix, Rotation.from_rotvec(vector).as_matrix(), atol=1e-14)
    np.testing.assert_allclose(log_of_quaternion(q)[:3], vector, atol=1e-14)


def test_turn_acts_in_the_local_frame_and_keeps_the_quaternion_normalised():
    rng = np.random.default_rng(0)
    q, reference = np.array([0.0, 0.0, 0.0, 1.0]), Rotation.identity()
    for _ in range(1000):
        step = 0.2 * rng.standard_normal(3)
        turn(q, *step)
        reference = reference * Rotation.from_rotvec(step)
    assert np.linalg.norm(q) == pytest.approx(1.0, abs=1e-14)
    assert q[3] >= 0.0
    matrix = np.empty((3, 3))
    matrix_of_quaternion(q, matrix)
    np.testing.assert_allclose(matrix, reference.as_matrix(), atol=1e-12)


def energy(q, stiffness):
    x, y, z, _ = log_of_quaternion(q)
    return 0.5 * (stiffness[0] * (x * x + y * y) + stiffness[1] * z * z)


@pytest.mark.parametrize('angle', [0.0, 1e-3, 0.3, 1.5, 2.1])
def test_moment_is_minus_the_gradient_of_the_energy(angle):
    stiffness = np.array([0.2, 0.13, 4e4])
    q = np.array([0.0, 0.0, 0.0, 1.0])
    turn(q, *(angle * np.array([0.6, -0.48, 0.64])))
    load, tangent = np.empty(4), np.empty((3, 3))
    elastic_load(q, 1e-4, np.zeros(4), stiffness, 0.02, 0.02, load, tangent, np.empty(4))
    gradient = np.empty(3)
    for axis in range(3):
        ends = []
        for h in (-1e-6, 1e-6):
            moved = q.copy()
            turn(moved, *(h * np.eye(3)[axis]))
            ends.append(energy(moved, stiffness))
        gradient[axis] = (ends[1] - ends[0]) / 2e-6
    np.testing.assert_allclose(load[:3], -gradient, atol=1e-9)
    assert load[3] == pytest.approx(-4.0)
    np.testing.assert_allclose(tangent, tangent.T)
    assert np.linalg.eigvalsh(tangent).min() > 0.0


def test_damping_dissipates_the_power_of_the_strain_rate():
    stiffness, rate = np.array([0.2, 0.13, 4e4]), np.array([1.0, -2.0, 3.0, 0.01])
    q = np.array([0.0, 0.0, 0.0, 1.0])
    turn(q, 0.5, -0.7, 0.4)
    without, with_damping, tangent = np.empty(4), np.empty(4), np.empty((3, 3))
    elastic_load(q, 0.0, rate, stiffness, 0.0, 0.0, without, tangent, np.empty(4))
    elastic_load(q, 0.0, rate, stiffness, 0.03, 0.03, with_damping, tangent, np.empty(4))
    moved = q.copy()
    turn(moved, *(1e-7 * rate[:3]))
    strain_rate = (
        np.array(log_of_quaternion(moved)[:3]) - np.array(log_of_quaternion(q)[:3])
    ) / 1e-7
    expected = 0.03 * (stiffness[[0, 0, 1]] @ strain_rate**2 + stiffness[2] * rate[3] ** 2)
    assert (without - with_damping) @ rate == pytest.approx(expected, rel=1e-6)
