"""Driver of a gripper whose valves are connected to a DAQ device."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

from softarm_ros.drivers.daq import DaqDriver
from softarm_ros.drivers.daq_config import DaqConfig
from softarm_ros.drivers.gripper_logic import (
    GripperDriveConfig,
    GripperLevels,
    GripperLogic,
    GripperPhase,
)
from softarm_ros.drivers.polling import PollingThread
from softarm_ros.drivers.problems import Problem, ProblemLog

GRIPPER = 'gripper'
_PERIOD_S = 0.02
ACTIONS = ('open', 'close', 'hold')


@dataclass(frozen=True)
class GripperState:
    """
    State of the gripper; pressures in Pa gauge.

    `target_Pa` is None while there is no action; `pressure_Pa` is NaN without sensor; `age_s` is
    its age.
    """

    phase: GripperPhase
    target_Pa: float | None
    levels: GripperLevels
    pressure_Pa: float
    age_s: float
    problems: tuple[Problem, ...]


class GripperDriver:
    """
    Opens, closes and holds a gripper, in a thread of its own.

    It never enables the outputs of the DAQ. While they are not enabled, new actions are refused
    and a running action is abandoned for good. The valves then get the `safe` values of the
    outputs; null keeps a grasp.
    """

    def __init__(self, config: GripperDriveConfig, daq: DaqDriver) -> None:
        self.config = config
        self._daq = daq
        self._clock = daq.clock
        self._logic = GripperLogic(config)
        self._problems = ProblemLog()
        self._lock = threading.Lock()
        self._thread = PollingThread(GRIPPER, self._watch, self._on_failure, self._clock)
        self._sent: GripperLevels | None = None
        require_channels(config, daq.config)
        inputs = [part.name for part in daq.config.inputs]
        self._input = (
            None if config.pressure_input is None else inputs.index(config.pressure_input)
        )

    def start(self) -> None:
        """Start monitoring; nothing moves before a command."""
        self._thread.start()

    def close(self) -> None:
        """Stop monitoring; the valves keep their levels until the DAQ driver closes."""
        self._thread.close()
        self._problems.end_lasting()

    def command(self, action: str) -> str | None:
        """Open, close or hold; return why it is refused, or None; ValueError if unknown."""
        if action not in ACTIONS:
            raise ValueError(f'no gripper action {action!r}; there are {", ".join(ACTIONS)}')
        if action == 'hold':
            with self._lock:
                self._logic.abandon()
            return None
        config = self.config
        return self.set_pressure(
            config.open_pressure_Pa if action == 'open' else config.close_pressure_Pa
        )

    def stand(self) -> None:
        """Switch no valve on: abandon an action that waits between pressure and vacuum."""
        with self._lock:
            if self._logic.phase is GripperPhase.CHANGEOVER:
                self._logic.abandon()

    def set_pressure(self, target_Pa: float) -> str | None:
        """
        Go to a pressure [Pa gauge], negative for vacuum; return why it is refused, or None.

        Raises
        ------
        ValueError
            If the pressure is not finite or beyond the limits of the outputs.

        """
        self._check(target_Pa)
        with self._lock:
            if not self._daq.enabled:
                return 'DAQ outputs not enabled'
            self._logic.command(float(target_Pa), self._clock.now_s())
            self._sent = None
            return self._send()

    def reset(self) -> None:
        """Clear problems and abandon the running action."""
        with self._lock:
            self._logic.abandon()
        self._problems.clear()

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems since the last reset."""
        return self._problems.all()

    def state(self) -> GripperState:
        """Return the current state."""
        pressure, age = self._measured()
        with self._lock:
            return GripperState(
                self._logic.phase,
                self._logic.target_Pa,
                self._logic.levels,
                np.nan if pressure is None else pressure,
                age,
                self._problems.all(),
            )

    def _check(self, target_Pa: float) -> None:
        outputs = {output.name: output for output in self._daq.config.outputs}
        if not np.isfinite(target_Pa):
            raise ValueError(f'gripper pressure = {target_Pa}: expected a finite number of Pa')
        if target_Pa >= 0.0:
            outputs[self.config.pressure_output].check(target_Pa)
        elif self.config.vacuum_output is not None:
            outputs[self.config.vacuum_output].check(target_Pa)
        else:  # the valve of the line is open or closed: a lower pressure is never reached
            lowest = min(self.config.open_pressure_Pa, self.config.close_pressure_Pa, 0.0)
            if target_Pa < lowest:
                raise ValueError(f'gripper pressure = {target_Pa:g} Pa: expected >= {lowest:g}')

    def _measured(self) -> tuple[float | None, float]:
        if self._input is None:
            return None, np.inf
        state = self._daq.state()
        return float(state.values[self._input]), state.age_s

    def _watch(self, thread: PollingThread) -> None:
        while not thread.ending.is_set():
            pressure, _ = self._measured()
            with self._lock:
                if self._logic.target_Pa is not None:
                    self._go_on(pressure)
            thread.wait(self._clock.now_s() + _PERIOD_S)

    def _on_failure(self, error: BaseException) -> None:
        """Report the failure; the valves keep their levels while the DAQ works."""
        self._problems.report_failure(GRIPPER, error, self._clock.now_s())

    def _go_on(self, pressure: float | None) -> None:
        before = self._logic.phase
        refusal: str | None = 'DAQ outputs not enabled'
        if self._daq.enabled:
            phase = self._logic.step(self._clock.now_s(), pressure)
            refusal = self._send()
            if phase is GripperPhase.TIMED_OUT and before is not phase:
                self._report_timeout(pressure)
        if refusal is None:
            return
        self._logic.abandon()
        if before in (GripperPhase.CHANGEOVER, GripperPhase.MOVING):
            text = f'action abandoned: {refusal}'
            self._problems.report(GRIPPER, 'refused', text, self._clock.now_s())

    def _report_timeout(self, pressure: float | None) -> None:
        found = '' if pressure is None else f', found {pressure:.4g} Pa'
        self._problems.report(
            GRIPPER,
            'timeout',
            f'{self._logic.target_Pa:.4g} Pa not reached within '
            f'{self.config.action_timeout_s:g} s{found}',
            self._clock.now_s(),
        )

    def _send(self) -> str | None:
        levels, config, daq = self._logic.levels, self.config, self._daq
        if levels == self._sent:
            return None
        # Switch off before switching on: pressure and vacuum must never act together.
        if levels.vacuum_Pa == 0.0:
            steps = (self._vacuum, self._pressure)
        else:
            steps = (self._pressure, self._vacuum)
        for step in steps:
            refusal = step(levels, config, daq)
            if refusal is not None:
                return refusal
        self._sent = levels
        return None

    @staticmethod
    def _pressure(levels: GripperLevels, config: GripperDriveConfig, daq: DaqDriver) -> str | None:
        return daq.set_output(config.pressure_output, levels.pressure_Pa)

    @staticmethod
    def _vacuum(levels: GripperLevels, config: GripperDriveConfig, daq: DaqDriver) -> str | None:
        if config.vacuum_line is not None:
            return daq.set_line(config.vacuum_line, levels.vacuum_Pa < 0.0)
        assert config.vacuum_output is not None
        return daq.set_output(config.vacuum_output, levels.vacuum_Pa)


def build(config: GripperDriveConfig, daq: DaqDriver) -> GripperDriver:
    """Return the driver of a gripper at a DAQ that is not started yet."""
    return GripperDriver(config, daq)


def require_channels(config: GripperDriveConfig, daq: DaqConfig) -> None:
    """Raise ValueError if the DAQ lacks a channel of the gripper or cannot give a pressure."""
    outputs = {output.name: output for output in daq.outputs}
    for field in ('pressure_output', 'vacuum_output'):
        name = getattr(config, field)
        if name is None:
            continue
        if name not in outputs:
            raise ValueError(f'gripper {field}: DAQ has no output {name!r}')
        if outputs[name].streamed:
            raise ValueError(f'gripper {field}: output {name!r} is streamed, the gripper is not')
    if config.vacuum_line is not None and config.vacuum_line not in {
        line.name for line in daq.lines
    }:
        raise ValueError(f'gripper vacuum_line: DAQ has no line {config.vacuum_line!r}')
    if config.pressure_input is not None and config.pressure_input not in {
        part.name for part in daq.inputs
    }:
        raise ValueError(f'gripper pressure_input: DAQ has no input {config.pressure_input!r}')
    for field in ('open_pressure_Pa', 'close_pressure_Pa'):
        value = getattr(config, field)
        name = config.pressure_output if value >= 0.0 else config.vacuum_output
        if name is not None:
            outputs[name].check(value)
