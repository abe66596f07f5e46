"""Pressure control of water chambers by servo cylinders, with torque commands over Modbus."""

from __future__ import annotations

import threading
from enum import Enum

import numpy as np

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.actuator_driver import ActuatorReading
from softarm_ros.drivers.command_check import approach
from softarm_ros.drivers.counters import LatencyRecord
from softarm_ros.drivers.modbus_link import ClientMaker
from softarm_ros.drivers.polling import PollingThread
from softarm_ros.drivers.pressure_loop import PressureLoop, PressureLoopConfig
from softarm_ros.drivers.pressure_servo_config import CylinderAxes, PressureServoConfig
from softarm_ros.drivers.problems import DriverError, Problem, ProblemLog
from softarm_ros.drivers.servo import LINK, ServoDriver
from softarm_ros.geometry.arrays import Array

PRESSURE, HOMING, LOOP = 'pressure', 'homing', 'pressure loop'


class _Mode(Enum):
    """Mode of the loop."""

    OFF = 'off'
    ENABLING = 'enabling'
    HOMING = 'homing'
    ON = 'on'


class PressureServo:
    """
    Driver of all cylinders of an arm, in a thread of its own on top of that of `ServoDriver`.

    The loop runs with each set of measured pressures, with each new command, and at least at
    `rate_hz`, so that the drives' torque never becomes stale. It follows commands at most a little
    faster than their largest rate, from wherever it stands. If no pressures arrive for
    `pressure_timeout_s`, on `hold`, or if calls of `follow` cease, the torques are frozen: the arm
    stops where it is. If the drives are switched off, by a fault or a lost connection, the arm
    must be homed again. Another device measures the pressures: see `set_pressures`.

    Parameters
    ----------
    config
        Drives, registers, time-outs.
    loop
        Gain and filter of the pressure loop; a gain of 0 leaves measured pressures unused.
    axes
        Ratios, limits and preload of the arm's actuators, in the order of `config.axes`.
    clock, make_client
        As for `ServoDriver`.

    """

    def __init__(
        self,
        config: PressureServoConfig,
        loop: PressureLoopConfig,
        axes: CylinderAxes,
        clock: Clock = MONOTONIC,
        make_client: ClientMaker | None = None,
    ) -> None:
        if config.names != axes.names:
            raise ValueError(
                f'axes {", ".join(config.names)} of the drives are not the actuators '
                f'{", ".join(axes.names)}'
            )
        self.config, self.axes = config, axes
        self._clock = clock
        self._servo = ServoDriver(config, clock, make_client)
        self._loop = PressureLoop(loop, axes.torque_per_pressure, axes.preload_Pa)
        self._most = np.array([axis.torque_limit_N_m for axis in config.axes])
        self._least = -self._most
        self._problems = ProblemLog()
        self._thread = PollingThread(LOOP, self._run, self._on_failure, clock)
        self._age = LatencyRecord()  # age of a pressure when its torque is computed

        # Shared between callers and thread, under the lock.
        self._lock = threading.Lock()
        self._mode = _Mode.OFF
        self._homed = False
        self._tripped = False  # switched off by a problem, not yet reset
        self._held = True
        self._followed_s = -np.inf
        self._command: Array | None = None  # not given to the loop yet
        self._pressure: Array | None = None
        self._pressure_s = -np.inf
        self._samples = self._rejected = 0

        # Written by the thread alone; `_torque` and `_rate` are replaced, never modified.
        self._used_s = -np.inf  # time of the last sample used by the loop
        self._ramp = axes.preload_Pa.copy()  # pressures that the loop is given
        self._commanded_s = 0.0  # time of the last command, or of the last turn while held
        self._homing_s = 0.0
        self._ticked_s = 0.0
        self._torque = np.zeros(len(axes.names))
        self._rate = np.zeros(len(axes.names))

    # -- for the caller

    def start(self) -> None:
        """Connect in the background; the drives stay off. Raises errors as `ServoDriver`."""
        self._servo.start()
        self._thread.start()

    def close(self) -> None:
        """Switch the drives off and disconnect; may be called twice."""
        self._thread.close()
        self._servo.close()
        self._problems.end_lasting()
        with self._lock:
            self._switched_off()

    def home(self) -> None:
        """
        Switch the drives on and bring all chambers to the preload, slowly, in the background.

        Raises
        ------
        DriverError
            If there are problems, no connection, or no measured pressures though the gain is > 0.

        """
        problems = self.problems()
        if problems:
            raise DriverError(f'servo: reset it first: {"; ".join(map(str, problems))}')
        with self._lock:
            if self._loop.config.gain > 0.0 and not self._fresh(self._clock.now_s()):
                raise DriverError('servo: no pressures measured yet')
            if self._mode in (_Mode.ENABLING, _Mode.HOMING):
                return
        self._servo.enable()
        with self._lock:
            self._homed = False
            self._mode = _Mode.ENABLING
            self._homing_s = self._clock.now_s()
            self._thread.wake()

    def stop_homing(self) -> None:
        """Keep the present torques if the arm is being homed; it must be homed again."""
        with self._lock:
            enabling = self._mode is _Mode.ENABLING
            if enabling:
                self._switched_off()
            elif self._mode is _Mode.HOMING:
                self._mode, self._held = _Mode.ON, True
        if enabling:
            self._servo.disable()

    def reset(self) -> None:
        """Clear problems; drives in a fault are reset and stay switched off until `home`."""
        if self._servo.problems():
            self._servo.reset()
            with self._lock:
                self._switched_off()
        with self._lock:
            if self._problems and self._mode is _Mode.HOMING:
                self._mode = _Mode.ON  # not homed: `home` must be called again
            self._problems.clear()
            self._tripped = False

    def follow(self, command: Array) -> str | None:
        """Follow pressures (m,) [Pa] from now on; see `ActuatorDriver.follow`."""
        values = self.axes.check(command)
        waiting = self.not_ready()
        if waiting:
            self.hold()
            return waiting
        with self._lock:
            self._command, self._followed_s = values, self._clock.now_s()
            self._held = False
            self._thread.wake()
        return None

    def hold(self) -> None:
        """Keep the present torques until the next `follow`; homing continues."""
        with self._lock:
            self._held = True
            self._command = None

    def set_pressures(self, pressure_Pa: Array, stamp_s: float) -> None:
        """
        Take the measured pressures (m,) [Pa] of all chambers at a monotonic time.

        If a value is outside the range of a sound sensor (a broken wire reads as vacuum), the
        whole set is rejected and the torques stay unchanged.

        Raises
        ------
        ValueError
            If the number of values is wrong.

        """
        values = np.array(pressure_Pa, dtype=float)
        if values.shape != (len(self.axes.names),):
            raise ValueError(f'{values.shape} pressures; expected ({len(self.axes.names)},)')
        low, high = self.config.sensor_low_Pa, self.config.sensor_high_Pa
        sound = all(low <= value <= high for value in values.tolist())  # NaN is not sound
        with self._lock:
            if not sound:
                self._rejected += 1
                return
            stamp_s = min(stamp_s, self._clock.now_s())  # another clock may be ahead
            if stamp_s <= self._pressure_s:
                return
            self._samples += 1
            self._pressure, self._pressure_s = values, stamp_s
            self._thread.wake()

    def reading(self) -> ActuatorReading | None:
        """Return measured pressures, their rates from those of the torques, and drive torques."""
        torque = self._servo.torque
        with self._lock:
            if self._pressure is None:
                return None
            stamp_s, pressure = self._pressure_s, self._pressure.copy()
        rate = self._rate / self.axes.torque_per_pressure
        return ActuatorReading(stamp_s, pressure, rate, torque)

    def not_ready(self) -> str:
        """Return '' if commands would be followed; else the reason."""
        problems = self.problems()
        if problems:
            return '; '.join(map(str, problems))
        if not self._servo.connected:
            return f'servo: no connection to {self.config.host}:{self.config.port}'
        with self._lock:
            mode, homed = self._mode, self._homed
        if mode in (_Mode.ENABLING, _Mode.HOMING):
            return f'servo: {mode.value}'
        move = 'call home, which moves all chambers to the preload'
        return '' if homed else f'servo: not homed; {move}'

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems of the drives, then those of the pressures."""
        return (*self._servo.problems(), *self._problems.all())

    def values(self) -> dict[str, str]:
        """Return connection, ages, latencies, losses and states of the drives."""
        state, counts = self._servo.state(), self._servo.counts()
        now = self._clock.now_s()
        with self._lock:
            pressure_ms = 1e3 * (now - self._pressure_s)
            samples, rejected, mode = self._samples, self._rejected, self._mode
            doing = f'{mode.value}, {"held" if self._held else "following"}'
        age, latency, cycle = self._age.summary(), counts.command_latency, counts.cycle
        return {
            'connected': str(state.connected).lower(),
            'loop': doing,
            'drives': ', '.join(sorted({s.value for s in state.drive_states})),
            'age_ms': f'{1e3 * float(np.max(state.age_s)):.1f}',
            'pressure_age_ms': f'{pressure_ms:.1f}',
            'pressures': str(samples),
            'pressures_rejected': str(rejected),
            'pressure_used_after_ms_p50': f'{1e3 * age.p50_s:.1f}',
            'pressure_used_after_ms_p99': f'{1e3 * age.p99_s:.1f}',
            'torque_written_after_ms_p50': f'{1e3 * latency.p50_s:.2f}',
            'torque_written_after_ms_p99': f'{1e3 * latency.p99_s:.2f}',
            'cycle_ms_p50': f'{1e3 * cycle.p50_s:.2f}',
            'cycle_ms_p99': f'{1e3 * cycle.p99_s:.2f}',
            'lost': str(counts.lost),
            'superseded': str(counts.superseded),
            'connections': str(counts.connections),
        }

    # -- under the lock

    def _fresh(self, now_s: float) -> bool:
        return now_s - self._pressure_s <= self.config.pressure_timeout_s

    def _switched_off(self) -> None:
        self._mode, self._homed = _Mode.OFF, False
        self._held = True
        self._command = None

    # -- the thread

    def _run(self, thread: PollingThread) -> None:
        while not thread.ending.is_set():
            now = self._clock.now_s()
            self._turn(now)
            thread.wait(now + 1.0 / self.config.rate_hz)

    def _on_failure(self, error: BaseException) -> None:
        """Switch off: without the loop the drives would trip on a stale command."""
        self._problems.report_failure(LOOP, error, self._clock.now_s())
        self._servo.disable()
        with self._lock:
            self._switched_off()

    def _turn(self, now: float) -> None:
        problems, enabled = self._servo.problems(), self._servo.enabled
        with self._lock:
            was_off, tripped = self._mode is _Mode.OFF, self._tripped
            lost = not (enabled or self._mode is _Mode.ENABLING)
            if not was_off and (problems or lost):
                self._switched_off()
                self._tripped = True
                return
        if was_off:
            if not tripped:
                self._forget_line()
            return
        self._watch(now)
        duration_s, self._ticked_s = now - self._ticked_s, now
        if self._mode is _Mode.ENABLING:
            self._take_over(now, enabled)
        else:
            self._regulate(now)
            if self._mode is _Mode.HOMING:
                self._approach(now, duration_s)
        self._send(duration_s)

    def _forget_line(self) -> None:
        """Clear link problems from the time the drives were off, once the link works."""
        state = self._servo.state()
        sources = {problem.source for problem in state.problems}
        heard = float(np.max(state.age_s)) <= self.config.link_timeout_s
        if sources == {LINK} and state.connected and heard:
            self._servo.reset()

    def _watch(self, now: float) -> None:
        """Freeze the torques if the pressures are stale or the caller is gone."""
        with self._lock:
            fresh = self._fresh(now)
            if now - self._followed_s > self.config.command_timeout_s:
                self._held = True
        if not fresh and self._loop.config.gain > 0.0:
            limit_ms = 1e3 * self.config.pressure_timeout_s
            text = f'none measured for {limit_ms:.0f} ms, torques kept'
            self._problems.report(PRESSURE, 'stale', text, now)

    def _take_over(self, now: float, enabled: bool) -> None:
        """Apply the torques of the measured pressures before the brakes open."""
        with self._lock:
            measured = self._pressure if self._fresh(now) else None
            self._used_s = self._pressure_s
        start = np.zeros_like(self._ramp) if measured is None else measured
        self._ramp = np.maximum(start, 0.0)
        self._loop.restart(self._ramp)
        with self._lock:
            if enabled and self._mode is _Mode.ENABLING:
                self._mode = _Mode.HOMING

    def _regulate(self, now: float) -> None:
        """Give the loop a new command and a new measurement, if there are any."""
        with self._lock:
            command, self._command = self._command, None
            new = self._pressure_s > self._used_s
            pressure, stamp_s = self._pressure, self._pressure_s
            before_s, self._used_s = self._used_s, stamp_s
            held = self._held
        if command is not None:
            passed_s = now - self._commanded_s
            self._ramp = approach(self._ramp, command, self.axes.max_rate_Pa_s, passed_s)
            self._loop.command(self._ramp)
        if command is not None or held:
            self._commanded_s = now
        if new and pressure is not None:
            self._loop.advance(pressure, min(stamp_s - before_s, self.config.pressure_timeout_s))
            self._age.add(now - stamp_s)

    def _approach(self, now: float, duration_s: float) -> None:
        """Move towards the preload; homed once it is measured (or, without sensors, commanded)."""
        if self._problems:
            with self._lock:
                self._mode = _Mode.ON  # not homed: torques stay as they are
            return
        axes = self.axes
        step = axes.max_rate_Pa_s * min(duration_s, self.config.pressure_timeout_s)
        self._ramp = self._ramp + np.clip(axes.preload_Pa - self._ramp, -step, step)
        self._loop.command(self._ramp)
        if np.any(self._ramp != axes.preload_Pa):
            return
        with self._lock:
            away = np.zeros(1)
            if self._loop.config.gain > 0.0 and self._pressure is not None:
                away = np.abs(self._pressure - axes.preload_Pa)
            if self._mode is not _Mode.HOMING:
                return  # stopped meanwhile
            if float(away.max()) <= self.config.home_tolerance_Pa:
                self._mode, self._homed, self._held = _Mode.ON, True, True
                return
        if now - self._homing_s > self.config.home_timeout_s:
            worst = axes.names[int(np.argmax(away))]
            text = f'{worst} is {float(away.max()):.0f} Pa from the preload'
            self._problems.report(HOMING, 'not reached', text, now)

    def _send(self, duration_s: float) -> None:
        """Send the torques to the drives; if they are frozen, the previous ones."""
        with self._lock:
            frozen = bool(self._problems) or (self._mode is _Mode.ON and self._held)
        before = self._torque
        if not frozen:
            self._torque = np.minimum(np.maximum(self._loop.torque, self._least), self._most)
        self._rate = (self._torque - before) / max(duration_s, 1e-3)
        self._servo.set_torque(self._torque)
