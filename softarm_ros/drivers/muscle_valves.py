"""Driver of muscles behind timed valves on a microcontroller; lengths are estimated only."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers import messages
from softarm_ros.drivers.actuator_driver import ActuatorReading
from softarm_ros.drivers.board_clock import BoardWitness
from softarm_ros.drivers.command_check import approach, checked_command
from softarm_ros.drivers.messages import (
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
from softarm_ros.drivers.muscle_lengths import TICK_S, MuscleLengths
from softarm_ros.drivers.problems import DriverError, Problem, ProblemLog
from softarm_ros.drivers.serial_board import BoardLink, OpenPort, RefusedError, SerialBoard
from softarm_ros.drivers.serial_port import SerialPort
from softarm_ros.drivers.valve_config import ValveBoardConfig, ValveDriveConfig
from softarm_ros.drivers.valve_pulses import PulseBook, ValveBatch
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError

BOARD = 'board'
COMMAND = 'command'
_ACTIVE = (State.ARMED, State.RUNNING)
_INFLATING = sum(1 << 2 * pair for pair in range(messages.VALVES // 2))
_RESEND_S = 0.15  # resend an unconfirmed batch after this; the board's watchdog waits 0.2 s
_VELOCITY_S = 0.25  # span of the rate of the estimates


class MuscleValves:
    """
    All muscles of an arm behind a valve board; an `ActuatorDriver`, in m.

    `home` sets the estimated lengths; before that there is no reading. Afterwards the pulses that
    the board reports as executed move the estimates; a lost or refused batch of pulses does not.
    The estimates are kept while the link is down, because the board's states later report what it
    has done: the longest pulse is shorter than its watchdog, so the watchdog cuts no pulse. The
    estimates are lost if the board restarts, as it is unknown which valves were open, and how
    long.

    Parameters
    ----------
    config
        Serial line and outputs.
    drive
        Tables, pulses, guard time.
    names
        Names of the m muscles, for messages.
    rest_lengths
        Lengths (m,) [m] at home: muscles vented, arm straight.
    max_speed
        Largest rates (m,) [m/s] of the commands; a farther one is approached at `CATCH_UP` times.
    load_of
        Maps lengths (m,) [m] to the tensions of the muscles (m,) [N], by the model of the arm.
    clock, open_port
        As for `SerialBoard`.

    Raises
    ------
    ValueError
        If there are not as many pairs of outputs as muscles, or the longest pulse exceeds the
        watchdog of the board.

    """

    def __init__(
        self,
        config: ValveBoardConfig,
        drive: ValveDriveConfig,
        names: Sequence[str],
        rest_lengths: Array,
        max_speed: Array,
        load_of: Callable[[Array], Array],
        clock: Clock = MONOTONIC,
        open_port: OpenPort = SerialPort,
    ) -> None:
        if len(config.pairs) != len(names):
            raise ValueError(f'pairs: {len(config.pairs)} given for {len(names)} muscles')
        if drive.longest_pulse_s > messages.WATCHDOG_S:
            raise ValueError(
                f'longest_pulse_s = {drive.longest_pulse_s}: expected at most the watchdog of the '
                f'board, {messages.WATCHDOG_S}'
            )
        self._clock = clock
        self._drive = drive
        self._names = tuple(names)
        self._rest = np.array(rest_lengths, dtype=np.float64)
        self._max_speed = np.array(max_speed, dtype=np.float64)
        load_of(self._rest)  # loads compiled code
        self._lengths = MuscleLengths(drive, self._rest, load_of)
        self._book = PulseBook(self._lengths, config.pairs)
        self._log = ProblemLog()
        self._board = SerialBoard(config, Kind.VALVES, self, self._log, clock, open_port)
        self._lock = threading.Lock()
        # Shared between callers and the board's thread, under the lock.
        self._target: Array | None = None
        self._near = self._rest  # on the way to the target, as far as its largest rate allows
        self._homed = False
        self._reading: ActuatorReading | None = None
        self._state: ValveState | None = None
        self._stamp_s = -np.inf  # time stamp of the state
        # Used by the board's thread alone.
        self._armed = self._opened = False
        self._stop_it = False
        self._resend = False
        self._resent = 0
        self._open_sequence = 0
        self._boot_id: int | None = None
        self._witness = BoardWitness()
        self._other = ''  # why the board is a different one than before; '' if it is not
        self._lost_s = self._cycle_s = -np.inf
        self._past: deque[tuple[float, Array]] = deque()

    # ---- For the caller ---------------------------------------------------------------------
    def start(self) -> None:
        """Connect in the background; nothing moves."""
        self._board.start()

    def close(self) -> None:
        """Close all valves, disarm the board and close the port."""
        self.hold()
        self._board.close()

    def home(self) -> None:
        """
        Declare that all muscles have their rest lengths: vented, the arm straight.

        Raises
        ------
        DriverError
            If the board is not connected, or valves are or may be open.

        """
        trouble = self._board.trouble
        with self._lock:
            if trouble or self._state is None:
                raise DriverError(f'home: not connected: {trouble or "no state yet"}')
            if self._target is not None:
                raise DriverError('home: muscles follow commands, hold them first')
            if self._book.pending is not None or self._book.anything_open(self._clock.now_s()):
                raise DriverError('home: valves are open')
            self._lengths.home(self._rest, self._clock.now_s())
            self._past.clear()
            self._homed = True
            self._reading = self._measured(self._stamp_s)

    def reset(self) -> None:
        """Clear latched problems; motion continues only with the next `follow`."""
        self._log.clear()

    def follow(self, command: Array) -> str | None:
        """
        Bring the muscles to lengths (m,) [m] by timed pulses; return why it is refused, or None.

        Raises
        ------
        ValueError
            If the command has the wrong shape, is not finite or beyond the tables of the valves.

        """
        target = checked_command(command, self._names, *self._drive.range_m, 'm')
        refusal = self.not_ready()
        if refusal:
            return refusal
        with self._lock:
            new = self._target is None or not np.array_equal(self._target, target)
            if self._target is None:  # held before: the muscles are where they were left
                self._near = self._lengths.estimate.copy()
            self._target = target
        if new:
            self._board.wake()
        return None

    def hold(self) -> None:
        """Close all valves; the muscles keep their gas."""
        with self._lock:
            held, self._target = self._target is None, None
        if not held:
            self._board.wake()

    def reading(self) -> ActuatorReading | None:
        """Return the estimated lengths [m] at the newest state's time; None if unknown."""
        with self._lock:
            return self._reading

    def not_ready(self) -> str:
        """Return '' if motion could start now; else the reason."""
        problems = '; '.join(map(str, self._log))
        if problems:
            return problems
        if self._board.trouble:
            return self._board.trouble
        if not self._homed:
            return 'not homed: vent the muscles, let the arm hang straight, then call home'
        return ''

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems since the last reset."""
        return self._log.all()

    def values(self) -> dict[str, str]:
        """Return connection, latencies, losses, pulses and state of the board."""
        with self._lock:
            state, reading = self._state, self._reading
        age = (
            'none yet'
            if reading is None
            else f'{1e3 * (self._clock.now_s() - reading.stamp_s):.0f}'
        )
        values = {
            'connected': str(not self._board.trouble).lower(),
            'age_ms': age,
            'homed': str(self._homed).lower(),
            'pulses': str(self._book.pulses),
            'pulses_cut': str(self._book.cut),
            'batches_resent': str(self._resent),
            **self._board.counter.values(),
        }
        if state is not None:
            values['board_state'] = state.state.name
            values['board_cause'] = state.cause.name
            values['valves_open'] = str(state.open.bit_count())
        return values

    # ---- For the board's thread -------------------------------------------------------------
    def connected(self, link: BoardLink, reply: HelloReply) -> None:
        """Account for the pulses during the lost connection, and configure the board."""
        self._armed = self._opened = False
        with self._lock:
            self._state = None
        while (state := self._state) is None:
            link.listen(self._clock.now_s() + 0.05)
        same = reply.boot_id == self._boot_id
        if same and self._other:
            self._log.report(BOARD, 'another', self._other, self._clock.now_s())
        with self._lock:
            if same and not self._other:
                # Our HELLO has cut pulses that were still open; the watchdog lets pulses end.
                cut = state.cause is Cause.NEW_HOST
                self._book.found(state.batch, cut_s=self._lost_s if cut else None)
            else:
                self._book.start(state.batch)
                self._homed = False
                self._reading = None
                self._boot_id = reply.boot_id
        for frame, payload in (
            (Type.RESET, b''),
            (
                Type.VALVE_CONFIG,
                messages.valve_config(
                    round(self._drive.longest_pulse_s / TICK_S),
                    round(self._drive.guard_s / TICK_S),
                ),
            ),
        ):
            result = link.ask(frame, payload)
            if result is not Result.OK:
                raise RefusedError(f'{BOARD}: refuses {frame.name}: {result} {result.name}')

    def cycle(self, link: BoardLink, now_s: float) -> None:
        """Send new pulses, an order to close all valves, or KEEP for the last batch."""
        passed_s, self._cycle_s = now_s - self._cycle_s, now_s
        if self._stop_it:
            link.ask(Type.STOP)
            self._stop_it = self._armed = False
        with self._lock:
            if self._log:
                self._target = None
            target = self._target
        if not self._armed and (target is None or not self._arm(link)):
            return
        with self._lock:
            if target is not None and self._target is target:
                self._near = approach(self._near, target, self._max_speed, passed_s)
        try:
            batch = self._next_batch(target, now_s)
        except ModelError as error:  # within the limits, but the arm has no such posture
            self._log.report(COMMAND, '', f'{error}', now_s)
            batch = self._next_batch(None, now_s)
        with self._lock:
            # The arm was held, perhaps homed, meanwhile: pulses for the old target are void.
            if self._target is not target and batch is not None and batch.choice is not None:
                batch = self._book.closing(now_s)
            self._send(link, batch)

    def state(self, state: StepperState | ValveState, stamp_s: float) -> None:
        """Record the pulses executed by the board, and report its faults."""
        if not isinstance(state, ValveState):
            return
        now = self._clock.now_s()
        with self._lock:
            self._state, self._stamp_s = state, stamp_s
            self._other = self._witness.look(state.time_us, now) or self._other
            if self._armed:
                if state.state in _ACTIVE:
                    self._book.seen(state.batch, state.open, stamp_s)
                else:
                    self._stopped(state, now)
            if state.open & (state.open >> 1) & _INFLATING:
                self._stop_it = True
                self._target = None
                self._log.report(BOARD, '', 'both valves of a muscle are open', now)
            self._lengths.leak(now)
            if self._homed:
                self._reading = self._measured(stamp_s)

    def refused(self, ack: Ack) -> None:
        """Resend a lost batch; report any other refusal."""
        lost = ack.type == Type.KEEP and ack.result is Result.BATCH
        if lost and 1 <= (ack.sequence - self._open_sequence) & 0xFF < 128:
            self._resend = True
        elif not lost and ack.result is not Result.STATE:  # the next state reports that
            name = Type(ack.type).name
            with self._lock:
                self._book.refused()
                self._target = None
            self._log.report(
                BOARD,
                f'{int(ack.result)}',
                f'refuses {name}: {ack.result.name}',
                self._clock.now_s(),
            )

    def disconnected(self, why: str) -> None:
        """Drop the target; after a reconnect the board reports the pulses it has executed."""
        self._lost_s = self._clock.now_s()
        self._witness.lost()
        self._other = ''
        self._armed = self._opened = self._stop_it = False
        with self._lock:
            self._target = None
            self._state = None

    def closing(self, link: BoardLink) -> None:
        """Close all valves and disarm the board."""
        if self._armed:
            link.ask(Type.DISARM)
            self._armed = self._opened = False
            with self._lock:
                if self._state is not None:
                    self._book.found(self._state.batch, cut_s=self._clock.now_s())

    # ---- Parts ------------------------------------------------------------------------------
    def _arm(self, link: BoardLink) -> bool:
        """Arm the board so that it accepts batches; return whether it is armed."""
        if self._state is None:
            return False
        if self._state.state in (State.STOPPED, State.FAULT):
            link.ask(Type.RESET)
        result = link.ask(Type.ARM)
        # If the first answer was lost, the repeated ARM finds the board armed and is refused.
        if result is not Result.OK and self._state.state not in _ACTIVE:
            self._log.report(
                BOARD, f'{int(result)}', f'refuses ARM: {result.name}', self._clock.now_s()
            )
            return False
        self._armed, self._opened = True, False
        return True

    def _next_batch(self, target: Array | None, now_s: float) -> ValveBatch | None:
        """Return the batch to send, a new or a pending one; None if only KEEP is needed."""
        book, pending = self._book, self._book.pending
        if pending is None:
            batch = None if target is None else book.next_pulses(target, now_s, self._near)
            # The first batch after arming shows the board a host; it may be an empty one.
            if batch is None and (
                not self._opened or (target is None and book.anything_open(now_s))
            ):
                batch = book.closing(now_s)
            return batch
        if target is None and pending.choice is not None:
            return book.closing(now_s)
        if self._resend or now_s > pending.sent_s + _RESEND_S:
            self._resent += 1
            return pending
        return None

    def _send(self, link: BoardLink, batch: ValveBatch | None) -> None:
        if batch is not None:
            sequence = link.send(Type.OPEN, batch.payload())
            if sequence is not None:
                self._open_sequence, self._opened, self._resend = sequence, True, False
                self._book.sent(batch, self._clock.now_s())
        else:
            pending = self._book.pending
            link.send(
                Type.KEEP, messages.keep(self._book.number if pending is None else pending.number)
            )

    def _stopped(self, state: ValveState, now_s: float) -> None:
        """Handle a board that is no longer armed: by its watchdog, or by another host's STOP."""
        self._armed = self._opened = False
        self._target = None
        self._book.found(state.batch, cut_s=None if state.cause is Cause.WATCHDOG else now_s)
        text = f'stopped by itself: {state.cause.name}'
        self._log.report(BOARD, f'{int(state.cause)}', text, now_s)

    def _measured(self, stamp_s: float) -> ActuatorReading:
        position = self._lengths.under_way(self._book.left(stamp_s))
        past = self._past
        past.append((stamp_s, position))
        while past[0][0] < stamp_s - _VELOCITY_S:
            past.popleft()
        span = stamp_s - past[0][0]
        velocity = (position - past[0][1]) / _VELOCITY_S if span > 0.0 else np.zeros(position.size)
        return ActuatorReading(stamp_s, position, velocity, np.zeros(0))
