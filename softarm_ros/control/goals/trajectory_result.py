"""Conversion of the outcome of a goal to the result of control_msgs/FollowJointTrajectory."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

from softarm_ros.control.goals.goal import GoalReport, GoalState
from softarm_ros.control.goals.goal_errors import GoalError, JointNamesError, OldStampError


class ErrorCode(IntEnum):
    """Error codes of the action's result."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    INVALID_JOINTS = -2
    OLD_HEADER_TIMESTAMP = -3
    PATH_TOLERANCE_VIOLATED = -4
    GOAL_TOLERANCE_VIOLATED = -5


class Ending(Enum):
    """Final status of an action."""

    SUCCEEDED = 'succeeded'
    CANCELED = 'canceled'
    ABORTED = 'aborted'


@dataclass(frozen=True)
class TrajectoryResult:
    """End of an action: status, error code and text."""

    ending: Ending
    code: ErrorCode
    text: str


_CODES = {
    GoalState.REACHED: ErrorCode.SUCCESSFUL,
    GoalState.STRAYED: ErrorCode.PATH_TOLERANCE_VIOLATED,
    GoalState.MISSED: ErrorCode.GOAL_TOLERANCE_VIOLATED,
}


def code_of(error: GoalError) -> ErrorCode:
    """Return the code for a goal that cannot be accepted."""
    if isinstance(error, JointNamesError):
        return ErrorCode.INVALID_JOINTS
    if isinstance(error, OldStampError):
        return ErrorCode.OLD_HEADER_TIMESTAMP
    return ErrorCode.INVALID_GOAL


def result_of(
    report: GoalReport, error: GoalError | None, *, cancel_asked: bool
) -> TrajectoryResult:
    """
    Return the end of an action from the final report of its goal.

    `error` is why the goal could not be accepted. The action has no code for goals that are given
    up (for another goal, or a stop). Like joint_trajectory_controller, this function then returns
    that of an invalid goal.
    """
    text = report.message or report.state.value
    if report.state is GoalState.CANCELLED and cancel_asked:
        return TrajectoryResult(Ending.CANCELED, ErrorCode.SUCCESSFUL, f'cancelled: {text}')
    if report.state is GoalState.REACHED:
        return TrajectoryResult(Ending.SUCCEEDED, ErrorCode.SUCCESSFUL, text)
    code = _CODES.get(report.state, ErrorCode.INVALID_GOAL) if error is None else code_of(error)
    return TrajectoryResult(Ending.ABORTED, code, f'{report.state.value}: {text}')
