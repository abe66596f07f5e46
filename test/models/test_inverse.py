"""The inverse search of all models, on a chain of rotary joints with closed-form kinematics."""

import math

import numpy as np
import pytest
from scipy.optimize import least_squares

from softarm_ros.geometry.poses import pose
from softarm_ros.geometry.rotations import exp_so3
from softarm_ros.models.arm_model import ModelError, Shape
from softarm_ros.models.bounded_least_squares import Rows, bounded_least_squares
from softarm_ros.models.inverse import LEVER, TOLERANCE, Outcome, find_pose, pose_target
from softarm_ros.models.stepped_search import Place, SteppedProblem

LINKS = np.array([0.4, 0.3, 0.2, 0.1])
LENGTH = float(LINKS.sum())
LIMIT = 2.0


def tip_and_twist(joints):
    """Return the tip (4, 4) and its twist (6, 4) of links in the x-z plane, turning about y."""
    angles = np.cumsum(joints)
    ends = np.cumsum(LINKS[:, None] * np.stack([np.sin(angles), np.cos(angles)], axis=1), axis=0)
    starts = np.vstack([np.zeros(2), ends[:-1]])
    twist = np.zeros((6, 4))
    away = ends[-1] - starts
    twist[0], twist[2], twist[4] = away[:, 1], -away[:, 0], 1.0
    x, z = ends[-1]
    return pose(exp_so3([0.0, angles[-1], 0.0]), (x, 0.0, z)), twist


class Chain(SteppedProblem):
    """Joints within limits, near zero by `wish`; `most` bounds their sum, `refused` refuses."""

    def __init__(self, wish=True, most=None, refused='', moved=0.0, forbidden=None):
        self.scale, self.max_step = np.ones(4), np.full(4, 0.5)
        self.ranges = ((np.full(4, -LIMIT), np.full(4, LIMIT)),)
        self._wish, self._most, self._refused, self._moved = wish, most, refused, moved
        self._forbidden = forbidden

    def starts(self, target):
        yield np.full(4, 0.3)
        yield np.full(4, -0.3)

    def look(self, unknowns, near):
        if self._forbidden is not None and self._forbidden(unknowns):
            raise ModelError('nobody goes there')
        tip, twist = tip_and_twist(unknowns)
        rows = None
        if self._most is not None:
            room = np.array([1.0 - unknowns.sum() / self._most])
            rows = Rows(np.full((1, 4), 1.0 / self._most), np.array([-np.inf]), room)
        return Place(unknowns, tip, lambda: twist, np.zeros(4) if self._wish else None, rows)

    def effort(self, end):
        return float(np.linalg.norm(end.unknowns))

    def outcome(self, end):
        tip = end.place.tip.copy()
        tip[0, 3] += self._moved
        return Outcome(end.unknowns, Shape(tip, tip[None], end.unknowns, None), self._refused)

    def limits_met(self, end):
        return [f'joint {k}' for k in np.flatnonzero(np.abs(end.unknowns) > LIMIT - 1e-9)]


def target_of(joints, with_orientation=False):
    tip = tip_and_twist(np.asarray(joints))[0]
    return pose_target(tip[:3, 3], tip[:3, :3] if with_orientation else None, LENGTH)


def test_inverse_reaches_targets_with_the_smallest_joint_angles():
    rng = np.random.default_rng(0)
    for _ in range(20):
        target = target_of(rng.uniform(-1.2, 1.2, 4))
        found = find_pose(Chain(), target)
        assert found.converged and found.message == ''
        tip, twist = tip_and_twist(found.actuation)
        assert np.linalg.norm(tip[:3, 3] - target.position) <= TOLERANCE * LENGTH
        # Stationary: the joints are a combination of the rows of the Jacobian.
        combination = np.linalg.lstsq(twist[[0, 2]].T, found.actuation, rcond=None)[0]
        left = found.actuation - twist[[0, 2]].T @ combination
        assert np.linalg.norm(left) < 0.05 * np.linalg.norm(found.actuation)


def test_inverse_meets_an_orientation_and_weighs_its_error_by_half_the_length():
    joints = np.array([0.5, -0.4, 0.9, 0.2])
    found = find_pose(Chain(), target_of(joints, True))
    assert found.converged
    np.testing.assert_allclose(found.shape.tip, tip_and_twist(joints)[0], atol=1e-6)
    target = pose_target((0.0, 0.0, LENGTH), exp_so3([0.0, 0.0, 0.2]), LENGTH)
    away = find_pose(Chain(wish=False), target)  # a turn the chain cannot make
    assert not away.converged
    assert away.residual == pytest.approx(LEVER * LENGTH * 0.2, rel=1e-3)
    assert 'mm and 11.46 deg left' in away.message


@pytest.mark.parametrize('point', [(0.0, 0.0, 1.3), (1.5, 0.0, 0.2), (-0.6, 0.0, -0.9)])
def test_target_out_of_reach_gives_the_nearest_point_and_reports_the_error(point):
    target = pose_target(point, None, LENGTH)
    found = find_pose(Chain(), target)
    rng = np.random.default_rng(1)
    best = min(
        math.sqrt(
            2.0
            * least_squares(
                lambda q: tip_and_twist(q)[0][[0, 2], 3] - target.position[[0, 2]],
                rng.uniform(-1.5, 1.5, 4),
                bounds=(-LIMIT, LIMIT),
            ).cost
        )
        for _ in range(6)
    )
    assert not found.converged
    assert found.residual <= best + 1e-4 * LENGTH
    assert f'not reached: {1e3 * found.residual:.3f} mm left' in found.message
    for k in range(4):
        assert (f'joint {k}' in found.message) == (abs(found.actuation[k]) > LIMIT - 1e-9)


def test_guess_selects_the_solution_and_an_impossible_guess_is_ignored():
    joints = np.array([-0.9, 1.2, 0.8, 0.1])
    target = target_of(joints)
    near = find_pose(Chain(wish=False), target, joints + 0.01)
    assert near.converged and np.abs(near.actuation - joints).max() < 0.05
    free = find_pose(Chain(), target)
    assert np.linalg.norm(free.actuation) < np.linalg.norm(near.actuation)
    barred = Chain(wish=False, forbidden=lambda q: q[0] < -0.5)
    assert find_pose(barred, target, joints).converged  # the guess has no shape


def test_inequality_rows_bound_the_solution():
    joints = np.array([0.5, 0.4, 0.3, 0.2])
    target = target_of(joints)
    most = 0.9 * find_pose(Chain(), target).actuation.sum()
    found = find_pose(Chain(most=most), target)
    assert found.converged
    assert found.actuation.sum() <= most * (1.0 + 1e-6)


def test_refused_or_deviating_outcome_is_not_converged():
    target = target_of([0.5, 0.4, 0.3, 0.2])
    refused = find_pose(Chain(refused='joint 2 would break'), target)
    assert not refused.converged and refused.message == 'joint 2 would break'
    moved = find_pose(Chain(moved=0.01), target)
    assert not moved.converged
    assert moved.residual == pytest.approx(0.01, abs=1e-6)
    assert 'not reached: 10.000 mm left' in moved.message


def test_search_without_a_valid_start_raises_the_reason():
    with pytest.raises(ModelError, match=r'no start of the search .* nobody goes there'):
        find_pose(Chain(forbidden=lambda q: True), target_of(np.zeros(4)))


@pytest.mark.parametrize(
    ('position', 'orientation', 'message'),
    [
        ((0.0, 1.0), None, r'position has shape \(2,\), expected \(3,\)'),
        ((0.0, math.nan, 1.0), None, 'position = .* is not finite'),
        (
            (0.0, -1e300, 1.0),
            None,
            r'position = .*-1e\+300.* m, expected at most 1e\+09 m: 1e\+09',
        ),
        ((0.0, 0.0, 1.0), np.eye(2), r'orientation has shape \(2, 2\)'),
        ((0.0, 0.0, 1.0), 2.0 * np.eye(3), 'orientation is not a rotation matrix'),
        ((0.0, 0.0, 1.0), np.diag([1.0, 1.0, -1.0]), 'det R = -1'),
    ],
)
def test_errors_name_the_invalid_target(position, orientation, message):
    with pytest.raises(ValueError, match=message):
        pose_target(position, orientation, LENGTH)


@pytest.mark.parametrize('size', [1.0, 1e-4, 1e-9])
def test_bounded_least_squares_is_equally_exact_at_every_scale(size):
    """The solver's tolerance is absolute; active bounds must be active at every scale."""
    rng = np.random.default_rng(3)
    matrix = np.vstack([rng.normal(size=(3, 5)), 1e-3 * np.eye(5)])
    right = np.concatenate([rng.normal(size=3), np.zeros(5)])
    lower, upper = np.full(5, -0.05), np.full(5, 0.05)
    large = bounded_least_squares(matrix, right, lower, upper)
    assert np.any(large == upper) or np.any(large == lower)
    small = bounded_least_squares(matrix, size * right, size * lower, size * upper)
    np.testing.assert_allclose(small, size * large, rtol=1e-5, atol=1e-5 * size)
