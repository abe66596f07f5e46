"""Reads goals from topics and submits them to the loop, or refuses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from rclpy.node import Node
from std_srvs.srv import Trigger

from softarm_ros.control.goals.goal import (
    Goal,
    GoalKind,
    path_goal,
    point_goal,
    require_count,
)
from softarm_ros.control.goals.goal_errors import GoalError
from softarm_ros.geometry.arrays import Array
from softarm_ros.nodes.base_frame import BaseFrame
from softarm_ros.nodes.goal_intake import GoalIntake
from softarm_ros.nodes.qos import GOALS, MEASUREMENT
from softarm_ros.nodes.wire import (
    PathValues,
    StampedPoses,
    TrajectoryValues,
    listen,
    read_path,
    read_pose,
    read_trajectory,
)
from softarm_ros.requirements import ros_package_hint
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.goal_loop import GoalLoop

if TYPE_CHECKING:
    from softarm_ros.nodes.trajectory_action import TrajectoryAction


class GoalTopics:
    """
    Submits goals of topics to a loop, and goals of the action if its messages are installed.

    Parameters
    ----------
    node : Node
        Node that subscribes and publishes.
    rig : Rig
        Gives the names of the base frame.
    loop : GoalLoop
        Takes the goals.
    base : BaseFrame
        Transforms goals of foreign frames to the base frame, if TF knows them.

    """

    def __init__(self, node: Node, rig: Rig, loop: GoalLoop, base: BaseFrame) -> None:
        self._node, self._rig, self._loop, self._base = node, rig, loop, base
        base.listen()  # from now on: a goal in a foreign frame comes only once
        self._intake = GoalIntake(node, rig.name, loop)
        listen(node, read_pose, 'goal/pose', self._on_pose, GOALS)
        listen(node, read_pose, 'goal/stream', self._on_stream, MEASUREMENT)
        listen(node, read_path, 'goal/path', self._on_path, GOALS)
        listen(node, read_trajectory, 'configuration/trajectory', self._on_trajectory, GOALS)
        node.create_service(Trigger, 'goal/cancel', self._on_cancel)
        self._action = self._trajectory_action()

    @property
    def under_way(self) -> str:
        """The stamps [ns] of all goals without a final state, separated by spaces."""
        return self._intake.under_way

    def close(self) -> None:
        """Report that no goal goes on, and stop the action server."""
        self._intake.end()
        if self._action is not None:
            self._action.close()

    def publish(self) -> None:
        """Publish the loop's reports since the last call, and feedback of the action."""
        self._intake.publish()
        if self._action is not None:
            self._action.publish_feedback()

    # -- goals

    def _on_pose(self, pose: StampedPoses) -> None:
        self._intake.take(GoalKind.POSE, pose.stamp_ns, lambda number: self._point(number, pose))

    def _on_stream(self, pose: StampedPoses) -> None:
        self._intake.take(
            GoalKind.STREAM, pose.stamp_ns, lambda number: self._point(number, pose, stream=True)
        )

    def _point(self, number: int, pose: StampedPoses, *, stream: bool = False) -> Goal:
        goal = point_goal(number, pose.rows[0, :3], pose.rows[0, 3:], stream=stream)
        return point_goal(number, self._in_base(pose.frame_id, goal.points[0]), stream=stream)

    def _on_path(self, path: PathValues) -> None:
        def read(number: int) -> Goal:
            require_count('poses', path.size)
            goal, foreign = path_goal(number, path.positions), False
            points = goal.points.copy()
            for frame in set(path.frames) - set(self._rig.base_frames):
                for k in (k for k, of in enumerate(path.frames) if of == frame):
                    points[k], foreign = self._in_base(frame, points[k], f'poses[{k}].'), True
            return path_goal(number, points) if foreign else goal

        self._intake.take(GoalKind.PATH, path.stamp_ns, read)

    def _on_trajectory(self, given: TrajectoryValues) -> None:
        self._intake.take(
            GoalKind.CONFIGURATION,
            given.stamp_ns,
            lambda number: self._intake.trajectory(number, given),
        )

    def _on_cancel(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = self._intake.cancel()
        response.message = 'cancelled' if response.success else 'no goal is under way'
        return response

    def _trajectory_action(self) -> TrajectoryAction | None:
        try:
            from softarm_ros.nodes.trajectory_action import TrajectoryAction
        except ImportError as error:
            if (error.name or '').split('.')[0] != 'control_msgs':
                raise
            hint = ros_package_hint('control_msgs')
            self._node.get_logger().info(f'no action for configurations: {hint}')
            return None
        return TrajectoryAction(self._node, self._loop, self._intake)

    def _in_base(self, frame: str, position: Sequence[float] | Array, whose: str = '') -> Array:
        """Return a position (3,) [m] in the base frame; GoalError if TF cannot transform it."""
        row = np.array([*position, 0.0, 0.0, 0.0, 1.0])
        found, point = self._base.tip_of(StampedPoses(0, frame, row.reshape(1, 7)))
        if found in self._rig.base_frames:
            return point
        known = ' or '.join(repr(name) for name in self._rig.base_frames)
        problem = self._base.unused or f'expected {known}, or a frame that TF can transform'
        raise GoalError(f'{whose}header.frame_id = {frame!r}: {problem}')
