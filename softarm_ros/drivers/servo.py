"""Torque control of servo drives over Modbus TCP, in a thread of its own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.cia402 import DriveState, next_control_word, resetting_words
from softarm_ros.drivers.command_check import checked_command
from softarm_ros.drivers.counters import LinkCounter, LinkCounts
from softarm_ros.drivers.modbus_link import (
    ClientMaker,
    LinkDownError,
    ModbusLink,
    NoAnswerError,
    RefusedError,
)
from softarm_ros.drivers.polling import PollingThread
from softarm_ros.drivers.problems import (
    DriverError,
    Problem,
    ProblemLog,
    import_library,
    require_none,
)
from softarm_ros.drivers.servo_config import ServoConfig
from softarm_ros.drivers.servo_exchange import AxisReading, UnitExchange, write_all
from softarm_ros.drivers.servo_state import ServoState
from softarm_ros.drivers.servo_watch import (
    Intent,
    drive_faults,
    out_of_operation,
    overspeed,
    stale_command,
    unanswered,
)
from softarm_ros.geometry.arrays import Array

T = TypeVar('T')
LINK = 'link'
_ROUNDING = 1e-9  # relative to the limit


class ServoDriver:
    """
    Drives all axes together: a problem of one stops all.

    The caller never waits for the network. Torque is applied only while every axis is enabled and
    commands are fresh. Otherwise it is zero; with `holding_brakes` the last torque stays until the
    drives are off. After any problem all drives are switched off until `reset` and `enable` are
    called, even if the connection is restored. By default, the clock is the computer's and the
    client that of pymodbus (`ModbusLink`).
    """

    def __init__(
        self,
        config: ServoConfig,
        clock: Clock = MONOTONIC,
        make_client: ClientMaker | None = None,
    ) -> None:
        self.config = config
        self._clock = clock
        n = len(config.axes)
        self._names = config.names
        self._counter = LinkCounter()
        self._link = ModbusLink(
            config.host,
            config.port,
            config.response_timeout_s,
            self._counter,
            clock,
            make_client,
            exclusive=True,
        )
        units = sorted({axis.unit for axis in config.axes})
        self._units = [UnitExchange(config, unit) for unit in units]
        most = np.array([axis.torque_limit_N_m for axis in config.axes])
        self._bounds, self._slack = (-most, most), _ROUNDING * most
        self._problems = ProblemLog()
        self._thread = PollingThread('servo', self._run, self._on_failure, clock)

        # Shared between caller and thread, under the lock.
        self._lock = threading.Lock()
        self._wanted = False
        self._wanted_since = 0.0
        self._enabling = 0  # number of the latest enabling
        self._running = 0  # number of the enabling that brought all axes into operation
        self._command: Array | None = None
        self._command_stamp = -np.inf
        self._sent = True
        self._reset_until = -np.inf
        self._measured = [(np.nan, np.nan, np.nan)] * n  # torque, speed, position of each axis
        self._stamps = [-np.inf] * n
        self._states = [DriveState.UNKNOWN] * n
        self._codes = [0] * n

        # Used by the thread alone.
        self._off = [config.control_words.disable_voltage] * n
        self._controls = self._off
        self._silent: set[int] = set()
        self._last = np.zeros(n)  # last torques commanded to running axes
        self._last_enabling = 0
        self._written_stamp = -np.inf
        self._heard = dict.fromkeys(units, -np.inf)
        self._next_attempt = -np.inf

    # -- for the caller

    def start(self) -> None:
        """
        Start connecting and exchanging; nothing moves before `enable`.

        Raises
        ------
        DriverError
            If pymodbus is not installed.

        """
        import_library('pymodbus.client')
        self._thread.start()

    def close(self) -> None:
        """Switch all drives off and disconnect; may be called twice."""
        self._thread.close()
        self._problems.end_lasting()

    def enable(self) -> None:
        """
        Request operation of all axes, with zero torque until the next command.

        Raises
        ------
        DriverError
            If there are problems (call `reset` first) or there is no connection.

        """
        with self._lock:
            require_none('servo', self._problems)
            if not self._link.connected:
                raise DriverError('servo is not ready: no connection yet')
            if not self._wanted:
                self._wanted, self._wanted_since = True, self._clock.now_s()
                self._enabling += 1
                self._command = None
                self._thread.wake()

    def disable(self) -> None:
        """Switch all axes off."""
        with self._lock:
            self._disable()
            self._thread.wake()

    def reset(self) -> None:
        """Clear all problems and reset the faults of the drives, which stay switched off."""
        with self._lock:
            self._disable()
            self._problems.clear()
            self._reset_until = self._clock.now_s() + self.config.transition_timeout_s
            self._thread.wake()

    def set_torque(self, values: Sequence[float] | Array) -> str | None:
        """
        Set the torques (n,) [N m]; return why they are refused, or None.

        Raises
        ------
        ValueError
            If the number of values is wrong, or a value is not finite or beyond its limit.

        """
        command = checked_command(values, self._names, *self._bounds, 'N m', slack=self._slack)
        with self._lock:
            if not self._wanted:
                return 'servo not enabled'
            self._counter.commands += 1
            if not self._sent:
                self._counter.superseded += 1
            self._command, self._command_stamp = command, self._clock.now_s()
            self._sent = False
            self._thread.wake()
        return None

    def state(self) -> ServoState:
        """Return the current state."""
        problems = self._problems.all()
        with self._lock:
            measured, stamps = np.array(self._measured), np.array(self._stamps)
            states, codes = tuple(self._states), tuple(self._codes)
            wanted = self._wanted
        torque, speed, position = measured.T.copy()
        return ServoState(
            torque=torque,
            speed=speed,
            position=position,
            stamp_s=stamps,
            age_s=self._clock.now_s() - stamps,
            drive_states=states,
            fault_codes=codes,
            connected=self._link.connected,
            enabled=self._follow(wanted, states),
            problems=problems,
        )

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems since the last reset, as `state` does."""
        return self._problems.all()

    @property
    def connected(self) -> bool:
        """Whether the link is up."""
        return self._link.connected

    @property
    def enabled(self) -> bool:
        """Whether every axis follows torque commands."""
        with self._lock:
            wanted, states = self._wanted, list(self._states)
        return self._follow(wanted, states)

    def _follow(self, wanted: bool, states: Sequence[DriveState]) -> bool:
        return wanted and self._link.connected and all(one is DriveState.ENABLED for one in states)

    @property
    def torque(self) -> Array:
        """Torques (n,) [N m] as measured by the drives; NaN before the first answer."""
        with self._lock:
            return np.array([torque for torque, _, _ in self._measured])

    def counts(self) -> LinkCounts:
        """Return latency and loss since the driver was created."""
        return self._counter.summary()

    def _disable(self) -> None:
        self._wanted = False
        self._command = None
        self._sent = True

    # -- the thread

    def _run(self, thread: PollingThread) -> None:
        while not thread.ending.is_set():
            pause = self._exchange() / self.config.rate_hz
            thread.wait(self._clock.now_s() + pause)
        self._switch_off()

    def _on_failure(self, error: BaseException) -> None:
        self._problems.report_failure(LINK, error, self._clock.now_s())
        self._switch_off()

    def _exchange(self) -> float:
        """Exchange once with every unit; return the pause before the next exchange [periods]."""
        began = self._clock.now_s()
        if not self._link.connected and not self._connect(began):
            return 1.0
        intent = self._intent(began)
        silent: UnitExchange | None = None
        in_touch = [unit for unit in self._units if unit.unit not in self._silent]
        try:
            for group in (in_touch, *([unit] for unit in self._units if unit not in in_touch)):
                for unit in group:
                    silent = unit
                    write = partial(unit.write, self._link, intent.controls, intent.torques)
                    self._guard(unit, write)
                if group is in_touch:
                    self._note_written(intent.stamp)
                for unit in group:
                    silent = unit
                    self._take(self._guard(unit, partial(unit.read, self._link)) or {})
                    self._heard[unit.unit] = self._clock.now_s()
                    self._silent.discard(unit.unit)
            silent = None
            self._counter.cycle.add(self._clock.now_s() - began)
        except NoAnswerError:
            # Serve the silent unit last, so that the others, silent or not, need not wait for it.
            assert silent is not None
            self._silent.add(silent.unit)
            self._units.remove(silent)
            self._units.append(silent)
        except LinkDownError as error:
            self._lose_link(str(error), link_is_gone=True)
            return 1.0
        self._controls = list(intent.controls)
        self._judge(self._clock.now_s(), intent, complete=silent is None)
        if silent is not None:
            return 0.0
        # While commands arrive, they set the pace, so that none finds the line busy.
        return 1.0 if intent.stamp is None else 1.5

    def _guard(self, unit: UnitExchange, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except RefusedError as error:
            names = ', '.join(self.config.axes[i].name for i in unit.axes)
            self._trouble(names, f'modbus 0x{error.code:02X}', str(error))
            return None

    def _connect(self, now: float) -> bool:
        if now < self._next_attempt:
            return False
        try:
            self._link.connect()
            # Switch off all units that answer, even if others fail.
            write_all(self._units, self._link, self._off, self._idle_torque(self._enabling))
            for unit in self._units:
                unit.setup(self._link)
        except RefusedError as error:
            self._trouble(LINK, f'modbus 0x{error.code:02X}', f'setup: {error}')
        except (LinkDownError, NoAnswerError, ValueError) as error:
            self._trouble(LINK, '', str(error), outside=isinstance(error, LinkDownError))
        else:
            now = self._clock.now_s()
            self._heard = dict.fromkeys(self._heard, now)
            self._silent.clear()
            self._controls = self._off
            return True
        self._link.close()
        self._next_attempt = self._clock.now_s() + self.config.reconnect_s
        return False

    def _lose_link(self, text: str, *, link_is_gone: bool = False) -> None:
        self._trouble(LINK, '', text, outside=link_is_gone)
        # Last resort: if only the answers are late or lost, this may still arrive.
        for unit in self._units:
            unit.send(self._link, self._off, self._idle_torque(self._enabling))
        self._link.close()
        self._next_attempt = self._clock.now_s() + self.config.reconnect_s
        with self._lock:
            self._states = [DriveState.UNKNOWN] * len(self._states)

    def _intent(self, now: float) -> Intent:
        words = self.config.control_words
        sent = None
        with self._lock:
            wanted, enabling, since = self._wanted, self._enabling, self._wanted_since
            torques = self._idle_torque(enabling)
            running = wanted and self._running == enabling
            resetting = now < self._reset_until
            states = list(self._states)
            fresh = now - self._command_stamp <= self.config.command_timeout_s
            if running and fresh and self._command is not None:
                torques, sent = self._command, self._command_stamp
                self._sent = True
                self._last, self._last_enabling = torques, enabling
        controls = [next_control_word(state, wanted, words) for state in states]
        if resetting:
            controls = resetting_words(controls, states, self._controls, words)
        return Intent(controls, torques, sent, wanted, running, enabling, since)

    def _idle_torque(self, enabling: int) -> Array:
        """Return the torques written without a command: zero, or the last ones for brakes."""
        if self.config.holding_brakes and self._last_enabling == enabling:
            return self._last
        return np.zeros(len(self._off))

    def _note_written(self, stamp: float | None) -> None:
        if stamp is not None and stamp != self._written_stamp:
            self._written_stamp = stamp
            self._counter.command_latency.add(self._clock.now_s() - stamp)

    def _take(self, readings: dict[int, AxisReading]) -> None:
        now = self._clock.now_s()
        with self._lock:
            for i, reading in readings.items():
                self._measured[i] = reading.torque, reading.speed, reading.position
                self._stamps[i] = now
                self._states[i] = self.config.status_words.state(reading.status_word)
                self._codes[i] = reading.fault_code

    def _judge(self, now: float, intent: Intent, complete: bool) -> None:
        """Check for all conditions that must stop the arm."""
        config = self.config
        with self._lock:
            states, codes = list(self._states), list(self._codes)
            speeds = [speed for _, speed, _ in self._measured]
            resetting = now < self._reset_until
            command, stamp = self._command, self._command_stamp
        if self._judge_link(now):
            return
        findings = list(overspeed(config, intent, speeds))
        faults = list(drive_faults(config, states, codes))
        if not resetting:
            findings += faults
        elif complete and not faults:
            with self._lock:
                self._reset_until = -np.inf
        if complete:
            findings += out_of_operation(config, intent, states, now)
            if intent.wanted and all(state is DriveState.ENABLED for state in states):
                with self._lock:
                    self._running = intent.enabling
        if command is not None:
            findings += stale_command(config, intent, now - stamp)
        for finding in findings:
            self._trouble(*finding)

    def _judge_link(self, now: float) -> bool:
        """Report every axis that is silent for too long; return whether all axes are."""
        limit = self.config.link_timeout_s
        lost = [unit for unit in self._units if now - self._heard[unit.unit] > limit]
        if len(lost) == len(self._units):
            self._lose_link(f'no device answered for {1e3 * limit:.0f} ms')
            return True
        for finding in unanswered(self.config, [i for unit in lost for i in unit.axes]):
            self._trouble(*finding)
        return False

    def _trouble(self, source: str, code: str, text: str, outside: bool = False) -> None:
        """Report a problem and switch all drives off."""
        self._problems.report(source, code, text, self._clock.now_s(), outside=outside)
        with self._lock:
            if self._wanted:
                self._disable()
                self._thread.wake()

    def _switch_off(self) -> None:
        with self._lock:
            self._disable()
        if self._link.connected:
            with contextlib.suppress(LinkDownError, NoAnswerError, RefusedError):
                write_all(self._units, self._link, self._off, self._idle_torque(self._enabling))
        self._link.close()
        with self._lock:
            self._states = [DriveState.UNKNOWN] * len(self._states)
