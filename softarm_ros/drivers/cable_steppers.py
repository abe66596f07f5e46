"""Cables wound by stepper motors behind a board (firmware/steppers)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

import numpy as np

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers import messages
from softarm_ros.drivers.actuator_driver import ActuatorReading
from softarm_ros.drivers.board_clock import BoardWitness
from softarm_ros.drivers.messages import (
    MOTORS,
    Ack,
    Cause,
    HelloReply,
    Kind,
    Result,
    State,
    StepperState,
    Type,
    ValveState,
)
from softarm_ros.drivers.problems import DriverError, Problem, ProblemLog, require_none
from softarm_ros.drivers.serial_board import BoardLink, OpenPort, RefusedError, SerialBoard
from softarm_ros.drivers.serial_counters import SerialCounts
from softarm_ros.drivers.serial_port import SerialPort
from softarm_ros.drivers.stepper_config import (
    CableLimits,
    SteppersConfig,
    board_limits,
    to_microsteps,
)
from softarm_ros.geometry.arrays import Array

BOARD = 'steppers'
COMMAND = 'command'
_VELOCITY_S = 0.05  # over which velocity is taken: a microstep within 10 ms says little


class CableSteppers:
    """
    Winds all cables of an arm; an `ActuatorDriver`.

    The motors hold their cables from the first `home` on: while held, stopped, disconnected or
    closed. What the board has counted outlives the cable and this driver, but not its power.

    Parameters
    ----------
    config
        Of the board.
    limits
        Of the commands, arrays (m,) in the order of `config.motors`.
    clock, open_port
        As of `SerialBoard`.

    Raises
    ------
    BoardLimitError
        If the board cannot do what the limits ask for.

    """

    def __init__(
        self,
        config: SteppersConfig,
        limits: CableLimits,
        clock: Clock = MONOTONIC,
        open_port: OpenPort = SerialPort,
    ) -> None:
        self.config = config
        self._clock = clock
        self._limits = limits
        self._orders = board_limits(config, limits)
        self._names = [motor.name for motor in config.motors]
        self._motors = np.array([motor.motor for motor in config.motors])
        self._steps = np.array([motor.step_m for motor in config.motors])
        self._mask = int(sum(1 << motor.motor for motor in config.motors))
        self._log = ProblemLog()
        self._board = SerialBoard(config, Kind.STEPPERS, self, self._log, clock, open_port)

        # Between callers and the board's thread, under the lock.
        self._lock = threading.Lock()
        self._target: list[int] | None = None
        self._target_s = -np.inf
        self._homing = False
        self._resetting = False
        self._state: StepperState | None = None
        self._stamp_s = self._heard_s = -np.inf
        self._past: deque[tuple[float, Array]] = deque()

        # Of the board's thread alone.
        self._fresh = True  # since `start`, no board has been reached
        self._armed = False  # as the newest state says
        self._arming: int | None = None  # sequence of an ARM that is not answered yet
        self._arm_s = -np.inf
        self._boot_id: int | None = None
        self._strange = False  # it has other counts than those of `home`, whatever it says
        self._witness = BoardWitness()
        self._told: tuple[State, Cause] | None = None  # last state reported as a problem

    # -- for the caller

    def start(self) -> None:
        """
        Connect, in the background, and stay connected; nothing moves.

        A stop of the board from before is forgotten, as by `reset`.

        Raises
        ------
        DriverError
            If pyserial is not installed.

        """
        self._fresh = True
        self._board.start()

    def close(self) -> None:
        """Stop and hold the cables, disconnect; may be called twice."""
        with self._lock:
            self._target = None
        self._board.close()

    def home(self) -> None:
        """
        Declare that the arm is at rest now: no cable contracted.

        Raises
        ------
        DriverError
            If there is no connection, a problem, or motion.

        """
        if self._board.trouble:
            raise DriverError(self._board.trouble)
        require_none(BOARD, self._log)
        with self._lock:
            state = self._state
            if state is None:
                raise DriverError('no state of the board yet')
            if self._target is not None or state.moving:
                raise DriverError('the motors are moving')
            self._homing = True
        self._board.wake()

    def reset(self) -> None:
        """Forget problems, and let the board leave STOPPED or FAULT."""
        with self._lock:
            self._target = None
            self._resetting = self._state is not None
            self._log.clear()
        self._board.wake()

    def follow(self, command: Array) -> str | None:
        """
        Wind the cables to contractions (m,) [m]; return why they are not, or None.

        Raises
        ------
        ValueError
            If the command has the wrong shape, is not finite or beyond a limit. Nothing changes.

        """
        target = self._as_target(command)
        reason = self.not_ready()
        if reason:
            return reason
        with self._lock:
            if self._log:  # since then
                return str(next(iter(self._log)))
            new, self._target = target != self._target, target
            self._target_s = self._clock.now_s()
        if new:  # else the next cycle repeats it
            self._board.wake()
        return None

    def hold(self) -> None:
        """Brake and stay there until the next `follow`."""
        with self._lock:
            moving, self._target = self._target is not None, None
        if moving:
            self._board.wake()

    def reading(self) -> ActuatorReading | None:
        """
        Return the newest contractions [m] as counted at the coils; nothing measures pull.

        None while the board does not know where it counts from.
        """
        with self._lock:
            if not self._past:
                return None
            stamp, position = self._past[-1]
            before, earlier = self._past[0]
        passed = stamp - before
        velocity = (position - earlier) / passed if passed > 0.0 else np.zeros(len(position))
        return ActuatorReading(stamp, position.copy(), velocity, np.empty(0))

    def not_ready(self) -> str:
        """Return '' if motion could start now, or why not."""
        problems = self._log.all()
        if problems:
            return '; '.join(map(str, problems))
        if self._board.trouble:
            return f'{BOARD}: {self._board.trouble}'
        with self._lock:
            state, resetting, homing = self._state, self._resetting, self._homing
        if state is None:
            return f'{BOARD}: no state yet'
        if state.state in (State.STOPPED, State.FAULT):
            return f'{BOARD}: {state.code} {state.cause.text}'
        if resetting or homing:
            return f'{BOARD}: {"resetting" if resetting else "homing"}'
        if not self._homed(state):
            return f'{BOARD}: not homed; bring the arm to rest and call home'
        return ''

    def problems(self) -> tuple[Problem, ...]:
        """Return what has gone wrong since the last reset."""
        return self._log.all()

    def counts(self) -> SerialCounts:
        """Return latency and loss on the line since the driver was made."""
        return self._board.counter.summary()

    def values(self) -> dict[str, str]:
        """Return connection, state and counts, and losses and latencies of the line."""
        with self._lock:
            state, target, heard = self._state, self._target, self._heard_s
        values = {'connected': str(not self._board.trouble).lower(), 'port': self.config.port}
        if state is not None:
            values |= {
                'state': state.state.name,
                'cause': state.cause.name,
                'age_ms': f'{1e3 * (self._clock.now_s() - heard):.0f}',
                'homed': str(self._homed(state)).lower(),
                'positions_microsteps': _listed(np.array(state.positions)[self._motors]),
            }
        if target is not None:
            values['targets_microsteps'] = _listed(np.array(target)[self._motors])
        return values | self._board.counter.values()

    # -- for the board's thread

    def connected(self, link: BoardLink, reply: HelloReply) -> None:
        """Set the limits of all motors, where this start of the board does not have them."""
        if self._boot_id not in (None, reply.boot_id) and not self._fresh:
            self._strange = True  # of another board even zeroed counts are of another arm
            self._log.report(
                BOARD,
                f'reset {reply.reset_cause.value}',
                f'the board was started anew ({reply.reset_cause.name.lower()}), or another is at '
                'its port',
                self._clock.now_s(),
            )
        if self._boot_id == reply.boot_id and not self._fresh:
            return
        self._witness.forget()
        for order in self._orders:
            result = link.ask(Type.STEPPER_CONFIG, order.payload())
            if result is Result.STATE:
                # It was stopped in other hands; nothing can move yet.
                link.ask(Type.RESET)
                result = link.ask(Type.STEPPER_CONFIG, order.payload())
            if result is not Result.OK:
                raise RefusedError(
                    f'result {result.value}: limits of motor {order.motor} refused ({result.name})'
                )
        self._boot_id = reply.boot_id
        self._fresh = False

    def cycle(self, link: BoardLink, now_s: float) -> None:
        """Send the board what is wanted, as far as it can."""
        with self._lock:
            state, homing, resetting = self._state, self._homing, self._resetting
            target, age = self._target, now_s - self._target_s
        if state is None:
            return
        self._hear_of_arming(link, now_s)
        if resetting:
            self._reset(link, state)
            return
        if target is not None and age > self.config.command_timeout_s:
            self._problem(COMMAND, 'stale', f'the newest is {1e3 * age:.0f} ms old')
            target = None
        if target is None:
            if self._armed or self._arming is not None:
                link.send(Type.DISARM)  # until a state says so
            elif homing:
                self._home(link)
            return
        if not self._armed and self._arming is None and self._may_arm(state):
            # Targets follow without an answer, so that no watchdog is in between.
            self._arming, self._arm_s = link.send(Type.ARM), now_s
        if self._armed or self._arming is not None:
            link.send(Type.TARGETS, messages.targets(self._with_others(target)))

    def state(self, state: StepperState | ValveState, stamp_s: float) -> None:
        """Take what the board says of itself."""
        if not isinstance(state, StepperState):
            return
        other = self._witness.look(state.time_us, self._clock.now_s())
        if other:  # its counts, and that it was homed, are of another arm
            self._strange = True
            self._problem(BOARD, 'another', other)
        self._armed = state.state in (State.ARMED, State.RUNNING)
        if self._armed:
            self._arming = None
        position = np.array(state.positions)[self._motors] * self._steps
        with self._lock:
            self._state = state
            self._stamp_s, self._heard_s = stamp_s, self._clock.now_s()
            if not self._homed(state):
                self._past.clear()
            else:
                self._past.append((stamp_s, position))
            while len(self._past) > 2 and self._past[1][0] <= stamp_s - _VELOCITY_S:
                self._past.popleft()
            resetting = self._resetting
        told = (state.state, state.cause)
        if state.state in (State.STOPPED, State.FAULT):
            if told != self._told and not resetting and not self._fresh:
                self._problem(BOARD, state.code, state.cause.text)
                self._told = told
        else:
            self._told = None

    def refused(self, ack: Ack) -> None:
        """Take a refusal of targets."""
        # Those under way when the board stops are refused for its state, which it reports itself.
        if ack.result is not Result.STATE:
            self._problem(BOARD, f'result {ack.result.value}', f'targets: {ack.result.name}')

    def disconnected(self, why: str) -> None:
        """Forget what was under way; the counts of before are no more the newest."""
        self._armed = False
        self._arming, self._arm_s = None, -np.inf
        self._told = None
        self._witness.lost()
        with self._lock:
            self._target = None
            self._state = None
            self._homing = self._resetting = False
            self._past.clear()

    def closing(self, link: BoardLink) -> None:
        """Leave the motors held."""
        if self._armed or self._arming is not None:
            link.ask(Type.DISARM)

    def _homed(self, state: StepperState) -> bool:
        """Return whether the board knows where all cables of this arm are."""
        return not self._strange and state.zeroed & self._mask == self._mask

    @staticmethod
    def _may_arm(state: StepperState) -> bool:
        return state.state is State.IDLE and not state.moving

    def _hear_of_arming(self, link: BoardLink, now_s: float) -> None:
        if self._arming is None:
            return
        result = link.answer(Type.ARM, self._arming)
        if result is None:
            if now_s > self._arm_s + self.config.answer_timeout_s:
                self._arming = None  # it may be sent again
            return
        self._arming = None
        if result is Result.OK:
            self._armed = True
        elif result not in (Result.STATE, Result.MOVING):
            self._problem(BOARD, f'result {result.value}', f'arming: {result.name}')

    def _reset(self, link: BoardLink, state: StepperState) -> None:
        if state.state in (State.STOPPED, State.FAULT):
            link.ask(Type.RESET)
        with self._lock:
            self._told = None
            self._resetting = False

    def _home(self, link: BoardLink) -> None:
        try:
            result = link.ask(Type.ZERO, messages.zero(self._mask, [0] * MOTORS))
        finally:
            with self._lock:
                self._homing = False
        if result is Result.OK:
            if self._strange:  # what it counted before says nothing
                self._strange, self._state = False, None
        else:
            self._problem(BOARD, f'result {result.value}', f'homing: {result.name}')

    def _problem(self, source: str, code: str, text: str) -> None:
        with self._lock:
            self._target = None
            self._log.report(source, code, text, self._clock.now_s())

    def _with_others(self, target: Sequence[int]) -> list[int]:
        """Return targets of all motors of the board: those of others stay where they are."""
        state = self._state
        assert state is not None
        others = list(state.positions)
        for motor in self._motors:
            others[motor] = target[motor]
        return others

    def _as_target(self, command: Array) -> list[int]:
        """Return microsteps (MOTORS,) for contractions (m,), or raise ValueError."""
        values = self._limits.checked(command, self._names)
        target = [0] * MOTORS
        for motor, count in zip(self._motors, to_microsteps(values, self._steps), strict=True):
            target[motor] = count
        return target


def _listed(counts: Array) -> str:
    return ' '.join(str(int(count)) for count in counts)
