"""Planner from a goal to a course of the configuration, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.control.goals.course import Course, Through, Timetable
from softarm_ros.control.goals.goal import Goal, GoalKind
from softarm_ros.control.goals.smoothed import SmoothedMotion
from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.control.nearest import Nearest, nearest_configuration, nearest_from
from softarm_ros.control.path import Curve, Segment, SplineCurve
from softarm_ros.control.reach import REACH_TOLERANCE_M
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel, Posture

_LOCAL_M = 1e-4  # a search that ends this near the target needs no other start
_BESIDE = 0.1  # share of each coordinate's scale by which a second start differs
_SPACING = 0.01  # of points on a path, as a share of the arm's length
_MOST_POINTS = 300
# Checks of the actuators along a timetable: at least this many, at steps of a coordinate no larger
# than this share of its scale, and wherever they would be too fast, this share of a window apart.
_LOOKS = 300
_LOOKS_APART = 0.05
_SEEN_APART = 0.1
_BEGINS_WITHIN = 0.01  # share of a scale: a timetable at 0 s must begin this near the arm


@dataclass(frozen=True)
class Plan:
    """
    Result of planning a goal.

    Attributes
    ----------
    goal : Goal
    course : Course, optional
        None if the goal is refused; then `refusal` gives the reason.
    target, nearest : (3,), optional
        The target missed most, and the model's tip planned for it [m].
    miss_m : float
        Distance between these two.
    tips : (n, 3)
        Model's tip along the course [m].

    """

    goal: Goal
    course: Course | None
    refusal: str = ''
    target: Array | None = None
    nearest: Array | None = None
    miss_m: float = 0.0
    tips: Array | None = None

    @property
    def out_of_reach(self) -> bool:
        """Whether the course leads to the nearest point within reach instead of the target."""
        return self.course is not None and self.miss_m > REACH_TOLERANCE_M


class PlannerPort(Protocol):
    """Port to a planner outside the control cycle, so that no cycle waits for a plan."""

    def request(self, goal: Goal, start: Array, motion: SmoothedMotion | None = None) -> None:
        """Request a plan as `Planner.plan` makes it; it replaces any earlier request."""
        ...

    def break_off(self, number: int) -> None:
        """Stop the planning of a goal, by its number: nobody waits for it."""
        ...

    def take(self) -> list[Plan]:
        """Return the plans that are ready."""
        ...

    def take_news(self) -> list[str]:
        """Return texts about failures of the planner since the last call."""
        ...


class Planner:
    """
    Finds courses for one arm, without memory between goals.

    Parameters
    ----------
    model : ArmModel
        The controller's model.
    room : ActuatorLimits
        Limits of the model's actuation: those of the actuators without pretension.
    configuration_limits : ConfigurationLimits
        Limits of the configuration.
    windows_s : (float, float)
        Windows of the smoothed motion [s].
    period_s : float
        Period of the control cycle [s].

    """

    def __init__(
        self,
        model: ArmModel,
        room: ActuatorLimits,
        configuration_limits: ConfigurationLimits,
        windows_s: tuple[float, float],
        period_s: float,
    ) -> None:
        self.model, self.room, self.limits = model, room, configuration_limits
        self.windows_s, self.period_s = windows_s, period_s

    def plan(
        self,
        goal: Goal,
        start: Array,
        motion: SmoothedMotion | None = None,
        broken_off: Callable[[], bool] = lambda: False,
    ) -> Plan:
        """
        Return the plan for a goal, from a configuration (dof,).

        A timetable begins in `motion`, which it replaces; None: at rest. Planning of paths and
        timetables polls `broken_off`; if it returns True, the goal is refused.
        """
        try:
            if goal.kind is GoalKind.CONFIGURATION:
                motion = SmoothedMotion(start, self.windows_s) if motion is None else motion
                return self._timetable(goal, start, motion.copy(), broken_off)
            if len(goal.points) > 1:
                return self._path(goal, start, broken_off)
            return self._point(goal, start)
        except ValueError as error:
            return Plan(goal, None, str(error))

    # -- points

    def _point(self, goal: Goal, start: Array) -> Plan:
        target = goal.points[0]
        found = self._near(target, start, anywhere=goal.kind is not GoalKind.STREAM)
        course = Through(found.configuration)
        return Plan(goal, course, '', target, found.tip, found.miss_m, found.tip[None])

    def _near(self, target: Array, start: Array, *, anywhere: bool) -> Nearest:
        """Return the nearest configuration found from the start, then from other places."""
        best = nearest_configuration(self.model, self.room, self.limits, target, start)
        if best.miss_m <= _LOCAL_M:
            return best
        places: list[Array | None] = [self._beside(start)]
        if anywhere:
            places += [self._elsewhere(target, start), self.model.rest_configuration]
        for place in places:
            if place is None:
                continue
            found = nearest_from(self.model, self.room, self.limits, target, place)
            if found is not None and found.miss_m < best.miss_m:
                best = found
            if best.miss_m <= _LOCAL_M:
                break
        return best

    def _beside(self, start: Array) -> Array:
        """Return a start beside one from which no step leads nearer, such as a straight arm."""
        scale = np.asarray(self.model.configuration_scale, dtype=float)
        # All coordinates differ, since the sections of a straight arm would oppose each other.
        way = np.cos(2.0 * np.arange(len(scale)) + 0.5)
        return self.limits.clipped(start + _BESIDE * scale * way)

    def _elsewhere(self, target: Array, start: Array) -> Array | None:
        """Return the result of the model's own search: more starts, but without these limits."""
        try:
            guess = self.model.posture_of(start).actuation
            return self.model.inverse(target, guess=guess).shape.configuration
        except ValueError:
            return None

    def _check(self, posture: Posture) -> None:
        """Raise ValueError for a posture beyond the actuators' limits."""
        self.room.check(posture.actuation)

    # -- paths

    def _path(self, goal: Goal, start: Array, broken_off: Callable[[], bool]) -> Plan:
        points = _sampled_curve(goal.points, self.model.rest_length_m)
        found = [self._near(points[0], start, anywhere=True)]
        for point in points[1:]:
            _go_on(broken_off)
            found.append(self._near(point, found[-1].configuration, anywhere=False))
        misses = np.array([near.miss_m for near in found])
        worst = int(np.argmax(misses))
        if np.all(misses > REACH_TOLERANCE_M):
            near = found[int(np.argmin(misses))]
            raise ValueError(
                f'no point of the path is within reach: the nearest is {1e3 * misses.min():.1f} '
                f'mm beyond {np.round(near.tip, 4).tolist()} m'
            )
        return Plan(
            goal,
            Through(np.array([near.configuration for near in found])),
            '',
            points[worst],
            found[worst].tip,
            float(misses[worst]),
            np.array([near.tip for near in found]),
        )

    # -- configurations

    def _timetable(
        self, goal: Goal, start: Array, motion: SmoothedMotion, broken_off: Callable[[], bool]
    ) -> Plan:
        names = self.model.configuration_names
        for i, configuration in enumerate(goal.configurations):
            _go_on(broken_off)
            try:
                self.limits.check(configuration, names)
                self._check(self.model.posture_of(configuration))
            except ValueError as error:
                raise ValueError(f'points[{i}].positions: {error}') from None
        if len(goal.times_s) == 1 and goal.times_s[0] <= 0.0:
            tip = self.model.posture_of(goal.configurations[0]).tip
            return Plan(goal, Through(goal.configurations), tips=np.array(tip)[None])
        table = Timetable(goal.times_s, goal.configurations, goal.velocities)
        if goal.times_s[0] <= 0.0:
            self._check_begin(goal.configurations[0], start)
        return Plan(goal, table, tips=self._checked(table, start, motion, broken_off))

    def _check_begin(self, first: Array, start: Array) -> None:
        scale = np.asarray(self.model.configuration_scale, dtype=float)
        away = np.abs(first - start) / scale
        if np.max(away) > _BEGINS_WITHIN:
            i = int(np.argmax(away))
            raise ValueError(
                f'points[0].positions: {self.model.configuration_names[i]} = {first[i]:.6g} at '
                f'0 s, but the arm is commanded to {start[i]:.6g}; expected within '
                f'{_BEGINS_WITHIN * scale[i]:.3g} of it, or a time_from_start'
            )

    def _checked(
        self,
        table: Timetable,
        start: Array,
        motion: SmoothedMotion,
        broken_off: Callable[[], bool],
    ) -> Array:
        """
        Return the tips (n, 3) along a timetable; raise ValueError if it cannot be followed.

        The end of the motion under way counts as well.
        """
        times, points, rates = table.knots_from(self.limits.clipped(start))
        trial = Timetable(times, points, np.zeros((0, 0)) if rates is None else rates)
        still = '' if motion.resting else ', as the arm is still moving'
        total = float(times[-1]) + sum(self.windows_s)
        steps = max(int(np.ceil(total / self.period_s)), 2)
        every = max(steps // _LOOKS, 1)
        seen = min(max(int(_SEEN_APART * min(self.windows_s) / self.period_s), 1), every)
        looked = -every
        tips: list[Array] = []
        posture: Posture | None = None
        for k in range(steps):
            setpoint = trial.advance(motion.setpoint, self.period_s, lambda way: 0.0, resting=True)
            motion.advance(self.period_s, setpoint)
            if k % seen:
                continue
            _go_on(broken_off)
            place, rate, change = motion.state()
            try:
                self.limits.check(place, self.model.configuration_names)
                if (
                    posture is not None
                    and k - looked < every
                    and self._known(posture, place, rate, change)
                ):
                    continue
                looked = k
                posture = self.model.posture_of(place, posture)
                self._check(posture)
            except ValueError as error:
                raise ValueError(f'points: {error} after {k * self.period_s:.2f} s') from None
            A = posture.actuation_jacobian
            after = f'after {k * self.period_s:.2f} s{still}'
            self._follows('moves at', A @ rate, self.room.max_speed, '/s', after)
            most = self.room.max_acceleration
            self._follows('is accelerated by', A @ change, most, '/s^2', after)
            tips.append(np.array(posture.tip))
        return np.array(tips)

    def _known(self, posture: Posture, place: Array, rate: Array, change: Array) -> bool:
        """Return whether the Jacobian of a nearby posture shows that the actuators can follow."""
        scale = np.asarray(self.model.configuration_scale, dtype=float)
        A = posture.actuation_jacobian
        return bool(
            np.all(np.abs(place - posture.configuration) <= _LOOKS_APART * scale)
            and np.all(np.abs(A @ rate) <= self.room.max_speed)
            and np.all(np.abs(A @ change) <= self.room.max_acceleration)
        )

    def _follows(self, what: str, values: Array, most: Array, per: str, after: str) -> None:
        for i in map(int, np.flatnonzero(np.abs(values) > most)):
            unit = f'{self.room.unit}{per}'
            raise ValueError(
                f'points: {self.room.names[i]} {what} {values[i]:.6g} {unit} {after}; '
                f'limit {most[i]:.6g} {unit}'
            )


def _go_on(broken_off: Callable[[], bool]) -> None:
    """Raise ValueError if the planning is broken off."""
    if broken_off():
        raise ValueError('the plan was broken off')


def _sampled_curve(points: Array, length_m: float) -> Array:
    """Return points (n, 3) of a smooth curve through points (k, 3), k > 1."""
    curve: Curve = (
        Segment(points[0], points[1]) if len(points) == 2 else SplineCurve(points, closed=False)
    )
    n = int(np.clip(np.ceil(curve.length / (_SPACING * length_m)) + 1, 2, _MOST_POINTS))
    return np.array([curve.at(float(s))[0] for s in np.linspace(0.0, curve.length, n)])
