"""The control loop that waits for goals, and accepts new ones in mid-motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from softarm_ros.control.config import TrackerConfig
from softarm_ros.control.goals.arrival import Arrival, ArrivalWatch
from softarm_ros.control.goals.goal import Goal, GoalKind, GoalReport, GoalState
from softarm_ros.control.goals.least_duration import least_duration_s
from softarm_ros.control.goals.plan import Plan, PlannerPort
from softarm_ros.control.goals.reference_history import ReferenceHistory
from softarm_ros.control.goals.reports import GoalReports
from softarm_ros.control.goals.smoothed import SmoothedMotion, windows_of
from softarm_ros.control.goals.tolerance_watch import ToleranceWatch
from softarm_ros.control.goals.under_way import UnderWay
from softarm_ros.control.reach import Reach
from softarm_ros.control.tracker import Tracker
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import Posture
from softarm_ros.runtime.loop import CycleOutput, Loop, Phase, PoseSample

HELD = 'the arm is held'  # why goals under way end
STALE_S = 0.15  # a stream that is silent for longer is held
_ANEW = f'a stream begins anew after a pause of {1e3 * STALE_S:.0f} ms'
_OFFSET = 0.25  # share of the reference's speed at which the offset to the measured tip shrinks
_WAITS, _GOES_ON = 0.5, 0.3  # shares of `max_error_m`: the reference waits, and goes on


class GoalLoop(Loop):
    """
    Leads the tip to one goal after another; stands still until the first one.

    The reference is a smoothed motion of the configuration (`control.goals.smoothed`): the
    model's tip there, plus an offset. The offset is the distance of the measured tip from the
    model's tip when feedback set in, and shrinks slowly. So every reference is within reach, and
    neither a goal nor the onset of feedback makes it jump. If the measured tip lags too far behind
    the reference, the reference waits.

    Goals for the configuration itself are followed by the model alone. Between the two kinds of
    goals, the arm comes to rest.

    Parameters
    ----------
    tracker : Tracker
        Holds the command, and the controller that moves it.
    planner : PlannerPort
        Turns goals into courses.
    config : TrackerConfig
        Rate of the cycle, settling, limits of the reference.
    speed_m_s : float
        Largest speed of the reference.
    max_error_m : float
        Tracking error at which the supervisor stops the arm.
    open_loop : bool
        Measured poses are reported but not used.

    """

    def __init__(
        self,
        tracker: Tracker,
        planner: PlannerPort,
        config: TrackerConfig,
        *,
        speed_m_s: float,
        max_error_m: float,
        open_loop: bool,
    ) -> None:
        rest = tracker.model.rest_configuration
        reach = Reach(np.zeros((0, 3)), np.zeros(0), np.zeros((0, 3)), rest)
        super().__init__(tracker, reach, config, open_loop=open_loop)
        self.speed_m_s = speed_m_s
        self._planner = planner
        self._wait_m, self._go_on_m = _WAITS * max_error_m, _GOES_ON * max_error_m
        windows = windows_of(speed_m_s, config)
        self._motion = SmoothedMotion(tracker.configuration, windows)
        self._offset = SmoothedMotion(np.zeros(3), windows)
        self._tip_mode = False  # feedback leads the tip; else the model the configuration
        self._waiting = False
        self._posture: Posture = tracker.settled  # of the reference
        self.under_way = UnderWay()
        self._streamed_s = self._unread_s = -np.inf  # of a stream's newest target
        self._given_up = False  # the stream is given up: its further targets are ignored
        self._arrival = ArrivalWatch(config.settle_tolerance_m, config.settle_timeout_s)
        self._past = ReferenceHistory()
        self.tolerances = ToleranceWatch(self.model.configuration_names, config.settle_timeout_s)
        self._reports = GoalReports(self._tell)
        self._tips: Array | None = None
        self.goals = 0  # accepted so far

    # -- goals

    def submit(self, goal: Goal) -> None:
        """Take a goal; it replaces the one under way once it is planned."""
        if goal.kind is GoalKind.STREAM:
            if self._of_stream_given_up():
                return
            self._streamed_s = self._clock_s
        if self.phase.stands:
            self._refuse(goal, 'the arm may not move: start it first')
            return
        unmeasured = self.tolerances.refusal(goal.tolerance, self._clock_s)
        if unmeasured:
            self._refuse(goal, unmeasured)
            return
        if goal.kind is GoalKind.STREAM:
            stream = self.under_way.stream
            if stream is not None:  # one more target of the same stream
                self.under_way.asked = replace(goal, number=stream)
                self._planner.request(self.under_way.asked, self._from(goal))
                return
        asked, self.under_way.asked = self.under_way.asked, goal
        if asked is not None:
            self._planner.break_off(asked.number)
            self._reports.add(asked, GoalState.PREEMPTED, f'by goal {goal.number}')
        self.goals += 1
        self._reports.add(goal, GoalState.PLANNING, '')
        # After feedback has led the tip, a configuration begins at rest.
        motion = None if self._tip_mode else self._motion
        self._planner.request(goal, self._from(goal), motion)

    def refuse(self, number: int, kind: GoalKind, reason: str) -> None:
        """Report a goal that could not be read."""
        if kind is GoalKind.STREAM:
            before, self._unread_s = self._unread_s, self._clock_s
            if self._of_stream_given_up() or self._clock_s - before <= STALE_S:
                return
        self._reports.unreadable(number, kind, reason)

    def cancel(self, reason: str = 'on request', number: int | None = None) -> bool:
        """
        Give up one goal, or all of them, and come to rest; return whether there was one.

        Further targets of a stream that was given up are ignored until the stream pauses.
        """
        given_up = self.under_way.give_up(number)
        # All: includes a stream that another goal has just replaced and that still sends targets.
        self._given_up |= number is None
        for goal in given_up:
            self._planner.break_off(goal.number)
            self._end(goal, GoalState.CANCELLED, reason)
        return bool(given_up)

    def _refuse(self, goal: Goal, reason: str) -> None:
        self.under_way.give_up(goal.number)
        self._end(goal, GoalState.REFUSED, reason)

    def _end(self, goal: Goal, state: GoalState, reason: str) -> None:
        """Report the end of a goal; a target of a stream ends the whole stream."""
        if goal.kind is GoalKind.STREAM:
            self._given_up = True
            reason = f'{reason}; {_ANEW}'
        self._reports.add(goal, state, reason)

    def _of_stream_given_up(self) -> bool:
        """Return whether a target now belongs to a stream that was given up; update the stream."""
        self._given_up &= self._clock_s - self._streamed_s <= STALE_S
        if self._given_up:
            self._streamed_s = self._clock_s
        return self._given_up

    def take_reports(self) -> list[GoalReport]:
        """Return the reports on goals since the last call, in order."""
        return self._reports.take()

    @property
    def goal_state(self) -> str:
        """The goal under way as text; empty if there is none."""
        plan = self.under_way.plan
        return '' if plan is None else f'{plan.goal.kind.value} {plan.goal.number}'

    # -- Loop

    def path(self, n: int) -> Array:
        """Return (n, 3) points [m] along the goal under way, or the tip if there is none."""
        tips = self.tracker.tip()[None] if self._tips is None else self._tips
        at = np.linspace(0.0, len(tips) - 1.0, n)
        return np.stack([np.interp(at, np.arange(len(tips)), c) for c in tips.T], axis=1)

    def start(self, now_s: float) -> None:
        """Stand still at the tracker's configuration and wait for goals."""
        self._stand()
        self.phase = Phase.WAIT

    def hold(self, now_s: float) -> None:
        """Stand still; cancel and report the goals under way."""
        if self.phase is not Phase.IDLE:
            self.cancel(HELD)
        super().hold(now_s)

    def resume(self, now_s: float) -> None:
        """Stand where the arm was held, and wait for goals."""
        if self.phase is Phase.HELD:
            self.start(now_s)

    def cycle(self, now_s: float, pose: PoseSample | None) -> CycleOutput:
        """Read the newest pose (None: nothing new), take plans and update the command."""
        period = self._advance_clock(now_s)
        self._read(pose)
        if pose is not None:
            self.tolerances.measure(pose.stamp_s, pose.configuration)
        if not self.phase.stands:
            self._watch_stream()
        for news in self._planner.take_news():
            self._tell('warning', news)
        for plan in self._planner.take():
            self._on_plan(plan)
        matched = self._matched(now_s)
        if not self.phase.stands:
            self._drive(now_s, period, matched)
        reference = self._reference()
        self._past.add(now_s, reference)
        self.tolerances.command(now_s, self.tracker.configuration.copy())
        return CycleOutput(
            now_s,
            self.phase,
            self.goals,
            0.0,
            reference,
            self.tracker.configuration.copy(),
            self.tracker.actuation.copy(),
            self._distance_from(matched),
            matched,
            self._take_events(),
        )

    # -- plans

    @property
    def _clock_s(self) -> float:
        return -np.inf if self._now is None else self._now

    def _from(self, goal: Goal) -> Array:
        """Return the configuration (dof,) from which a goal is planned."""
        if self._tip_mode and goal.kind is GoalKind.CONFIGURATION:
            # Feedback has led the command away from the reference; the plan keeps that difference.
            return self._motion.setpoint + self.tracker.configuration - self._posture.configuration
        return self._motion.setpoint

    def _on_plan(self, plan: Plan) -> None:
        goals, asked = self.under_way, self.under_way.asked
        if asked is not None and plan.goal.number == asked.number:
            # A stream may have sent another target while this one was being planned.
            if np.array_equal(plan.goal.points, asked.points):
                goals.asked = None
        elif not (plan.goal.kind is GoalKind.STREAM and goals.continues(plan.goal)):
            return  # the goal was cancelled or replaced
        if plan.course is None:
            self._refuse(plan.goal, plan.refusal)
            return
        if goals.next is not None and goals.next.goal.number != plan.goal.number:
            self._reports.add(goals.next.goal, GoalState.PREEMPTED, f'by goal {plan.goal.number}')
        goals.next = None
        if goals.continues(plan.goal):
            goals.plan = plan
            self._tips = plan.tips
            self._arrival.reset()
            return
        if goals.plan is not None:
            self._reports.add(goals.plan.goal, GoalState.PREEMPTED, f'by goal {plan.goal.number}')
            goals.plan = None
        goals.next = plan
        self._begin_next()

    def _begin_next(self) -> None:
        """Begin the next plan, unless the arm has to come to rest first."""
        plan = self.under_way.next
        if plan is None:
            return
        tip_mode = plan.goal.kind is not GoalKind.CONFIGURATION
        if tip_mode != self._tip_mode or self.phase is Phase.WAIT:
            if not self._at_rest() or (self._tip_mode and not self.tracker.standing):
                return
            self._engage(tip_mode)
        self.under_way.next, self.under_way.plan = None, plan
        self._tips, self.path_changed = plan.tips, True
        self._waiting = False
        self._arrival.reset()
        self.tolerances.begin(plan.goal.tolerance)
        self.phase = Phase.TRACK if tip_mode else Phase.APPROACH
        self._reports.begun(plan)

    def _engage(self, tip_mode: bool) -> None:
        """Switch feedback on, or leave the configuration to the model; the arm is at rest."""
        self._tip_mode = tip_mode
        self._motion.reset(self.tracker.configuration)
        self._posture = self.tracker.settled
        apart = np.zeros(3)
        if tip_mode and not self.open_loop and self._pose is not None:
            apart = self._pose.position - self._posture.tip
        self._offset.reset(apart)
        self._past.clear()

    def _at_rest(self) -> bool:
        return self._motion.resting and self._offset.resting

    @property
    def _leaves_feedback(self) -> bool:
        """Whether a configuration goal waits for the command, whose reference is at rest."""
        plan = self.under_way.next
        return plan is not None and plan.goal.kind is GoalKind.CONFIGURATION and self._at_rest()

    def _stand(self) -> None:
        self._motion.reset(self.tracker.configuration)
        self._offset.reset(np.zeros(3))
        self._posture, self._tip_mode = self.tracker.settled, False
        self._waiting = False
        self._past.clear()

    # -- motion

    def _drive(self, now_s: float, period: float, matched: Array) -> None:
        time = self.pace * period
        self._wait_for_the_arm(matched)
        setpoint, course = self._motion.setpoint, self.under_way.course
        if course is not None and not course.done and not self._waiting:
            setpoint = course.advance(setpoint, time, self._duration, resting=self._motion.resting)
        self._motion.advance(time, setpoint)
        self._offset.advance(time, self._shrunk_offset(time))
        place, rate, _ = self._motion.state()
        try:
            if not self._motion.resting or not np.array_equal(place, self._posture.configuration):
                self._posture = self.model.posture_of(place, self._posture)
            if not self._tip_mode:
                self._lead_configuration(period, place)
            elif self._leaves_feedback:
                self.tracker.brake(period)
            else:
                self._lead_tip(period, rate, matched)
        except ValueError as error:
            self.cancel(f'the arm cannot follow: {error}')
            self.tracker.halt()
            self._stand()
            self.phase = Phase.WAIT
        self._begin_next()
        self._watch_arrival(now_s, matched)

    def _lead_tip(self, period: float, rate: Array, matched: Array) -> None:
        velocity = self._posture.tip_jacobian @ rate + self._offset.state()[1]
        if self.open_loop:
            error = self._reference() - self.tracker.tip()
        elif self._pose is None:
            error = np.zeros(3)
        else:
            error = matched - self._pose.position
        self.tracker.step(self.pace * velocity, self.pace * error, period, self._measured())

    def _lead_configuration(self, period: float, place: Array) -> None:
        if np.array_equal(place, self.tracker.configuration):
            self.tracker.stand(period)
            return
        if not self.tracker.room.hold(self._posture.actuation):
            self.tracker.room.check(self._posture.actuation)
        self.tracker.move_to(place, period)

    def _shrunk_offset(self, time: float) -> Array:
        """Return the offset's setpoint (3,) [m] one period later; it shrinks to zero."""
        now = self._offset.setpoint
        far = float(np.linalg.norm(now))
        if self._waiting or self.under_way.plan is None or not self._tip_mode or far == 0.0:
            return now
        return np.asarray(now * max(1.0 - _OFFSET * self.speed_m_s * time / far, 0.0))

    def _duration(self, way: Array) -> float:
        """Return the least duration [s] of a change of the configuration (dof,)."""
        room, window_s = self.tracker.room, self._motion.first_s
        return least_duration_s(way, self._posture, self.model, room, self.speed_m_s, window_s)

    def _wait_for_the_arm(self, matched: Array) -> None:
        if not self._tip_mode or self.open_loop or self._pose is None:
            self._waiting = False
            return
        behind = self._distance_from(matched)
        self._waiting = behind > (self._go_on_m if self._waiting else self._wait_m)

    # -- watches

    def _watch_stream(self) -> None:
        """Cancel a stream that has gone silent, whether it is being followed or still planned."""
        silent = self._clock_s - self._streamed_s
        if self.under_way.stream is None or silent <= STALE_S:
            return
        stream, *others = self.under_way.give_up()
        for goal in others:
            self._reports.add(goal, GoalState.PREEMPTED, f'by goal {stream.number}')
        self._reports.add(
            stream, GoalState.CANCELLED, f'stream silent for {1e3 * silent:.0f} ms; held'
        )

    def _watch_arrival(self, now_s: float, matched: Array) -> None:
        plan, course = self.under_way.plan, self.under_way.course
        if plan is None or course is None or plan.goal.kind is GoalKind.STREAM:
            return
        if not course.done or not self._at_rest():
            self._arrival.reset()
            strayed = self.tolerances.strayed(now_s)
            if strayed:
                self._reports.add(plan.goal, GoalState.STRAYED, strayed)
                self.under_way.plan = None
            return
        state = GoalState.OUT_OF_REACH if plan.out_of_reach else GoalState.REACHED
        away, words = None, ''
        if not self._tip_mode:
            arrival, words = self.tolerances.arrived(now_s)
        elif self.open_loop:
            arrival = Arrival.SETTLED
        else:
            # Without a measurement, the tip cannot be known to be close.
            away = np.inf if self._pose is None else self._distance_from(matched)
            arrival = self._arrival.update(now_s, away)
        if arrival is Arrival.AWAITED:
            return
        if arrival is Arrival.MISSED:
            state = GoalState.MISSED
        self.under_way.plan = None
        if not self._tip_mode:
            self.phase = Phase.WAIT
        worst = self._arrival.worst_m if arrival is Arrival.MISSED and self._tip_mode else np.inf
        self._reports.ended(plan, state, away, worst, self.config.settle_tolerance_m, words)

    # -- reference

    def _reference(self) -> Array:
        """Return the current reference (3,) [m]."""
        if not self._tip_mode:
            return self.tracker.tip()
        return np.asarray(self._posture.tip + self._offset.state()[0])

    def _matched(self, now_s: float) -> Array:
        """Return the reference (3,) [m] at the time of the newest measurement."""
        if self._pose is None or not self._tip_mode:
            return self._reference()
        then = self._past.at(self._pose.stamp_s)
        return self._reference() if then is None else then
