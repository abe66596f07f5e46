"""Node that shows the arm in rviz: markers, joint states, robot description and transforms."""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from rclpy.node import Node
from rclpy.subscription import Subscription
from rclpy.timer import Timer
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker, MarkerArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel
from softarm_ros.models.led_to_tip import configuration_at_tip
from softarm_ros.nodes import conversions
from softarm_ros.nodes.arm_drawing import ArmDrawing
from softarm_ros.nodes.clocks import steady_clock
from softarm_ros.nodes.goal_handle import GoalHandle
from softarm_ros.nodes.heartbeat import Heartbeat
from softarm_ros.nodes.link_broadcaster import LinkBroadcaster
from softarm_ros.nodes.node_parameters import declare, declare_rig, declare_time_scale
from softarm_ros.nodes.other_nodes import refuse_twin
from softarm_ros.nodes.qos import LATCHED, MEASUREMENT, VISUAL
from softarm_ros.nodes.run_nodes import run_node
from softarm_ros.rigs.urdf import DEFAULT_LINKS_PER_SECTION, joint_map
from softarm_ros.runtime.part_failure import FailureWords

LOOK_S = 0.25  # between two checks for subscribers


class MarkersNode(Node):
    """
    Draws the arm's configuration, its strands, the paths and the error, as the viewer does.

    It draws the measured configuration. If sensors measure the tip only, it draws the commanded
    configuration, adjusted so that its tip is the measured one. It computes only the outputs that
    have a subscriber; while none has one, it subscribes to no input.

    Joint states and transforms have the stamp of the configuration (or of the measured tip to
    which it is adjusted), and stop with it: a new stamp would present an old one as the present.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__('markers', **options)
        refuse_twin(self)
        self.rig = declare_rig(self)
        declare_time_scale(self)
        rate = declare(self, 'rate_hz', 20.0, 'drawings per second', low=0.1, high=100.0)
        trail = declare(self, 'trail_points', 200, 'length of the trail', low=2, high=10000)
        transforms = declare(
            self,
            'transforms',
            True,
            'publish description and transforms of the links; off: robot_state_publisher does',
        )
        goals = declare(self, 'goals', False, 'offer a handle in rviz that sends goals')
        model = self._model = self.rig.model()
        self._names = model.configuration_names
        self._drawing = ArmDrawing(self.rig)
        self._joint_positions = joint_map(self.rig, DEFAULT_LINKS_PER_SECTION)
        self._configuration = model.rest_configuration
        self._stamp: Time | None = None  # of the configuration; None: none has arrived
        self._sent: Time | None = None  # stamp of the last joint states
        self._failure = FailureWords()
        self._measured = False
        self._trail: deque[np.ndarray] = deque(maxlen=trail)
        self._tip: np.ndarray | None = None  # newest measured tip (3,)
        self._reference: np.ndarray | None = None  # (3,)
        self._command: Array | None = None  # of the actuators; colours their strands
        self._path: Marker | None = None
        self._obstacles = conversions.obstacle_markers(self.rig.obstacles, self.rig.base_frame)
        self._updates = self._drawn = 0
        # Load compiled code now, not at the first drawing.
        self._drawing.at(self._configuration, None)
        self._heartbeat = Heartbeat(self, self.rig.name, fill=self._values)
        self._markers = self.create_publisher(MarkerArray, 'markers', VISUAL)
        self._joints = self.create_publisher(JointState, 'joint_states', VISUAL)
        self._travelled = self.create_publisher(Path, 'tip/path', VISUAL)
        self._links = (
            LinkBroadcaster(self, self.rig, DEFAULT_LINKS_PER_SECTION) if transforms else None
        )
        self._handle = self._goal_handle(model) if goals else None
        self._inputs: list[Subscription[Any]] = []
        self._period_s = 1.0 / rate
        self._drawing_timer: Timer | None = None  # exists while the drawing has a subscriber
        self.create_timer(LOOK_S, self._look, clock=steady_clock())
        self._heartbeat.ok('nobody looks')

    def _goal_handle(self, model: ArmModel) -> GoalHandle | None:
        try:
            return GoalHandle(self, self.rig, model)
        except ImportError:
            self.get_logger().info('no handle for goals: interactive_markers is not installed')
            return None

    def _watched(self) -> bool:
        """Return whether any output of this node has a subscriber."""
        return any(
            publisher.get_subscription_count() > 0
            for publisher in (self._markers, self._joints, self._travelled)
        ) or (self._links is not None and self._links.watched())

    def _listen(self) -> None:
        subscribe = self.create_subscription
        pose_topic = self.rig.feedback.pose_topic
        self._inputs = [
            subscribe(JointState, 'configuration/state', self._on_state, MEASUREMENT),
            subscribe(JointState, 'configuration/command', self._on_command, MEASUREMENT),
            subscribe(JointState, 'actuators/command', self._on_actuators, MEASUREMENT),
            subscribe(PoseStamped, pose_topic, self._on_pose, MEASUREMENT),
            subscribe(PoseStamped, 'reference/pose', self._on_reference, MEASUREMENT),
            subscribe(Path, 'reference/path', self._on_path, LATCHED),
        ]

    def _rest(self) -> None:
        for subscription in self._inputs:
            self.destroy_subscription(subscription)
        self._inputs = []
        self._trail.clear()
        self._tip = self._reference = self._command = self._sent = None

    def _on_state(self, message: JointState) -> None:
        try:
            configuration = conversions.positions_of(message, self._names)
        except ValueError as error:
            self._heartbeat.warn(f'configuration not drawn: {error}')
            return
        if np.all(np.isfinite(configuration)):
            self._configuration, self._stamp = configuration, self._stamp_of(message)
            self._measured = True

    def _on_command(self, message: JointState) -> None:
        if self._measured:
            return
        with contextlib.suppress(ValueError):  # the inverse kinematics reports invalid commands
            configuration = conversions.positions_of(message, self._names)
            if np.all(np.isfinite(configuration)):
                self._configuration = configuration
                if self._tip is None:
                    self._stamp = self._stamp_of(message)

    def _on_actuators(self, message: JointState) -> None:
        with contextlib.suppress(ValueError):  # drivers and supervisor report invalid commands
            command = conversions.positions_of(message, self.rig.actuator_names)
            if np.all(np.isfinite(command)):
                self._command = command

    def _on_reference(self, message: PoseStamped) -> None:
        position = conversions.position_of(message)
        if np.all(np.isfinite(position)):
            self._reference = position

    def _stamp_of(self, message: JointState | PoseStamped) -> Time:
        """Return the stamp of a message; for one without a stamp (0), the present time."""
        stamp: Time = message.header.stamp
        return stamp if stamp.sec or stamp.nanosec else self.get_clock().now().to_msg()

    def _on_pose(self, message: PoseStamped) -> None:
        position = conversions.position_of(message)
        if np.all(np.isfinite(position)) and message.header.frame_id in self.rig.base_frames:
            self._tip = position
            if not self._measured:
                self._stamp = self._stamp_of(message)

    def _on_path(self, message: Path) -> None:
        points = conversions.path_points(message)
        self._path = conversions.path_marker(
            points, min(self.rig.body_radii_m()), message.header.stamp, self.rig.base_frame
        )

    def _look(self) -> None:
        watched, timer = self._watched(), self._drawing_timer
        if watched and timer is None:
            self._listen()
            self._drawing_timer = self.create_timer(
                self._period_s, self._draw, clock=steady_clock()
            )
            self._heartbeat.ok('drawing')
        elif not watched and timer is not None:
            self.destroy_timer(timer)
            self._drawing_timer = None
            self._rest()
            self._heartbeat.ok('nobody looks')

    def _draw(self) -> None:
        try:
            self._draw_arm()
        except Exception as error:  # a model of another package may raise anything; keep drawing
            self._heartbeat.warn(f'not drawn: {self._failure.of(error)}')

    def _draw_arm(self) -> None:
        stamp = self.get_clock().now().to_msg()
        configuration = self._configuration
        if self._tip is not None:
            if not self._trail or self._tip is not self._trail[-1]:
                self._trail.append(self._tip)
            if not self._measured:
                configuration = configuration_at_tip(self._model, configuration, self._tip)
        trail = np.array(self._trail).reshape(-1, 3)
        if self._markers.get_subscription_count() > 0:
            self._publish_markers(configuration, trail, stamp)
        if self._travelled.get_subscription_count() > 0:
            self._travelled.publish(conversions.path_message(trail, stamp, self.rig.base_frame))
        self._publish_joints(configuration, stamp if self._stamp is None else self._stamp)
        self._updates += 1

    def _publish_markers(self, configuration: Array, trail: Array, stamp: Time) -> None:
        both = self._tip is not None and self._reference is not None
        error = np.array([self._tip, self._reference] if both else []).reshape(-1, 3)
        drawing = conversions.arm_markers(
            self._drawing.at(configuration, self._command),
            trail,
            error,
            stamp,
            self.rig.base_frame,
        )
        lasting = self._obstacles if self._path is None else [*self._obstacles, self._path]
        for marker in lasting:
            marker.header.stamp = stamp
        drawing.markers += lasting
        self._markers.publish(drawing)
        self._drawn += 1

    def _publish_joints(self, configuration: Array, stamp: Time) -> None:
        if stamp == self._sent:
            return
        self._sent = stamp
        names, values = self._joint_positions(configuration)
        self._joints.publish(conversions.joint_message(names, values, stamp))
        if self._links is not None:
            self._links.publish(names, values, stamp)

    def _values(self) -> dict[str, str]:
        return {'updates': str(self._updates), 'drawn': str(self._drawn)}


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run_node(MarkersNode, 'markers', args)


if __name__ == '__main__':
    sys.exit(main())
