"""Feeds a pose sensor with images and transforms that other ROS nodes publish."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from softarm_ros.nodes.qos import listening
from softarm_ros.perception.sensor import PoseSensor, SensorError, TopicSensor, TransformSensor
from softarm_ros.perception.tf.frame_tree import FrameTransform
from softarm_ros.requirements import ros_package_hint

DEPTH = 100  # queue of transforms, as in tf2


class SensorTopics:
    """Subscribes to the topics that a sensor needs."""

    def __init__(self, node: Any) -> None:
        self._node = node
        self._images: dict[str, Any] = {}
        self._transforms: list[Any] = []

    def before_open(self, sensor: PoseSensor) -> None:
        """Give a sensor its image sources; each image topic is subscribed to only once."""
        if not isinstance(sensor, TopicSensor):
            return
        for which, topic in sensor.topics().items():
            if topic not in self._images:
                from softarm_ros.nodes.camera_topics import subscribe

                compressed = topic.endswith('/compressed')
                self._images[topic] = subscribe(self._node, topic, compressed=compressed)
            sensor.take_from(which, self._images[topic])

    def after_open(self, sensor: PoseSensor) -> None:
        """
        Subscribe to transforms for a sensor that needs them, including latched static ones.

        Raises
        ------
        SensorError
            If tf2_msgs is not installed.

        """
        if not isinstance(sensor, TransformSensor):
            return
        try:
            from tf2_msgs.msg import TFMessage
        except ImportError:
            raise SensorError(f'sensors.tf: {ros_package_hint("tf2_msgs")}') from None
        self.drop_transforms()
        for topic, qos in (
            ('/tf', listening(depth=DEPTH)),
            ('/tf_static', listening(depth=DEPTH, reliable=True, latched=True)),
        ):
            take = self._taking(sensor, static=topic == '/tf_static')
            self._transforms.append(self._node.create_subscription(TFMessage, topic, take, qos))

    def drop_transforms(self) -> None:
        """End the TF subscriptions: only a new subscription receives static transforms again."""
        while self._transforms:
            self._node.destroy_subscription(self._transforms.pop())

    def _taking(self, sensor: TransformSensor, *, static: bool) -> Callable[[Any], None]:
        def take(message: Any) -> None:
            now_ns = self._node.get_clock().now().nanoseconds
            sensor.take_transforms(
                transforms_of(message.transforms), static=static, received_ns=now_ns
            )

        return take


def transforms_of(messages: Any) -> list[FrameTransform]:
    """Return the transforms of geometry_msgs/TransformStamped messages."""
    found = []
    for message in messages:
        stamp = message.header.stamp
        p, q = message.transform.translation, message.transform.rotation
        found.append(
            FrameTransform(
                stamp.sec * 1_000_000_000 + stamp.nanosec,
                message.header.frame_id.lstrip('/'),
                message.child_frame_id.lstrip('/'),
                (p.x, p.y, p.z),
                (q.x, q.y, q.z, q.w),
            )
        )
    return found
