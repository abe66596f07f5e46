"""A pneumatic arm at an emulated DAQ: regulators, vacuum, monitors and force sensor wired."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.attachments import RegulatedChambers
from softarm_ros.drivers.counters import LatencyRecord
from softarm_ros.drivers.daq_actuators import REGULATORS
from softarm_ros.drivers.daq_config import DaqConfig
from softarm_ros.drivers.gripper_logic import GripperDriveConfig
from softarm_ros.drivers.problems import DriverError, import_library
from softarm_ros.emulation.emulated_arm import EmulationError
from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.plant import Plant
from softarm_ros.plant.pneumatic.config import PneumaticPlantConfig
from softarm_ros.plant.pneumatic.gripper import GrippedObject
from softarm_ros.plant.pneumatic.pneumatic_plant import PneumaticPlant
from softarm_ros.plant.pneumatic.terminals import (
    compound_volts,
    gauge_volts,
    monitor_volts,
    regulator_signal_Pa,
)

if TYPE_CHECKING:
    from softarm_ros.emulation.daq_service import EmulatedDaq

_EARLY = 1e-6  # of a step: rounding of sums of durations


class EmulatedPneumaticArm:
    """
    The DAQ host of a pneumatic arm, with the simulated arm at its terminals.

    What the regulators, their monitors and the force sensor make of volts is theirs, whatever the
    rig file says: a wrong scale in it shows. The card rounds outputs and adds its noise to inputs
    (`EmulatedDaq`); sensor noise is the plant's.

    Parameters
    ----------
    plant
        The arm.
    daq, gripper
        What is plugged in where.
    names
        Of the actuators, in the order of the plant's chambers.
    seed
        Of the noise of the card.
    clock
        On which the card samples.
    make_daq
        Makes another host than `EmulatedDaq`.

    """

    def __init__(
        self,
        plant: PneumaticPlant,
        daq: DaqConfig,
        gripper: GripperDriveConfig | None,
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
        self._config = daq
        inputs = [part.name for part in daq.inputs]
        outputs = [part.name for part in daq.outputs]
        self._monitors = [inputs.index(name) for name in names]
        self._valves = [outputs.index(name + REGULATORS.suffix) for name in names]
        # Empty where there is no gripper.
        wired = [] if gripper is None else [gripper]
        self._gripper_valves = [outputs.index(g.pressure_output) for g in wired]
        self._gripper_inputs = [
            i for i, x in enumerate(inputs) for g in wired if x == g.pressure_input
        ]
        self._vacuum_lines = [
            i for i, line in enumerate(daq.lines) for g in wired if line.name == g.vacuum_line
        ]
        self._lock = threading.Lock()
        self._output_V = np.zeros(len(outputs))
        self._lines = np.array([line.inverted for line in daq.lines], dtype=bool)
        self._input_V = self._sensed()
        self._asked_s = np.inf
        self._gaps = LatencyRecord()
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
        """
        Let time pass, in steps of the plant.

        Raises
        ------
        EmulationError
            If the DAQ has ended by itself.
        PlantError
            If the arm leaves the range of the simulation.

        """
        if self._daq.errors:
            raise EmulationError(f'emulated DAQ: {"; ".join(self._daq.errors)}')
        self._elapsed_s += duration_s
        owed = self._elapsed_s - self._arm.time_s
        if owed < (1.0 - _EARLY) * self._arm.config.time_step_s:
            return
        with self._lock:
            volts, levels = self._output_V.copy(), self._lines.copy()
        span = self._arm.config.regulators.span_Pa
        self._arm.drives.follow(
            regulator_signal_Pa(volts[self._valves], span),
            float(regulator_signal_Pa(volts[self._gripper_valves], span).sum()),
            self._vacuum(levels),
        )
        self._arm.advance(owed)
        sensed = self._sensed()
        with self._lock:
            self._input_V = sensed

    def close(self) -> None:
        """End the host; may be called twice."""
        self._daq.close()

    def inject(self, fault: str) -> str:
        """
        Break or repair something, `daq open distal_chamber_1` for example; return what was done.

        `object put X_M Y_M Z_M KG` lays something there for the gripper to take.

        Raises
        ------
        ValueError
            If there is no such fault; lists those there are.

        """
        from softarm_ros.emulation.injected_faults import daq_faults
        from softarm_ros.plant.faults import InjectedFault, inject

        put = (('X_M', float), ('Y_M', float), ('Z_M', float), ('KG', float))
        known = {
            **daq_faults(self._daq),
            'object put': InjectedFault(put, self._put_object),
            'object remove': InjectedFault((), lambda: self._arm.drives.place_object(None)),
        }
        return inject(known, fault)

    def report(self) -> dict[str, str]:
        """Return the truth: volts and true pressures, gripper, how evenly the clock ran."""
        with self._lock:
            volts, written = self._output_V.copy(), self._written
        gaps, place = self._gaps.summary(), self._arm.drives.object_position()
        return {
            'daq_port': str(self._daq.port),
            'output_V': _listed(volts),
            'outputs_written': str(written),
            'true_pressure_Pa': _listed(self._arm.drives.true_pressures()),
            'gripper_pressure_Pa': f'{self._arm.gripper_pressure():.0f}',
            'holds_object': str(self._arm.drives.holds_object).lower(),
            'object_m': 'none' if place is None else _listed(place),
            'clock_gap_ms': f'p50 {1e3 * gaps.p50_s:.1f} p99 {1e3 * gaps.p99_s:.1f} '
            f'max {1e3 * gaps.max_s:.1f}',
        }

    def _put_object(self, x: float, y: float, z: float, mass_kg: float) -> None:
        self._arm.drives.place_object(GrippedObject((x, y, z), mass_kg))

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

    # -- wiring

    def _vacuum(self, levels: NDArray[np.bool_]) -> bool:
        return any(bool(levels[i]) != self._config.lines[i].inverted for i in self._vacuum_lines)

    def _sensed(self) -> Array:
        config, arm = self._config, self._arm
        volts = np.zeros(len(config.input_channels))
        span = arm.config.regulators.span_Pa
        volts[self._monitors] = monitor_volts(arm.chamber_pressures(), span)
        volts[self._gripper_inputs] = compound_volts(arm.gripper_pressure())
        sensor = config.force_sensor
        if sensor is not None:
            volts[len(config.inputs) :] = gauge_volts(
                arm.base_wrench(), sensor.calibration, sensor.bias_V
            )
        return volts


def _listed(values: Array) -> str:
    return ', '.join(f'{value:.4g}' for value in values)


def build(
    plant: PneumaticPlant,
    config: PneumaticPlantConfig,
    drives: RegulatedChambers,
    seed: int,
    daq: DaqConfig,
    gripper: GripperDriveConfig | None = None,
) -> EmulatedPneumaticArm:
    """Return the DAQ, emulated, with the simulated arm at its terminals."""
    return EmulatedPneumaticArm(plant, daq, gripper, drives.names, seed)
