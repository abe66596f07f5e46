"""Pose of the arm's base in the frame of a sensor: from a body on the base, or by calibration."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array, finite_array
from softarm_ros.geometry.rotations import exp_so3, log_so3

WINDOW_S = 2.0
MOVED_S = 0.5  # a base that stays elsewhere for this long has been moved
MOVED_M = 0.01
MOVED_RAD = np.radians(10.0)
# Points that miss the known ones by more than this share of their distance from the middle, and
# by more than this length, are others or in another order or unit.
_MISFIT, _MISFIT_M = 0.1, 5.0e-3
# Three points always lie in a plane: an error across it tilts the base and leaves no residual.
_FEWEST_POINTS = 4


class BaseFollower:
    """
    Averages the pose of the base body over `WINDOW_S`.

    The base is fixed, so differences between frames are noise. Rotation noise moves the tip with
    the arm's length as lever (2 mrad at 0.3 m: 0.6 mm, three times the noise of a marker).
    Poses far from the average are rejected (`flip`, `jump`); if the base stays elsewhere for
    `MOVED_S`, it has been moved, and the average restarts there.

    Attributes
    ----------
    moves : int
        Number of times the base has been moved.
    stray : str
        Distance from the average of the last rejected pose, or of the moved base, as text.

    """

    def __init__(self) -> None:
        self.moves = 0
        self.stray = ''
        self._pose: Array | None = None
        self._window: deque[tuple[float, Array]] = deque()
        self._strays: list[tuple[float, Array]] = []

    @property
    def pose(self) -> Array | None:
        """Pose of the base in the sensor's frame (4, 4); None before the first sight."""
        return self._pose

    @property
    def samples(self) -> int:
        """Number of poses in the average."""
        return len(self._window)

    def update(self, time_s: float, pose: Array) -> str:
        """Take a pose (4, 4); return '' or its fault: `flip`, `jump`, `moved`."""
        if self._pose is not None:
            wrong, text = _far(self._pose, pose)
            if wrong:
                self.stray = text
                if not self._stays(time_s, pose):
                    return wrong
                self._window.clear()
                self.moves += 1
                self._pose = None
                self._add(time_s, pose)
                return 'moved'
        self._strays.clear()
        self._add(time_s, pose)
        return ''

    def _add(self, time_s: float, pose: Array) -> None:
        self._strays.clear()
        window = self._window
        window.append((time_s, pose.copy()))
        while window[0][0] < time_s - WINDOW_S or len(window) > 1000:
            window.popleft()
        start = pose if self._pose is None else self._pose
        self._pose = mean_pose([p for _, p in window], start)

    def _stays(self, time_s: float, pose: Array) -> bool:
        seen = self._strays
        if seen and _far(seen[-1][1], pose)[0]:
            seen.clear()
        seen[1:] = [(time_s, pose.copy())]
        return time_s - seen[0][0] >= MOVED_S


def _far(reference: Array, pose: Array) -> tuple[str, str]:
    """Return '', `flip` or `jump`, and a text on the distance of a pose from a reference."""
    turn = float(np.linalg.norm(log_so3(reference[:3, :3].T @ pose[:3, :3])))
    if turn > MOVED_RAD:
        limit = np.degrees(MOVED_RAD)
        return 'flip', f'turned by {np.degrees(turn):.0f} degrees (limit {limit:.0f} degrees)'
    way_m = float(np.linalg.norm(pose[:3, 3] - reference[:3, 3]))
    if way_m > MOVED_M:
        return 'jump', f'moved by {1e3 * way_m:.1f} mm (limit {1e3 * MOVED_M:.0f} mm)'
    return '', ''


def mean_pose(poses: Sequence[Array], start: Array) -> Array:
    """Return the mean of poses (n, 4, 4) that lie close together: one step from `start`."""
    stacked = np.asarray(poses)
    mean = np.eye(4)
    mean[:3, 3] = stacked[:, :3, 3].mean(axis=0)
    # For small differences, the mean of the matrices is a rotation up to second order.
    u, _, vt = np.linalg.svd(stacked[:, :3, :3].mean(axis=0))
    mean[:3, :3] = u @ np.diag([1.0, 1.0, np.linalg.det(u @ vt)]) @ vt
    return mean


@dataclass(frozen=True)
class BaseCalibration:
    """
    Pose of the base in the frame of a sensor, with its uncertainty.

    Attributes
    ----------
    pose : (4, 4)
        Base frame to sensor frame.
    covariance : (6, 6)
        Covariance of position [m2], then rotation vector [rad2], both along the sensor's axes.
    rms_m : float
        Root mean square of the residuals of the points or poses [m].

    """

    pose: Array
    covariance: Array
    rms_m: float


def base_from_points(seen: ArrayLike, known: ArrayLike) -> BaseCalibration:
    """
    Fit the pose of the base to points on it that were touched with a probe, or have markers.

    Parameters
    ----------
    seen : (n, 3)
        Points in the sensor's frame [m]; n at least 4.
    known : (n, 3)
        The same points in the base frame [m].

    Returns
    -------
    BaseCalibration
        Least-squares fit (Kabsch, Umeyama 1991); its covariance uses the noise estimated from the
        residuals.

    Raises
    ------
    ValueError
        If there are too few points, they lie on a line, or they are not the known ones: another
        unit or order.

    """
    seen, known = np.asarray(seen, dtype=float), np.asarray(known, dtype=float)
    if seen.shape != known.shape or seen.ndim != 2 or seen.shape[1] != 3:
        raise ValueError(
            f'seen, known: expected points (n, 3) each, got {seen.shape}, {known.shape}'
        )
    if len(seen) < _FEWEST_POINTS:
        raise ValueError(
            f'{len(seen)} points: expected at least {_FEWEST_POINTS}; with three, an error across '
            'their plane tilts the base and shows in no residual'
        )
    for name, points in (('seen', seen), ('known', known)):
        finite_array(points, points.shape, name)
        spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
        if spread[1] < 1e-3 * max(spread[0], 1e-6):
            raise ValueError(f'{name}: the points lie on a line; expected a triangle or more')
    centre_seen, centre = seen.mean(axis=0), known.mean(axis=0)
    u, _, vt = np.linalg.svd((seen - centre_seen).T @ (known - centre))
    rotation = u @ np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ vt))]) @ vt
    base = np.eye(4)
    base[:3, :3], base[:3, 3] = rotation, centre_seen - rotation @ centre
    residuals = seen - (known @ rotation.T + base[:3, 3])
    freedom = 3 * len(seen) - 6
    variance = float(np.sum(residuals**2)) / freedom
    # d(point) = d(position) + d(turn) x (point - origin of the base)
    jacobian = np.zeros((3 * len(seen), 6))
    for k, point in enumerate(known @ rotation.T):
        jacobian[3 * k : 3 * k + 3, :3] = np.eye(3)
        x, y, z = point
        jacobian[3 * k : 3 * k + 3, 3:] = [[0, z, -y], [-z, 0, x], [y, -x, 0]]
    covariance = np.asarray(variance * np.linalg.inv(jacobian.T @ jacobian), dtype=float)
    rms = float(np.sqrt(np.mean(np.sum(residuals**2, axis=1))))
    apart_seen, apart = (
        float(np.sqrt(np.mean(np.sum((points - points.mean(axis=0)) ** 2, axis=1))))
        for points in (seen, known)
    )
    limit = max(_MISFIT * apart, _MISFIT_M)
    if rms > limit:
        raise ValueError(
            f'seen: {rms:.3g} m (rms) from the known points (limit {limit:.2g} m), and '
            f'{apart_seen:.3g} m from their middle, where the known ones are {apart:.3g} m from '
            'theirs: expected both in one unit, in the same order, and right-handed'
        )
    return BaseCalibration(base, covariance, rms)


def moved(pose: Array, error: ArrayLike) -> Array:
    """Return a pose (4, 4) displaced by an error (6,): position [m], rotation vector [rad]."""
    error = np.asarray(error, dtype=float)
    off = pose.copy()
    off[:3, :3] = exp_so3(error[3:]) @ pose[:3, :3]
    off[:3, 3] = pose[:3, 3] + error[:3]
    return off
