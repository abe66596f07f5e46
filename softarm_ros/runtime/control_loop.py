"""The control loop: one read-update per cycle, from a trajectory to an actuator command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from softarm_ros.control.config import TrackerConfig
from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.control.reach import REACH_TOLERANCE_M, Reach
from softarm_ros.control.tracker import Tracker
from softarm_ros.control.trajectory import Trajectory
from softarm_ros.models.arm_model import ArmModel
from softarm_ros.runtime.events import Event

Array = NDArray[np.float64]
_APPROACH_SAMPLES = 60
_APPROACH_USE = 0.7  # share of speed and acceleration limits that the approach uses
_LIMITED_S = 0.3  # limits active for so long are worth a word
_MAX_PERIODS = 5.0  # a late cycle integrates at most this many periods


class Phase(str, Enum):
    """What the loop is doing."""

    IDLE = 'idle'
    APPROACH = 'approach'
    SETTLE = 'settle'
    TRACK = 'track'
    DONE = 'done'
    HELD = 'held'


@dataclass(frozen=True)
class PoseSample:
    """
    Measured tip position (3,) [m] in the base frame, with the time of the measurement [s].

    `configuration` (dof,) is the measured one, where the section tips tell it.
    """

    stamp_s: float
    position: Array
    configuration: Array | None = None


@dataclass(frozen=True)
class CycleOutput:
    """
    Result of one cycle.

    `reference_position` is the reference now; `matched_reference` the one at the time of the
    measurement; `error_m` the distance between that measurement and it (NaN without one).
    """

    stamp_s: float
    phase: Phase
    lap: int
    progress: float
    reference_position: Array
    configuration: Array
    actuation: Array
    error_m: float
    matched_reference: Array
    events: tuple[Event, ...]


@dataclass(frozen=True)
class _Approach:
    """Minimum-jerk motion in configuration space from `start` to `goal` (dof,)."""

    start: Array
    goal: Array
    duration_s: float

    def at(self, time_s: float) -> Array:
        r = min(max(time_s / self.duration_s, 0.0), 1.0) if self.duration_s > 0.0 else 1.0
        return self.start + (self.goal - self.start) * (r**3 * (10.0 - 15.0 * r + 6.0 * r * r))


class ControlLoop:
    """
    Drives a tip along a trajectory: approach, settle, track.

    Parameters
    ----------
    model : ArmModel
        The controller's model.
    trajectory : Trajectory
        Timed reference.
    reach : Reach
        Result of the reachability check of the trajectory's path.
    config, limits, configuration_limits
        Tracker parameters, limits of the actuators and of the configuration.
    open_loop : bool
        Measured poses are reported but not used.

    """

    def __init__(
        self,
        model: ArmModel,
        trajectory: Trajectory,
        reach: Reach,
        config: TrackerConfig,
        limits: ActuatorLimits,
        configuration_limits: ConfigurationLimits,
        *,
        open_loop: bool,
    ) -> None:
        self.model = model
        self.trajectory = trajectory
        self.reach = reach
        self.config = config
        self.limits = limits
        self.open_loop = open_loop
        self.tracker = Tracker(model, config, limits, configuration_limits)
        self.phase = Phase.IDLE
        self.period_s = 1.0 / config.rate_hz
        self._resume_phase = Phase.IDLE
        self._now: float | None = None
        self._first_time: float | None = None
        self._phase_time = 0.0  # since the phase began, standing still while held
        self._approach: _Approach | None = None
        self._pose: PoseSample | None = None
        self._error_history: list[float] = []
        self._out_of_reach = False
        self._limited_s = 0.0
        self._events: list[Event] = []

    def path(self, n: int) -> Array:
        """Return (n, 3) points [m] of one lap of the reference."""
        return self.trajectory.path.sample(n)

    def start(self, now_s: float) -> None:
        """Begin with the approach to the first point of the trajectory."""
        start = self.tracker.configuration.copy()
        goal = self.reach.start_configuration
        self._approach = _Approach(start, goal, self._approach_duration(start, goal))
        self._enter(Phase.APPROACH)

    def hold(self, now_s: float) -> None:
        """Stand still: the reference and the command stop where they are."""
        if self.phase not in (Phase.HELD, Phase.DONE, Phase.IDLE):
            self._resume_phase = self.phase
            self.phase = Phase.HELD
            self.tracker.halt()

    def resume(self, now_s: float) -> None:
        """Go on after a hold."""
        if self.phase is Phase.HELD:
            self.phase = self._resume_phase

    def cycle(self, now_s: float, pose: PoseSample | None) -> CycleOutput:
        """
        Read the newest pose (None: nothing new), update the command.

        Pure computation: it never sleeps. A pose that is not finite is reported and not used.
        """
        period = self._advance_clock(now_s)
        self._read(now_s, pose)
        matched = self._matched_reference(now_s)
        error = self._error_vector(matched)
        if self.phase is Phase.APPROACH:
            self._update_approach()
        elif self.phase is Phase.SETTLE:
            self._update_settle(error, period)
        elif self.phase is Phase.TRACK:
            self._update_track(error, period)
        sample = self.trajectory.sample(self._trajectory_time())
        reference = (
            self.tracker.tip() if self.phase in (Phase.IDLE, Phase.APPROACH) else sample.position
        )
        distance = (
            float(np.linalg.norm(matched - self._pose.position)) if self._pose else float('nan')
        )
        events, self._events = tuple(self._events), []
        return CycleOutput(
            now_s,
            self.phase,
            sample.lap,
            sample.progress,
            reference,
            self.tracker.configuration.copy(),
            self.tracker.actuation.copy(),
            distance,
            matched,
            events,
        )

    # -- clock and measurement ------------------------------------------------------------

    def _advance_clock(self, now_s: float) -> float:
        if self._now is None or self._first_time is None:
            self._first_time = now_s
            self._now = now_s - self.period_s
        period = min(max(now_s - self._now, 1e-6), _MAX_PERIODS * self.period_s)
        self._now = now_s
        if self.phase is not Phase.HELD:
            self._phase_time += period
        return period

    def _read(self, now_s: float, pose: PoseSample | None) -> None:
        if pose is None:
            return
        if not np.all(np.isfinite(pose.position)):
            self._tell('error', f'pose not finite: {np.asarray(pose.position).tolist()}; not used')
            return
        self._pose = pose

    def _trajectory_time(self) -> float:
        phase = self._resume_phase if self.phase is Phase.HELD else self.phase
        if phase is Phase.TRACK:
            return self._phase_time
        return self.trajectory.duration_s if phase is Phase.DONE else 0.0

    def _matched_reference(self, now_s: float) -> Array:
        """Return the reference (3,) at the time of the newest measurement."""
        age = 0.0 if self._pose is None else max(now_s - self._pose.stamp_s, 0.0)
        if self.phase in (Phase.IDLE, Phase.APPROACH):
            return self.tracker.tip()
        return self.trajectory.sample(self._trajectory_time() - age).position

    def _error_vector(self, matched: Array) -> Array:
        if self.open_loop:
            # eq. 38 as the paper uses it: the drift of the numerical integration.
            reference = self.trajectory.sample(self._trajectory_time()).position
            return reference - self.tracker.tip()
        if self._pose is None:
            return np.zeros(3)
        return matched - self._pose.position

    def _measured(self) -> Array | None:
        """Return the measured configuration (dof,), or None (open loop, not measured)."""
        if self.open_loop or self._pose is None or self._pose.configuration is None:
            return None
        return self._pose.configuration if np.all(np.isfinite(self._pose.configuration)) else None

    # -- phases ---------------------------------------------------------------------------

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self._phase_time = 0.0
        self._error_history = []

    def _tell(self, level: str, message: str) -> None:
        origin = self._first_time if self._first_time is not None else 0.0
        time = (self._now - origin) if self._now is not None else 0.0
        self._events.append(Event(time, level, 'tracker', message))  # type: ignore[arg-type]

    def _approach_duration(self, start: Array, goal: Array) -> float:
        """Return the shortest time [s] in which the approach respects speed and acceleration."""
        r = np.linspace(0.0, 1.0, _APPROACH_SAMPLES)
        blend = r**3 * (10.0 - 15.0 * r + 6.0 * r * r)
        commands = np.array([self.model.actuation_of(start + (goal - start) * b) for b in blend])
        step = r[1] - r[0]
        first = np.max(np.abs(np.diff(commands, axis=0)), axis=0) / step
        second = np.max(np.abs(np.diff(commands, 2, axis=0)), axis=0) / step**2
        by_speed = np.max(first / (_APPROACH_USE * self.limits.max_speed))
        by_acceleration = np.sqrt(np.max(second / (_APPROACH_USE * self.limits.max_acceleration)))
        return float(max(by_speed, by_acceleration, 10.0 * self.period_s))

    def _update_approach(self) -> None:
        approach = self._approach
        if approach is None:
            raise RuntimeError('approach without a goal: call start first')
        self.tracker.reset(approach.at(self._phase_time))
        if self._phase_time >= approach.duration_s:
            self._enter(Phase.TRACK if self.open_loop else Phase.SETTLE)

    def _update_settle(self, error: Array, period: float) -> None:
        self.tracker.step(np.zeros(3), error, period, self._measured())
        self._error_history.append(float(np.linalg.norm(error)))
        window = max(int(0.3 / self.period_s), 1)
        recent = self._error_history[-window:]
        close = len(recent) == window and max(recent) <= self.config.settle_tolerance_m
        if close or self._phase_time >= self.config.settle_timeout_s:
            if not close:
                self._tell(
                    'warning',
                    f'first point not reached within {self.config.settle_timeout_s:g} s: '
                    f'{1e3 * recent[-1]:.1f} mm away '
                    f'(tolerance {1e3 * self.config.settle_tolerance_m:.1f} mm)',
                )
            self._enter(Phase.TRACK)

    def _update_track(self, error: Array, period: float) -> None:
        sample = self.trajectory.sample(self._phase_time)
        step = self.tracker.step(sample.velocity, error, period, self._measured())
        self._watch_reach(sample.position)
        self._watch_limits(step.limited, period)
        if self._phase_time >= self.trajectory.duration_s:
            self._enter(Phase.DONE)
            self._tell('info', 'trajectory completed')

    def _watch_limits(self, limited: bool, period: float) -> None:
        before = self._limited_s
        self._limited_s = before + period if limited else 0.0
        if before < _LIMITED_S <= self._limited_s:
            self._tell(
                'warning',
                f'held back by an actuator or bending limit for {_LIMITED_S:g} s; '
                'the path is not followed closely',
            )

    def _watch_reach(self, position: Array) -> None:
        i = int(np.argmin(np.sum((self.reach.points - position) ** 2, axis=1)))
        outside = bool(self.reach.miss_m[i] > REACH_TOLERANCE_M)
        if outside and not self._out_of_reach:
            self._tell('warning', f'target {_mm(position)} mm is out of reach; approaching')
        elif self._out_of_reach and not outside:
            self._tell('info', f'target {_mm(position)} mm is within reach again')
        self._out_of_reach = outside


def _mm(position: Sequence[float] | Array) -> str:
    return '(' + ', '.join(f'{1e3 * float(x):.1f}' for x in position) + ')'
