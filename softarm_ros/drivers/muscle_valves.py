"""Muscles behind timed valves on a microcontroller: lengths by valve times, nothing measured."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers import messages
from softarm_ros.drivers.actuator_driver import ActuatorReading
from softarm_ros.drivers.board_clock import BoardWitness
from softarm_ros.drivers.command_check import checked_command
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
_RESEND_S = 0.15  # without a word of a batch; the board's watchdog waits for 0.2
_VELOCITY_S = 0.25  # over which the rate of the estimates is taken


class MuscleValves:
    """
    All muscles of an arm behind a valve board; meets `ActuatorDriver`, in m.

    The lengths are set by `home`, and from there on counted by what the board says it has done;
    before that there is no reading of them. A batch of pulses that was lost or refused moves no
    estimate. They are kept while the link is down, for the board's states report afterwards what
    it has done: the longest pulse is shorter than its watchdog, so that none is cut by it. They
    are lost when the board starts anew, as nobody knows which of the valves were open then, and
    for how long.

    Parameters
    ----------
    config
        Line and outputs.
    drive
        Tables, pulses, guard time.
    names
        (m,) of the muscles, for messages.
    rest_lengths
        (m,) [m] at home: muscles vented, arm straight.
    load_of
        Pull of the muscles (m,) [N] at lengths (m,) [m], by the model of the arm.
    clock, open_port
        As of `SerialBoard`.

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
        load_of(self._rest)  # loads compiled code
        self._lengths = MuscleLengths(drive, self._rest, load_of)
        self._book = PulseBook(self._lengths, config.pairs)
        self._log = ProblemLog()
        self._board = SerialBoard(config, Kind.VALVES, self, self._log, clock, open_port)
        self._lock = threading.Lock()
        # What follows is shared, under the lock.
        self._target: Array | None = None
        self._homed = False
        self._reading: ActuatorReading | None = None
        self._state: ValveState | None = None
        self._stamp_s = -np.inf  # of the state
        # The rest belongs to the board's thread.
        self._armed = self._opened = False
        self._stop_it = False
        self._resend = False
        self._resent = 0
        self._open_sequence = 0
        self._boot_id: int | None = None
        self._witness = BoardWitness()
        self._other = ''  # why the board is not the one of before
        self._lost_s = -np.inf
        self._past: deque[tuple[float, Array]] = deque()

    # ---- For the caller ---------------------------------------------------------------------
    def start(self) -> None:
        """Connect, in the background; nothing moves."""
        self._board.start()

    def close(self) -> None:
        """Close all valves, disarm the board, close the port."""
        self.hold()
        self._board.close()

    def home(self) -> None:
        """
        Take all muscles to have their rest lengths: vented, the arm straight.

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
        """Forget latched problems; motion goes on with the next `follow` only."""
        self._log.clear()

    def follow(self, command: Array) -> str | None:
        """
        Bring the muscles to lengths (m,) [m], as far as valve times can; None, or why not.

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
        """Return the estimated lengths [m] as of a state's time; None where they are not known."""
        with self._lock:
            return self._reading

    def not_ready(self) -> str:
        """Return '' if motion could start, or why not."""
        problems = '; '.join(map(str, self._log))
        if problems:
            return problems
        if self._board.trouble:
            return self._board.trouble
        if not self._homed:
            return 'not homed: vent the muscles, let the arm hang straight, then home'
        return ''

    def problems(self) -> tuple[Problem, ...]:
        """Return what has gone wrong since the last reset."""
        return self._log.all()

    def values(self) -> dict[str, str]:
        """Return connection, latencies, losses, pulses, state of the board."""
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
        """Learn what the board has done meanwhile, and configure it."""
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
                # Our HELLO has cut what was open, if the watchdog had not let it end before.
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
        """Send what leads on, closes, or keeps going what was sent."""
        if self._stop_it:
            link.ask(Type.STOP)
            self._stop_it = self._armed = False
        with self._lock:
            if self._log:
                self._target = None
            target = self._target
        if not self._armed and (target is None or not self._arm(link)):
            return
        try:
            batch = self._next_batch(target, now_s)
        except ModelError as error:  # within the limits, and still no posture of this arm
            self._log.report(COMMAND, '', f'{error}', now_s)
            batch = self._next_batch(None, now_s)
        with self._lock:
            # Held, and perhaps homed, meanwhile: what was made for the old target is void.
            if self._target is not target and batch is not None and batch.choice is not None:
                batch = self._book.closing(now_s)
            self._send(link, batch)

    def state(self, state: StepperState | ValveState, stamp_s: float) -> None:
        """Count what the board has done; see what is wrong with it."""
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
        """Send a batch again that was lost; report what the board will not do at all."""
        lost = ack.type == Type.KEEP and ack.result is Result.BATCH
        if lost and 1 <= (ack.sequence - self._open_sequence) & 0xFF < 128:
            self._resend = True
        elif not lost and ack.result is not Result.STATE:  # that the next state reports
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
        """Wait for a new command; what the board did, it reports when it is back."""
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
        """Let the board take batches; it had stopped, or was never armed."""
        if self._state is None:
            return False
        if self._state.state in (State.STOPPED, State.FAULT):
            link.ask(Type.RESET)
        result = link.ask(Type.ARM)
        # Asked twice, as an answer was lost, it is armed already.
        if result is not Result.OK and self._state.state not in _ACTIVE:
            self._log.report(
                BOARD, f'{int(result)}', f'refuses ARM: {result.name}', self._clock.now_s()
            )
            return False
        self._armed, self._opened = True, False
        return True

    def _next_batch(self, target: Array | None, now_s: float) -> ValveBatch | None:
        """Return what has to be sent, for the first time or again; None if nothing but KEEP."""
        book, pending = self._book, self._book.pending
        if pending is None:
            batch = None if target is None else book.next_pulses(target, now_s)
            # The first one after arming shows that there is a host; it has to open nothing.
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
        """Note a board that was armed and is not: its watchdog, or somebody else's STOP."""
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
