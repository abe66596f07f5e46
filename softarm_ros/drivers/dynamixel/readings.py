"""Periodic readings of the servos of a bus."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from softarm_ros.clock import Clock
from softarm_ros.drivers.dynamixel import control_table as table
from softarm_ros.drivers.dynamixel.bus import DynamixelBus, NoAnswerError, RefusedError, Status
from softarm_ros.drivers.dynamixel.config import DynamixelConfig

# Address and length: read from all servos in each period; read from one servo in turn.
_STATE = table.PRESENT_CURRENT.address, 10
_HEALTH = table.TORQUE_ENABLE.address, table.TABLE_SIZE - table.TORQUE_ENABLE.address


class BusSilentError(Exception):
    """All servos have been silent for too long."""


class ServoReadings:
    """
    Reads the servos and keeps their answers; called by the thread that owns the bus.

    Parameters
    ----------
    config
        Configuration of bus and servos.
    lock
        Held while data shared with other threads change: counts, velocity, current, stamp, health.
    stop
        Takes source, code and text of a problem that must stop all servos, and whether a late
        computer cannot be its cause (`Problem.outside`).
    clock
        Clock for the stamps.

    Attributes
    ----------
    counts, velocity, current : (m,)
        Positions [counts], velocities [counts/s] and currents [A] of the servos; NaN before the
        first answer.
    stamp_s : float
        Time stamp of the newest answers.
    health : dict
        Temperature and voltage, by the index of the servo.

    """

    def __init__(
        self,
        config: DynamixelConfig,
        lock: threading.Lock,
        stop: Callable[[str, str, str, bool], None],
        clock: Clock,
    ) -> None:
        self.config = config
        self._lock, self._stop, self._clock = lock, stop, clock
        self._ids = [servo.id for servo in config.servos]
        m = len(self._ids)
        self.counts = np.full(m, np.nan)
        self.velocity = np.full(m, np.nan)  # counts/s
        self.current = np.full(m, np.nan)  # A
        self.stamp_s = -np.inf
        self.health: dict[int, dict[str, float]] = {}
        self._heard = np.full(m, -np.inf)
        self._next_health = 0
        self._alerts: set[int] = set()

    @property
    def known(self) -> bool:
        """Whether the positions of all servos are known."""
        return not np.isnan(self.counts).any()

    def begin(self) -> None:
        """Restart with servos that have just been set up."""
        self._alerts.clear()
        self._heard[:] = self._clock.now_s()

    def look(self, bus: DynamixelBus) -> None:
        """Read position, velocity and current of all servos."""
        asked = self._clock.now_s()
        answers = bus.sync_read(*_STATE, self._ids)
        for i, servo in enumerate(self._ids):
            # Servos behind a silent one have waited for it: read them one by one. Skip those lost
            # for long, which would slow down the others.
            if servo in answers or self._heard[i] <= asked - self.config.link_timeout_s:
                continue
            try:
                answers[servo] = bus.read(servo, *_STATE)
            except NoAnswerError:
                if not answers:
                    break  # no servo answers: the line has failed
            except RefusedError as error:
                self._stop(self.config.servos[i].name, f'error {error.code}', str(error), False)
        now = self._clock.now_s()
        with self._lock:
            for i, servo in enumerate(self._ids):
                if servo in answers:
                    self._take(i, answers[servo])
                    self._heard[i] = now
            if answers:
                self.stamp_s = 0.5 * (asked + now)

    def _take(self, i: int, status: Status) -> None:
        start = _STATE[0]
        self.counts[i] = table.PRESENT_POSITION.of(status.data, start)
        units = table.PRESENT_VELOCITY.of(status.data, start)
        per_rad = table.COUNTS_PER_TURN / (2.0 * np.pi)
        self.velocity[i] = units * table.VELOCITY_RAD_S * per_rad
        units = table.PRESENT_CURRENT.of(status.data, start)
        self.current[i] = units * self.config.current_unit_A
        if status.alert:
            self._alerts.add(i)

    def look_closer(self, bus: DynamixelBus, *, torque: bool) -> None:
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
            self._stop(name, f'error {error.code}', str(error), False)
            return
        start = _HEALTH[0]
        with self._lock:
            self.health[i] = {
                'deg_c': float(table.TEMPERATURE.of(data, start)),
                'volts': table.VOLT * table.VOLTAGE.of(data, start),
            }
        bits = table.HARDWARE_ERROR.of(data, start)
        if bits:
            self._stop(name, f'hardware 0x{bits:02X}', table.hardware_error_text(bits), True)
        elif torque and not table.TORQUE_ENABLE.of(data, start):
            self._stop(name, 'torque off', 'it was switched off, or has restarted', True)
        elif table.BUS_WATCHDOG.of(data, start) == table.WATCHDOG_TRIPPED:
            limit_ms = 1e3 * self.config.watchdog_s
            self._stop(name, 'watchdog', f'no packet reached it for {limit_ms:.0f} ms', False)

    def judge(self, now: float) -> None:
        """Report every servo silent for too long; raise `BusSilentError` if all are."""
        limit = self.config.link_timeout_s
        silent = now - self._heard > limit
        if silent.all():
            raise BusSilentError(f'no servo answered for {1e3 * limit:.0f} ms')
        for i in np.flatnonzero(silent):
            servo = self.config.servos[i]
            self._stop(
                servo.name,
                'timeout',
                f'id {servo.id} has not answered for {1e3 * limit:.0f} ms: look at its plug and '
                'its power, and with softarm ports at its id',
                False,
            )
