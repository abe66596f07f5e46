"""
Reads and writes poses, joint states and heartbeats as serialised bytes (CDR), without messages.

rclpy makes a Python object of every field of a message and looks it up by name. That cost the
nodes of a loop more processor time than the loop itself. This file reads and writes the topics of
every cycle as bytes; other nodes can use ordinary messages on the same topics.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseArray, PoseStamped
from nav_msgs.msg import Path
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import FluidPressure, JointState
from trajectory_msgs.msg import JointTrajectory

from softarm_ros.control.goals.goal import MAX_POINTS
from softarm_ros.geometry.arrays import Array
from softarm_ros.nodes.conversions import Health

Values = TypeVar('Values')

_LITTLE_ENDIAN = b'\x00\x01'  # plain CDR; the other two bytes of its header are unused options
_FRONT = struct.Struct('<4xiI')  # CDR header, stamp
_COUNT = struct.Struct('<I')
_DOUBLE = struct.Struct('<d')
_POINT = struct.Struct('<3d')
_DURATION = struct.Struct('<iI')
_STAMP, _POSE = 8, 56  # bytes
_LEVEL = struct.Struct('<4xB3x')  # CDR header, level of a status, padding
_S = 1_000_000_000
_NO_ROTATION = (0.0, 0.0, 0.0, 1.0)


class StampedPoses(NamedTuple):
    """Poses of one instant: stamp [ns], frame, and rows (n, 7) of position [m] and x, y, z, w."""

    stamp_ns: int
    frame_id: str
    rows: Array


class PressureValue(NamedTuple):
    """One gauge pressure: stamp [ns], name of its chamber or gripper, and value [Pa]."""

    stamp_ns: int
    name: str
    pressure_Pa: float


class PathValues(NamedTuple):
    """
    A path: stamp [ns], number of poses, and the frames and positions (n, 3) [m] of the poses.

    A pose without a frame has that of the path. If a path has more than `MAX_POINTS` poses, none
    is read: such a path is refused, and reading it would stall the loop.
    """

    stamp_ns: int
    size: int
    frames: tuple[str, ...]
    positions: Array


class TrajectoryValues(NamedTuple):
    """
    A trajectory: stamp [ns], names, number of points, and their times [s] and values.

    The values of a point are its positions and velocities; the velocities may be empty. No point
    is read if there are more than `MAX_POINTS`, as for `PathValues`.
    """

    stamp_ns: int
    name: tuple[str, ...]
    size: int
    times_s: tuple[float, ...]
    positions: tuple[Array, ...]
    velocities: tuple[Array, ...]


class JointValues(NamedTuple):
    """A joint state: stamp [ns], names, and arrays (m,) or (0,), in the joints' units."""

    stamp_ns: int
    name: tuple[str, ...]
    position: Array
    velocity: Array
    effort: Array


# -- reading ------------------------------------------------------------------------------------


def read_pose(data: bytes) -> StampedPoses:
    """Return the single pose (1, 7) of a serialised PoseStamped; struct.error if it is cut off."""
    data = _little_endian(data, PoseStamped)
    stamp_ns, frame_id, at = _header(data)
    return StampedPoses(stamp_ns, frame_id, _doubles(data, 7, at).reshape(1, 7))


def read_poses(data: bytes) -> StampedPoses:
    """Return the poses of a serialised PoseArray; struct.error if it is cut off."""
    data = _little_endian(data, PoseArray)
    stamp_ns, frame_id, at = _header(data)
    at = _aligned(at, 4)
    (count,) = _COUNT.unpack_from(data, at)
    return StampedPoses(stamp_ns, frame_id, _doubles(data, 7 * count, at + 4).reshape(-1, 7))


def read_joints(data: bytes) -> JointValues:
    """Return the values of a serialised JointState; struct.error if it is cut off."""
    return JointReader()(data)


class JointReader:
    """
    Reads as `read_joints`, faster if frame and names are those of the message before.

    These are the bytes between stamp and values, so equal bytes have the same meaning.
    """

    def __init__(self) -> None:
        self._front, self._names = b'', tuple[str, ...]()

    def __call__(self, data: bytes) -> JointValues:
        """Return the values of a serialised JointState; struct.error if it is cut off."""
        data = _little_endian(data, JointState)
        seconds, nanoseconds = _FRONT.unpack_from(data)
        at = _FRONT.size + len(self._front)
        if not self._front or not data.startswith(self._front, _FRONT.size):
            _, at = _text(data, _FRONT.size)
            at = _aligned(at, 4)
            (count,) = _COUNT.unpack_from(data, at)
            names, at = _texts(data, count, at + 4)
            self._front, self._names = data[_FRONT.size : at], tuple(names)
        position, at = _column(data, at)
        velocity, at = _column(data, at)
        effort, _ = _column(data, at)
        return JointValues(seconds * _S + nanoseconds, self._names, position, velocity, effort)


def read_path(data: bytes) -> PathValues:
    """Return the poses of a serialised Path; struct.error if it is cut off."""
    data = _little_endian(data, Path)
    stamp_ns, frame_id, at = _header(data)
    at = _aligned(at, 4)
    (count,) = _COUNT.unpack_from(data, at)
    if count > MAX_POINTS:
        return PathValues(stamp_ns, count, (), np.empty((0, 3)))
    at += 4
    frames, positions = [], np.empty((count, 3))
    for i in range(count):
        frame, at = _text(data, _aligned(at, 4) + _STAMP)
        at = _aligned(at, 8)
        if at + _POSE > len(data):
            raise struct.error(f'a pose at {at} in a message of {len(data)} bytes')
        positions[i] = _POINT.unpack_from(data, at)
        frames.append(frame or frame_id)
        at += _POSE
    return PathValues(stamp_ns, count, tuple(frames), positions)


def read_trajectory(data: bytes) -> TrajectoryValues:
    """Return the points of a serialised JointTrajectory; struct.error if it is cut off."""
    data = _little_endian(data, JointTrajectory)
    stamp_ns, _, at = _header(data)
    at = _aligned(at, 4)
    (count,) = _COUNT.unpack_from(data, at)
    names, at = _texts(data, count, at + 4)
    at = _aligned(at, 4)
    (count,) = _COUNT.unpack_from(data, at)
    if count > MAX_POINTS:
        return TrajectoryValues(stamp_ns, tuple(names), count, (), (), ())
    at += 4
    times, positions, velocities = [], [], []
    for _ in range(count):
        columns = []
        for _ in range(4):  # positions, velocities, accelerations, efforts
            column, at = _column(data, at)
            columns.append(column)
        at = _aligned(at, 4)
        seconds, nanoseconds = _DURATION.unpack_from(data, at)
        at += _DURATION.size
        times.append(seconds + nanoseconds / _S)
        positions.append(columns[0])
        velocities.append(columns[1])
    return TrajectoryValues(
        stamp_ns, tuple(names), count, tuple(times), tuple(positions), tuple(velocities)
    )


def read_pressure(data: bytes) -> PressureValue:
    """Return the pressure of a serialised FluidPressure; struct.error if it is cut off."""
    data = _little_endian(data, FluidPressure)
    stamp_ns, name, at = _header(data)
    (pressure_Pa,) = _DOUBLE.unpack_from(data, _aligned(at, 8))
    return PressureValue(stamp_ns, name, pressure_Pa)


def read_status(data: bytes) -> Health:
    """Return the health in a serialised DiagnosticStatus; struct.error if it is cut off."""
    data = _little_endian(data, DiagnosticStatus)
    (level,) = _LEVEL.unpack_from(data)
    (name, message, _), at = _texts(data, 3, _LEVEL.size)
    at = _aligned(at, 4)
    (count,) = _COUNT.unpack_from(data, at)
    texts, _ = _texts(data, 2 * count, at + 4)
    return Health(name, level, message, dict(zip(texts[::2], texts[1::2])))


def _texts(data: bytes, count: int, at: int) -> tuple[list[str], int]:
    """Return consecutive texts, and the offset of their end."""
    found = []
    for _ in range(count):
        text, at = _text(data, _aligned(at, 4))
        found.append(text)
    return found, at


def _little_endian(data: bytes, kind: type) -> bytes:
    """Return a message in little-endian plain CDR; another machine may have sent it otherwise."""
    if data[:2] == _LITTLE_ENDIAN:
        return data
    return bytes(serialize_message(deserialize_message(data, kind)))


def _header(data: bytes) -> tuple[int, str, int]:
    """Return stamp [ns], frame, and the offset of the header's end."""
    seconds, nanoseconds = _FRONT.unpack_from(data)
    frame_id, at = _text(data, _FRONT.size)
    return seconds * _S + nanoseconds, frame_id, at


def _text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _COUNT.unpack_from(data, at)
    end = at + 4 + length
    if end > len(data):
        raise struct.error(f'text of {length} bytes at {at} in a message of {len(data)}')
    return data[at + 4 : end - 1].decode(), end


def _column(data: bytes, at: int) -> tuple[Array, int]:
    """Return a sequence of numbers, and the offset of its end."""
    at = _aligned(at, 4)
    (length,) = _COUNT.unpack_from(data, at)
    numbers = _doubles(data, length, at + 4)
    return numbers, _aligned(at + 4, 8) + 8 * length if length else at + 4


def _doubles(data: bytes, count: int, at: int) -> Array:
    """Return numbers (count,) as a new array, which compiled code requires."""
    if count == 0:
        return np.empty(0)
    start = _aligned(at, 8)
    if start + 8 * count > len(data):
        raise struct.error(f'{count} numbers at {start} in a message of {len(data)} bytes')
    return np.frombuffer(data, '<f8', count, start).astype(float)


def _aligned(at: int, to: int) -> int:
    """Return the next offset aligned to `to` bytes, counted from the end of the CDR header."""
    return at + (4 - at) % to


# -- writing ------------------------------------------------------------------------------------


def pose_bytes(stamp_ns: int, frame_id: str, row: Array) -> bytes:
    """Return a serialised PoseStamped of a row (7,): position [m], quaternion x, y, z, w."""
    return _numbers_bytes(stamp_ns, frame_id, row)


def position_bytes(stamp_ns: int, frame_id: str, position: Array) -> bytes:
    """Return a serialised PoseStamped at a position (3,) [m], with no rotation."""
    return pose_bytes(stamp_ns, frame_id, np.array([*position, *_NO_ROTATION]))


def poses_bytes(stamp_ns: int, frame_id: str, rows: Array) -> bytes:
    """Return a serialised PoseArray of rows (n, 7)."""
    front = _padded(_written(frame_id), 4) + _COUNT.pack(len(rows))
    return _front(stamp_ns) + _padded(front, 8) + np.asarray(rows, '<f8').tobytes()


def wrench_bytes(stamp_ns: int, frame_id: str, wrench: Array) -> bytes:
    """Return a serialised WrenchStamped of a wrench (6,) [N, N m], force first, in a frame."""
    return _numbers_bytes(stamp_ns, frame_id, wrench)


def pressure_bytes(stamp_ns: int, name: str, pressure_Pa: float) -> bytes:
    """Return a serialised FluidPressure: the gauge pressure [Pa] of chamber or gripper `name`."""
    return _front(stamp_ns) + _padded(_written(name), 8) + struct.pack('<dd', pressure_Pa, 0.0)


def joint_bytes(
    names: Sequence[str],
    stamp_ns: int,
    position: Sequence[float] | Array,
    *,
    velocity: Sequence[float] | Array = (),
    effort: Sequence[float] | Array = (),
) -> bytes:
    """Return a serialised JointState of named values (m,)."""
    body = _names(tuple(names))
    for column in (position, velocity, effort):
        numbers = np.asarray(column, '<f8').tobytes()
        body = _padded(body, 4) + _COUNT.pack(len(numbers) // 8)
        if numbers:
            body = _padded(body, 8) + numbers
    return _front(stamp_ns) + body


def time_reference_bytes(stamp_ns: int, time_ns: int, source: str) -> bytes:
    """Return a serialised TimeReference."""
    return (
        _front(stamp_ns)
        + _padded(_written(''), 4)
        + struct.pack('<iI', time_ns // _S, time_ns % _S)
        + _written(source)
    )


def status_bytes(health: Health, hardware_id: str) -> bytes:
    """Return a serialised DiagnosticStatus of a node of the arm `hardware_id`."""
    pieces = [b'\x00\x01\x00\x00', bytes((health.level, 0, 0, 0))]
    for text in (health.name, health.message, hardware_id):
        pieces.append(_padded(_written(text), 4))
    pieces.append(_COUNT.pack(len(health.values)))
    last = b''  # the last text has no padding
    for key, value in health.values.items():
        data = value.encode() + b'\x00'
        last = _COUNT.pack(len(data)) + data
        pieces += (_padded(_written(key), 4), _padded(last, 4))
    if last:
        pieces[-1] = last
    return b''.join(pieces)


def _numbers_bytes(stamp_ns: int, frame_id: str, numbers: Array) -> bytes:
    """Return a serialised message that has a header, then numbers (n,), and nothing else."""
    return _front(stamp_ns) + _padded(_written(frame_id), 8) + np.asarray(numbers, '<f8').tobytes()


def _front(stamp_ns: int) -> bytes:
    return b'\x00\x01\x00\x00' + struct.pack('<iI', stamp_ns // _S, stamp_ns % _S)


@lru_cache(maxsize=64)
def _written(text: str) -> bytes:
    data = text.encode() + b'\x00'
    return _COUNT.pack(len(data)) + data


@lru_cache(maxsize=64)
def _names(names: tuple[str, ...]) -> bytes:
    """Return the bytes between stamp and values: an empty frame, then the names."""
    data = _padded(_written(''), 4) + _COUNT.pack(len(names))
    for name in names:
        data = _padded(data, 4) + _written(name)
    return data


def _padded(data: bytes, to: int) -> bytes:
    """Return bytes padded to a multiple of `to`; they follow the stamp, which has eight bytes."""
    return data + bytes(-len(data) % to)


# -- topics -------------------------------------------------------------------------------------


def listen(
    node: Node,
    read: Callable[[bytes], Values],
    topic: str,
    callback: Callable[[Values], None],
    qos: Any,
    **options: Any,
) -> None:
    """Subscribe to a topic whose messages `read` decodes; log messages it cannot decode."""
    decode: Callable[[bytes], Any] = JointReader() if read is read_joints else read

    def take(data: bytes) -> None:
        try:
            values = decode(data)
        except (struct.error, UnicodeDecodeError) as error:
            node.get_logger().warning(
                f'{topic}: a message cannot be read: {error}', throttle_duration_sec=1.0
            )
            return
        callback(values)

    node.create_subscription(_KINDS[read], topic, take, qos, raw=True, **options)


_KINDS: dict[Any, type] = {
    read_pose: PoseStamped,
    read_poses: PoseArray,
    read_path: Path,
    read_trajectory: JointTrajectory,
    read_joints: JointState,
    read_pressure: FluidPressure,
    read_status: DiagnosticStatus,
}
