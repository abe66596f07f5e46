"""Driver for cables wound by stepper motors behind a board (firmware/steppers)."""

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
_VELOCITY_S = 0.05  # span of the velocity difference: one microstep in 10 ms is too coarse


class CableSteppers:
    """
    Winds all cables of an arm; an `ActuatorDriver`.

    From the first `home` on, the motors hold their cables: while held, stopped, disconnected or
    closed. The board's step counts survive a lost USB cable and this driver, but not a power loss.

    Parameters
    ----------
    config
        Configuration of the board.
    limits
        Limits of the commands, arrays (m,) in the order of `config.motors`.
    clock, open_port
        As for `SerialBoard`.

    Raises
    ------
    BoardLimitError
        If the board cannot reach the limits.

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

        # Shared between callers and the board's thread, under the lock.
        self._lock = threading.Lock()
        self._target: list[int] | None = None
        self._target_s = -np.inf
        self._homing = False
        self._resetting = False
        self._state: StepperState | None = None
        self._stamp_s = self._heard_s = -np.inf
        self._past: deque[tuple[float, Array]] = deque()

        # Used by the board's thread alone.
        self._fresh = True  # no board has been reached since `start`
        self._armed = False  # according to the newest state
        self._arming: int | None = None  # sequence number of an unanswered ARM
        self._arm_s = -np.inf
        self._boot_id: int | None = None
        self._strange = False  # its counts are not those of `home`, even if zeroed
        self._witness = BoardWitness()
        self._told: tuple[State, Cause] | None = None  # last state reported as a problem

    # -- for the caller

    def start(self) -> None:
        """
        Connect in the background and stay connected; nothing moves.

        An earlier stop of the board is cleared, as by `reset`.

        Raises
        ------
        DriverError
            If pyserial is not installed.

        """
        self._fresh = True
        self._board.start()

    def close(self) -> None:
        """Stop and hold the cables, and disconnect; may be called twice."""
        with self._lock:
            self._target = None
        self._board.close()

    def home(self) -> None:
        """
        Declare that the arm is at rest now: no cable contracted.

        Raises
        ------
        DriverError
            If there is no connection, there is a problem, or the motors move.

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
        """Clear problems, and let the board leave STOPPED or FAULT."""
        with self._lock:
            self._target = None
            self._resetting = self._state is not None
            self._log.clear()
        self._board.wake()

    def follow(self, command: Array) -> str | None:
        """
        Wind the cables to contractions (m,) [m]; return why the command is refused, or None.

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
            if self._log:  # a problem has arisen since `not_ready`
                return str(next(iter(self._log)))
            new, self._target = target != self._target, target
            self._target_s = self._clock.now_s()
        if new:  # an unchanged target is repeated by the next cycle
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
        Return the newest contractions [m] from the board's step counts; no effort is measured.

        None while the board's counts have no known zero.
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
        """Return '' if motion could start now; else the reason."""
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
        """Return the problems since the last reset."""
        return self._log.all()

    def counts(self) -> SerialCounts:
        """Return latency and loss on the line since the driver was created."""
        return self._board.counter.summary()

    def values(self) -> dict[str, str]:
        """Return connection, state, step counts, and losses and latencies of the line."""
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
        """Set the limits of all motors unless this start of the board has them already."""
        if self._boot_id not in (None, reply.boot_id) and not self._fresh:
            self._strange = True  # another board's counts, even if zeroed, are not this arm's
            self._log.report(
                BOARD,
                f'reset {reply.reset_cause.value}',
                f'the board has restarted ({reply.reset_cause.name.lower()}), or another is at '
                'its port',
                self._clock.now_s(),
            )
        if self._boot_id == reply.boot_id and not self._fresh:
            return
        self._witness.forget()
        for order in self._orders:
            result = link.ask(Type.STEPPER_CONFIG, order.payload())
            if result is Result.STATE:
                # Another program left the board stopped; nothing can move yet.
                link.ask(Type.RESET)
                result = link.ask(Type.STEPPER_CONFIG, order.payload())
            if result is not Result.OK:
                raise RefusedError(
                    f'result {result.value}: limits of motor {order.motor} refused ({result.name})'
                )
        self._boot_id = reply.boot_id
        self._fresh = False

    def cycle(self, link: BoardLink, now_s: float) -> None:
        """Send the board the orders that its state allows: reset, home, arm, targets, disarm."""
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
            self._problem(COMMAND, 'stale', f'the newest command is {1e3 * age:.0f} ms old')
            target = None
        if target is None:
            if self._armed or self._arming is not None:
                link.send(Type.DISARM)  # repeated until a state confirms it
            elif homing:
                self._home(link)
            return
        if not self._armed and self._arming is None and self._may_arm(state):
            # Targets follow without waiting for the answer, or the board's watchdog could expire.
            self._arming, self._arm_s = link.send(Type.ARM), now_s
        if self._armed or self._arming is not None:
            link.send(Type.TARGETS, messages.targets(self._with_others(target)))

    def state(self, state: StepperState | ValveState, stamp_s: float) -> None:
        """Take a state of the board; report a stop, a fault or another board."""
        if not isinstance(state, StepperState):
            return
        other = self._witness.look(state.time_us, self._clock.now_s())
        if other:  # its counts and its zero are not this arm's
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
                broken = state.cause is Cause.COIL_BUS
                self._problem(BOARD, state.code, state.cause.text, outside=broken)
                self._told = told
        else:
            self._told = None

    def refused(self, ack: Ack) -> None:
        """Report refused targets."""
        # A board that stops refuses targets under way because of its state, reported separately.
        if ack.result is not Result.STATE:
            self._problem(BOARD, f'result {ack.result.value}', f'targets: {ack.result.name}')

    def disconnected(self, why: str) -> None:
        """Discard pending orders and the last state and counts."""
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
        """Return whether the board's counts of all cables of this arm have a valid zero."""
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
            if self._strange:  # its earlier counts are meaningless
                self._strange, self._state = False, None
        else:
            self._problem(BOARD, f'result {result.value}', f'homing: {result.name}')

    def _problem(self, source: str, code: str, text: str, *, outside: bool = False) -> None:
        with self._lock:
            self._target = None
            self._log.report(source, code, text, self._clock.now_s(), outside=outside)

    def _with_others(self, target: Sequence[int]) -> list[int]:
        """Return targets of all motors of the board; motors of other arms keep their position."""
        state = self._state
        assert state is not None
        others = list(state.positions)
        for motor in self._motors:
            others[motor] = target[motor]
        return others

    def _as_target(self, command: Array) -> list[int]:
        """Return target microsteps (MOTORS,) for contractions (m,), or raise ValueError."""
        values = self._limits.checked(command, self._names)
        target = [0] * MOTORS
        for motor, count in zip(self._motors, to_microsteps(values, self._steps), strict=True):
            target[motor] = count
        return target


def _listed(counts: Array) -> str:
    return ' '.join(str(int(count)) for count in counts)
