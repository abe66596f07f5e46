"""Cables wound by the servos of a Dynamixel bus, in a thread of its own."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.actuator_driver import ActuatorReading
from softarm_ros.drivers.counters import Latency, LinkCounter, LinkCounts
from softarm_ros.drivers.dynamixel import control_table as table
from softarm_ros.drivers.dynamixel.bus import (
    DynamixelBus,
    NoAnswerError,
    RefusedError,
    Status,
)
from softarm_ros.drivers.dynamixel.config import DynamixelConfig, profiles
from softarm_ros.drivers.dynamixel.set_up import MissingError, reboot_failed, set_up
from softarm_ros.drivers.polling import PollingThread
from softarm_ros.drivers.problems import (
    DriverError,
    Problem,
    ProblemLog,
    import_library,
    require_none,
)
from softarm_ros.drivers.serial_board import OpenPort
from softarm_ros.drivers.serial_port import PortError, SerialPort
from softarm_ros.drivers.stepper_config import CableLimits
from softarm_ros.geometry.arrays import Array

LINK, COMMAND, INTERNAL = 'link', 'command', 'internal'
_ROUNDING = 1e-9  # of a metre
_DRAIN_S = 0.05
# What is read of all servos in each period, and of one of them, in turn.
_STATE = table.PRESENT_CURRENT.address, 10
_HEALTH = table.TORQUE_ENABLE.address, table.TABLE_SIZE - table.TORQUE_ENABLE.address


class _BusSilentError(Exception):
    """No servo answers any more."""


class DynamixelServos:
    """
    Winds all cables of an arm by position, with a limit of the current; an `ActuatorDriver`.

    The encoders are absolute: where a servo is follows from the `zero_deg` of the rig file, also
    after its power was off. Servos hold their cables from the first `follow` on: while held,
    stopped, disconnected or closed. One in trouble stops all. Where nothing reaches a servo for
    `watchdog_s` it stops by itself.

    Parameters
    ----------
    config
        Of bus and servos.
    limits
        Of the commands, arrays (m,) in the order of `config.servos`.
    clock, open_port
        The computer's and its serial ports, unless others are given.

    """

    def __init__(
        self,
        config: DynamixelConfig,
        limits: CableLimits,
        clock: Clock = MONOTONIC,
        open_port: OpenPort = SerialPort,
    ) -> None:
        self.config = config
        self._limits = limits
        self._profiles = profiles(config, limits)
        self._clock, self._open_port = clock, open_port
        self._ids = [servo.id for servo in config.servos]
        self._steps = config.steps
        self._braking = config.acceleration_m_s2 / np.abs(self._steps)  # counts/s^2
        self._problems = ProblemLog()
        self._counter = LinkCounter()
        # The servos stop by themselves if this thread sends nothing, whatever the others do.
        self._thread = PollingThread(
            'dynamixel', self._run, self._on_failure, clock, interrupt=self._wake, goes_first=True
        )
        m = len(self._ids)

        # Between callers and the thread, under the lock.
        self._lock = threading.Lock()
        self._target: Array | None = None  # counts
        self._target_s = -np.inf
        self._sent = True
        self._resetting = False
        self._zeros = config.zeros.astype(float)
        self._counts = np.full(m, np.nan)
        self._velocity = np.full(m, np.nan)  # counts/s
        self._current = np.full(m, np.nan)  # A
        self._stamp_s = -np.inf
        self._health: dict[int, dict[str, float]] = {}
        self._trouble = 'not started'
        self._port: SerialPort | None = None

        # Of the thread alone.
        self._running = False  # since the servos were set up
        self._torque = False
        self._resting: Array | None = None  # counts at which the servos are held
        self._heard = np.full(m, -np.inf)
        self._next_health = 0
        self._alerts: set[int] = set()

    # -- for the caller

    def start(self) -> None:
        """
        Connect, in the background, and stay connected; nothing moves.

        Raises
        ------
        DriverError
            If a library is not installed.

        """
        import_library('serial', 'fastcrc')
        self._trouble = f'no answer from {self.config.port} yet'
        self._thread.start()

    def close(self) -> None:
        """Stop and hold the cables, disconnect; may be called twice."""
        with self._lock:
            self._target = None
        self._thread.close()
        self._trouble = 'closed'

    def home(self) -> None:
        """
        Declare that the arm is at rest now: encoders read zero here until this driver ends.

        `values` says the `zero_deg` that would make it last, in the rig file.

        Raises
        ------
        DriverError
            If there is no connection, a problem, or motion.

        """
        if self._trouble:
            raise DriverError(self._trouble)
        require_none('dynamixel', self._problems)
        with self._lock:
            if self._target is not None:
                raise DriverError('the servos are moving')
            if np.isnan(self._counts).any():
                raise DriverError('no position of the servos yet')
            self._zeros = self._counts.copy()

    def reset(self) -> None:
        """Forget problems; servos that have switched off are started anew, and all set up."""
        with self._lock:
            self._target = None
            self._resetting = True
            self._problems.clear()
        self._thread.wake()

    def follow(self, command: ArrayLike) -> str | None:
        """
        Wind the cables to contractions (m,) [m]; return why they are not, or None.

        Raises
        ------
        ValueError
            If the command has the wrong shape, is not finite or beyond a limit. Nothing changes.

        """
        values = self._checked(command)
        reason = self.not_ready()
        if reason:
            return reason
        with self._lock:
            if self._problems:  # since then
                return str(next(iter(self._problems)))
            self._counter.commands += 1
            if not self._sent:
                self._counter.superseded += 1
            self._target = np.rint(self._zeros + values / self._steps)
            self._target_s = self._clock.now_s()
            self._sent = False
        self._thread.wake()
        return None

    def hold(self) -> None:
        """Brake and stay there until the next `follow`."""
        with self._lock:
            moving, self._target = self._target is not None, None
        if moving:
            self._thread.wake()

    def reading(self) -> ActuatorReading | None:
        """Return the newest contractions [m], their speed, and the pull [N] by the current."""
        with self._lock:
            if np.isnan(self._counts).any():
                return None
            position = (self._counts - self._zeros) * self._steps
            velocity, current = self._velocity * self._steps, self._current.copy()
            stamp = self._stamp_s
        per_A = self.config.torque_per_current_N_m_A
        if per_A is None:
            return ActuatorReading(stamp, position, velocity, np.empty(0))
        radii = np.array([s.pulley_radius_m for s in self.config.servos])
        pull = np.sign(self._steps) * current * per_A / radii
        return ActuatorReading(stamp, position, velocity, pull)

    def not_ready(self) -> str:
        """Return '' if motion could start now, or why not."""
        problems = self._problems.all()
        if problems:
            return '; '.join(map(str, problems))
        if self._trouble:
            return f'dynamixel: {self._trouble}'
        with self._lock:
            if self._resetting:
                return 'dynamixel: resetting'
            if np.isnan(self._counts).any():
                return 'dynamixel: no position of the servos yet'
        return ''

    def problems(self) -> tuple[Problem, ...]:
        """Return what has gone wrong since the last reset."""
        return self._problems.all()

    def counts(self) -> LinkCounts:
        """Return latency and loss on the bus since the driver was made."""
        return self._counter.summary()

    def values(self) -> dict[str, str]:
        """Return connection, state of the servos, and losses and latencies of the bus."""
        with self._lock:
            counts, zeros, health = self._counts.copy(), self._zeros.copy(), dict(self._health)
            age_s = self._clock.now_s() - self._stamp_s
        values = {'connected': str(not self._trouble).lower(), 'port': self.config.port}
        if not np.isnan(counts).any():
            values['age_ms'] = f'{1e3 * age_s:.0f}'
            values['positions_counts'] = ' '.join(f'{count:.0f}' for count in counts)
            values['zero_deg'] = ' '.join(
                f'{360.0 * zero / table.COUNTS_PER_TURN:.2f}' for zero in zeros
            )
        if health:
            values['temperature_max_deg_c'] = f'{max(h["deg_c"] for h in health.values()):.0f}'
            values['voltage_min'] = f'{min(h["volts"] for h in health.values()):.1f}'
        summary = self._counter.summary()
        values |= {
            'connections': str(summary.connections),
            'requests': str(summary.requests),
            'answers_lost': str(summary.lost),
            'command_latency_ms': _in_ms(summary.command_latency),
            'cycle_ms': _in_ms(summary.cycle),
        }
        return values

    # -- the thread

    def _run(self, thread: PollingThread) -> None:
        while not thread.ending.is_set():
            try:
                port = self._open_port(self.config.port, self.config.baud)
            except PortError as error:
                self._trouble = str(error)
                thread.ending.wait(self.config.reconnect_s)
                continue
            with self._lock:
                self._port = port
            try:
                bus = DynamixelBus(port, self.config.answer_timeout_s, self._counter, self._clock)
                self._serve(bus, thread)
            except PortError as error:
                self._lost(str(error))
            finally:
                with self._lock:
                    self._port = None
                port.close(_DRAIN_S if thread.ending.is_set() else 0.0)
            thread.ending.wait(self.config.reconnect_s)

    def _wake(self) -> None:
        with self._lock:
            if self._port is not None:
                self._port.wake()

    def _on_failure(self, error: Exception) -> None:
        """Stop for a defect; the servos' watchdogs stop what moves."""
        self._trouble = f'{type(error).__name__}: {error}'
        self._problems.report(INTERNAL, '', self._trouble, self._clock.now_s())

    def _serve(self, bus: DynamixelBus, thread: PollingThread) -> None:
        """Set up and exchange, again and again, while the port is good."""
        while not thread.ending.is_set():
            if not self._set_up(bus):
                thread.ending.wait(self.config.reconnect_s)
                continue
            try:
                while not thread.ending.is_set() and not self._resetting:
                    began = self._clock.now_s()
                    self._exchange(bus)
                    self._counter.cycle.add(self._clock.now_s() - began)
                    thread.wait(began + 1.0 / self.config.rate_hz)
                    self._pause_after_wake(thread, began)
                if thread.ending.is_set():
                    self._leave(bus)
            except _BusSilentError as error:
                self._lost(str(error))

    def _pause_after_wake(self, thread: PollingThread, began_s: float) -> None:
        """Keep exchanges half a period apart, however often commands come."""
        earliest = began_s + 0.5 / self.config.rate_hz
        if self._clock.now_s() < earliest and not thread.ending.is_set():
            self._clock.sleep(earliest - self._clock.now_s())

    def _set_up(self, bus: DynamixelBus) -> bool:
        """Find all servos and write their limits; return whether they can be used."""
        with self._lock:
            resetting = self._resetting
        try:
            if resetting:
                reboot_failed(bus, self.config)
            self._torque = set_up(bus, self.config, self._profiles)
        except MissingError as error:
            self._trouble = str(error)
            if self._running:
                self._problems.report(error.name, 'missing', str(error), self._clock.now_s())
            self._end_reset(resetting)
            return False
        except (NoAnswerError, RefusedError) as error:
            self._trouble = str(error)
            self._end_reset(resetting)
            return False
        self._counter.connections += 1
        self._running = True
        self._trouble = ''
        self._resting = None
        self._alerts.clear()
        self._heard[:] = self._clock.now_s()
        self._end_reset(resetting)
        return True

    def _end_reset(self, resetting: bool) -> None:
        if resetting:
            with self._lock:
                self._resetting = False

    def _exchange(self, bus: DynamixelBus) -> None:
        """Tell the servos where to be, and ask them where they are."""
        now = self._clock.now_s()
        with self._lock:
            target, stamp = self._target, self._target_s
            self._sent = True
        if target is not None and now - stamp > self.config.command_timeout_s:
            self._stop(COMMAND, 'stale', f'the newest is {1e3 * (now - stamp):.0f} ms old')
            target = None
        if target is not None and not self._torque:
            self._switch_on(bus)
        if target is not None and self._torque:
            self._resting = None
            self._move(bus, target)
            self._counter.command_latency.add(self._clock.now_s() - stamp)
        elif self._torque and not np.isnan(self._counts).any():
            if self._resting is None:
                self._resting = self._nearest_rest()
            self._move(bus, self._resting)
        self._look(bus)
        self._look_closer(bus)
        self._judge(self._clock.now_s())

    def _move(self, bus: DynamixelBus, counts: Array) -> None:
        bus.sync_write(table.GOAL_POSITION, {i: int(count) for i, count in zip(self._ids, counts)})

    def _nearest_rest(self) -> Array:
        """Return where the servos can stop [counts]."""
        with self._lock:
            counts, velocity = self._counts.copy(), self._velocity.copy()
        return np.rint(counts + 0.5 * velocity * np.abs(velocity) / self._braking)

    def _switch_on(self, bus: DynamixelBus) -> None:
        """Let all servos hold where they are."""
        with self._lock:
            here = self._counts.copy()
        try:
            for servo, count in zip(self._ids, here):
                bus.write(servo, table.GOAL_POSITION, int(count))
                bus.write(servo, table.TORQUE_ENABLE, 1)
        except NoAnswerError:
            return  # who is silent for too long is found below
        except RefusedError as error:
            self._stop('dynamixel', f'error {error.code}', str(error))
            return
        self._torque = True

    def _look(self, bus: DynamixelBus) -> None:
        """Read position, velocity and current of all servos."""
        asked = self._clock.now_s()
        answers = bus.sync_read(*_STATE, self._ids)
        for i, servo in enumerate(self._ids):
            # One is silent, and those behind it waited; an old loss shall not slow down the rest.
            if servo in answers or self._heard[i] <= asked - self.config.link_timeout_s:
                continue
            try:
                answers[servo] = bus.read(servo, *_STATE)
            except NoAnswerError:
                if not answers:
                    break  # it is the line: nobody answers
            except RefusedError as error:
                self._stop(self.config.servos[i].name, f'error {error.code}', str(error))
        now = self._clock.now_s()
        with self._lock:
            for i, servo in enumerate(self._ids):
                if servo in answers:
                    self._take(i, answers[servo])
                    self._heard[i] = now
            if answers:
                self._stamp_s = 0.5 * (asked + now)

    def _take(self, i: int, status: Status) -> None:
        start = _STATE[0]
        self._counts[i] = table.PRESENT_POSITION.of(status.data, start)
        units = table.PRESENT_VELOCITY.of(status.data, start)
        per_rad = table.COUNTS_PER_TURN / (2.0 * np.pi)
        self._velocity[i] = units * table.VELOCITY_RAD_S * per_rad
        units = table.PRESENT_CURRENT.of(status.data, start)
        self._current[i] = units * self.config.current_unit_A
        if status.alert:
            self._alerts.add(i)

    def _look_closer(self, bus: DynamixelBus) -> None:
        """Read errors, torque, watchdog, voltage and temperature of one servo."""
        i = min(self._alerts) if self._alerts else self._next_health
        self._alerts.discard(i)
        self._next_health = (self._next_health + 1) % len(self._ids)
        name = self.config.servos[i].name
        if self._clock.now_s() - self._heard[i] > self.config.link_timeout_s:
            return
        try:
            data = bus.read(self._ids[i], *_HEALTH).data
        except NoAnswerError:
            return
        except RefusedError as error:
            self._stop(name, f'error {error.code}', str(error))
            return
        start = _HEALTH[0]
        with self._lock:
            self._health[i] = {
                'deg_c': float(table.TEMPERATURE.of(data, start)),
                'volts': table.VOLT * table.VOLTAGE.of(data, start),
            }
        bits = table.HARDWARE_ERROR.of(data, start)
        if bits:
            self._stop(name, f'hardware 0x{bits:02X}', table.hardware_error_text(bits))
        elif self._torque and not table.TORQUE_ENABLE.of(data, start):
            self._stop(name, 'torque off', 'it was switched off, or started anew')
        elif table.BUS_WATCHDOG.of(data, start) == table.WATCHDOG_TRIPPED:
            limit_ms = 1e3 * self.config.watchdog_s
            self._stop(name, 'watchdog', f'no packet reached it for {limit_ms:.0f} ms')

    def _judge(self, now: float) -> None:
        """Report every servo that is silent for too long."""
        limit = self.config.link_timeout_s
        silent = now - self._heard > limit
        if silent.all():
            raise _BusSilentError(f'no servo answered for {1e3 * limit:.0f} ms')
        for i in np.flatnonzero(silent):
            servo = self.config.servos[i]
            self._stop(
                servo.name,
                'timeout',
                f'id {servo.id} has not answered for {1e3 * limit:.0f} ms: look at its plug and '
                'its power, and with softarm ports at its id',
            )

    def _lost(self, why: str) -> None:
        self._trouble = why
        self._torque = False
        with self._lock:
            self._target = None
            self._counts[:] = np.nan
        if self._running:
            self._running = False
            self._problems.report(LINK, '', f'lost: {why}', self._clock.now_s())

    def _leave(self, bus: DynamixelBus) -> None:
        """Leave the servos held where they are, without a watchdog that nobody feeds."""
        with contextlib.suppress(NoAnswerError, RefusedError, PortError):
            if self._torque and not np.isnan(self._counts).any():
                self._move(bus, self._nearest_rest())
            for servo in self._ids:
                bus.write(servo, table.BUS_WATCHDOG, 0)
        self._running = False

    def _stop(self, source: str, code: str, text: str) -> None:
        """Note a problem; all servos are held from here on."""
        self._problems.report(source, code, text, self._clock.now_s())
        with self._lock:
            self._target = None

    def _checked(self, command: ArrayLike) -> Array:
        values = np.asarray(command, dtype=float)
        names = [servo.name for servo in self.config.servos]
        if values.shape != (len(names),):
            raise ValueError(f'command: shape {values.shape}; expected ({len(names)},)')
        low, high = self._limits.position_min, self._limits.position_max
        for i, name in enumerate(names):
            if not np.isfinite(values[i]):
                raise ValueError(f'{name}: {values[i]} m is not finite')
            if not low[i] - _ROUNDING <= values[i] <= high[i] + _ROUNDING:
                raise ValueError(
                    f'{name}: {values[i]:g} m is not within {low[i]:g}..{high[i]:g} m'
                )
        return values


def _in_ms(latency: Latency) -> str:
    if not latency.count:
        return 'none yet'
    return f'{1e3 * latency.p50_s:.1f} / {1e3 * latency.p99_s:.1f} (p50 / p99)'
