"""Reports about goals, as data and as text."""

from __future__ import annotations

from collections.abc import Callable

from softarm_ros.control.goals.arrival import SETTLED_S
from softarm_ros.control.goals.goal import Goal, GoalKind, GoalReport, GoalState
from softarm_ros.control.goals.plan import Plan
from softarm_ros.geometry.arrays import Array


class GoalReports:
    """
    Collects reports about goals until the caller takes them.

    Parameters
    ----------
    tell : callable
        Takes level and text of messages for the user.

    """

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        self._tell = tell
        self._reports: list[GoalReport] = []

    def take(self) -> list[GoalReport]:
        """Return the reports since the last call, in order."""
        reports, self._reports = self._reports, []
        return reports

    def unreadable(self, number: int, kind: GoalKind, reason: str) -> None:
        """Report a goal that could not be read."""
        self._reports.append(GoalReport(number, kind, GoalState.REFUSED, reason))
        self._tell('warning', f'goal {number} ({kind.value}) refused: {reason}')

    def add(self, goal: Goal, state: GoalState, message: str, plan: Plan | None = None) -> None:
        """Report the state of a goal, with its plan if it has one."""
        last = goal.points[-1] if len(goal.points) else None
        out = plan if plan is not None and plan.out_of_reach else None
        self._reports.append(
            GoalReport(
                goal.number,
                goal.kind,
                state,
                message,
                out.target if out else last,
                out.nearest if out else None,
                out.miss_m if out else 0.0,
            )
        )
        if state is GoalState.PLANNING:
            return
        good = state in (GoalState.REACHED, GoalState.ACTIVE) and out is None
        name = state.value.replace('_', ' ')
        self._tell(
            'info' if good or state is GoalState.PREEMPTED else 'warning',
            f'goal {goal.number} ({goal.kind.value}) {name}' + (f': {message}' if message else ''),
        )

    def begun(self, plan: Plan) -> None:
        """Report that a goal is active and, if its target is out of reach, where it leads."""
        note = ''
        if plan.out_of_reach and plan.target is not None and plan.nearest is not None:
            note = (
                f'{_mm(plan.target)} mm is out of reach; the nearest point within reach is '
                f'{_mm(plan.nearest)} mm, {1e3 * plan.miss_m:.1f} mm away'
            )
        self.add(plan.goal, GoalState.ACTIVE, note, plan)

    def ended(
        self,
        plan: Plan,
        state: GoalState,
        away_m: float | None,
        worst_m: float,
        tolerance_m: float,
        words: str = '',
    ) -> None:
        """
        Report the end of a goal; `away_m` is None if the distance of the tip is not measured.

        `worst_m` is the largest distance within the last `SETTLED_S`, for a missed goal.

        `words` describe the deviation of the configuration, if known.
        """
        text = words if away_m is None else f'{1e3 * away_m:.2f} mm from it'
        if state is GoalState.MISSED and away_m is not None:
            # It may be within the tolerance now without having stayed there.
            text += (
                f', in the last {SETTLED_S:g} s up to {1e3 * worst_m:.2f} mm '
                f'(tolerance {1e3 * tolerance_m:.1f} mm)'
            )
        elif state is GoalState.OUT_OF_REACH and plan.nearest is not None:
            text = f'the nearest point within reach, {_mm(plan.nearest)} mm: {text}'
        self.add(plan.goal, state, text, plan)


def _mm(position: Array) -> str:
    return '(' + ', '.join(f'{1e3 * float(x):.1f}' for x in position) + ')'
