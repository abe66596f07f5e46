"""Rotations and poses compared with scipy and closed forms, also where formulas often break."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from softarm_ros.geometry.poses import displacement, inverse_pose, pose
from softarm_ros.geometry.rotation_kernels import stumpff
from softarm_ros.geometry.rotations import (
    angle_between,
    exp_so3,
    hat,
    log_so3,
    matrix_from_quaternion,
    quaternion_from_matrix,
    rotation_x,
    rotation_y,
    rotation_z,
)

unit_axes = st.tuples(*[st.floats(-1.0, 1.0)] * 3).filter(lambda a: math.hypot(*a) > 0.1)
quick = settings(max_examples=60)


def axis_of(values):
    return np.array(values) / np.linalg.norm(values)


@pytest.mark.parametrize('u', [0.0, 1e-30, 1e-8, 0.3, 0.999999, 1.0, 1.000001, 7.0, 40.0])
def test_stumpff_functions_match_extended_precision(u):
    """The reference is the power series."""
    value = np.longdouble(u)
    for n, computed in enumerate(stumpff(u), start=1):
        term = np.longdouble(1.0) / math.factorial(n)
        total = term
        for k in range(1, 60):
            term = -term * value / ((2 * k + n - 1) * (2 * k + n))
            total += term
        assert computed == pytest.approx(float(total), rel=4e-15, abs=1e-16)


@quick
@given(unit_axes, st.floats(0.0, 20.0))
def test_exp_equals_the_matrix_exponential(axis, angle):
    vector = angle * axis_of(axis)
    np.testing.assert_allclose(exp_so3(vector), expm(hat(vector)), atol=2e-13)


@quick
@given(unit_axes, st.floats(0.0, math.pi - 1e-6))
def test_log_inverts_exp(axis, angle):
    vector = angle * axis_of(axis)
    np.testing.assert_allclose(log_so3(exp_so3(vector)), vector, atol=1e-9)


@pytest.mark.parametrize('angle', [1e-12, 1e-9, 1e-8, 1.1e-8, 1e-5])
def test_log_keeps_relative_precision_near_the_identity(angle):
    vector = angle * axis_of((1.0, -2.0, 0.5))
    np.testing.assert_allclose(log_so3(exp_so3(vector)), vector, rtol=1e-12)


@pytest.mark.parametrize('axis', [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (-1, 2, 3)])
@pytest.mark.parametrize('below', [0.0, 1e-12, 1e-9, 1e-6])
def test_log_is_accurate_at_and_near_pi(axis, below):
    rotation = Rotation.from_rotvec((math.pi - below) * axis_of(axis)).as_matrix()
    vector = log_so3(rotation)
    assert np.linalg.norm(vector) == pytest.approx(math.pi - below, abs=1e-9)
    np.testing.assert_allclose(exp_so3(vector), rotation, atol=1e-9)


@quick
@given(unit_axes, st.floats(0.0, math.pi))
def test_quaternions_equal_scipy_and_convert_back_to_the_matrix(axis, angle):
    rotation = exp_so3(angle * axis_of(axis))
    quaternion = quaternion_from_matrix(rotation)
    reference = Rotation.from_matrix(rotation).as_quat()
    assert abs(quaternion @ reference) == pytest.approx(1.0, abs=1e-12)
    assert quaternion[3] >= 0.0
    np.testing.assert_allclose(matrix_from_quaternion(quaternion), rotation, atol=1e-14)
    np.testing.assert_allclose(matrix_from_quaternion(-3.0 * quaternion), rotation, atol=1e-14)


def test_elementary_rotations_are_exponentials():
    for rotation, axis in (
        (rotation_x, (1, 0, 0)),
        (rotation_y, (0, 1, 0)),
        (rotation_z, (0, 0, 1)),
    ):
        np.testing.assert_allclose(rotation(0.7), exp_so3(0.7 * np.array(axis)), atol=1e-15)
    assert angle_between(rotation_x(0.2), rotation_x(1.0)) == pytest.approx(0.8)


def test_inverse_pose_and_displacement_recover_identity_and_twist():
    start = pose(rotation_x(0.4) @ rotation_z(1.1), (0.1, -0.2, 0.3))
    np.testing.assert_allclose(inverse_pose(start) @ start, np.eye(4), atol=1e-15)
    twist = 1e-3 * np.array([1.0, 2.0, 3.0, -1.0, 0.5, 0.2])
    moved = pose(exp_so3(twist[3:]) @ start[:3, :3], start[:3, 3] + twist[:3])
    np.testing.assert_allclose(displacement(start, moved), twist, atol=1e-15)


@pytest.mark.parametrize(
    ('call', 'message'),
    [
        (lambda: exp_so3([0.0, 1.0]), r'rotation vector has shape \(2,\), expected \(3,\)'),
        (lambda: log_so3(np.full((3, 3), np.nan)), 'not finite'),
        (lambda: quaternion_from_matrix(np.eye(4)), r'shape \(4, 4\)'),
        (lambda: matrix_from_quaternion([0.0] * 4), 'length zero'),
    ],
)
def test_invalid_input_raises_an_error_that_names_the_problem(call, message):
    with pytest.raises(ValueError, match=message):
        call()
