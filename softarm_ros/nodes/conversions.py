"""Converts between ROS messages and arrays; the only file that knows both."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import (
    Point,
    Pose,
    PoseStamped,
    PoseWithCovarianceStamped,
    Quaternion,
    TransformStamped,
    TwistStamped,
    Vector3,
)
from nav_msgs.msg import Path
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from softarm_ros.control.estimator import Estimate
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import rows_from_transforms
from softarm_ros.runtime.events import Event

if TYPE_CHECKING:
    from softarm_ros.nodes.arm_drawing import Cylinder, Drawing
    from softarm_ros.rigs.obstacle import ObstacleConfig


OK, WARN, ERROR, STALE = 0, 1, 2, 3


# -- time -------------------------------------------------------------------------------------


def time_message(nanoseconds: int) -> Time:
    """Return a time message; time stamps stay integers so that equal ones compare equal."""
    return Time(sec=nanoseconds // 1_000_000_000, nanosec=nanoseconds % 1_000_000_000)


def nanoseconds_of(stamp: Time) -> int:
    """Return a time stamp as an integer number of nanoseconds."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def seconds_of(stamp: Time) -> float:
    """Return a time stamp [s], accurate to 0.3 us for dates of this century."""
    return float(stamp.sec) + 1e-9 * float(stamp.nanosec)


def clock_message(seconds: float) -> Clock:
    """Return the message for /clock at a simulated time [s]."""
    return Clock(clock=time_message(round(seconds * 1e9)))


# -- poses ------------------------------------------------------------------------------------


def _pose_messages(transforms: Array) -> list[Pose]:
    """Return the poses of transforms (n, 4, 4)."""
    return [
        Pose(position=Point(x=x, y=y, z=z), orientation=Quaternion(x=i, y=j, z=k, w=w))
        for x, y, z, i, j, k, w in rows_from_transforms(transforms).tolist()
    ]


def pose_message(transform: Array, stamp: Time, frame: str) -> PoseStamped:
    """Return the stamped pose of a transform (4, 4) in the frame named `frame`."""
    message = PoseStamped(pose=_pose_messages(transform)[0])
    message.header.stamp = stamp
    message.header.frame_id = frame
    return message


def estimate_message(estimate: Estimate, frame: str) -> PoseWithCovarianceStamped:
    """Return the tip pose of an estimate; unknown covariances are zeros, as usual in ROS."""
    message, tip = PoseWithCovarianceStamped(), estimate.tip
    message.header.stamp = time_message(round(1e9 * estimate.stamp_s))
    message.header.frame_id = frame
    if not np.isfinite(tip[:3, :3]).all():  # only the position is known
        tip = np.eye(4)
        tip[:3, 3] = estimate.tip[:3, 3]
    message.pose.pose = _pose_messages(tip)[0]
    if estimate.tip_covariance is not None:
        message.pose.covariance = estimate.tip_covariance.ravel()
    return message


def twist_message(estimate: Estimate, frame: str) -> TwistStamped | None:
    """Return the velocity of the tip along the axes of the base frame; None if not estimated."""
    if estimate.tip_twist is None:
        return None
    message = TwistStamped()
    message.header.stamp = time_message(round(1e9 * estimate.stamp_s))
    message.header.frame_id = frame
    linear, angular = message.twist.linear, message.twist.angular
    linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = estimate.tip_twist.tolist()
    return message


def innovation_values(estimate: Estimate | None) -> dict[str, str]:
    """Return the mean squared normalised innovation for diagnostics; empty without innovations."""
    if estimate is None or estimate.innovations is None or not estimate.innovations.rows:
        return {}
    return {'innovations': f'{estimate.innovations.mean:.3f}'}


def load_values(estimate: Estimate | None) -> dict[str, str]:
    """Return the estimated tip load [N] in the base frame, its sd and status; or nothing."""
    load = None if estimate is None else estimate.tip_load
    if load is None:
        return {}
    sd = np.sqrt(np.maximum(np.diagonal(load.covariance), 0.0))
    return {
        'tip_load_N': ' '.join(f'{value:.3f}' for value in load.force),
        'tip_load_sd_N': ' '.join(f'{value:.3f}' for value in sd),
        'tip_load': load.problem or 'estimated',
    }


def position_message(position: Sequence[float] | Array, stamp: Time, frame: str) -> PoseStamped:
    """Return a stamped pose at a position (3,) [m] in a frame, with no rotation."""
    message = PoseStamped()
    message.header.stamp = stamp
    message.header.frame_id = frame
    p = message.pose.position
    p.x, p.y, p.z = (float(x) for x in position)
    return message


def transform_message(transform: Array, stamp: Time, parent: str, child: str) -> TransformStamped:
    """Return the message of a frame's transform (4, 4) in its parent frame."""
    message = TransformStamped(child_frame_id=child)
    message.header.stamp, message.header.frame_id = stamp, parent
    ((x, y, z, i, j, k, w),) = rows_from_transforms(transform).tolist()
    message.transform.translation = Vector3(x=x, y=y, z=z)
    message.transform.rotation = Quaternion(x=i, y=j, z=k, w=w)
    return message


def position_of(message: PoseStamped) -> Array:
    """Return the position (3,) [m] of a stamped pose; it may hold NaN."""
    p = message.pose.position
    return np.array([p.x, p.y, p.z])


def path_message(points: Array, stamp: Time, frame: str) -> Path:
    """Return a path through points (n, 3) [m] in a frame."""
    message = Path(poses=[position_message(p, stamp, frame) for p in points])
    message.header.stamp = stamp
    message.header.frame_id = frame
    return message


def path_points(message: Path) -> Array:
    """Return the points (n, 3) [m] of a path."""
    return np.array([position_of(p) for p in message.poses]).reshape(-1, 3)


def point_messages(points: Array) -> list[Point]:
    """Return points (n, 3) [m] as a list of messages."""
    return [Point(x=x, y=y, z=z) for x, y, z in np.asarray(points, dtype=float).tolist()]


# -- joint states -----------------------------------------------------------------------------


def joint_message(
    names: Sequence[str],
    position: Sequence[float] | Array,
    stamp: Time,
    *,
    velocity: Sequence[float] | Array = (),
    effort: Sequence[float] | Array = (),
) -> JointState:
    """Return the joint state of named values (m,)."""
    message = JointState(
        name=list(names),
        position=np.asarray(position, dtype=float).tolist(),
        velocity=np.asarray(velocity, dtype=float).tolist(),
        effort=np.asarray(effort, dtype=float).tolist(),
    )
    message.header.stamp = stamp
    return message


def positions_of(message: JointState, names: Sequence[str]) -> Array:
    """
    Return the positions (m,) of a joint state whose names are exactly `names`, in order.

    Raises
    ------
    ValueError
        If names or number differ; the error text gives the expected ones.

    """
    if list(message.name) != list(names):
        raise ValueError(
            f'names are [{", ".join(message.name)}]; expected [{", ".join(names)}] in this order'
        )
    if len(message.position) != len(names):
        raise ValueError(f'{len(message.position)} positions for {len(names)} names')
    return np.array(message.position, dtype=float)


# -- diagnostics ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Health:
    """Health of a node: level (0 ok, 1 warning, 2 error, 3 stale), message, values as text."""

    name: str
    level: int
    message: str
    values: dict[str, str] = field(default_factory=dict)


def status_message(health: Health, hardware_id: str) -> DiagnosticStatus:
    """Return the diagnostic status of a node of the arm `hardware_id`."""
    return DiagnosticStatus(
        level=bytes([health.level]),
        name=health.name,
        message=health.message,
        hardware_id=hardware_id,
        values=[KeyValue(key=k, value=v) for k, v in health.values.items()],
    )


def health_of(message: DiagnosticStatus) -> Health:
    """Return the health in a diagnostic status."""
    level = message.level[0] if isinstance(message.level, bytes) else int(message.level)
    return Health(
        message.name, level, message.message, {item.key: item.value for item in message.values}
    )


def diagnostics_message(health: Health, hardware_id: str, stamp: Time) -> DiagnosticArray:
    """Return a node's health for /diagnostics; the arm's name precedes the node's name."""
    full = Health(f'{hardware_id}/{health.name}', health.level, health.message, health.values)
    message = DiagnosticArray(status=[status_message(full, hardware_id)])
    message.header.stamp = stamp
    return message


def event_value(number: int, e: Event) -> tuple[str, str]:
    """Return the diagnostic key and value of a numbered event, whose time is ROS time [s]."""
    return f'event {number}', json.dumps([e.time_s, e.level, e.source, e.message])


def events_of(values: Mapping[str, str]) -> dict[int, Event]:
    """Return the events in diagnostic values, by number; other values are left out."""
    found = {}
    for key, text in values.items():
        if key.startswith('event '):
            with contextlib.suppress(ValueError, TypeError):  # of a node of another package
                found[int(key.removeprefix('event '))] = Event(*json.loads(text))
    return found


def number_of(values: Mapping[str, str], key: str, default: float = math.nan) -> float:
    """Return a diagnostic value as a number, or the default if it is missing or not finite."""
    try:
        number = float(values[key])
    except (KeyError, ValueError):  # of a node of another package
        return default
    return number if math.isfinite(number) else default


def computed_ms(values: Mapping[str, str]) -> float:
    """Return the time [ms] in which 99 % of a tracker's cycles are computed; 0 if not known."""
    _, p99, *_ = [*values.get('compute_ms', '').split(), '', '']
    return number_of({'p99': p99}, 'p99', 0.0)


# -- markers ------------------------------------------------------------------------------------

_SECTIONS = (0.90, 0.72, 0.55, 0.6), (0.74, 0.56, 0.42, 0.6)  # in turn
_ERROR = (0.86, 0.16, 0.16, 1.0)
_OBSTACLE = (0.59, 0.63, 0.67, 0.5)
_TRAIL = (0.10, 0.45, 0.85, 1.0)
_REFERENCE = (0.10, 0.65, 0.25, 1.0)
_LINE_WIDTH, _PATH_WIDTH = 0.094, 0.0625  # shares of the thinnest section's radius


def path_marker(points: Array, radius_m: float, stamp: Time, frame: str) -> Marker:
    """Return the marker of the reference path (n, 3) [m]; its width follows the arm's radius."""
    return _line('reference', 0, points, _PATH_WIDTH * radius_m, _REFERENCE, stamp, frame)


def arm_markers(
    drawing: Drawing, trail: Array, error: Array, stamp: Time, frame: str
) -> MarkerArray:
    """
    Return the markers of an arm in its base frame, which is named `frame`.

    `trail` (n, 3) [m] are past positions of the tip; `error` (2, 3) [m] are the measured tip and
    its reference, or (0, 3) if one of them is not known.
    """
    drawn = [_cylinder(i, part, stamp, frame) for i, part in enumerate(drawing.body)]
    width = _LINE_WIDTH * min(part.radius for part in drawing.body)
    for i, (line, colour) in enumerate(zip(drawing.strands, drawing.colours / 255.0)):
        drawn.append(_line('strands', i, line, width, (*colour.tolist(), 1.0), stamp, frame))
    drawn.append(_line('trail', 0, trail, width, _TRAIL, stamp, frame))
    drawn.append(_line('error', 0, error, width, _ERROR, stamp, frame))
    return MarkerArray(markers=drawn)


def obstacle_markers(boxes: Sequence[ObstacleConfig], frame: str) -> list[Marker]:
    """Return the markers of boxes in the base frame, which is named `frame`, without stamps."""
    drawn = []
    for i, box in enumerate(boxes):
        marker = _marker('obstacles', i, Marker.CUBE, _OBSTACLE, Time(), frame)
        p, q, size = marker.pose.position, marker.pose.orientation, marker.scale
        p.x, p.y, p.z = box.centre_m
        q.x, q.y, q.z, q.w = box.quaternion.tolist()
        size.x, size.y, size.z = box.size_m
        drawn.append(marker)
    return drawn


def _marker(
    namespace: str, number: int, kind: int, color: tuple[float, ...], stamp: Time, frame: str
) -> Marker:
    marker = Marker(ns=namespace, id=number, type=kind, action=Marker.ADD)
    marker.header.stamp = stamp
    marker.header.frame_id = frame
    marker.color = ColorRGBA(**dict(zip('rgba', color)))
    return marker


def _cylinder(number: int, part: Cylinder, stamp: Time, frame: str) -> Marker:
    color = _SECTIONS[part.section % 2]
    marker = _marker('body', number, Marker.CYLINDER, color, stamp, frame)
    ax, ay, az = (part.end - part.start).tolist()
    length = max(math.sqrt(ax * ax + ay * ay + az * az), 1e-6)
    p, q = marker.pose.position, marker.pose.orientation
    p.x, p.y, p.z = (0.5 * (part.start + part.end)).tolist()
    q.x, q.y, q.w = _turn_z_to(ax / length, ay / length, az / length)
    marker.scale.x = marker.scale.y = 2.0 * part.radius
    marker.scale.z = length
    return marker


def _turn_z_to(x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return quaternion x, y, w (z is 0) of the shortest rotation of the z axis to (x, y, z)."""
    if z < -1.0 + 1e-12:
        return 1.0, 0.0, 0.0
    scale = 1.0 / math.sqrt(2.0 * (1.0 + z))
    return -y * scale, x * scale, (1.0 + z) * scale


def _line(
    namespace: str,
    number: int,
    points: Array,
    width: float,
    color: tuple[float, ...],
    stamp: Time,
    frame: str,
) -> Marker:
    marker = _marker(namespace, number, Marker.LINE_STRIP, color, stamp, frame)
    marker.pose.orientation.w = 1.0
    marker.scale.x = width
    marker.points = point_messages(points)
    if len(points) < 2:
        marker.action = Marker.DELETE
    return marker
