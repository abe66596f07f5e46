import math

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
from builtin_interfaces.msg import Time

from softarm_ros.geometry.poses import transforms_from_rows
from softarm_ros.geometry.rotations import exp_so3
from softarm_ros.models.cable_driven.bending import configuration_of_tips
from softarm_ros.nodes import conversions
from softarm_ros.nodes.arm_drawing import ArmDrawing, Cylinder, Drawing
from softarm_ros.nodes.conversions import Health
from softarm_ros.rigs.loader import list_rigs, load_rig
from softarm_ros.runtime.events import Event

pytestmark = pytest.mark.ros
STAMP = Time(sec=1_790_000_123, nanosec=987_654_321)


def transform(rotation_vector, position):
    result = np.eye(4)
    result[:3, :3] = exp_so3(np.array(rotation_vector, dtype=float))
    result[:3, 3] = position
    return result


@pytest.mark.parametrize(
    'nanoseconds', [0, 1, 999_999_999, 1_000_000_000, 1_790_000_123_987_654_321]
)
def test_time_stamp_round_trip_is_exact_to_the_nanosecond(nanoseconds):
    assert conversions.nanoseconds_of(conversions.time_message(nanoseconds)) == nanoseconds


def test_stamp_converts_to_seconds_and_clock_seconds_to_nanoseconds():
    assert conversions.seconds_of(Time(sec=3, nanosec=250_000_000)) == 3.25
    assert conversions.nanoseconds_of(conversions.clock_message(12.002).clock) == 12_002_000_000


def transform_of(pose):
    p, q = pose.position, pose.orientation
    return transforms_from_rows([(p.x, p.y, p.z, q.x, q.y, q.z, q.w)])[0]


@pytest.mark.parametrize('vector', [(0, 0, 0), (0.3, -1.2, 0.7), (3.1, 0, 0), (0, -2.9, 1.0)])
def test_pose_round_trip(vector):
    original = transform(vector, (0.1, -0.2, 0.25))
    message = conversions.pose_message(original, STAMP, 'arm/base')
    assert message.header.frame_id == 'arm/base'
    assert message.header.stamp == STAMP
    np.testing.assert_allclose(transform_of(message.pose), original, atol=1e-14)
    np.testing.assert_array_equal(conversions.position_of(message), original[:3, 3])


def test_position_message_preserves_nan():
    message = conversions.position_message([np.nan, 0.0, 0.1], STAMP, 'arm/base')
    assert np.isnan(conversions.position_of(message)[0])


@pytest.mark.parametrize('bending', [(0, 0, 0, 0), (0.5, -0.2, 0.1, 0.9), (-1.5, 0.3, 0.0, 2.0)])
def test_bending_of_section_tips_inverts_the_model(bending):
    model = load_rig('cable_arm').model('constant_curvature')
    tips = model.shape_of(np.array(bending, dtype=float)).section_tips
    np.testing.assert_allclose(configuration_of_tips(tips), bending, atol=1e-9)


def test_bending_ignores_twist_about_the_axis():
    twisted = np.array([transform((0, 0, 0.2), (0, 0, 0.1))])
    np.testing.assert_allclose(configuration_of_tips(twisted), 0.0, atol=1e-12)


def test_joint_state_round_trip():
    message = conversions.joint_message(
        ('a', 'b'), np.array([1.0, 2.0]), STAMP, velocity=[3, 4], effort=(5, 6)
    )
    np.testing.assert_array_equal(conversions.positions_of(message, ('a', 'b')), [1.0, 2.0])
    assert list(message.velocity) == [3.0, 4.0]
    assert list(message.effort) == [5.0, 6.0]


@pytest.mark.parametrize(
    ('names', 'expected'),
    [
        (('a', 'c'), r'names are \[a, b\]; expected \[a, c\]'),
        (('b', 'a'), 'in this order'),
        (('a',), r'expected \[a\]'),
    ],
)
def test_joint_state_with_unexpected_names_or_order_is_refused(names, expected):
    message = conversions.joint_message(('a', 'b'), [1.0, 2.0], STAMP)
    with pytest.raises(ValueError, match=expected):
        conversions.positions_of(message, names)


def test_joint_state_with_missing_values_is_refused():
    message = conversions.joint_message(('a', 'b'), [1.0], STAMP)
    with pytest.raises(ValueError, match='1 positions for 2 names'):
        conversions.positions_of(message, ('a', 'b'))


@pytest.mark.parametrize('level', [0, 1, 2, 3])
def test_health_round_trip(level):
    health = Health('tracker', level, 'it is so', {'phase': 'track', 'lap': '2'})
    assert conversions.health_of(conversions.status_message(health, 'cable_arm')) == health
    array = conversions.diagnostics_message(health, 'cable_arm', STAMP)
    assert array.status[0].name == 'cable_arm/tracker'
    assert array.status[0].hardware_id == 'cable_arm'


def test_events_round_trip_among_other_values():
    events = {7: Event(12.5, 'warning', 'tracker', 'a "quoted", odd: message')}
    values = {'phase': 'track', **dict(conversions.event_value(*e) for e in events.items())}
    assert conversions.events_of(values) == events


def test_unreadable_events_are_left_out():
    event = Event(1.0, 'info', 'tracker', 'done')
    values = dict([conversions.event_value(3, event)])
    foreign = {'event 4': 'no JSON', 'event x': '[]', 'event 5': '[1.0]', 'event ': ''}
    assert conversions.events_of(values | foreign) == {3: event}


@pytest.mark.parametrize('text', ['', 'fast', 'nan', 'inf', None])
def test_a_value_that_is_no_number_counts_as_missing(text):
    values = {} if text is None else {'late_ms': text}
    assert conversions.number_of(values, 'late_ms', 7.0) == 7.0
    assert math.isnan(conversions.number_of(values, 'late_ms'))
    assert conversions.number_of({'late_ms': '2.5'}, 'late_ms', 7.0) == 2.5


def test_path_round_trip():
    points = np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(
        conversions.path_points(conversions.path_message(points, STAMP, 'arm/base')), points
    )


@pytest.mark.parametrize('radius_m', [0.0015, 0.2])
def test_line_width_scales_with_the_radius_of_the_arm(radius_m):
    part = Cylinder(np.zeros(3), np.array([0.0, 0.0, 12.0 * radius_m]), radius_m, 0)
    points = np.outer(np.arange(3.0), [0.0, 0.0, radius_m])
    arm = Drawing([part], [points], np.zeros((1, 3)))
    drawn = conversions.arm_markers(arm, points, points[:2], STAMP, 'arm/base').markers[1:]
    drawn.append(conversions.path_marker(points, radius_m, STAMP, 'arm/base'))
    assert len(drawn) == 4
    for marker in drawn:
        assert 0.05 < marker.scale.x / radius_m < 0.1


def test_body_markers_match_the_shape_of_the_model():
    rig = load_rig('cable_arm')
    bending = np.array([0.8, -0.3, -0.4, 0.6])
    drawing = ArmDrawing(rig, pieces_per_section=6).at(bending, None)
    body = drawing.body
    tip = rig.model('constant_curvature').shape_of(bending).tip[:3, 3]
    np.testing.assert_allclose(body[-1].end, tip, atol=1e-12)
    np.testing.assert_allclose(body[0].start, 0.0, atol=1e-12)
    none = np.zeros((0, 3))
    message = conversions.arm_markers(drawing, none, none, STAMP, 'arm/base')
    cylinders = [m for m in message.markers if m.type == m.CYLINDER]
    assert len(cylinders) == 2 * 6
    for part, marker in zip(body, cylinders):
        pose = transform_of(marker.pose)
        half = 0.5 * marker.scale.z * pose[:3, 2]
        np.testing.assert_allclose(pose[:3, 3] - half, part.start, atol=1e-12)
        np.testing.assert_allclose(pose[:3, 3] + half, part.end, atol=1e-12)
    keys = {(m.ns, m.id) for m in message.markers}
    assert len(keys) == len(message.markers)
    for name in ('trail', 'error'):
        line = next(m for m in message.markers if m.ns == name)
        assert line.action == line.DELETE  # rviz warns of a line without points


@pytest.mark.parametrize('end', [(0, 0, 1), (0, 0, -1), (1, 0, 0), (0.3, -0.5, -0.7)])
def test_cylinder_marker_points_along_any_axis(end):
    none = np.zeros((0, 3))
    arm = Drawing([Cylinder(np.zeros(3), np.array(end, dtype=float), 0.01, 0)], [], none)
    (marker, *_) = conversions.arm_markers(arm, none, none, STAMP, 'arm/base').markers
    q = marker.pose.orientation
    assert q.x**2 + q.y**2 + q.z**2 + q.w**2 == pytest.approx(1.0)
    axis = transform_of(marker.pose)[:3, 2] * marker.scale.z
    np.testing.assert_allclose(axis, end, atol=1e-12)


@pytest.mark.parametrize('name', [info.name for info in list_rigs()])
def test_every_arm_is_drawn_for_rviz_with_its_strands_coloured_by_effort(name):
    """Only cable-driven arms had lines, all of one colour; rods, chambers and muscles had none."""
    rig = load_rig(name)
    limits = rig.actuator_limits()
    command = limits.position_min.copy()
    command[0] = limits.position_max[0]
    drawing = ArmDrawing(rig).at(rig.model().rest_configuration, command)
    none = np.zeros((0, 3))
    drawn = conversions.arm_markers(drawing, none, none, STAMP, rig.base_frame).markers
    lines = [marker for marker in drawn if marker.ns == 'strands']
    strands = rig.arm.strands()
    assert len(lines) == len(strands) >= len(rig.actuators)
    for strand, line in zip(strands, lines):
        assert line.action == line.ADD and len(line.points) > 1
        red = line.color.r > line.color.b
        assert red == (strand.actuator == 0), strand


def test_obstacles_of_a_rig_file_are_drawn_at_their_place_and_attitude():
    box = {'name': 'wall', 'centre_m': [0.1, 0.2, 0.3], 'size_m': [0.4, 0.02, 0.6]}
    rig = load_rig('cable_arm', [f'obstacles={[{**box, "turn_deg": [0.0, 0.0, 90.0]}]}'])
    (marker,) = conversions.obstacle_markers(rig.obstacles, rig.base_frame)
    assert marker.type == marker.CUBE and marker.header.frame_id == rig.base_frame
    assert [marker.scale.x, marker.scale.y, marker.scale.z] == [0.4, 0.02, 0.6]
    pose = transform_of(marker.pose)
    np.testing.assert_allclose(pose[:3, 3], [0.1, 0.2, 0.3])
    np.testing.assert_allclose(pose[:3, :2], [[0, -1], [1, 0], [0, 0]], atol=1e-12)
