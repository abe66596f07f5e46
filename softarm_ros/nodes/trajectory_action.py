"""Action server of control_msgs/FollowJointTrajectory for trajectories of the configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionServer, CancelResponse
from rclpy.node import Node
from rclpy.serialization import serialize_message
from rclpy.task import Task
from trajectory_msgs.msg import JointTrajectoryPoint

from softarm_ros.control.goals.course import Course
from softarm_ros.control.goals.goal import Goal, GoalKind, GoalReport
from softarm_ros.control.goals.goal_errors import GoalError
from softarm_ros.control.goals.tolerance import tolerance_of
from softarm_ros.control.goals.trajectory_result import Ending, TrajectoryResult, result_of
from softarm_ros.geometry.arrays import Array
from softarm_ros.nodes import conversions
from softarm_ros.nodes.goal_intake import GoalIntake
from softarm_ros.nodes.wire import read_trajectory
from softarm_ros.runtime.goal_loop import GoalLoop

NAME = 'configuration/follow_joint_trajectory'
FEEDBACK_S = 0.1
# Fields that must be empty: each coordinate of a configuration has one degree of freedom.
_EMPTY = (
    'multi_dof_trajectory.joint_names',
    'multi_dof_trajectory.points',
    'component_path_tolerance',
    'component_goal_tolerance',
)


@dataclass
class _Followed:
    """A goal of the action from its acceptance to its end."""

    handle: Any
    number: int = 0
    error: GoalError | None = None
    cancel_asked: bool = False


class TrajectoryAction:
    """
    Takes goals of the action in the same way as messages on `configuration/trajectory`.

    Every goal is accepted. An invalid goal is aborted at once, because a rejection cannot carry
    the reason.

    Parameters
    ----------
    node : Node
        Node that runs the server.
    loop : GoalLoop
        Follows the goals.
    goals : GoalIntake
        Submits the goals to the loop.

    """

    def __init__(self, node: Node, loop: GoalLoop, goals: GoalIntake) -> None:
        self._node, self._loop, self._goals = node, loop, goals
        self._names = loop.model.configuration_names
        self._followed: dict[bytes, _Followed] = {}
        self._told_ns = 0
        self._server = _EndedFromOutside(
            node,
            FollowJointTrajectory,
            NAME,
            execute_callback=_unused,
            handle_accepted_callback=self._on_accepted,
            cancel_callback=self._on_cancel,
        )

    def close(self) -> None:
        """Stop the server."""
        self._server.destroy()

    def publish_feedback(self) -> None:
        """Publish commanded and measured configuration to the client, once every `FEEDBACK_S`."""
        now_ns = self._node.get_clock().now().nanoseconds
        if not self._followed or 0 <= now_ns - self._told_ns < 1e9 * FEEDBACK_S:
            return
        self._told_ns = now_ns
        plan = self._loop.under_way.plan
        for followed in self._followed.values():
            if plan is not None and plan.goal.number == followed.number:
                followed.handle.publish_feedback(self._feedback(now_ns, plan.course))

    def _on_accepted(self, handle: Any) -> None:
        followed = _Followed(handle)
        self._followed[_identity(handle)] = followed
        handle.execute()
        stamp_ns = conversions.nanoseconds_of(handle.request.trajectory.header.stamp)
        self._goals.take(
            GoalKind.CONFIGURATION,
            stamp_ns,
            lambda number: self._read(followed, number),
            lambda report: self._on_report(followed, report),
        )

    def _read(self, followed: _Followed, number: int) -> Goal:
        followed.number, request = number, followed.handle.request
        try:
            for field in _EMPTY:
                _check_empty(request, field)
            tolerance = tolerance_of(
                request.path_tolerance,
                request.goal_tolerance,
                conversions.seconds_of(request.goal_time_tolerance),
                self._names,
            )
            given = read_trajectory(bytes(serialize_message(request.trajectory)))
            return self._goals.trajectory(number, given, tolerance)
        except GoalError as error:
            followed.error = error
            raise

    def _on_cancel(self, handle: Any) -> CancelResponse:
        followed = self._followed.get(_identity(handle))
        if followed is None:
            return CancelResponse.REJECT
        followed.cancel_asked = True
        given_up = self._goals.cancel(followed.number)
        return CancelResponse.ACCEPT if given_up else CancelResponse.REJECT

    def _on_report(self, followed: _Followed, report: GoalReport) -> None:
        if not report.state.final:
            return
        self._followed.pop(_identity(followed.handle), None)
        result = result_of(report, followed.error, cancel_asked=followed.cancel_asked)
        self._server.end(followed.handle, result)

    def _feedback(self, now_ns: int, course: Course | None) -> Any:
        feedback = FollowJointTrajectory.Feedback(joint_names=list(self._names))
        seen = self._loop.tolerances.deviation
        if seen is None:  # nothing measures the configuration
            feedback.header.stamp = conversions.time_message(now_ns)
            feedback.desired = _point(self._loop.tracker.configuration)
        else:
            feedback.header.stamp = conversions.time_message(round(1e9 * seen.stamp_s))
            feedback.desired = _point(seen.commanded)
            feedback.actual = _point(seen.measured)
            feedback.error = _point(seen.error)
        if course is not None and hasattr(feedback, 'index'):  # since Kilted
            feedback.index = course.index
        return feedback


class _EndedFromOutside(ActionServer):
    """
    An action server whose goals end when the loop ends them.

    The events executor would poll a coroutine that waits for the end all the time, and keep a
    processor busy.
    """

    def notify_execute(self, goal_handle: Any, execute_callback: Any) -> None:
        """Run the callback of `end`; a starting goal has no callback, the loop runs it."""
        if execute_callback is not None:
            super().notify_execute(goal_handle, execute_callback)

    def end(self, goal_handle: Any, result: TrajectoryResult) -> None:
        """Send the result of a goal, after the answer to a pending cancel request."""

        def finish(handle: Any) -> Any:
            if result.ending is Ending.SUCCEEDED:
                handle.succeed()
            elif result.ending is Ending.CANCELED and handle.is_cancel_requested:
                handle.canceled()
            else:
                handle.abort()
            return FollowJointTrajectory.Result(
                error_code=int(result.code), error_string=result.text
            )

        if self._node.executor is None:  # the node ends: nothing runs a scheduled task any more
            Task(self._execute_goal, (finish, goal_handle))()
        else:
            self.notify_execute(goal_handle, finish)


def _unused(handle: Any) -> Any:
    raise AssertionError('goals are ended by the loop')


def _identity(handle: Any) -> bytes:
    return bytes(handle.goal_id.uuid)


def _check_empty(request: Any, field: str) -> None:
    value: Any = request
    for name in field.split('.'):
        value = getattr(value, name)
    if len(value):
        raise GoalError(
            f'{field} has {len(value)} entries; expected none: each coordinate of the '
            'configuration has one degree of freedom'
        )


def _point(configuration: Sequence[float] | Array) -> JointTrajectoryPoint:
    return JointTrajectoryPoint(positions=np.asarray(configuration, dtype=float).tolist())
