"""The base of the arm in the frame of a sensor."""

from __future__ import annotations

import numpy as np
import pytest

from softarm_ros.geometry.poses import pose
from softarm_ros.geometry.rotations import exp_so3, log_so3, rotation_x, rotation_z
from softarm_ros.perception.base_frame import (
    BaseFollower,
    base_from_points,
    moved,
)

X_SB = pose(rotation_z(0.7) @ rotation_x(2.9), [1.2, -0.4, 1.9])


def noisy(rng: np.random.Generator, true: np.ndarray, m: float, rad: float) -> np.ndarray:
    return moved(true, np.concatenate([m * rng.standard_normal(3), rad * rng.standard_normal(3)]))


def errors(estimate: np.ndarray) -> np.ndarray:
    turn = log_so3(estimate[:3, :3] @ X_SB[:3, :3].T)
    return np.concatenate([estimate[:3, 3] - X_SB[:3, 3], turn])


def test_averaged_base_pose_has_the_error_of_200_averaged_frames() -> None:
    rng = np.random.default_rng(0)
    base = BaseFollower()
    for k in range(400):
        assert base.update(0.01 * k, noisy(rng, X_SB, 2e-4, 2e-3)) == ''
    assert base.samples in (200, 201)
    off = errors(base.pose)
    assert np.abs(off[:3]).max() < 4 * 2e-4 / np.sqrt(200)
    assert np.abs(off[3:]).max() < 4 * 2e-3 / np.sqrt(200)


def test_flips_of_the_base_are_rejected() -> None:
    rng = np.random.default_rng(1)
    base = BaseFollower()
    flip = pose(rotation_z(np.pi), np.zeros(3))
    told = []
    for k in range(300):
        seen = noisy(rng, X_SB, 2e-4, 2e-3)
        flipped = k > 20 and k % 3 == 0
        told.append((flipped, base.update(0.01 * k, seen @ flip if flipped else seen)))
    assert all(wrong == ('flip' if flipped else '') for flipped, wrong in told)
    assert base.moves == 0
    assert base.stray.startswith('turned by 1') and base.stray.endswith('(limit 10 degrees)')
    assert np.abs(errors(base.pose)[3:]).max() < 1e-3


def test_moved_base_is_reported_once_and_followed() -> None:
    base = BaseFollower()
    elsewhere = moved(X_SB, [0.05, 0, 0, 0, 0, 0])
    for k in range(100):
        base.update(0.01 * k, X_SB)
    told = [base.update(1.0 + 0.01 * k, elsewhere) for k in range(100)]
    assert told.count('moved') == 1
    assert told[:50] == ['jump'] * 50
    assert base.stray == 'moved by 50.0 mm (limit 10 mm)'
    np.testing.assert_allclose(base.pose, elsewhere, atol=1e-12)


def test_base_from_points_errs_within_its_covariance() -> None:
    known = np.array([[0.05, 0, 0], [0, 0.05, 0], [-0.05, 0, 0], [0, -0.05, 0], [0, 0, 0.01]])
    exact = base_from_points(known @ X_SB[:3, :3].T + X_SB[:3, 3], known)
    np.testing.assert_allclose(exact.pose, X_SB, atol=1e-12)
    rng = np.random.default_rng(2)
    scores = []
    for _ in range(400):
        seen = known @ X_SB[:3, :3].T + X_SB[:3, 3] + 1e-4 * rng.standard_normal(known.shape)
        found = base_from_points(seen, known)
        off = errors(found.pose)
        scores.append(off @ np.linalg.solve(found.covariance, off))
    # 9 degrees of freedom are left for the noise: 6 F(6, 9), mean 6 * 9 / 7, sd 7.3.
    assert np.mean(scores) == pytest.approx(6 * 9 / 7, abs=4 * 7.3 / np.sqrt(400))


@pytest.mark.parametrize(
    ('seen', 'what'),
    [
        (np.zeros((2, 3)), '2 points: expected at least 4'),
        (np.array([[0.05, 0, 0], [0, 0.05, 0], [-0.05, 0, 0]]), '3 points: expected at least 4'),
        (np.outer(np.arange(4.0), [1, 2, 3]), 'on a line'),
        (np.full((4, 3), np.nan), 'not finite'),
    ],
)
def test_points_that_define_no_frame_are_refused(seen: np.ndarray, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        base_from_points(seen, seen)


@pytest.mark.parametrize(
    ('unit', 'order'), [(1000.0, [0, 1, 2, 3]), (1e-3, [0, 1, 2, 3]), (1.0, [1, 0, 2, 3])]
)
def test_points_in_another_unit_or_order_are_refused(unit: float, order: list[int]) -> None:
    """Millimetres fitted to metres gave a base at a thousand times its distance."""
    known = np.array([[0.05, 0, 0], [0, 0.03, 0], [-0.06, 0, 0], [0, -0.05, 0.01]])
    seen = (known @ X_SB[:3, :3].T + X_SB[:3, 3])[order]
    with pytest.raises(ValueError, match=r'seen: .* from the known points \(limit .* in one unit'):
        base_from_points(unit * seen, known)


def test_pose_is_moved_along_the_axes_of_the_sensor() -> None:
    off = moved(X_SB, [0.1, 0, 0, 0, 0, 0.2])
    np.testing.assert_allclose(off[:3, 3] - X_SB[:3, 3], [0.1, 0, 0], atol=1e-15)
    np.testing.assert_allclose(off[:3, :3], exp_so3([0, 0, 0.2]) @ X_SB[:3, :3])
