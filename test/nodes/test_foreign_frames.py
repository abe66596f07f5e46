"""Poses in foreign frames are used if TF has a transform that is new enough."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')

from geometry_msgs.msg import TransformStamped
from rclpy.logging import get_logger
from rclpy.time import Time

from softarm_ros.nodes.base_frame import MAX_AGE_S, BaseFrame
from softarm_ros.nodes.conversions import time_message
from softarm_ros.nodes.wire import StampedPoses

NOW_NS = 50 * 10**9
AHEAD_S = 0.05


class UnknownFrameError(Exception):
    """Stands in for the exception of tf2_ros for an unknown frame."""


@pytest.fixture
def transforms(monkeypatch):
    """Replace tf2_ros, which the ROS wheels lack; return its transforms, by frame."""
    heard = {}

    class Buffer:
        def lookup_transform(self, _, frame, __):
            if frame not in heard:
                raise UnknownFrameError
            return heard[frame]

    tf2_ros = ModuleType('tf2_ros')
    tf2_ros.Buffer, tf2_ros.TransformException = Buffer, UnknownFrameError
    tf2_ros.TransformListener = lambda buffer, node: node.listeners.append(buffer)
    monkeypatch.setitem(sys.modules, 'tf2_ros', tf2_ros)
    return heard


def node():
    clock = SimpleNamespace(now=lambda: Time(nanoseconds=NOW_NS))
    return SimpleNamespace(
        listeners=[], get_clock=lambda: clock, get_logger=lambda: get_logger('foreign_frames')
    )


def base_frame(of_node):
    return BaseFrame(of_node, ('base', 'arm/base'), AHEAD_S)


def at(stamp_ns):
    found = TransformStamped()
    found.header.stamp = time_message(stamp_ns)
    found.transform.translation.x, found.transform.rotation.w = 0.5, 1.0
    return found


def pose_in(frame):
    return StampedPoses(0, frame, np.array([[0.1, 0.0, 0.2, 0.0, 0.0, 0.0, 1.0]]))


def test_repeated_listen_and_a_foreign_pose_create_one_tf_listener(transforms):
    own = node()
    base = base_frame(own)
    assert not own.listeners
    base.listen()
    base.listen()
    base.tip_of(pose_in('camera'))
    assert len(own.listeners) == 1


@pytest.mark.parametrize(
    ('age_s', 'told'),
    [
        (0.0, ''),
        (0.9 * MAX_AGE_S, ''),
        (6.3, "TF of frame 'cart' is 6.3 s old; expected at most 1 s"),
        (-0.9 * AHEAD_S, ''),
        (-3600.0, "TF of frame 'cart' lies 3600 s in the future; expected at most 0.05 s"),
        (-0.3, "TF of frame 'cart' lies 0.3 s in the future; expected at most 0.05 s"),
    ],
)
def test_stale_or_future_transform_of_a_moving_frame_is_not_used(transforms, age_s, told):
    transforms['cart'] = at(NOW_NS - round(1e9 * age_s))
    base, used = base_frame(node()), not told
    frame, position = base.tip_of(pose_in('cart'))
    assert frame == ('base' if used else 'cart')
    np.testing.assert_allclose(position, [0.6 if used else 0.1, 0.0, 0.2])
    assert base.unused.startswith(told) and bool(base.unused) == bool(told)
    assert base.sections_of(pose_in('cart'))[0] == frame


def test_static_transform_never_expires_and_an_unknown_frame_is_not_converted(transforms):
    transforms['camera'] = at(0)
    base = base_frame(node())
    assert base.tip_of(pose_in('camera'))[0] == 'base'
    assert base.tip_of(pose_in('nowhere'))[0] == 'nowhere'
    assert base.unused == ''
