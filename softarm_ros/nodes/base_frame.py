"""Measured poses in the base frame: as they are, or brought there by TF where TF knows how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.time import Time

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import pose, transforms_from_rows
from softarm_ros.geometry.rotations import matrix_from_quaternion
from softarm_ros.nodes.wire import StampedPoses


class BaseFrame:
    """
    Brings poses of foreign frames into the base frame.

    TF is listened to from the first foreign frame on, where tf2_ros is installed. A frame that TF
    does not know (yet) stays foreign: whoever reads the pose refuses it.

    Parameters
    ----------
    node : Node
        That listens.
    names : sequence of str
        Of the base frame.

    """

    def __init__(self, node: Node, names: Sequence[str]) -> None:
        self._node = node
        self._names = tuple(names)
        self._buffer: Any = None
        self._errors: tuple[type[Exception], ...] = ()
        self._looked = False

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
        """Return the transform (4, 4) of a foreign frame to the base, None if there is none."""
        if not frame or frame in self._names:
            return None
        if not self._looked:
            self._listen()
        if self._buffer is None:
            return None
        for name in reversed(self._names):
            try:
                found = self._buffer.lookup_transform(name, frame, Time()).transform
            except self._errors:
                continue
            p, q = found.translation, found.rotation
            return pose(matrix_from_quaternion([q.x, q.y, q.z, q.w]), [p.x, p.y, p.z])
        return None

    def _listen(self) -> None:
        self._looked = True
        try:
            import tf2_ros
        except ImportError:
            self._node.get_logger().warning(
                'a pose is not in the base frame, and tf2_ros is not installed to transform it'
            )
            return
        self._errors = (tf2_ros.TransformException,)
        self._buffer = tf2_ros.Buffer()
        self._listener = tf2_ros.TransformListener(self._buffer, self._node)
