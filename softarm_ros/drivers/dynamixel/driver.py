"""Driver of cables wound by the servos of a Dynamixel bus, with a thread of its own."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.actuator_driver import ActuatorReading
from softarm_ros.drivers.counters import LinkCounter, LinkCounts
from softarm_ros.drivers.dynamixel import control_table as table
from softarm_ros.drivers.dynamixel.bus import (
    DynamixelBus,
    NoAnswerError,
    RefusedError,
)
from softarm_ros.drivers.dynamixel.config import DynamixelConfig, profiles
from softarm_ros.drivers.dynamixel.readings import BusSilentError, ServoReadings
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

LINK, COMMAND = 'link', 'command'
_DRAIN_S = 0.05
# A servo at rest may report a speed of one unit or two.
_STILL_COUNTS_S = 3.0 * table.VELOCITY_RAD_S * table.COUNTS_PER_TURN / (2.0 * np.pi)


class DynamixelServos:
    """
    Winds all cables of an arm by position, with a limit of the current; an `ActuatorDriver`.

    The encoders are absolute: `zero_deg` of the rig file gives the zero of a servo, even after its
    power was off. From the first `follow` on, servos hold their cables: while held, stopped,
    disconnected or closed. A problem of one servo stops all. A servo that gets no packet for
    `watchdog_s` stops by itself.

    Parameters
    ----------
    config
        Configuration of bus and servos.
    limits
        Limits of the commands, arrays (m,) in the order of `config.servos`.
    clock, open_port
        Clock and function to open a port; by default those of the computer.

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
        self._names = [servo.name for servo in config.servos]
        self._ids = [servo.id for servo in config.servos]
        self._steps = config.steps
        self._braking = config.acceleration_m_s2 / np.abs(self._steps)  # counts/s^2
        self._problems = ProblemLog()
        self._counter = LinkCounter()
        # Priority over other threads: the servos stop by themselves if this one sends nothing.
        self._thread = PollingThread(
            'dynamixel', self._run, self._on_failure, clock, interrupt=self._wake, goes_first=True
        )

        # Shared between callers and the thread, under the lock.
        self._lock = threading.Lock()
        self._seen = ServoReadings(config, self._lock, self._stop, clock)
        self._target: Array | None = None  # counts
        self._target_s = -np.inf
        self._sent = True
        self._resetting = False
        self._zeros = config.zeros.astype(float)
        self._trouble = 'not started'
        self._port: SerialPort | None = None

        # Used by the thread alone.
        self._running = False  # set up, and not lost since
        self._torque = False
        self._resting: Array | None = None  # counts at which the servos are held

    # -- for the caller

    def start(self) -> None:
        """
        Connect in the background and stay connected; nothing moves.

        Raises
        ------
        DriverError
            If a library is not installed.

        """
        import_library('serial', 'fastcrc')
        self._trouble = f'no answer from {self.config.port} yet'
        self._thread.start()

    def close(self) -> None:
        """Stop and hold the cables, and disconnect; may be called twice."""
        with self._lock:
            self._target = None
        self._thread.close()
        self._trouble = 'closed'
        self._problems.end_lasting()

    def home(self) -> None:
        """
        Declare that the arm is at rest now; this zero is valid until the driver ends.

        `values` returns the `zero_deg` that would make the zero permanent in the rig file.

        Raises
        ------
        DriverError
            If there is no connection, there is a problem, or the servos move.

        """
        if self._trouble:
            raise DriverError(self._trouble)
        require_none('dynamixel', self._problems)
        with self._lock:
            if self._target is not None:
                raise DriverError('the servos are moving')
            if not self._seen.known:
                raise DriverError('no position of the servos yet')
            speeds = np.abs(self._seen.velocity)
            fastest = int(np.argmax(speeds))
            if speeds[fastest] > _STILL_COUNTS_S:  # brakes, or is turned by hand
                deg = 360.0 / table.COUNTS_PER_TURN
                raise DriverError(
                    f'{self._names[fastest]} still moves by {deg * speeds[fastest]:.0f} deg/s '
                    f'(limit {deg * _STILL_COUNTS_S:.0f} deg/s): wait until the arm is at rest'
                )
            self._zeros = self._seen.counts.copy()

    def reset(self) -> None:
        """Clear problems; reboot servos that have switched off, and set up all of them."""
        with self._lock:
            self._target = None
            self._resetting = True
            self._problems.clear()
        self._thread.wake()

    def follow(self, command: ArrayLike) -> str | None:
        """
        Wind the cables to contractions (m,) [m]; return why the command is refused, or None.

        Raises
        ------
        ValueError
            If the command has the wrong shape, is not finite or beyond a limit. Nothing changes.

        """
        values = self._limits.checked(command, self._names)
        reason = self.not_ready()
        if reason:
            return reason
        with self._lock:
            if self._problems:  # a problem has arisen since `not_ready`
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
        """Return the newest contractions [m], speeds [m/s], and tensions [N] from the currents."""
        with self._lock:
            if not self._seen.known:
                return None
            position = (self._seen.counts - self._zeros) * self._steps
            velocity, current = self._seen.velocity * self._steps, self._seen.current.copy()
            stamp = self._seen.stamp_s
        return ActuatorReading(stamp, position, velocity, self.config.pulls(current))

    def not_ready(self) -> str:
        """Return '' if motion could start now; else the reason."""
        problems = self._problems.all()
        if problems:
            return '; '.join(map(str, problems))
        if self._trouble:
            return f'dynamixel: {self._trouble}'
        with self._lock:
            if self._resetting:
                return 'dynamixel: resetting'
            if not self._seen.known:
                return 'dynamixel: no position of the servos yet'
        return ''

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems since the last reset."""
        return self._problems.all()

    def counts(self) -> LinkCounts:
        """Return latency and loss on the bus since the driver was created."""
        return self._counter.summary()

    def values(self) -> dict[str, str]:
        """Return connection, state of the servos, and losses and latencies of the bus."""
        with self._lock:
            counts, zeros = self._seen.counts.copy(), self._zeros.copy()
            health = dict(self._seen.health)
            age_s = self._clock.now_s() - self._seen.stamp_s
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
        return values | {
            'connections': str(summary.connections),
            'requests': str(summary.requests),
            'answers_lost': str(summary.lost),
            'command_latency_ms': summary.command_latency.text,
            'cycle_ms': summary.cycle.text,
        }

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
                self._lost(str(error), port_is_gone=True)
            finally:
                with self._lock:
                    self._port = None
                port.close(_DRAIN_S if thread.ending.is_set() else 0.0)
            thread.ending.wait(self.config.reconnect_s)

    def _wake(self) -> None:
        with self._lock:
            if self._port is not None:
                self._port.wake()

    def _on_failure(self, error: BaseException) -> None:
        """Report an exception that ended the thread; the servos' watchdogs stop any motion."""
        self._trouble = f'{type(error).__name__}: {error}'
        self._problems.report_failure(LINK, error, self._clock.now_s())

    def _serve(self, bus: DynamixelBus, thread: PollingThread) -> None:
        """Repeat set-up and exchanges while the port works."""
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
            except BusSilentError as error:
                self._lost(str(error))

    def _pause_after_wake(self, thread: PollingThread, began_s: float) -> None:
        """Keep exchanges at least half a period apart, however often commands come."""
        earliest = began_s + 0.5 / self.config.rate_hz
        if self._clock.now_s() < earliest and not thread.ending.is_set():
            self._clock.sleep(earliest - self._clock.now_s())

    def _set_up(self, bus: DynamixelBus) -> bool:
        """Find all servos and write their limits; return whether all are usable."""
        with self._lock:
            resetting = self._resetting
        try:
            if resetting:
                self._problems.clear()  # the last exchange may have reported some once more
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
        self._seen.begin()
        self._end_reset(resetting)
        return True

    def _end_reset(self, resetting: bool) -> None:
        if resetting:
            with self._lock:
                self._resetting = False

    def _exchange(self, bus: DynamixelBus) -> None:
        """Write goal positions to the servos, and read their state."""
        now = self._clock.now_s()
        with self._lock:
            target, stamp = self._target, self._target_s
            self._sent = True
        if target is not None and now - stamp > self.config.command_timeout_s:
            self._stop(COMMAND, 'stale', f'the newest command is {1e3 * (now - stamp):.0f} ms old')
            target = None
        if target is not None and not self._torque:
            self._switch_on(bus)
        if target is not None and self._torque:
            self._resting = None
            self._move(bus, target)
            self._counter.command_latency.add(self._clock.now_s() - stamp)
        elif self._torque and self._seen.known:
            if self._resting is None:
                self._resting = self._nearest_rest()
            self._move(bus, self._resting)
        self._seen.look(bus)
        self._seen.look_closer(bus, torque=self._torque)
        self._seen.judge(self._clock.now_s())

    def _move(self, bus: DynamixelBus, counts: Array) -> None:
        bus.sync_write(table.GOAL_POSITION, {i: int(count) for i, count in zip(self._ids, counts)})

    def _nearest_rest(self) -> Array:
        """Return the positions [counts] at which the servos can come to rest."""
        with self._lock:
            counts, velocity = self._seen.counts.copy(), self._seen.velocity.copy()
        return np.rint(counts + 0.5 * velocity * np.abs(velocity) / self._braking)

    def _switch_on(self, bus: DynamixelBus) -> None:
        """Switch the torque of all servos on, at their present positions."""
        with self._lock:
            here = self._seen.counts.copy()
        try:
            for servo, count in zip(self._ids, here):
                bus.write(servo, table.GOAL_POSITION, int(count))
                bus.write(servo, table.TORQUE_ENABLE, 1)
        except NoAnswerError:
            return  # `ServoReadings.judge` reports a servo that stays silent
        except RefusedError as error:
            self._stop('dynamixel', f'error {error.code}', str(error))
            return
        self._torque = True

    def _lost(self, why: str, *, port_is_gone: bool = False) -> None:
        self._trouble = why
        self._torque = False
        with self._lock:
            self._target = None
            self._seen.counts[:] = np.nan
        if self._running:
            self._running = False
            now = self._clock.now_s()
            self._problems.report(LINK, '', f'lost: {why}', now, outside=port_is_gone)

    def _leave(self, bus: DynamixelBus) -> None:
        """Leave the servos holding their positions, with the watchdog off: nothing feeds it."""
        with contextlib.suppress(NoAnswerError, RefusedError, PortError):
            if self._torque and self._seen.known:
                self._move(bus, self._nearest_rest())
            for servo in self._ids:
                bus.write(servo, table.BUS_WATCHDOG, 0)
        self._running = False

    def _stop(self, source: str, code: str, text: str, outside: bool = False) -> None:
        """Report a problem and hold all servos."""
        self._problems.report(source, code, text, self._clock.now_s(), outside=outside)
        with self._lock:
            self._target = None
