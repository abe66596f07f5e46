"""Poses as rows of position and quaternion, compared with single rotations."""

import numpy as np
import pytest

from softarm_ros.geometry.poses import pose, rows_from_transforms, transforms_from_rows
from softarm_ros.geometry.rotations import (
    exp_so3,
    matrix_from_quaternion,
    quaternion_from_matrix,
)


@pytest.fixture
def transforms():
    rng = np.random.default_rng(3)
    vectors = [*rng.normal(size=(40, 3)), np.zeros(3), [np.pi, 0, 0], [0, -np.pi, 0]]
    return np.array([pose(exp_so3(v), rng.normal(size=3)) for v in vectors])


def test_rows_are_positions_and_quaternions(transforms):
    rows = rows_from_transforms(transforms)
    np.testing.assert_array_equal(rows[:, :3], transforms[:, :3, 3])
    expected = [quaternion_from_matrix(t[:3, :3]) for t in transforms]
    np.testing.assert_array_equal(rows[:, 3:], expected)


def test_round_trip_with_quaternions_of_any_length(transforms):
    rows = rows_from_transforms(transforms)
    rows[:, 3:] *= np.linspace(0.1, 9.0, len(rows))[:, None]
    back = transforms_from_rows(rows)
    np.testing.assert_allclose(back, transforms, atol=1e-14)
    expected = [matrix_from_quaternion(q) for q in rows[:, 3:]]
    np.testing.assert_allclose(back[:, :3, :3], expected, atol=1e-15)


def test_empty_input_converts_to_empty_arrays():
    assert transforms_from_rows([]).shape == (0, 4, 4)
    assert rows_from_transforms(np.zeros((0, 4, 4))).shape == (0, 7)


@pytest.mark.parametrize(
    ('row', 'message'),
    [
        ([0, np.nan, 0, 0, 0, 0, 1], r'position \[0.0, nan, 0.0\] is not finite'),
        ([0, 0, 0, np.inf, 0, 0, 1], r'quaternion \[inf, 0.0, 0.0, 1.0\] is not finite'),
        ([0, 0, 0, 0, 0, 0, 0], 'quaternion .* has length zero'),
    ],
)
def test_a_row_that_is_not_a_pose_is_refused_with_the_reason(row, message):
    with pytest.raises(ValueError, match=message):
        transforms_from_rows([[0, 0, 0, 0, 0, 0, 1], row])


def test_a_transform_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match='not finite'):
        rows_from_transforms(np.full((1, 4, 4), np.nan))
