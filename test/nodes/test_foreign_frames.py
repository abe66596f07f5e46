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
from softarm_ros.nodes.conversions import nanoseconds_of, time_message
from softarm_ros.nodes.wire import StampedPoses

NOW_NS = 50 * 10**9
AHEAD_S = 0.05


class UnknownFrameError(Exception):
    """Stands in for the exception of tf2_ros for an unknown frame."""


class StandIn:
    """Stands in for the buffer of tf2_ros, which the ROS wheels lack: each frame in the base."""

    def __init__(self):
        self._heard, self._static = {}, set()

    def set_transform(self, heard, _):
        self._heard[heard.child_frame_id] = heard

    def set_transform_static(self, heard, _):
        self._static.add(heard.child_frame_id)
        heard.header.stamp = time_message(0)
        self.set_transform(heard, _)

    def lookup_transform(self, base, frame, _):
        if base != 'arm/base' or frame not in self._heard:
            raise UnknownFrameError
        return self._heard[frame]

    def can_transform(self, base, frame, at):
        """Return whether TF knows the frame at a time other than 0."""
        found = self.lookup_transform(base, frame, at)
        return frame in self._static or nanoseconds_of(found.header.stamp) >= at.nanoseconds


@pytest.fixture(params=['stand-in', 'tf2_ros'])
def transforms(request, monkeypatch):
    """Return a function that puts a transform into the buffer, of tf2_ros or a stand-in for it."""
    if request.param == 'tf2_ros':
        tf2_ros = pytest.importorskip('tf2_ros', reason='not in the ROS wheels')
    else:
        tf2_ros = ModuleType('tf2_ros')
        tf2_ros.Buffer, tf2_ros.TransformException = StandIn, UnknownFrameError
        monkeypatch.setitem(sys.modules, 'tf2_ros', tf2_ros)
    buffer = tf2_ros.Buffer()
    monkeypatch.setattr(tf2_ros, 'Buffer', lambda: buffer)

    def listener(buffer, node):
        node.listeners.append(buffer)

    monkeypatch.setattr(tf2_ros, 'TransformListener', listener, raising=False)

    def put(frame, stamp_ns, *, static=False):
        heard = TransformStamped(child_frame_id=frame)
        heard.header.frame_id, heard.header.stamp = 'arm/base', time_message(stamp_ns)
        heard.transform.translation.x, heard.transform.rotation.w = 0.5, 1.0
        (buffer.set_transform_static if static else buffer.set_transform)(heard, 'test')

    return put


def node():
    clock = SimpleNamespace(now=lambda: Time(nanoseconds=NOW_NS))
    return SimpleNamespace(
        listeners=[], get_clock=lambda: clock, get_logger=lambda: get_logger('foreign_frames')
    )


def base_frame(of_node):
    return BaseFrame(of_node, ('base', 'arm/base'), AHEAD_S)


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
        (1.003, "TF of frame 'cart' is 1.003 s old; expected at most 1 s"),
        (1e-9 * NOW_NS, "TF of frame 'cart' has no stamp (0): expected the time of its measure"),
        (-0.9 * AHEAD_S, ''),
        (-3600.0, "TF of frame 'cart' lies 3600 s in the future; expected at most 0.05 s"),
        (-0.3, "TF of frame 'cart' lies 0.3 s in the future; expected at most 0.05 s"),
    ],
)
def test_stale_or_future_transform_of_a_moving_frame_is_not_used(transforms, age_s, told):
    transforms('cart', NOW_NS - round(1e9 * age_s))
    base, used = base_frame(node()), not told
    frame, position = base.tip_of(pose_in('cart'))
    assert frame == ('base' if used else 'cart')
    np.testing.assert_allclose(position, [0.6 if used else 0.1, 0.0, 0.2])
    assert base.unused.startswith(told) and bool(base.unused) == bool(told)
    assert base.sections_of(pose_in('cart'))[0] == frame


def test_static_transform_never_expires_and_an_unknown_frame_is_not_converted(transforms):
    transforms('camera', NOW_NS - 20 * 10**9, static=True)
    base = base_frame(node())
    assert base.tip_of(pose_in('camera'))[0] == 'base'
    assert base.tip_of(pose_in('nowhere'))[0] == 'nowhere'
    assert base.unused == ''
