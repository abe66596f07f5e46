"""An arm at an emulated DAQ: volts out move the simulated arm, what it senses comes back."""

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

if TYPE_CHECKING:
    from softarm_ros.emulation.daq_service import EmulatedDaq

_EARLY = 1e-6  # of a step: rounding of sums of durations
PlantT = TypeVar('PlantT', bound=Plant)


class EmulatedDaqArm(ABC, Generic[PlantT]):
    """
    The DAQ host of an arm, with the simulated arm at its terminals; an `EmulatedArm`.

    What amplifiers, valves and sensors make of volts is theirs, whatever the rig file says: a
    wrong scale in it shows. The card rounds outputs and adds its noise to inputs (`EmulatedDaq`);
    sensor noise is the plant's. What is wired where is said by derived classes, before they call
    this constructor.

    Parameters
    ----------
    plant
        The arm.
    daq
        Its channels and lines.
    output_V : (outputs,)
        What stands at the outputs before anything is written.
    seed
        Of the noise of the card.
    clock
        On which the card samples.
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
        """Let the drives follow outputs (outputs,) [V] and lines (lines,) for the coming time."""

    @abstractmethod
    def sensed(self) -> Array:
        """Return what stands at all inputs now (channels,) [V]."""

    @abstractmethod
    def truth(self) -> dict[str, str]:
        """Return what is true of the arm behind the terminals."""

    def faults(self) -> Faults:
        """Return what can break beside the DAQ."""
        return {}

    # -- an emulated arm

    @property
    def time_s(self) -> float:
        """Simulated time [s]."""
        return self._elapsed_s

    def start(self, folder: Path) -> None:
        """Start the host; its port goes into `daq.port`."""
        self._daq.start()
        (folder / 'daq.port').write_text(f'{self._daq.port}\n', encoding='ascii')

    def advance(self, duration_s: float) -> None:
        """Let time pass, in steps of the plant; raises as `EmulatedArm` says."""
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
        with self._lock:
            self._input_V = sensed

    def close(self) -> None:
        """End the host; may be called twice."""
        self._daq.close()

    def inject(self, fault: str) -> str:
        """Break or repair something, as `daq open up_2`; ValueError lists what there is."""
        from softarm_ros.emulation.injected_faults import daq_faults  # needs grpc

        return inject({**daq_faults(self._daq), **self.faults()}, fault)

    def report(self) -> dict[str, str]:
        """Return the truth: volts, what they do to the arm, how evenly the clock ran."""
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
    """Return numbers as reports show them."""
    return ', '.join(f'{value:.4g}' for value in values)
