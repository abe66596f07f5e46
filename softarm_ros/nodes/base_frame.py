"""Transforms measured poses to the base frame with TF, if they are in another frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.time import Time

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import pose, transforms_from_rows
from softarm_ros.geometry.rotations import matrix_from_quaternion
from softarm_ros.nodes.conversions import nanoseconds_of
from softarm_ros.nodes.wire import StampedPoses

MAX_AGE_S = 1.0  # of a transform that is not static: older ones have lost their publisher


class BaseFrame:
    """
    Transforms poses of foreign frames to the base frame.

    If tf2_ros is installed, listening to TF starts with `listen` or the first foreign frame. A
    pose stays in its foreign frame, and its reader refuses it, if TF does not know the frame
    (yet), or if the transform is older than `MAX_AGE_S` or more than `max_ahead_s` in the future,
    or not static and without a stamp. A static transform has no age.

    Parameters
    ----------
    node : Node
        Node that listens to TF.
    names : sequence of str
        Names of the base frame.
    max_ahead_s : float
        Largest time [s] by which the stamp of a transform may lie in the future. If its publisher
        falls silent, this is noticed later by as much.

    Attributes
    ----------
    unused : str
        Why the last foreign frame was not transformed although TF knows it; otherwise empty.

    """

    def __init__(self, node: Node, names: Sequence[str], max_ahead_s: float) -> None:
        self._node = node
        self._names = tuple(names)
        self._max_ahead_s = max_ahead_s
        self._buffer: Any = None
        self._errors: tuple[type[Exception], ...] = ()
        self._looked = False
        self.unused = ''

    def listen(self) -> None:
        """Listen to TF from now on if tf2_ros is installed: a pose that comes once cannot wait."""
        if self._looked:
            return
        self._looked = True
        try:
            import tf2_ros
        except ImportError:
            return
        self._errors = (tf2_ros.TransformException,)
        self._buffer = tf2_ros.Buffer()
        self._listener = tf2_ros.TransformListener(self._buffer, self._node)

    def tip_of(self, measured: StampedPoses) -> tuple[str, Array]:
        """Return the frame and position (3,) [m] of a pose, in the base frame if possible."""
        frame, position = measured.frame_id, measured.rows[0, :3]
        X_BF = self._to_base(frame)
        if X_BF is None:
            return frame, position
        return self._names[0], np.asarray(X_BF[:3, :3] @ position + X_BF[:3, 3])

    def sections_of(self, measured: StampedPoses) -> tuple[str, Array]:
        """Return the frame and transforms (n, 4, 4) of poses; ValueError if one is not finite."""
        frame, transforms = measured.frame_id, transforms_from_rows(measured.rows)
        X_BF = self._to_base(frame)
        return (frame, transforms) if X_BF is None else (self._names[0], X_BF @ transforms)

    def _to_base(self, frame: str) -> Array | None:
        """Return the transform (4, 4) of a foreign frame to the base frame, or None."""
        self.unused = ''
        if not frame or frame in self._names:
            return None
        self.listen()
        if self._buffer is None:
            self._node.get_logger().warning(
                'a pose is not in the base frame, and tf2_ros is not installed to transform it',
                once=True,
            )
            return None
        for name in reversed(self._names):
            try:
                found = self._buffer.lookup_transform(name, frame, Time())
            except self._errors:
                continue
            self.unused = self._wrong_time(name, frame, nanoseconds_of(found.header.stamp))
            if self.unused:
                self._node.get_logger().warning(self.unused, throttle_duration_sec=5.0)
                return None
            p, q = found.transform.translation, found.transform.rotation
            return pose(matrix_from_quaternion([q.x, q.y, q.z, q.w]), [p.x, p.y, p.z])
        return None

    def _wrong_time(self, name: str, frame: str, stamp_ns: int) -> str:
        """Return what is wrong with the stamp of a transform to the base frame `name`, or ''."""
        now = self._node.get_clock().now()
        if stamp_ns == 0:
            # Only static transforms, which get the stamp 0, are valid now as well.
            if self._buffer.can_transform(name, frame, now):
                return ''
            return f'TF of frame {frame!r} has no stamp (0): expected the time of its measurement'
        age_s = 1e-9 * (now.nanoseconds - stamp_ns)
        if -self._max_ahead_s <= age_s <= MAX_AGE_S:
            return ''
        if age_s < 0.0:
            return (
                f'TF of frame {frame!r} lies {-age_s:.6g} s in the future; expected at most '
                f'{self._max_ahead_s:g} s: the clocks of both computers must agree'
            )
        return f'TF of frame {frame!r} is {age_s:.6g} s old; expected at most {MAX_AGE_S:g} s'
