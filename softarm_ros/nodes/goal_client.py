"""Sends goals to a running arm and collects the reports on them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from builtin_interfaces.msg import Duration
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Joy
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from softarm_ros.geometry.arrays import Array
from softarm_ros.nodes import conversions
from softarm_ros.nodes.conversions import Health
from softarm_ros.nodes.goal_intake import STATUS
from softarm_ros.nodes.graph_listener import GraphListener
from softarm_ros.nodes.qos import GOALS, MEASUREMENT, REPORTS, VISUAL, newest
from softarm_ros.nodes.wire import StampedPoses, listen, read_pose, read_status
from softarm_ros.rigs.schema import Rig

TRACKER = 'tracker'


class GoalSender:
    """
    Publishes goals from the node of a listener.

    Parameters
    ----------
    listener : GraphListener
        Listens to the graph of the arm; its node publishes the goals.
    rig : Rig
        Rig of the arm.

    """

    def __init__(self, listener: GraphListener, rig: Rig) -> None:
        self._listener, self._frame = listener, rig.base_frame
        self._names = rig.model().configuration_names
        node = listener.node
        self._pose = node.create_publisher(PoseStamped, 'goal/pose', GOALS)
        self._stream = node.create_publisher(PoseStamped, 'goal/stream', MEASUREMENT)
        self._path = node.create_publisher(Path, 'goal/path', GOALS)
        self._trajectory = node.create_publisher(
            JointTrajectory, 'configuration/trajectory', GOALS
        )

    @property
    def heard(self) -> bool:
        """Whether the tracker receives goals from here; a recorder alone does not count."""
        publishers = (self._pose, self._stream, self._path, self._trajectory)
        return all(map(self._reaches_tracker, publishers))

    def _reaches_tracker(self, publisher: Publisher) -> bool:
        """
        Return whether this publisher reaches the tracker.

        ROS gives the number of matched subscriptions and the list of known ones, but not which of
        them are matched. The tracker is certainly matched when all compatible ones are.
        """
        node, offered = self._listener.node, publisher.qos_profile
        listening = [
            info
            for info in node.get_subscriptions_info_by_topic(publisher.topic_name)
            if _can_reach(offered, info.qos_profile)
        ]
        tracker = (TRACKER, node.get_namespace())
        known = any((info.node_name, info.node_namespace) == tracker for info in listening)
        return known and publisher.get_subscription_count() >= len(listening)

    def pose(self, position: Sequence[float] | Array) -> int:
        """Send a target (3,) [m] for the tip in the base frame; return its stamp [ns]."""
        return self._send(self._pose, position)

    def stream(self, position: Sequence[float] | Array) -> int:
        """Send one target (3,) [m] of a stream; return its stamp [ns]."""
        return self._send(self._stream, position)

    def path(self, points: Array) -> None:
        """Send a path (n, 3) [m] in the base frame, driven from rest to rest."""
        stamp = self._listener.node.get_clock().now().to_msg()
        self._path.publish(conversions.path_message(points, stamp, self._frame))

    def configuration(self, values: Sequence[float] | Array, least_s: float = 0.0) -> int:
        """
        Send a configuration (dof,) to be reached as soon as limits allow; return its stamp [ns].

        The motion takes at least `least_s` [s].
        """
        whole, part = divmod(round(1e9 * least_s), 10**9)
        point = JointTrajectoryPoint(
            positions=[float(v) for v in values],
            time_from_start=Duration(sec=whole, nanosec=part),
        )
        message = JointTrajectory(joint_names=list(self._names), points=[point])
        message.header.stamp = self._listener.node.get_clock().now().to_msg()
        self._trajectory.publish(message)
        return conversions.nanoseconds_of(message.header.stamp)

    def _send(self, publisher: object, position: Sequence[float] | Array) -> int:
        stamp = self._listener.node.get_clock().now().to_msg()
        message = conversions.position_message(position, stamp, self._frame)
        publisher.publish(message)  # type: ignore[attr-defined]
        return conversions.nanoseconds_of(stamp)


class GoalClient(GraphListener):
    """
    Sends goals to the arm of a rig, and keeps the reports on them.

    Attributes
    ----------
    send : GoalSender
        Publishes the goals.
    reports : list of Health
        Reports on goals, oldest first.
    reference : (3,), optional
        Newest reference of the tip [m].

    """

    def __init__(self, rig: Rig, name: str = 'goal_client') -> None:
        super().__init__(name, f'/{rig.name}', services=['goal/cancel'])
        self.reports: list[Health] = []
        self.reference: Array | None = None
        self.send = GoalSender(self, rig)
        listen(self.node, read_status, STATUS, self.reports.append, REPORTS)
        listen(self.node, read_pose, 'reference/pose', self._on_reference, newest(VISUAL))

    def wait_until_heard(self, timeout_s: float = 5.0) -> str | None:
        """Wait for a running arm that receives goals; return what is missing, or None."""
        end = time.monotonic() + timeout_s
        while True:
            self.spin(0.05)
            missing = self._missing()
            if missing is None or time.monotonic() > end:
                return missing

    def of_stamp(self, stamp_ns: int) -> list[Health]:
        """Return the reports on the goal with a stamp [ns]."""
        return [
            report for report in self.reports if report.values.get('stamp_ns') == str(stamp_ns)
        ]

    def listen_to_joy(self, topic: str, callback: Callable[[Sequence[float]], None]) -> None:
        """Call a function with the axes of each message of a gamepad."""
        self.node.create_subscription(
            Joy, topic, lambda message: callback(list(message.axes)), MEASUREMENT
        )

    def _missing(self) -> str | None:
        if not self.fresh(TRACKER, 1.0):
            return 'no graph is running'
        if self.value(TRACKER, 'takes_goals') != 'true':
            return 'the running arm follows a trajectory and takes no goals'
        if not self.send.heard or self.reference is None:
            return 'its topics have not been found yet'
        return None

    def _on_reference(self, pose: StampedPoses) -> None:
        self.reference = pose.rows[0, :3]


def _can_reach(offered: QoSProfile, asked: QoSProfile) -> bool:
    """Return whether a publisher's QoS profile satisfies that of a subscription."""
    unreliable = offered.reliability is ReliabilityPolicy.BEST_EFFORT
    forgetful = offered.durability is DurabilityPolicy.VOLATILE
    return not (
        (unreliable and asked.reliability is ReliabilityPolicy.RELIABLE)
        or (forgetful and asked.durability is DurabilityPolicy.TRANSIENT_LOCAL)
    )
