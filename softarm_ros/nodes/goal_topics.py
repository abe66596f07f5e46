"""Goals over topics: read and refused here, given to the loop, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from builtin_interfaces.msg import Duration
from diagnostic_msgs.msg import DiagnosticStatus
from nav_msgs.msg import Path
from rclpy.node import Node
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from softarm_ros.control.goals.goal import (
    Goal,
    GoalError,
    GoalKind,
    GoalReport,
    GoalState,
    configuration_goal,
    path_goal,
    point_goal,
)
from softarm_ros.geometry.arrays import Array
from softarm_ros.nodes import conversions
from softarm_ros.nodes.base_frame import BaseFrame
from softarm_ros.nodes.conversions import ERROR, OK, WARN, Health
from softarm_ros.nodes.qos import GOALS, MEASUREMENT, REPORTS
from softarm_ros.nodes.wire import StampedPoses, listen, read_pose, status_bytes
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.goal_loop import GoalLoop

STATUS = 'goal/status'
_AHEAD_S = 0.5  # by which a trajectory's stamp may lie in the future and still mean now
_LEVELS = {
    GoalState.REACHED: OK,
    GoalState.ACTIVE: OK,
    GoalState.PLANNING: OK,
    GoalState.PREEMPTED: OK,
    GoalState.REFUSED: ERROR,
}


class GoalTopics:
    """
    Gives the goals of topics to a loop, and publishes on `goal/status` what becomes of each.

    Parameters
    ----------
    node : Node
        That listens and publishes.
    rig : Rig
        For the names of its base frame.
    loop : GoalLoop
        That takes the goals.
    base : BaseFrame
        Brings foreign frames into that of the base, where TF knows how.

    """

    def __init__(self, node: Node, rig: Rig, loop: GoalLoop, base: BaseFrame) -> None:
        self._node, self._rig, self._loop, self._base = node, rig, loop, base
        self._number = 0
        self._stamps: dict[int, int] = {}
        self._status = node.create_publisher(DiagnosticStatus, STATUS, REPORTS)
        listen(node, read_pose, 'goal/pose', self._on_pose, GOALS)
        listen(node, read_pose, 'goal/stream', self._on_stream, MEASUREMENT)
        node.create_subscription(Path, 'goal/path', self._on_path, GOALS)
        node.create_subscription(
            JointTrajectory, 'configuration/trajectory', self._on_trajectory, GOALS
        )
        node.create_service(Trigger, 'goal/cancel', self._on_cancel)

    def publish(self) -> None:
        """Send what the loop has reported since the last call."""
        for report in self._loop.take_reports():
            self._status.publish(status_bytes(self._health(report), self._rig.name))
            if report.state.final:
                self._stamps.pop(report.number, None)

    # -- goals

    def _on_pose(self, pose: StampedPoses) -> None:
        self._take(GoalKind.POSE, pose.stamp_ns, lambda number: self._point(number, pose))

    def _on_stream(self, pose: StampedPoses) -> None:
        self._take(
            GoalKind.STREAM, pose.stamp_ns, lambda number: self._point(number, pose, stream=True)
        )

    def _point(self, number: int, pose: StampedPoses, *, stream: bool = False) -> Goal:
        goal = point_goal(number, pose.rows[0, :3], pose.rows[0, 3:], stream=stream)
        return point_goal(number, self._in_base(pose.frame_id, goal.points[0]), stream=stream)

    def _on_path(self, path: Path) -> None:
        def read(number: int) -> Goal:
            frames = [p.header.frame_id or path.header.frame_id for p in path.poses]
            goal = path_goal(number, conversions.path_points(path))
            points = [self._in_base(*each) for each in zip(frames, goal.points)]
            return path_goal(number, np.array(points))

        self._take(GoalKind.PATH, conversions.nanoseconds_of(path.header.stamp), read)

    def _on_trajectory(self, message: JointTrajectory) -> None:
        stamp_ns = conversions.nanoseconds_of(message.header.stamp)

        def read(number: int) -> Goal:
            ahead = 1e-9 * (stamp_ns - self._node.get_clock().now().nanoseconds)
            if ahead > _AHEAD_S:
                raise GoalError(
                    f'header.stamp lies {ahead:.3g} s in the future; expected 0 or now (within '
                    f'{_AHEAD_S:g} s)'
                )
            points = message.points
            return configuration_goal(
                number,
                message.joint_names,
                [_seconds(p.time_from_start) for p in points],
                [p.positions for p in points],
                [p.velocities for p in points],
                expected=self._loop.model.configuration_names,
            )

        self._take(GoalKind.CONFIGURATION, stamp_ns, read)

    def _on_cancel(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = self._loop.cancel()
        response.message = 'cancelled' if response.success else 'no goal is under way'
        self.publish()
        return response

    def _take(self, kind: GoalKind, stamp_ns: int, read: Callable[[int], Goal]) -> None:
        self._number += 1
        self._stamps[self._number] = stamp_ns
        try:
            self._loop.submit(read(self._number))
        except GoalError as error:
            self._loop.refuse(self._number, kind, str(error))
        self.publish()

    def _in_base(self, frame: str, position: Sequence[float] | Array) -> Array:
        """Return a position (3,) [m] in the base frame; GoalError if nobody knows how."""
        row = np.array([*position, 0.0, 0.0, 0.0, 1.0])
        found, point = self._base.tip_of(StampedPoses(0, frame, row.reshape(1, 7)))
        if found in self._rig.base_frames:
            return point
        names = ' or '.join(repr(name) for name in self._rig.base_frames)
        raise GoalError(
            f'header.frame_id = {frame!r}: expected {names}, or a frame that TF leads there from'
        )

    # -- reports

    def _health(self, report: GoalReport) -> Health:
        values = {
            'number': str(report.number),
            'kind': report.kind.value,
            'state': report.state.value,
            'final': str(report.state.final).lower(),
            'stamp_ns': str(self._stamps.get(report.number, 0)),
        }
        if report.target is not None:
            values['target_m'] = _numbers(report.target)
        if report.nearest is not None:
            values['nearest_m'] = _numbers(report.nearest)
            values['miss_mm'] = f'{1e3 * report.miss_m:.3f}'
        level = _LEVELS.get(report.state, WARN)
        level = max(level, WARN) if report.nearest is not None else level
        return Health('goal', level, report.message or report.state.value, values)


def _seconds(duration: Duration) -> float:
    return float(duration.sec) + 1e-9 * float(duration.nanosec)


def _numbers(values: Array) -> str:
    return ' '.join(f'{value:.6f}' for value in values)
