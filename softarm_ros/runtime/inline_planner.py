"""Plan within the call, for runs without topics and for tests."""

from __future__ import annotations

from softarm_ros.control.goals.goal import Goal
from softarm_ros.control.goals.plan import Plan, Planner
from softarm_ros.control.goals.smoothed import SmoothedMotion
from softarm_ros.geometry.arrays import Array


class InlinePlanner:
    """Makes each plan when it is requested; the plan is ready for the next cycle."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._ready: list[Plan] = []

    def request(self, goal: Goal, start: Array, motion: SmoothedMotion | None = None) -> None:
        """Plan from a configuration (dof,)."""
        self._ready = [self._planner.plan(goal, start, motion)]

    def break_off(self, number: int) -> None:
        """Do nothing: every plan is already made."""

    def take(self) -> list[Plan]:
        """Return each plan once."""
        ready, self._ready = self._ready, []
        return ready

    def take_news(self) -> list[str]:
        """Return nothing: errors of planning arise in `request`."""
        return []

    def close(self) -> None:
        """Do nothing: there is no process to end."""
