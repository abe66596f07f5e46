"""Numbers goals from topics and the action, submits them to the loop, reports on each."""

from __future__ import annotations

from collections.abc import Callable

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.duration import Duration
from rclpy.node import Node

from softarm_ros.control.goals.goal import (
    Goal,
    GoalKind,
    GoalReport,
    GoalState,
    configuration_goal,
    require_count,
    require_names,
)
from softarm_ros.control.goals.goal_errors import GoalError
from softarm_ros.control.goals.tolerance import Tolerance
from softarm_ros.geometry.arrays import Array
from softarm_ros.nodes.conversions import ERROR, OK, WARN, Health
from softarm_ros.nodes.qos import REPORTS
from softarm_ros.nodes.wire import TrajectoryValues, status_bytes
from softarm_ros.runtime.goal_loop import GoalLoop

STATUS = 'goal/status'
_HEARD_S = 0.5  # longest wait for delivery of the last reports of a node that ends
_LEVELS = {
    GoalState.REACHED: OK,
    GoalState.ACTIVE: OK,
    GoalState.PLANNING: OK,
    GoalState.PREEMPTED: OK,
    GoalState.REFUSED: ERROR,
}


class GoalIntake:
    """
    Submits goals to a loop, and publishes its reports on them on `goal/status`.

    Parameters
    ----------
    node : Node
        Node that publishes.
    hardware_id : str
        Hardware id in the reports: the name of the rig.
    loop : GoalLoop
        Takes the goals.

    """

    def __init__(self, node: Node, hardware_id: str, loop: GoalLoop) -> None:
        self._node, self._hardware_id, self._loop = node, hardware_id, loop
        self._number = 0
        self._stamps: dict[int, int] = {}
        self._followers: dict[int, Callable[[GoalReport], None]] = {}
        self._status = node.create_publisher(DiagnosticStatus, STATUS, REPORTS)

    def take(
        self,
        kind: GoalKind,
        stamp_ns: int,
        read: Callable[[int], Goal],
        follow: Callable[[GoalReport], None] | None = None,
    ) -> None:
        """Number a goal, `read` it and submit it to the loop; `follow` gets its reports."""
        self._number += 1
        self._stamps[self._number] = stamp_ns
        if follow is not None:
            self._followers[self._number] = follow
        try:
            self._loop.submit(read(self._number))
        except GoalError as error:
            self._loop.refuse(self._number, kind, str(error))
        self.publish()
        # A further target of a stream keeps the number of its first target.
        if all(goal.number != self._number for goal in self._loop.under_way.goals):
            self._forget(self._number)

    def trajectory(
        self, number: int, given: TrajectoryValues, tolerance: Tolerance | None = None
    ) -> Goal:
        """Return the goal of a configuration trajectory; GoalError if it cannot be followed."""
        now_ns = self._node.get_clock().now().nanoseconds
        expected = self._loop.model.configuration_names
        require_names(given.name, expected)
        require_count('points', given.size)
        return configuration_goal(
            number,
            given.name,
            given.times_s,
            given.positions,
            given.velocities,
            expected=expected,
            ahead_s=1e-9 * (given.stamp_ns - now_ns) if given.stamp_ns else None,
            tolerance=tolerance,
        )

    @property
    def under_way(self) -> str:
        """The stamps [ns] of all goals without a final state, separated by spaces."""
        return ' '.join(map(str, self._stamps.values()))

    def cancel(self, number: int | None = None) -> bool:
        """Cancel one goal, or all; return whether there was one."""
        given_up = self._loop.cancel('on request', number)
        self.publish()
        return given_up

    def end(self) -> None:
        """Cancel all goals as the node ends, and wait until subscribers have the reports."""
        if self._loop.cancel('the tracker has ended'):
            self.publish()
            self._status.wait_for_all_acked(Duration(seconds=_HEARD_S))

    def publish(self) -> None:
        """Publish the loop's reports since the last call."""
        for report in self._loop.take_reports():
            self._status.publish(status_bytes(self._health(report), self._hardware_id))
            if report.number in self._followers:
                self._followers[report.number](report)
            if report.state.final:
                self._forget(report.number)

    def _forget(self, number: int) -> None:
        self._stamps.pop(number, None)
        self._followers.pop(number, None)

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


def _numbers(values: Array) -> str:
    return ' '.join(f'{value:.6f}' for value in values)
