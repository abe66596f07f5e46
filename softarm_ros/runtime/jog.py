"""Move one actuator by hand: slowly, within limits, through the driver that runs the arm."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softarm_ros.clock import MONOTONIC, Clock, Rhythm
from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.control.slowness import describe_slowness
from softarm_ros.control.start_jump import start_jump
from softarm_ros.drivers.actuator_driver import (
    REFUSED_S,
    ActuatorDriver,
    ActuatorReading,
    HomesByMoving,
)
from softarm_ros.drivers.problems import DriverError
from softarm_ros.geometry.arrays import Array
from softarm_ros.runtime.machine_load import MachineLoad
from softarm_ros.runtime.pressure_feed import PressureFeed

PERIOD_S = 0.01
READY_S = 15.0  # to open a port, boot a Mega or connect a drive
HOMED_S = 60.0
_RETRY_S = 0.2
_ARRIVED = 0.02  # share of the move
_SETTLE_S = 1.0
_LONGEST_STEP_S = 0.05  # longest time that one command counts: a pause is not made up for
_NOT_MOVED = 'stopped before anything moved'
_NOT_THERE = 0.5  # share of the move; beyond: stuck, reversed, or another one moved


class JogError(RuntimeError):
    """The actuator was not moved, or not to the end; the message says why."""


class NotFollowedError(JogError):
    """The driver or its device stopped following in mid-motion."""


@dataclass(frozen=True)
class JogMove:
    """
    One move.

    Attributes
    ----------
    actuator
        Index of the actuator in the rig.
    amount
        Change of its command [SI unit].
    speed
        Speed of the command [SI unit / s].
    hold_s
        Time for which the last command is kept [s].

    """

    actuator: int
    amount: float
    speed: float
    hold_s: float = 0.0


@dataclass(frozen=True)
class JogStep:
    """Command and measurement of the moved actuator at one moment [SI unit]."""

    time_s: float
    command: float
    measured: float

    def there(self, move: JogMove) -> bool:
        """Return whether the actuator is measured near its end at the end of a move."""
        return abs(self.measured - self.command) <= _NOT_THERE * abs(move.amount)


class _Way:
    """The command of a move by its time: from rest to rest, at most at its speed."""

    def __init__(self, move: JogMove, acceleration: float) -> None:
        self._amount, self._acceleration = move.amount, acceleration
        self._speed = min(move.speed, math.sqrt(acceleration * abs(move.amount)))
        self._ramp_s = self._speed / acceleration
        self.duration_s = abs(move.amount) / self._speed + self._ramp_s

    def at(self, time_s: float) -> float:
        """Return the change of the command [SI unit] after a time [s]."""
        left_s = self.duration_s - time_s
        if left_s <= 0.0:
            return self._amount
        if left_s < self._ramp_s:
            way = abs(self._amount) - 0.5 * self._acceleration * left_s**2
        elif time_s < self._ramp_s:
            way = 0.5 * self._acceleration * time_s**2
        else:
            way = self._speed * (time_s - 0.5 * self._ramp_s)
        return math.copysign(way, self._amount)


class Jog:
    """
    Moves one actuator by hand: starts a driver, makes it ready, moves it and holds it.

    Every wait ends once `stopped` returns True. The driver holds then, after any failure and at
    the end of a move. `close` must be called. A `clock` other than the computer's must be the
    driver's clock as well.
    """

    def __init__(
        self,
        driver: ActuatorDriver,
        limits: ActuatorLimits,
        feed: PressureFeed | None,
        stopped: Callable[[], bool],
        clock: Clock = MONOTONIC,
    ) -> None:
        self._driver, self._limits, self._feed, self._stopped = driver, limits, feed, stopped
        self._clock = clock

    def start(self) -> None:
        """Connect in the background; raise DriverError if a library is missing."""
        # Loads compiled code, which takes a third of a second: later, pressures would be missed.
        self._limits.hold(self._limits.position_min)
        self._driver.start()
        if self._feed is not None:
            self._feed.start()

    def close(self) -> None:
        """Hold, switch off and disconnect."""
        self._driver.hold()
        self._driver.close()
        if self._feed is not None:
            self._feed.close()

    def make_ready(self, home: bool) -> None:
        """
        Wait until motion may start; with `home`, home the actuators as soon as the driver can.

        Raises
        ------
        JogError
            If the driver does not get ready; the message gives its reason.

        """
        end, next_try, homed = self._clock.now_s() + READY_S, 0.0, False
        why = ''
        while True:
            now = self._clock.now_s()
            self._poll()
            if self._driver.problems():
                raise JogError('; '.join(map(str, self._driver.problems())))
            if home and not homed and now >= next_try:
                next_try = now + _RETRY_S
                try:
                    self._driver.home()
                except DriverError as error:
                    why = str(error)
                else:
                    homed, end = True, now + HOMED_S
            elif homed or not home:
                why = self._driver.not_ready()
                if not why and self._driver.reading() is not None:
                    return
            if self._stopped():
                moving = homed and isinstance(self._driver, HomesByMoving)
                raise JogError('stopped while homing' if moving else _NOT_MOVED)
            if now > end:
                raise JogError(why or 'the driver reports no measurement')
            self._clock.sleep(PERIOD_S)

    def move(self, move: JogMove, progress: Callable[[JogStep], None]) -> JogStep:
        """
        Move the actuator and return the last step.

        The other actuators keep the positions measured at the beginning.

        Raises
        ------
        LimitError
            If the end lies beyond the actuator's limits; nothing has moved.
        JogError
            If a length is measured beyond its limits: nothing has moved.
            If the driver does not follow, or `stopped`; the driver holds. The message also says if
            the computer was too slow, since a device stops when its messages are late.

        """
        beat = _Beat(MachineLoad())
        try:
            return self._move(move, progress, beat)
        except NotFollowedError as error:
            if any(problem.outside for problem in self._driver.problems()):
                raise
            why = filter(None, (str(error), beat.slowness()))
            raise NotFollowedError('; '.join(why)) from None
        finally:
            self._driver.hold()

    def _move(self, move: JogMove, progress: Callable[[JogStep], None], beat: _Beat) -> JogStep:
        limits, i = self._limits, move.actuator
        begin = self._begin()
        end = begin.copy()
        end[i] += move.amount
        limits.check(end)
        command = begin.copy()
        self._take_over(command)
        began = now = self._clock.now_s()
        way, moving_s = _Way(move, float(limits.max_acceleration[i])), 0.0
        rhythm, refused_since = Rhythm(PERIOD_S), None
        while True:
            beat.late(rhythm.turn(now))
            command[i] = begin[i] + way.at(moving_s)
            refusal = self._driver.follow(command)
            step = JogStep(now - began, float(command[i]), float(self._reading().position[i]))
            progress(step)
            self._poll()
            if refusal is None:
                refused_since = None
            else:
                refused_since = refused_since or now
                if now - refused_since > REFUSED_S or self._driver.problems():
                    raise NotFollowedError(f'not followed: {refusal}')
            if self._stopped():
                raise JogError('stopped')
            left = abs(step.measured - end[i])
            past_s = moving_s - way.duration_s
            settled = left < _ARRIVED * abs(move.amount) or past_s > _SETTLE_S
            over = settled and past_s > move.hold_s
            if over and refusal is None:  # if refused: follows soon, or `REFUSED_S` ends it
                return step
            self._clock.sleep(rhythm.due_s - self._clock.now_s())
            before, now = now, self._clock.now_s()
            if refusal is None:
                moving_s += min(now - before, _LONGEST_STEP_S)

    def _begin(self) -> Array:
        """Return the measured positions within the limits; raise JogError if one would jump."""
        limits, measured = self._limits, self._reading().position
        begin = np.clip(measured, limits.position_min, limits.position_max)
        if jump := start_jump(limits, measured, begin):
            raise JogError(
                f'not moved: {jump}. Bring it inside by hand, home the arm at rest (--home), or '
                'correct the rig file'
            )
        return begin

    def _take_over(self, command: Array) -> None:
        """Command the present positions until the driver follows."""
        end = self._clock.now_s() + REFUSED_S
        while (refusal := self._driver.follow(command)) is not None:
            self._poll()
            if self._clock.now_s() > end or self._driver.problems():
                raise NotFollowedError(f'not followed: {refusal}')
            if self._stopped():
                raise JogError(_NOT_MOVED)
            self._clock.sleep(PERIOD_S)

    def _reading(self) -> ActuatorReading:
        reading = self._driver.reading()
        if reading is None:  # a disconnected device measures nothing
            why = '; '.join(map(str, self._driver.problems())) or self._driver.not_ready()
            raise NotFollowedError(why or 'the driver reports no measurement')
        return reading

    def _poll(self) -> None:
        if self._feed is None:
            return
        self._feed.poll()
        found = self._feed.problems()
        if found:
            raise NotFollowedError('; '.join(map(str, found)))


class _Beat:
    """Timing of the cycles of one move."""

    def __init__(self, load: MachineLoad) -> None:
        self._load = load
        self._cycles = self._missed = 0
        self._worst_s = 0.0

    def late(self, seconds: float) -> None:
        """Record how late one cycle was [s]."""
        self._cycles += 1
        self._missed += seconds > 0.5 * PERIOD_S
        self._worst_s = max(self._worst_s, seconds)

    def slowness(self) -> str:
        """Return a text saying that the computer was too slow; empty if it was not."""
        return describe_slowness(
            {'jog': self._worst_s}, self._cycles, self._missed, self._load.percent()
        )
