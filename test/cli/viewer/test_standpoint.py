"""Eye and floor of the viewer, however the arm is mounted."""

import numpy as np
import pytest

from softarm_ros.cli.viewer.standpoint import standpoint
from softarm_ros.geometry.rotations import matrix_from_quaternion

LENGTH_M = 0.4
DOWN = {
    'hangs': (0.0, 0.0, 9.81),
    'stands': (0.0, 0.0, -9.81),
    'lies': (0.0, -9.81, 0.0),
    'lies on its side': (9.81, 0.0, 0.0),
    'lies askew': (3.0, -9.0, 1.0),
    'floats': (0.0, 0.0, 0.0),
}


@pytest.mark.parametrize('gravity', DOWN.values(), ids=DOWN)
def test_the_eye_looks_at_the_arm_and_the_floor_is_level(gravity):
    where = standpoint(gravity, LENGTH_M)
    assert np.linalg.norm(where.up) == pytest.approx(1.0)
    np.testing.assert_allclose(np.cross(where.up, gravity), 0.0, atol=1e-12)
    assert where.up @ gravity <= 0.0
    # At rest the arm is straight along z; the eye is neither near its middle nor on its axis.
    middle = np.array([0.0, 0.0, 0.5 * LENGTH_M])
    np.testing.assert_allclose(where.looks_at, middle, atol=0.06 * LENGTH_M)
    away = where.eye - middle
    assert 1.0 < np.linalg.norm(away) / LENGTH_M < 2.0
    assert abs(away[2]) < 0.7 * np.linalg.norm(away)
    w, x, y, z = where.floor_wxyz
    normal = matrix_from_quaternion((x, y, z, w))[:, 2]
    assert abs(normal @ where.up) == pytest.approx(1.0)


def test_a_lying_arm_is_above_its_floor_and_seen_from_above():
    where = standpoint(DOWN['lies'], LENGTH_M)
    assert where.floor @ where.up < -0.1 * LENGTH_M
    assert (where.eye - where.floor) @ where.up > 0.5 * LENGTH_M


def test_a_nearer_standpoint_is_on_the_same_line_of_sight():
    far, near = standpoint(DOWN['hangs'], LENGTH_M), standpoint(DOWN['hangs'], LENGTH_M, 2.0)
    np.testing.assert_allclose(near.eye - near.looks_at, 0.5 * (far.eye - far.looks_at))
