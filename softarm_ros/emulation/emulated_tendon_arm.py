"""A tendon-driven arm at an emulated DAQ: winch amplifiers and load cells wired."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.attachments import PulledTendons
from softarm_ros.drivers.daq_actuators import WINCHES
from softarm_ros.drivers.daq_config import DaqConfig
from softarm_ros.drivers.problems import DriverError, import_library
from softarm_ros.emulation.emulated_arm import EmulationError
from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.plant import Plant
from softarm_ros.plant.tendon_rod.config import TendonRodPlantConfig
from softarm_ros.plant.tendon_rod.plant import TendonRodPlant
from softarm_ros.plant.tendon_rod.terminals import cell_volts, winch_signal_N, winch_volts

if TYPE_CHECKING:
    from softarm_ros.emulation.daq_service import EmulatedDaq

_EARLY = 1e-6  # of a step: rounding of sums of durations


class EmulatedTendonArm:
    """
    The DAQ host of a tendon-driven arm, with the simulated arm at its terminals.

    Each amplifier holds the tension of its set point by its own load cell: that is the simulated
    winch of `sim`. What amplifiers and load cells make of volts is theirs, whatever the rig file
    says: a wrong scale in it shows. The card rounds outputs and adds its noise to inputs.

    Parameters
    ----------
    plant
        The arm.
    daq
        What is plugged in where.
    names
        Of the actuators, in the order of the plant's cables.
    seed
        Of the noise of the card.
    clock
        On which the card samples.
    make_daq
        Makes another host than `EmulatedDaq`.

    """

    def __init__(
        self,
        plant: TendonRodPlant,
        daq: DaqConfig,
        names: Sequence[str],
        seed: int,
        clock: Clock = MONOTONIC,
        make_daq: Callable[..., EmulatedDaq] | None = None,
    ) -> None:
        try:
            import_library('grpc', 'nidaqmx._stubs.nidaqmx_pb2')
        except DriverError as error:
            raise EmulationError(f'the DAQ cannot be emulated: {error}') from error
        from softarm_ros.emulation.daq_service import EmulatedDaq

        self._clock = clock
        self.plant: Plant = plant
        self._arm = plant
        inputs = [part.name for part in daq.inputs]
        outputs = [part.name for part in daq.outputs]
        self._cells = [inputs.index(name) for name in names]
        self._winches = [outputs.index(name + WINCHES.suffix) for name in names]
        self._channels = len(daq.input_channels)
        self._lock = threading.Lock()
        self._output_V = np.zeros(len(outputs))
        # A card keeps what was written last: by whoever has let the cables go to this.
        self._output_V[self._winches] = winch_volts(plant.drives.state().position)
        self._input_V = self._sensed()
        self._written = 0
        self._elapsed_s = 0.0
        self._daq = (make_daq or EmulatedDaq)(daq, self._source, self._sink, seed=seed)

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
            volts = self._output_V.copy()
        self._arm.drives.command(winch_signal_N(volts[self._winches]), self._arm.time_s, owed)
        self._arm.advance(owed)
        sensed = self._sensed()
        with self._lock:
            self._input_V = sensed

    def close(self) -> None:
        """End the host; may be called twice."""
        self._daq.close()

    def inject(self, fault: str) -> str:
        """Break or repair something, as `daq open up_2`; ValueError lists what there is."""
        from softarm_ros.emulation.injected_faults import daq_faults
        from softarm_ros.plant.faults import inject

        return inject(daq_faults(self._daq), fault)

    def report(self) -> dict[str, str]:
        """Return the truth: volts, and the tensions at the winches."""
        with self._lock:
            volts, written = self._output_V.copy(), self._written
        return {
            'daq_port': str(self._daq.port),
            'output_V': _listed(volts),
            'outputs_written': str(written),
            'true_tension_N': _listed(self._arm.drives.true_tension()),
        }

    # -- called by the DAQ's threads

    def _source(self) -> Array:
        with self._lock:
            return self._input_V

    def _sink(self, volts: Array, levels: NDArray[np.bool_]) -> None:
        with self._lock:
            self._output_V = volts
            self._written += 1

    def _sensed(self) -> Array:
        volts = np.zeros(self._channels)
        volts[self._cells] = cell_volts(self._arm.drives.state().position)
        return volts


def _listed(values: Array) -> str:
    return ', '.join(f'{value:.4g}' for value in values)


def build(
    plant: TendonRodPlant,
    config: TendonRodPlantConfig,
    drives: PulledTendons,
    seed: int,
    daq: DaqConfig,
) -> EmulatedTendonArm:
    """Return the DAQ, emulated, with the simulated arm at its terminals."""
    return EmulatedTendonArm(plant, daq, drives.names, seed)
