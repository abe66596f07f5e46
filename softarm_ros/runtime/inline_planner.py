"""Plans made at once, where nobody waits: runs without topics, tests."""

from __future__ import annotations

from softarm_ros.control.goals.goal import Goal
from softarm_ros.control.goals.plan import Plan, Planner
from softarm_ros.geometry.arrays import Array


class InlinePlanner:
    """Makes each plan when it is asked for; it is ready for the next cycle."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._ready: list[Plan] = []

    def request(self, goal: Goal, start: Array) -> None:
        """Plan from a configuration (dof,)."""
        self._ready = [self._planner.plan(goal, start)]

    def break_off(self, number: int) -> None:
        """Do nothing: every plan is made by now."""

    def take(self) -> list[Plan]:
        """Return the plan, once."""
        ready, self._ready = self._ready, []
        return ready

    def take_news(self) -> list[str]:
        """Return nothing: what goes wrong here goes wrong in `request`."""
        return []

    def close(self) -> None:
        """Nothing to end."""
