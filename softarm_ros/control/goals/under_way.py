"""The unfinished goals of an arm: one being planned, one waiting, one under way."""

from __future__ import annotations

from dataclasses import dataclass

from softarm_ros.control.goals.course import Course
from softarm_ros.control.goals.goal import Goal, GoalKind
from softarm_ros.control.goals.plan import Plan


@dataclass
class UnderWay:
    """
    Up to three goals; each is newer than the next in this list and will replace it.

    Attributes
    ----------
    asked : Goal, optional
        Goal that is being planned.
    next : Plan, optional
        Plan that begins once the arm is at rest.
    plan : Plan, optional
        Plan that the arm follows.

    """

    asked: Goal | None = None
    next: Plan | None = None
    plan: Plan | None = None

    @property
    def course(self) -> Course | None:
        """Course that the arm follows, or None."""
        return None if self.plan is None else self.plan.course

    @property
    def goals(self) -> list[Goal]:
        """All goals once, newest first; the targets of a stream are one goal."""
        plans = [plan.goal for plan in (self.next, self.plan) if plan is not None]
        newest = plans if self.asked is None else [self.asked, *plans]
        return list({goal.number: goal for goal in newest}.values())

    @property
    def stream(self) -> int | None:
        """Number of the stream that is planned or followed, if it is the newest goal, or None."""
        goals = self.goals
        return goals[0].number if goals and goals[0].kind is GoalKind.STREAM else None

    def continues(self, goal: Goal) -> bool:
        """Return whether a goal is another target of the stream that the arm follows."""
        return self.plan is not None and self.plan.goal.number == goal.number

    def give_up(self, number: int | None = None) -> list[Goal]:
        """Remove the goal with a number, or all; return the removed goals, newest first."""
        given_up = [goal for goal in self.goals if number in (None, goal.number)]
        numbers = {goal.number for goal in given_up}
        if self.asked is not None and self.asked.number in numbers:
            self.asked = None
        if self.next is not None and self.next.goal.number in numbers:
            self.next = None
        if self.plan is not None and self.plan.goal.number in numbers:
            self.plan = None
        return given_up
