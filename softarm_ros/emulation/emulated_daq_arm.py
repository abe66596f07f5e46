"""An arm at an emulated DAQ: output volts move the simulated arm, its sensors set inputs."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from softarm_ros.clock import Clock
from softarm_ros.drivers.counters import LatencyRecord
from softarm_ros.drivers.daq_config import DaqConfig
from softarm_ros.drivers.problems import DriverError, import_library
from softarm_ros.emulation.emulated_arm import EmulationError
from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.faults import Faults, inject
from softarm_ros.plant.plant import Plant
from softarm_ros.whole_file import write_text

if TYPE_CHECKING:
    from softarm_ros.emulation.daq_service import EmulatedDaq

_EARLY = 1e-6  # share of a step: rounding of summed durations
PlantT = TypeVar('PlantT', bound=Plant)


class EmulatedDaqArm(ABC, Generic[PlantT]):
    """
    The DAQ host of an arm, with the simulated arm at its terminals; an `EmulatedArm`.

    Amplifiers, valves and sensors convert volts with their own scales, not those of the rig file,
    so a wrong scale in the file becomes visible. The card rounds outputs and adds its noise to
    inputs (`EmulatedDaq`); sensor noise is the plant's. A derived class defines the wiring before
    it calls this constructor.

    Parameters
    ----------
    plant
        The simulated arm.
    daq
        Channels and lines of the DAQ.
    output_V : (outputs,)
        Volts at the outputs before the first write.
    seed
        Seed of the card's noise.
    clock
        Clock of the card's sampling.
    make_daq
        Makes another host than `EmulatedDaq`.

    """

    def __init__(
        self,
        plant: PlantT,
        daq: DaqConfig,
        output_V: Array,
        seed: int,
        clock: Clock,
        make_daq: Callable[..., EmulatedDaq] | None,
    ) -> None:
        try:
            import_library('grpc', 'nidaqmx._stubs.nidaqmx_pb2')
        except DriverError as error:
            raise EmulationError(f'the DAQ cannot be emulated: {error}') from error
        from softarm_ros.emulation.daq_service import EmulatedDaq

        self.plant: Plant = plant
        self._arm = plant
        self._clock = clock
        self._config = daq
        self._lock = threading.Lock()
        self._output_V = output_V
        self._lines = np.array([line.inverted for line in daq.lines], dtype=bool)
        self._input_V = self.sensed()
        self._asked_s = np.inf
        self._gaps = LatencyRecord()
        self._written = 0
        self._elapsed_s = 0.0
        self._daq = (make_daq or EmulatedDaq)(daq, self._source, self._sink, seed=seed)

    # -- wiring

    @abstractmethod
    def drive(self, volts: Array, levels: NDArray[np.bool_], duration_s: float) -> None:
        """Apply outputs (outputs,) [V] and lines (lines,) to the drives, for the coming time."""

    @abstractmethod
    def sensed(self) -> Array:
        """Return the present voltages [V] at all inputs (channels,)."""

    @abstractmethod
    def truth(self) -> dict[str, str]:
        """Return the true state of the arm, for reports."""

    def faults(self) -> Faults:
        """Return the faults of this arm, in addition to those of the DAQ."""
        return {}

    # -- an emulated arm

    @property
    def time_s(self) -> float:
        """Simulated time [s]."""
        return self._elapsed_s

    def start(self, folder: Path) -> None:
        """Start the host; its port is written to `daq.port`."""
        self._daq.start()
        write_text(folder / 'daq.port', f'{self._daq.port}\n')

    def advance(self, duration_s: float) -> None:
        """Advance by a time [s], in steps of the plant; raises as `EmulatedArm`."""
        if self._daq.errors:
            raise EmulationError(f'emulated DAQ: {"; ".join(self._daq.errors)}')
        self._elapsed_s += duration_s
        owed = self._elapsed_s - self._arm.time_s
        if owed < (1.0 - _EARLY) * self._arm.config.time_step_s:
            return
        with self._lock:
            volts, levels = self._output_V.copy(), self._lines.copy()
        self.drive(volts, levels, owed)
        self._arm.advance(owed)
        sensed = self.sensed()
        self._daq.device.advance()
        with self._lock:
            self._input_V = sensed

    def close(self) -> None:
        """End the host; may be called twice."""
        self._daq.close()

    def inject(self, fault: str) -> str:
        """Inject or repair a fault, such as `daq open up_2`; ValueError lists the known ones."""
        from softarm_ros.emulation.injected_faults import daq_faults  # needs grpc

        return inject({**daq_faults(self._daq), **self.faults()}, fault)

    def report(self) -> dict[str, str]:
        """Return the true state: volts, their effect on the arm, regularity of the clock."""
        with self._lock:
            volts, written = self._output_V.copy(), self._written
        gaps = self._gaps.summary()
        return {
            'daq_port': str(self._daq.port),
            'output_V': listed(volts),
            'outputs_written': str(written),
            **self.truth(),
            'clock_gap_ms': f'p50 {1e3 * gaps.p50_s:.1f} p99 {1e3 * gaps.p99_s:.1f} '
            f'max {1e3 * gaps.max_s:.1f}',
        }

    # -- called by the DAQ's threads

    def _source(self) -> Array:
        now = self._clock.now_s()
        if now > self._asked_s:
            self._gaps.add(now - self._asked_s)
        self._asked_s = now
        with self._lock:
            return self._input_V

    def _sink(self, volts: Array, levels: NDArray[np.bool_]) -> None:
        with self._lock:
            self._output_V, self._lines = volts, levels
            self._written += 1


def listed(values: Array) -> str:
    """Return numbers as text for reports."""
    return ', '.join(f'{value:.4g}' for value in values)
