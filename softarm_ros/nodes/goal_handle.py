"""A handle in rviz that sends the tip to the place where it is released."""

from __future__ import annotations

from typing import Any

from geometry_msgs.msg import Point, PoseStamped, Quaternion
from rclpy.node import Node
from visualization_msgs.msg import (
    InteractiveMarker,
    InteractiveMarkerControl,
    InteractiveMarkerFeedback,
    Marker,
)

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel
from softarm_ros.nodes.conversions import Health, nanoseconds_of
from softarm_ros.nodes.goal_intake import STATUS
from softarm_ros.nodes.qos import GOALS, REPORTS
from softarm_ros.nodes.wire import listen, read_status
from softarm_ros.rigs.rviz import GOAL_HANDLE
from softarm_ros.rigs.schema import Rig

_NAME = 'goal'
_SIZE = 0.25  # share of the arm's length
_BALL = 0.3  # share of the handle's size
# An arrow points along x; these rotations turn it to x, y and z.
_TURNS = {'x': (1.0, 0.0, 0.0, 1.0), 'y': (0.0, 0.0, 1.0, 1.0), 'z': (0.0, 1.0, 0.0, 1.0)}


class GoalHandle:
    """
    Sends a goal where its handle is released; moves the handle to the nearest reachable point.

    Parameters
    ----------
    node : Node
        Node that offers the handle.
    rig : Rig
        Gives the base frame.
    model : ArmModel
        The handle starts at its tip at rest; its rest length sets the handle's size.

    Raises
    ------
    ImportError
        If the ROS package interactive_markers is not installed.

    """

    def __init__(self, node: Node, rig: Rig, model: ArmModel) -> None:
        from interactive_markers import InteractiveMarkerServer

        self._node = node
        self._sent_ns = 0
        self._goals = node.create_publisher(PoseStamped, 'goal/pose', GOALS)
        tip = model.shape_of(model.rest_configuration).tip[:3, 3]
        self._server: Any = InteractiveMarkerServer(node, GOAL_HANDLE)
        self._server.insert(
            _handle(rig.base_frame, tip, _SIZE * model.rest_length_m),
            feedback_callback=self._on_feedback,
            feedback_type=InteractiveMarkerFeedback.MOUSE_UP,
        )
        self._server.applyChanges()
        listen(node, read_status, STATUS, self._on_report, REPORTS)

    def _on_feedback(self, feedback: InteractiveMarkerFeedback) -> None:
        goal = PoseStamped(pose=feedback.pose)
        goal.header.frame_id = feedback.header.frame_id
        goal.header.stamp = self._node.get_clock().now().to_msg()
        self._sent_ns = nanoseconds_of(goal.header.stamp)
        self._goals.publish(goal)

    def _on_report(self, report: Health) -> None:
        """Move the handle to the nearest point if the goal was out of reach."""
        nearest = report.values.get('nearest_m')
        if nearest is None or report.values.get('stamp_ns') != str(self._sent_ns):
            return
        x, y, z = map(float, nearest.split())
        pose = PoseStamped().pose
        pose.position = Point(x=x, y=y, z=z)
        self._server.setPose(_NAME, pose)
        self._server.applyChanges()


def _handle(frame: str, tip: Array, size_m: float) -> InteractiveMarker:
    handle = InteractiveMarker(name=_NAME, description='goal of the tip', scale=size_m)
    handle.header.frame_id = frame
    handle.pose.position = Point(x=float(tip[0]), y=float(tip[1]), z=float(tip[2]))
    ball = Marker(type=Marker.SPHERE)
    ball.scale.x = ball.scale.y = ball.scale.z = _BALL * size_m
    ball.color.r, ball.color.g, ball.color.b, ball.color.a = 0.9, 0.4, 0.0, 0.8
    handle.controls.append(
        InteractiveMarkerControl(
            name='ball',
            interaction_mode=InteractiveMarkerControl.MOVE_3D,
            always_visible=True,
            markers=[ball],
        )
    )
    for axis, turn in _TURNS.items():
        share = 0.5**0.5
        x, y, z, w = (share * part for part in turn)
        handle.controls.append(
            InteractiveMarkerControl(
                name=axis,
                orientation=Quaternion(x=x, y=y, z=z, w=w),
                interaction_mode=InteractiveMarkerControl.MOVE_AXIS,
            )
        )
    return handle
