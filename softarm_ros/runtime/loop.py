"""Base of all control loops: phases, measurements, clock, events."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

import numpy as np

from softarm_ros.control.config import TrackerConfig
from softarm_ros.control.controller import AnswerError
from softarm_ros.control.reach import Reach
from softarm_ros.control.tracker import Tracker
from softarm_ros.geometry.arrays import Array, all_finite
from softarm_ros.runtime.events import Event

_MAX_PERIODS = 5.0  # a late cycle integrates at most this many periods
_NOISE = 0.02  # share of an actuator's range by which its measurement may be wrong


class Phase(str, Enum):
    """What the loop is doing."""

    IDLE = 'idle'
    WAIT = 'wait'  # allowed to move, but without a goal
    APPROACH = 'approach'
    SETTLE = 'settle'
    TRACK = 'track'
    DONE = 'done'
    HELD = 'held'

    @property
    def stands(self) -> bool:
        """Whether the loop may not move, so that its command has no effect."""
        return self in (Phase.IDLE, Phase.HELD)

    @property
    def drives(self) -> bool:
        """Whether the arm is driven, so that missed cycles count."""
        return self in (Phase.APPROACH, Phase.SETTLE, Phase.TRACK)


@dataclass(frozen=True)
class PoseSample:
    """
    Measured tip position (3,) [m] in the base frame, with the time of the measurement [s].

    `configuration` (dof,) is the measured one, or None if the section tips do not determine it.
    """

    stamp_s: float
    position: Array
    configuration: Array | None = None


@dataclass(frozen=True)
class CycleOutput:
    """
    Result of one cycle.

    `reference_position` is the current reference; `matched_reference` is the reference at the time
    of the newest measurement; `error_m` is the distance between the measurement and that reference
    (NaN without a measurement); `actuation` (m,) is the actuator command for `configuration`
    (dof,), pretension included; `gripper_pressure_Pa` is the gripper command (None: no gripper, or
    no change).
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
    gripper_pressure_Pa: float | None = None


class Loop(ABC):
    """
    One read-update per cycle, from a reference to an actuator command.

    Parameters
    ----------
    tracker : Tracker
        Holds the command, and the controller that moves it.
    reach : Reach
        Result of the reachability check of the reference's path.
    config : TrackerConfig
        Rate of the cycle, settling, limits of the reference.
    open_loop : bool
        Measured poses are reported but not used.

    Attributes
    ----------
    counts : str
        What the number `lap` of an output counts.

    """

    counts: ClassVar[str] = 'lap'

    def __init__(
        self,
        tracker: Tracker,
        reach: Reach,
        config: TrackerConfig,
        *,
        open_loop: bool,
    ) -> None:
        self.tracker = tracker
        self.model = tracker.model
        self.limits = tracker.limits
        self.reach = reach
        self.config = config
        self.open_loop = open_loop
        self.phase = Phase.IDLE
        self.period_s = 1.0 / config.rate_hz
        self.pace = 1.0  # share of the reference's speed; 0: the command stands
        self.path_changed = False  # set when the path changes, cleared by its readers
        self._resume_phase = Phase.IDLE
        self._now: float | None = None
        self._first_time: float | None = None
        self._phase_time = 0.0  # since the phase began; stops while held
        self._pose: PoseSample | None = None
        self._events: list[Event] = []

    @abstractmethod
    def path(self, n: int) -> Array:
        """Return (n, 3) points [m] of the reference."""

    @abstractmethod
    def start(self, now_s: float) -> None:
        """Begin from where the tracker stands."""

    @abstractmethod
    def cycle(self, now_s: float, pose: PoseSample | None) -> CycleOutput:
        """
        Read the newest pose (None: nothing new) and update the command.

        Pure computation: it never sleeps.

        Raises
        ------
        ValueError
            If the model or a part refuses to go on; the command is unchanged. AnswerError for a
            pose that is not finite: measured poses are checked before, so the estimator is wrong.

        """

    def take_over(self, position: Array) -> None:
        """Begin at the actuators' positions (m,): after a restart the loop's own may be wrong."""
        room = self.tracker.room
        # The sensor of an empty chamber may read slightly below zero.
        stand = position - self.tracker.pretension.amount
        inside = np.clip(stand, room.position_min, room.position_max)
        tolerance = _NOISE * (room.position_max - room.position_min)
        for i in np.flatnonzero(np.abs(stand - inside) > tolerance):
            self._tell(
                'warning',
                f'{room.names[i]} stands at {position[i]:.6g} {room.unit}, beyond the '
                f'limits of the controller; starting from {inside[i]:.6g} {room.unit}',
            )
        try:
            configuration = self.model.configuration_of(inside)
            self.tracker.reset(self.tracker.configuration_limits.clipped(configuration))
        except ValueError as error:
            self._tell('warning', f'start posture: {error}')

    def hold(self, now_s: float) -> None:
        """Stand still: reference and command stop where they are."""
        if self.phase not in (Phase.HELD, Phase.DONE, Phase.IDLE):
            self._resume_phase = self.phase
            self.phase = Phase.HELD
            self.tracker.halt()

    def resume(self, now_s: float) -> None:
        """Continue after a hold."""
        if self.phase is Phase.HELD:
            self.phase = self._resume_phase

    def _advance_clock(self, now_s: float) -> float:
        if self._now is None or self._first_time is None:
            self._first_time = now_s
            self._now = now_s - self.period_s
        elapsed = max(now_s - self._now, 1e-6)
        period = min(elapsed, _MAX_PERIODS * self.period_s)
        self._now = now_s
        self.tracker.wait(elapsed if self.phase.stands else elapsed - period)
        if self.phase is not Phase.HELD:
            self._phase_time += self.pace * period
        return period

    def _read(self, pose: PoseSample | None) -> None:
        if pose is None:
            return
        if not all_finite(pose.position):
            tip = np.asarray(pose.position).tolist()
            raise AnswerError(f'estimated tip is not finite: {tip}; the estimator is wrong')
        self._pose = pose

    def _measured(self) -> Array | None:
        """Return the measured configuration (dof,), or None if the loop is open or has none."""
        if self.open_loop or self._pose is None or self._pose.configuration is None:
            return None
        seen = self._pose.configuration
        return seen if np.isfinite(seen).all() else None

    def _distance_from(self, reference: Array) -> float:
        """Return the distance [m] from a reference (3,) to the newest measurement, or NaN."""
        if self._pose is None:
            return float('nan')
        return math.dist(reference.tolist(), self._pose.position.tolist())

    def _tell(self, level: str, message: str) -> None:
        origin = self._first_time if self._first_time is not None else 0.0
        time = (self._now - origin) if self._now is not None else 0.0
        self._events.append(Event(time, level, 'tracker', message))  # type: ignore[arg-type]

    def _take_events(self) -> tuple[Event, ...]:
        events, self._events = tuple(self._events), []
        return events
