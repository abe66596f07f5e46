"""Messages read from bytes and written as bytes agree with those of rclpy."""

import struct

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')

from builtin_interfaces.msg import Duration
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseArray, PoseStamped, WrenchStamped
from hypothesis import given
from hypothesis import strategies as st
from nav_msgs.msg import Path
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import FluidPressure, JointState, TimeReference
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from softarm_ros.control.goals.goal import MAX_POINTS
from softarm_ros.nodes import conversions, wire

pytestmark = pytest.mark.ros
TEXTS = st.text(st.characters(codec='utf-8', exclude_characters='\x00'), max_size=9)
STAMPS = st.integers(0, (2**31 - 1) * 10**9 + 999_999_999)
NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
COLUMNS = st.lists(NUMBERS, max_size=7)
ROWS = st.lists(st.lists(NUMBERS, min_size=7, max_size=7), max_size=4)


A_TRAJECTORY = JointTrajectory(
    joint_names=['one'], points=[JointTrajectoryPoint(positions=[0.1], velocities=[0.2])] * 2
)


def pose_of(row):
    message = PoseStamped().pose
    p, q = message.position, message.orientation
    p.x, p.y, p.z, q.x, q.y, q.z, q.w = row
    return message


def row_of(pose):
    p, q = pose.position, pose.orientation
    return [p.x, p.y, p.z, q.x, q.y, q.z, q.w]


def stamped(kind, stamp_ns, frame_id, **fields):
    message = kind(**fields)
    message.header.stamp, message.header.frame_id = conversions.time_message(stamp_ns), frame_id
    return message


def assert_stamped(message, stamp_ns, frame_id):
    assert conversions.nanoseconds_of(message.header.stamp) == stamp_ns
    assert message.header.frame_id == frame_id


@given(STAMPS, TEXTS, st.lists(NUMBERS, min_size=7, max_size=7))
def test_pose_bytes_agree_with_rclpy(stamp_ns, frame_id, row):
    message = stamped(PoseStamped, stamp_ns, frame_id, pose=pose_of(row))
    read = wire.read_pose(bytes(serialize_message(message)))
    assert read[:2] == (stamp_ns, frame_id)
    np.testing.assert_array_equal(read.rows, [row])
    back = deserialize_message(wire.pose_bytes(stamp_ns, frame_id, np.array(row)), PoseStamped)
    assert_stamped(back, stamp_ns, frame_id)
    np.testing.assert_array_equal(row_of(back.pose), row)


@given(STAMPS, TEXTS, st.lists(NUMBERS, min_size=6, max_size=6))
def test_wrench_bytes_agree_with_rclpy(stamp_ns, frame_id, wrench):
    back = deserialize_message(
        wire.wrench_bytes(stamp_ns, frame_id, np.array(wrench)), WrenchStamped
    )
    assert_stamped(back, stamp_ns, frame_id)
    force, torque = back.wrench.force, back.wrench.torque
    found = [force.x, force.y, force.z, torque.x, torque.y, torque.z]
    np.testing.assert_array_equal(found, wrench)


@given(STAMPS, TEXTS, NUMBERS)
def test_pressure_bytes_agree_with_rclpy(stamp_ns, name, pressure_Pa):
    message = stamped(FluidPressure, stamp_ns, name, fluid_pressure=pressure_Pa, variance=2.0)
    read = wire.read_pressure(bytes(serialize_message(message)))
    np.testing.assert_equal(read, (stamp_ns, name, pressure_Pa))
    back = deserialize_message(wire.pressure_bytes(stamp_ns, name, pressure_Pa), FluidPressure)
    assert_stamped(back, stamp_ns, name)
    np.testing.assert_equal((back.fluid_pressure, back.variance), (pressure_Pa, 0.0))


@given(st.integers(0, 3), TEXTS, TEXTS, TEXTS, st.dictionaries(TEXTS, TEXTS, max_size=5))
def test_status_bytes_agree_with_rclpy_and_truncated_ones_raise(level, name, text, arm, values):
    health = conversions.Health(name, level, text, values)
    data = bytes(serialize_message(conversions.status_message(health, arm)))
    assert wire.read_status(data) == health
    written = wire.status_bytes(health, arm)
    back = deserialize_message(written, DiagnosticStatus)
    assert conversions.health_of(back) == health
    assert back.hardware_id == arm
    assert len(written) <= len(data)  # no bytes after the last text
    for end in range(4, len(written)):
        with pytest.raises(struct.error):
            wire.read_status(written[:end])


@given(STAMPS, TEXTS, ROWS)
def test_pose_array_bytes_agree_with_rclpy(stamp_ns, frame_id, rows):
    message = stamped(PoseArray, stamp_ns, frame_id, poses=[pose_of(row) for row in rows])
    expected = np.reshape(rows, (-1, 7))
    read = wire.read_poses(bytes(serialize_message(message)))
    assert read[:2] == (stamp_ns, frame_id)
    np.testing.assert_array_equal(read.rows, expected)
    back = deserialize_message(wire.poses_bytes(stamp_ns, frame_id, expected), PoseArray)
    assert_stamped(back, stamp_ns, frame_id)
    np.testing.assert_array_equal(np.reshape([row_of(p) for p in back.poses], (-1, 7)), expected)


@given(STAMPS, st.lists(TEXTS, max_size=7), COLUMNS, COLUMNS, COLUMNS)
def test_joint_state_bytes_agree_with_rclpy(stamp_ns, names, position, velocity, effort):
    columns = {'position': position, 'velocity': velocity, 'effort': effort}
    message = stamped(JointState, stamp_ns, 'frame', name=names, **columns)
    read = wire.read_joints(bytes(serialize_message(message)))
    assert read[:2] == (stamp_ns, tuple(names))
    written = wire.joint_bytes(names, stamp_ns, position, velocity=velocity, effort=effort)
    back = deserialize_message(written, JointState)
    assert_stamped(back, stamp_ns, '')
    assert back.name == names
    for name, column in columns.items():
        np.testing.assert_array_equal(getattr(read, name), column)
        np.testing.assert_array_equal(getattr(back, name), column)


NAMES = st.sampled_from([['one', 'two'], ['one', 'tw'], ['two', 'one'], ['one'], []])
JOINTS = st.tuples(NAMES, st.sampled_from(['', 'base']), COLUMNS, COLUMNS)


@given(st.lists(JOINTS, min_size=2, max_size=5))
def test_reader_of_a_topic_reads_each_message_as_if_it_were_the_first(sent):
    reader = wire.JointReader()
    for stamp_ns, (names, frame_id, position, effort) in enumerate(sent):
        message = stamped(
            JointState, stamp_ns, frame_id, name=names, position=position, effort=effort
        )
        read = reader(bytes(serialize_message(message)))
        assert read[:2] == (stamp_ns, tuple(names))
        for found, expected in zip(read[2:], (position, [], effort)):
            np.testing.assert_array_equal(found, expected)


def test_reader_of_a_topic_refuses_a_cut_message_after_a_whole_one():
    whole = wire.joint_bytes(['one', 'two'], 1, [0.1, 0.2], effort=[3.0, 4.0])
    reader = wire.JointReader()
    for size in range(4, len(whole)):
        assert reader(whole).name == ('one', 'two')
        with pytest.raises(struct.error):
            reader(whole[:size])


@given(STAMPS, TEXTS, st.lists(st.tuples(TEXTS, st.lists(NUMBERS, min_size=7, max_size=7))))
def test_path_is_read_from_bytes_of_rclpy(stamp_ns, frame_id, poses):
    message = stamped(Path, stamp_ns, frame_id)
    message.poses = [stamped(PoseStamped, 5, frame, pose=pose_of(row)) for frame, row in poses]
    read = wire.read_path(bytes(serialize_message(message)))
    assert (read.stamp_ns, read.size) == (stamp_ns, len(poses))
    assert read.frames == tuple(frame or frame_id for frame, _ in poses)
    rows = np.array([row for _, row in poses]).reshape(-1, 7)
    np.testing.assert_array_equal(read.positions, rows[:, :3])


POINTS = st.lists(st.tuples(COLUMNS, COLUMNS, COLUMNS, COLUMNS, st.integers(-9, 10**10)))


@given(STAMPS, TEXTS, st.lists(TEXTS, max_size=4), POINTS)
def test_trajectory_is_read_from_bytes_of_rclpy(stamp_ns, frame_id, names, points):
    message = stamped(JointTrajectory, stamp_ns, frame_id, joint_names=names)
    for position, velocity, acceleration, effort, time_ns in points:
        point = JointTrajectoryPoint(
            positions=position, velocities=velocity, accelerations=acceleration, effort=effort
        )
        point.time_from_start = Duration(sec=time_ns // 10**9, nanosec=time_ns % 10**9)
        message.points.append(point)
    read = wire.read_trajectory(bytes(serialize_message(message)))
    assert (read.stamp_ns, read.name, read.size) == (stamp_ns, tuple(names), len(points))
    for k, (position, velocity, _, _, time_ns) in enumerate(points):
        np.testing.assert_array_equal(read.positions[k], position)
        np.testing.assert_array_equal(read.velocities[k], velocity)
        assert read.times_s[k] == pytest.approx(1e-9 * time_ns, abs=1e-9)


def test_no_point_of_a_message_with_too_many_points_is_read():
    path = Path(poses=[PoseStamped()] * (MAX_POINTS + 1))
    read = wire.read_path(bytes(serialize_message(path)))
    assert (read.size, len(read.positions)) == (MAX_POINTS + 1, 0)
    trajectory = JointTrajectory(points=[JointTrajectoryPoint()] * (MAX_POINTS + 1))
    read = wire.read_trajectory(bytes(serialize_message(trajectory)))
    assert (read.size, len(read.positions)) == (MAX_POINTS + 1, 0)


def test_read_arrays_are_writeable_aligned_and_contiguous_for_compiled_code():
    read = wire.read_joints(wire.joint_bytes(['a', 'bc'], 0, [1.0, 2.0]))
    assert read.position.dtype == np.float64
    for flag in ('WRITEABLE', 'ALIGNED', 'C_CONTIGUOUS'):
        assert read.position.flags[flag]


def test_big_endian_message_is_read():
    text = b'base\x00'
    front = struct.pack('>iII', 3, 5, len(text)) + text
    row = np.arange(7.0)
    data = b'\x00\x00\x00\x00' + front + bytes(-len(front) % 8) + row.astype('>f8').tobytes()
    read = wire.read_pose(data)
    assert read[:2] == (3_000_000_005, 'base')
    np.testing.assert_array_equal(read.rows, [row])


@pytest.mark.parametrize(
    ('read', 'data'),
    [
        (wire.read_pose, wire.pose_bytes(1, 'base', np.zeros(7))),
        (wire.read_poses, wire.poses_bytes(1, 'base', np.zeros((2, 7)))),
        (wire.read_joints, wire.joint_bytes(['one', 'two'], 1, [0.1, 0.2])),
        # rclpy leaves some bytes after a message; these end after 172 and 132 bytes.
        (
            wire.read_path,
            bytes(serialize_message(Path(poses=[PoseStamped()] * 2)))[:172] + bytes(8),
        ),
        (wire.read_trajectory, bytes(serialize_message(A_TRAJECTORY))[:132] + bytes(8)),
    ],
    # Not the bytes: padding between fields may differ in each worker of pytest-xdist.
    ids=['pose', 'poses', 'joints', 'path', 'trajectory'],
)
def test_truncated_message_raises_wherever_it_is_cut(read, data):
    for length in range(2, len(data) - 8):
        with pytest.raises(struct.error):
            read(data[:length])


@given(STAMPS, STAMPS, TEXTS)
def test_time_reference_bytes_agree_with_rclpy(stamp_ns, time_ns, source):
    data = wire.time_reference_bytes(stamp_ns, time_ns, source)
    back = deserialize_message(data, TimeReference)
    assert_stamped(back, stamp_ns, '')
    assert conversions.nanoseconds_of(back.time_ref) == time_ns
    assert back.source == source
