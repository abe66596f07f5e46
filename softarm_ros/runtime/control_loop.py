"""The control loop of a trajectory: one read-update per cycle, up to an actuator command."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softarm_ros.control.config import TrackerConfig
from softarm_ros.control.goals.arrival import SETTLED_S
from softarm_ros.control.reach import REACH_TOLERANCE_M, Reach
from softarm_ros.control.tracker import Tracker
from softarm_ros.control.trajectory import ReferenceSample, Trajectory
from softarm_ros.geometry.arrays import Array
from softarm_ros.runtime.configuration_move import ConfigurationMove, plan_move
from softarm_ros.runtime.loop import CycleOutput, Loop, Phase, PoseSample

_LIMITED_S = 0.3  # limits active for this long are reported
_NAMED = 3  # reached limits that a message names


class ControlLoop(Loop):
    """
    Drives a tip along a trajectory: approach, settle, track.

    Parameters
    ----------
    tracker : Tracker
        Holds the command, and the controller that moves it.
    trajectory : Trajectory
        Timed reference.
    reach : Reach
        Result of the reachability check of the trajectory's path.
    config : TrackerConfig
        Rate of the cycle, settling, limits of the reference.
    open_loop : bool
        Measured poses are reported but not used.

    """

    def __init__(
        self,
        tracker: Tracker,
        trajectory: Trajectory,
        reach: Reach,
        config: TrackerConfig,
        *,
        open_loop: bool,
    ) -> None:
        super().__init__(tracker, reach, config, open_loop=open_loop)
        self.trajectory = trajectory
        self._approach: ConfigurationMove | None = None
        self._error_history: list[float] = []
        self._out_of_reach = False
        self._limited_s = 0.0
        self._all_reached = not np.any(reach.miss_m > REACH_TOLERANCE_M)
        self._sampled = (0.0, trajectory.sample(0.0))  # the last time and its sample

    def path(self, n: int) -> Array:
        """Return (n, 3) points [m] of one lap of the reference."""
        return self.trajectory.path.sample(n)

    def start(self, now_s: float) -> None:
        """Begin with the approach to the first point of the trajectory."""
        start = self.tracker.configuration.copy()
        goal = self.reach.start_configuration
        self._approach = plan_move(self.model, self.limits, start, goal, 10.0 * self.period_s)
        self._enter(Phase.APPROACH)

    def resume(self, now_s: float) -> None:
        """Continue after a hold; an approach begins anew, from rest."""
        held = self.phase is Phase.HELD
        super().resume(now_s)
        if held and self.phase is Phase.APPROACH:
            self.start(now_s)

    def cycle(self, now_s: float, pose: PoseSample | None) -> CycleOutput:
        """Read the newest pose (None: nothing new) and update the command."""
        period = self._advance_clock(now_s)
        self._read(pose)
        matched = self._matched_reference(now_s)
        error = self._error_vector(matched)
        if self.phase is Phase.APPROACH:
            self._update_approach(period)
        elif self.phase is Phase.SETTLE:
            self._update_settle(error, period)
        elif self.phase is Phase.TRACK:
            self._update_track(error, period)
        elif self.phase is Phase.DONE:
            self.tracker.brake(period)  # feedback may still have moved the command
        sample = self._sample(self._trajectory_time())
        reference = (
            self.tracker.tip() if self.phase in (Phase.IDLE, Phase.APPROACH) else sample.position
        )
        return CycleOutput(
            now_s,
            self.phase,
            sample.lap,
            sample.progress,
            reference,
            self.tracker.configuration.copy(),
            self.tracker.actuation.copy(),
            self._distance_from(matched),
            matched,
            self._take_events(),
        )

    # -- reference and error --------------------------------------------------------------

    def _trajectory_time(self) -> float:
        phase = self._resume_phase if self.phase is Phase.HELD else self.phase
        if phase is Phase.TRACK:
            return self._phase_time
        return self.trajectory.duration_s if phase is Phase.DONE else 0.0

    def _sample(self, time_s: float) -> ReferenceSample:
        """Return the reference at a time; a cycle asks for the same time several times."""
        if self._sampled[0] != time_s:
            self._sampled = (time_s, self.trajectory.sample(time_s))
        return self._sampled[1]

    def _matched_reference(self, now_s: float) -> Array:
        """Return the reference (3,) at the time of the newest measurement."""
        age = 0.0 if self._pose is None else max(now_s - self._pose.stamp_s, 0.0)
        if self.phase in (Phase.IDLE, Phase.APPROACH):
            return self.tracker.tip()
        return self._sample(self._trajectory_time() - age).position

    def _error_vector(self, matched: Array) -> Array:
        if self.open_loop:
            # eq. 38 as the paper uses it: the drift of the numerical integration.
            reference = self._sample(self._trajectory_time()).position
            return reference - self.tracker.tip()
        if self._pose is None:
            return np.zeros(3)
        return matched - self._pose.position

    # -- phases ---------------------------------------------------------------------------

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self._phase_time = 0.0
        self._error_history = []

    def _update_approach(self, period: float) -> None:
        approach = self._approach
        if approach is None:
            raise RuntimeError('approach without a goal: call start first')
        self.tracker.move_to(approach.at(self._phase_time), period)
        if self._phase_time >= approach.duration_s:
            self._enter(Phase.TRACK if self.open_loop else Phase.SETTLE)

    def _update_settle(self, error: Array, period: float) -> None:
        self.tracker.step(np.zeros(3), self.pace * error, period, self._measured())
        # Without a measurement, the tip cannot be known to be close.
        unknown = not self.open_loop and self._pose is None
        self._error_history.append(np.inf if unknown else float(np.linalg.norm(error)))
        window = max(int(SETTLED_S / self.period_s), 1)
        recent = self._error_history[-window:]
        close = len(recent) == window and max(recent) <= self.config.settle_tolerance_m
        if close or self._phase_time >= self.config.settle_timeout_s:
            if not close:
                self._tell(
                    'warning',
                    f'first point not reached within {self.config.settle_timeout_s:g} s: '
                    f'up to {1e3 * max(recent):.1f} mm away in the last {SETTLED_S:g} s '
                    f'(tolerance {1e3 * self.config.settle_tolerance_m:.1f} mm)',
                )
            self._enter(Phase.TRACK)

    def _update_track(self, error: Array, period: float) -> None:
        sample = self._sample(self._phase_time)
        step = self.tracker.step(
            self.pace * sample.velocity, self.pace * error, period, self._measured()
        )
        self._watch_reach(sample.position)
        self._watch_limits(step.limited, period)
        if self._phase_time >= self.trajectory.duration_s:
            self._enter(Phase.DONE)
            self._tell('info', 'trajectory completed')

    def _watch_limits(self, limited: bool, period: float) -> None:
        before = self._limited_s
        self._limited_s = before + period if limited else 0.0
        if before < _LIMITED_S <= self._limited_s:
            reached = self.tracker.limits_reached()
            more = f' and {len(reached) - _NAMED} more' if len(reached) > _NAMED else ''
            limits = ', '.join(reached[:_NAMED]) + more or 'an acceleration limit'
            self._tell(
                'warning',
                f'held back for {_LIMITED_S:g} s by {limits}; the path is not followed closely',
            )

    def _watch_reach(self, position: Array) -> None:
        if self._all_reached:
            return
        i = int(((self.reach.points - position) ** 2).sum(axis=1).argmin())
        outside = bool(self.reach.miss_m[i] > REACH_TOLERANCE_M)
        if outside and not self._out_of_reach:
            self._tell('warning', f'target {_mm(position)} mm is out of reach; approaching')
        elif self._out_of_reach and not outside:
            self._tell('info', f'target {_mm(position)} mm is within reach again')
        self._out_of_reach = outside


def _mm(position: Sequence[float] | Array) -> str:
    return '(' + ', '.join(f'{1e3 * float(x):.1f}' for x in position) + ')'
