"""Actuators at a DAQ that have their own control loops: one set point and one reading each."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.drivers.actuator_driver import ActuatorReading
from softarm_ros.drivers.command_check import approach
from softarm_ros.drivers.daq import DaqDriver
from softarm_ros.drivers.daq_values import daq_values
from softarm_ros.drivers.gripper import GripperDriver
from softarm_ros.drivers.play_compensation import PlayCompensation, PlayCompensationConfig
from softarm_ros.drivers.problems import DriverError, Problem
from softarm_ros.geometry.arrays import Array

_RATE_BLOCKS = 5  # number of blocks for the rate of a value


@dataclass(frozen=True)
class SetPoints:
    """
    Kind of set points that the outputs of a DAQ carry.

    Attributes
    ----------
    unit : str
        Unit of commands, inputs and outputs.
    suffix : str
        The output of an actuator is called `<actuator><suffix>`.
    rest : float
        Value of every actuator while the arm is at rest.
    near : float
        Tolerance around `rest`: offset and noise of a monitor, with a margin.

    """

    unit: str
    suffix: str
    rest: float = 0.0
    near: float = 0.0


REGULATORS = SetPoints('Pa', '_valve', near=2e3)
WINCHES = SetPoints('N', '_winch', near=0.3)
OF_UNIT = {kind.unit: kind for kind in (REGULATORS, WINCHES)}


class DaqActuators:
    """
    Chambers behind pressure regulators, or cables on winches with tension control: the outputs are
    set points, the inputs are monitors or load cells.

    The DAQ has a streamed output `<actuator>_valve` (`_winch`) and an input `<actuator>` for each.
    Targets change by at most `CATCH_UP` times the largest rate of the actuator. They start from
    the values measured when the outputs are enabled, so that an arm that a fault has released does
    not jump back. To be called by one thread.

    Parameters
    ----------
    daq
        Driver, not started yet; this class starts, resets and closes it.
    names
        Names of the m actuators.
    max_rate : (m,)
        Largest rate of each.
    compensation
        Compensation of the regulators' play.
    gripper
        Gripper at the same DAQ, or None. Its problems do not stop the arm.
    kind
        Kind of the set points.

    Raises
    ------
    ValueError
        If the DAQ lacks an input or output of an actuator.

    """

    def __init__(
        self,
        daq: DaqDriver,
        names: Sequence[str],
        max_rate: ArrayLike,
        compensation: PlayCompensationConfig,
        gripper: GripperDriver | None = None,
        kind: SetPoints = REGULATORS,
    ) -> None:
        require_channels(
            [part.name for part in daq.config.inputs],
            [part.name for part in daq.config.streamed],
            names,
            kind.suffix,
        )
        self._kind = kind
        self.daq, self.gripper = daq, gripper
        self._names = tuple(names)
        self._max_rate = np.asarray(max_rate, dtype=float)
        self._config = compensation
        self._compensation = PlayCompensation(compensation, len(names))
        inputs = [part.name for part in daq.config.inputs]
        self._inputs = [inputs.index(name) for name in names]
        self._high = np.array([part.high for part in daq.config.streamed])
        self._target = np.zeros(len(names))  # last set points, without play compensation
        self._target_s = -np.inf
        self._held: Array | None = None
        self._homing = False  # `_held` is the rest, since the last `home`
        self._blocks: deque[tuple[float, Array]] = deque(maxlen=_RATE_BLOCKS)

    # -- device

    def start(self) -> None:
        """Connect in the background; outputs have their safe values."""
        self.daq.start()
        if self.gripper is not None:
            self.gripper.start()

    def close(self) -> None:
        """Set the outputs to their safe values and disconnect; may be called twice."""
        if self.gripper is not None:
            self.gripper.close()
        self.daq.close()

    def reset(self) -> None:
        """Clear latched problems; those that persist are reported again. See `DaqDriver.reset`."""
        if self.gripper is not None:
            self.gripper.reset()
        self.daq.reset()

    def not_ready(self) -> str:
        """Return '' if motion could start now; else the reason."""
        state = self.daq.state()
        if state.problems:
            return '; '.join(map(str, state.problems))
        if not (state.reading and state.writing):
            return 'DAQ does not answer yet'
        return ''

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems since the last reset."""
        gripper = () if self.gripper is None else self.gripper.problems()
        return (*self.daq.problems(), *gripper)

    def values(self) -> dict[str, str]:
        """Return values for diagnostics."""
        values = daq_values(self.daq)
        if self.gripper is not None:
            values['gripper'] = self.gripper.state().phase.value
        return values

    # -- actuators

    def home(self) -> None:
        """
        Let later calls of `hold` bring the actuators to rest at their rate.

        Their values are measured, so there is no zero to declare. If the arm is at rest already,
        its outputs keep their safe values.

        Raises
        ------
        DriverError
            If there are problems or the DAQ does not answer.

        """
        not_ready = self.not_ready()
        if not_ready:
            raise DriverError(not_ready)
        state = self.daq.state()
        kind = self._kind
        if not state.enabled and np.all(state.values[self._inputs] < kind.rest + kind.near):
            return
        refusal = self._enable()
        if refusal is not None:
            raise DriverError(refusal)
        self._held, self._homing = np.full(len(self._names), self._kind.rest), True

    def stop_homing(self) -> None:
        """Let later calls of `hold` hold the values measured then, if they bring them to rest."""
        if self._homing:
            self._held, self._homing = None, False

    def follow(self, command: Array) -> str | None:
        """
        Follow set points (m,) [Pa gauge, N]; return why they are refused, or None.

        Raises
        ------
        ValueError
            If they are not m finite values within the outputs' limits. Nothing changes.

        """
        wanted = np.asarray(command, dtype=float)
        if wanted.shape != self._target.shape:
            raise ValueError(f'{wanted.shape} set points; expected ({len(self._names)},)')
        self.daq.checked(wanted)
        refusal = self._enable()
        if refusal is not None:
            return refusal
        self._held, self._homing = None, False
        return self._approach(wanted)

    def hold(self) -> None:
        """Hold the values measured at the first call; outputs at their safe values stay there."""
        if not self.daq.enabled:
            self._held = None
            return
        if self.gripper is not None:
            self.gripper.stand()
        if self._held is None:
            measured = np.clip(self.daq.values[self._inputs], 0.0, self._high)
            # A pressure below the play means a shut valve: noise must not open it.
            self._held = np.where(measured > self._config.play_Pa, measured, 0.0)
            self._target = self._held
        self._approach(self._held)

    def reading(self) -> ActuatorReading | None:
        """Return the newest values [Pa, N], their rates, and the values again as effort."""
        state = self.daq.state()
        if not np.isfinite(state.stamp_s):
            return None
        measured = state.values[self._inputs]
        if not self._blocks or state.stamp_s > self._blocks[-1][0]:
            self._blocks.append((state.stamp_s, measured))
        return ActuatorReading(state.stamp_s, measured, self._rate(), measured.copy())

    # -- parts

    def _enable(self) -> str | None:
        if self.daq.enabled:
            return None
        try:
            self.daq.enable()
        except DriverError as error:
            return str(error)
        # The outputs had their safe values: start from the measured values.
        self._compensation = PlayCompensation(self._config, len(self._names))
        self._target = np.clip(self.daq.values[self._inputs], 0.0, self._high)
        self._target_s = self.daq.clock.now_s()
        return None

    def _approach(self, wanted: Array) -> str | None:
        now = self.daq.clock.now_s()
        target = approach(self._target, wanted, self._max_rate, now - self._target_s)
        refusal = self.daq.set_outputs(np.minimum(self._compensation.signal(target), self._high))
        self._target, self._target_s = target, now
        return refusal

    def _rate(self) -> Array:
        if len(self._blocks) < 2:
            return np.zeros(len(self._names))
        stamps = np.array([stamp for stamp, _ in self._blocks])
        stamps -= stamps.mean()
        spread = float(stamps @ stamps)
        if spread <= 0.0:
            return np.zeros(len(self._names))
        slope: Array = stamps @ np.array([values for _, values in self._blocks]) / spread
        return slope


def require_channels(
    inputs: Sequence[str], streamed: Sequence[str], names: Sequence[str], suffix: str
) -> None:
    """Raise ValueError unless each actuator has an input and the streamed outputs match."""
    missing = [name for name in names if name not in inputs]
    if missing:
        raise ValueError(f'DAQ inputs: expected one for each actuator; no {", ".join(missing)}')
    wanted = [name + suffix for name in names]
    if list(streamed) != wanted:
        raise ValueError(
            f'streamed DAQ outputs: expected {", ".join(wanted)} in this order; found '
            f'{", ".join(streamed) or "none"}'
        )
