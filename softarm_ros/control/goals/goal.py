"""Goals for a running arm, their checks, and reports of their outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from softarm_ros.control.goals.goal_errors import GoalError, JointNamesError, OldStampError
from softarm_ros.control.goals.tolerance import Tolerance
from softarm_ros.control.trajectory_config import MAX_DISTANCE_M, MIN_SPACING_M
from softarm_ros.geometry.arrays import Array

MAX_POINTS = 2000  # of a path or a trajectory
MAX_DURATION_S = 3600.0  # of a trajectory; a longer one would block the planner for other goals
AHEAD_S = 0.5  # a trajectory whose stamp lies less far in the future starts now
BELATED_S = 2.0  # latest arrival of a trajectory after its end; a busy computer delivers late
_QUATERNION_TOLERANCE = 1e-3


class GoalKind(str, Enum):
    """Form in which a goal arrived."""

    POSE = 'pose'
    STREAM = 'stream'
    PATH = 'path'
    CONFIGURATION = 'configuration'


class GoalState(str, Enum):
    """State of a goal; all but the first two are final."""

    PLANNING = 'planning'
    ACTIVE = 'active'
    REACHED = 'reached'
    OUT_OF_REACH = 'out_of_reach'  # arrived at the nearest point within reach
    MISSED = 'missed'  # arrived, but not within the tolerance in time
    STRAYED = 'strayed'  # left the tolerance during the motion
    PREEMPTED = 'preempted'
    CANCELLED = 'cancelled'
    REFUSED = 'refused'

    @property
    def final(self) -> bool:
        """Whether no more reports of the goal will follow."""
        return self not in (GoalState.PLANNING, GoalState.ACTIVE)


@dataclass(frozen=True)
class Goal:
    """
    A request to reach points or configurations.

    Attributes
    ----------
    number : int
        Consecutive number, given by the sender.
    kind : GoalKind
    points : (n, 3)
        Tip positions, base frame [m]; one for a pose or stream, none for a configuration.
    times_s : (k,)
        Times of the configurations since the start of the motion; empty for points.
    configurations, velocities : (k, dof)
        In the units of the configuration (per second); without velocities: (0, dof).
    tolerance : Tolerance, optional
        Tolerance of the measured configuration, for a configuration goal. None: no tolerance.

    """

    number: int
    kind: GoalKind
    points: Array
    times_s: Array
    configurations: Array
    velocities: Array
    tolerance: Tolerance | None = None


@dataclass(frozen=True)
class GoalReport:
    """
    State of a goal.

    If the target is out of reach, `nearest` (3,) [m] is the point within reach nearest to the
    target (of a path: to the point missed most), and `miss_m` the distance between them.
    """

    number: int
    kind: GoalKind
    state: GoalState
    message: str
    target: Array | None = None
    nearest: Array | None = None
    miss_m: float = 0.0


def point_goal(
    number: int,
    position: Sequence[float] | Array,
    orientation: Sequence[float] | Array | None = None,
    *,
    stream: bool = False,
) -> Goal:
    """
    Return a goal for the tip at a position (3,) [m]; an orientation x, y, z, w is only checked.

    Raises
    ------
    GoalError
        If values are not finite or too large, or the orientation is no unit quaternion.

    """
    point = _point('pose.position', position)
    if orientation is not None:
        quaternion = np.asarray(orientation, dtype=float)
        norm = float(np.linalg.norm(quaternion))
        if quaternion.shape != (4,) or not abs(norm - 1.0) <= _QUATERNION_TOLERANCE:
            raise GoalError(
                f'pose.orientation = {quaternion.tolist()} has length {norm:.4g}; expected 1 '
                f'(within {_QUATERNION_TOLERANCE:g})'
            )
    kind = GoalKind.STREAM if stream else GoalKind.POSE
    return _goal(number, kind, point[None])


def path_goal(number: int, points: Sequence[Sequence[float]] | Array) -> Goal:
    """
    Return a goal that leads the tip through points (n, 3) [m].

    Raises
    ------
    GoalError
        If the path is empty, too long, not finite, too far away, or repeats a point.

    """
    require_count('poses', len(points))
    line = np.asarray(points, dtype=float) if isinstance(points, np.ndarray) else np.empty(0)
    # All points at once for speed; one by one only to name the wrong one.
    if line.shape != (len(points), 3) or not np.all(np.abs(line) <= MAX_DISTANCE_M):
        line = np.array([_point(f'poses[{i}].pose.position', p) for i, p in enumerate(points)])
    gaps = np.linalg.norm(np.diff(line, axis=0), axis=1)
    for i in map(int, np.flatnonzero(gaps < MIN_SPACING_M)):
        raise GoalError(
            f'poses[{i}] and poses[{i + 1}] are {gaps[i]:.3g} m apart; '
            f'expected at least {MIN_SPACING_M:g} m'
        )
    return _goal(number, GoalKind.PATH, line)


def configuration_goal(
    number: int,
    names: Sequence[str],
    times_s: Sequence[float],
    positions: Sequence[Sequence[float] | Array],
    velocities: Sequence[Sequence[float] | Array] = (),
    *,
    expected: Sequence[str],
    ahead_s: float | None = None,
    tolerance: Tolerance | None = None,
) -> Goal:
    """
    Return a goal that leads the configuration through points, each at its time.

    `names` may be in any order, but must be all of `expected`. `velocities` are given for every
    point or for none. `ahead_s` is the lead of the trajectory's stamp over now [s]; None: no
    stamp.

    Raises
    ------
    GoalError
        If names (JointNamesError), stamp (OldStampError), times or values are invalid.

    """
    require_names(names, expected)
    count = len(positions)
    require_count('points', count)
    order = [list(names).index(name) for name in expected]
    given = _rows('positions', positions, names)
    if len(velocities) not in (0, count) or (
        any(len(v) for v in velocities) and not all(len(v) for v in velocities)
    ):
        raise GoalError('points[].velocities: expected in every point or in none')
    speeds = _rows('velocities', [v for v in velocities if len(v)], names)
    times = np.asarray(times_s, dtype=float)
    before = 0.0
    for i, time in enumerate(times.tolist()):
        # A single point may have time 0: as soon as the limits allow.
        least = before if i == 0 else np.nextafter(before, np.inf)
        if not (np.isfinite(time) and time >= least) or (i == 0 and count > 1 and time < 0.0):
            raise GoalError(
                f'points[{i}].time_from_start = {time:g} s; expected a time after {before:g} s'
            )
        before = time
    if before > MAX_DURATION_S:
        raise GoalError(
            f'points[{count - 1}].time_from_start = {before:g} s; expected at most '
            f'{MAX_DURATION_S:g} s'
        )
    if ahead_s is not None:
        _check_stamp(ahead_s, before)
    dof = len(expected)
    columns, rates = (rows.reshape(-1, dof)[:, order] for rows in (given, speeds))
    none = np.zeros((0, 3))
    return Goal(number, GoalKind.CONFIGURATION, none, times, columns, rates, tolerance)


def require_names(names: Sequence[str], expected: Sequence[str]) -> None:
    """Raise JointNamesError unless names are exactly the expected ones, in any order."""
    if sorted(names) != sorted(expected):
        raise JointNamesError(
            f'joint_names are [{", ".join(names)}]; expected all of [{", ".join(expected)}]'
        )


def require_count(field: str, count: int) -> None:
    """Raise GoalError if a path or a trajectory has no points or too many."""
    if not 1 <= count <= MAX_POINTS:
        raise GoalError(f'{field} has {count} entries; expected 1 to {MAX_POINTS}')


def _check_stamp(ahead_s: float, duration_s: float) -> None:
    """Raise GoalError if a trajectory should begin later, or would be over by now."""
    if ahead_s > AHEAD_S:
        raise GoalError(
            f'header.stamp lies {ahead_s:.3g} s in the future; expected 0 or now (within '
            f'{AHEAD_S:g} s)'
        )
    if -ahead_s > duration_s + BELATED_S:
        raise OldStampError(
            f'header.stamp lies {-ahead_s:.3g} s in the past, and the trajectory lasts '
            f'{duration_s:.3g} s; expected 0 or now (at most {BELATED_S:g} s after its end)'
        )


def _goal(number: int, kind: GoalKind, points: Array) -> Goal:
    nothing = np.zeros((0, 0))
    return Goal(number, kind, points, np.zeros(0), nothing, nothing)


def _point(field: str, position: Sequence[float] | Array) -> Array:
    point = np.asarray(position, dtype=float)
    if point.shape != (3,):
        raise GoalError(f'{field} has shape {point.shape}; expected (3,)')
    for axis, value in zip('xyz', point.tolist()):
        if not np.isfinite(value):
            raise GoalError(f'{field}.{axis} = {value}; expected a finite number of metres')
        if abs(value) > MAX_DISTANCE_M:
            raise GoalError(f'{field}.{axis} = {value:g} m; expected at most {MAX_DISTANCE_M:g} m')
    return point


def _rows(field: str, rows: Sequence[Sequence[float] | Array], names: Sequence[str]) -> Array:
    """Return a field of all points (n, dof); the GoalError names the first that is wrong."""
    if {len(row) for row in rows} <= {len(names)}:
        whole = np.array(rows, dtype=float)
        if np.isfinite(whole).all():
            return whole
    return np.array([_values(f'points[{i}].{field}', row, names) for i, row in enumerate(rows)])


def _values(field: str, values: Sequence[float] | Array, names: Sequence[str]) -> Array:
    row = np.asarray(values, dtype=float)
    if row.shape != (len(names),):
        raise GoalError(f'{field} has {row.size} values; expected {len(names)}')
    for name, value in zip(names, row.tolist()):
        if not np.isfinite(value):
            raise GoalError(f'{field}: {name} = {value}; expected a finite number')
    return row
