"""An emulated water-hydraulic arm: the servo drives and the DAQ that its drivers use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softarm_ros.drivers.attachments import WaterCylinders
from softarm_ros.drivers.daq_config import DaqConfig
from softarm_ros.drivers.servo_config import ServoConfig
from softarm_ros.emulation.daq_service import EmulatedDaq
from softarm_ros.emulation.emulated_arm import EmulationError
from softarm_ros.emulation.injected_faults import daq_faults, servo_faults
from softarm_ros.emulation.modbus_drive import EmulatedDrives
from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.faults import inject
from softarm_ros.plant.hydraulic.config import HydraulicPlantConfig
from softarm_ros.plant.hydraulic.hydraulic_plant import HydraulicPlant
from softarm_ros.plant.plant import Plant
from softarm_ros.whole_file import write_text


class EmulatedHydraulicArm:
    """
    Servo drives on Modbus TCP and a DAQ on gRPC, wired to the simulated arm.

    Limit and resolution of the torque belong to the drives, its lag to the plant; noise and offset
    of the pressures belong to the sensors, their resolution to the converter. At the start, the
    drives are off and the motors' brakes are closed, with the chambers at the preload.

    Parameters
    ----------
    plant
        The simulated arm, just made.
    servo, daq
        Devices of the rig; the sensors have the names of the servo's axes.
    seed
        Seed of the converter's noise.
    make_drives, make_daq
        Make other devices than `EmulatedDrives` and `EmulatedDaq`.

    """

    def __init__(
        self,
        plant: HydraulicPlant,
        servo: ServoConfig,
        daq: DaqConfig,
        seed: int,
        make_drives: Callable[..., EmulatedDrives] = EmulatedDrives,
        make_daq: Callable[..., EmulatedDaq] = EmulatedDaq,
    ) -> None:
        self.plant: Plant = plant
        self._arm = plant
        self._names = servo.names
        self._rest_V = np.zeros(len(daq.input_channels))
        self._rest_V[: len(daq.inputs)] = [part.volts(0.0) for part in daq.inputs]
        # Input and axis of each sensor; value at 0 V, and per volt.
        self._sensors = [
            (i, self._names.index(part.name), part.zero, part.scale)
            for i, part in enumerate(daq.inputs)
            if part.name in self._names
        ]
        self._lock = threading.Lock()
        self._waiting_s = 0.0
        plant.drives.park()
        self._position, self._speed, self._volts = self._sensed()
        self._drives = make_drives(
            servo,
            self,
            period_s=plant.config.time_step_s,  # the load stands still between two steps
            brake_close_s=plant.config.drive.brake.close_s,
        )
        self._daq = make_daq(daq, self._volts_now, seed=seed)
        self._running = False

    @property
    def time_s(self) -> float:
        """Simulated time [s], including time that is not simulated yet."""
        return self._arm.time_s + self._waiting_s

    # -- life

    def start(self, folder: Path) -> None:
        """Start both devices; their ports are written to `servo.port` and `daq.port`."""
        self._drives.start()
        self._running = True
        self._daq.start()
        for name, port in (('servo', self._drives.port), ('daq', self._daq.port)):
            # Whole: a driver may read the file at any moment.
            write_text(folder / f'{name}.port', f'{port}\n')

    def close(self) -> None:
        """End both devices; may be called twice."""
        if self._running:
            self._running = False
            self._drives.close()
            self._daq.close()

    # -- time

    def advance(self, duration_s: float) -> None:
        """Advance by a time [s], in whole steps of the plant; see `EmulatedArm.advance`."""
        errors = [*self._drives.errors, *self._daq.errors]
        if errors:
            raise EmulationError('; '.join(errors))
        self._waiting_s += duration_s
        step = self._arm.config.time_step_s
        count = int(self._waiting_s / step + 1e-6)
        if count == 0:
            return
        self._waiting_s = max(self._waiting_s - count * step, 0.0)
        self._arm.drives.follow(self._drives.torque, self._drives.brakes_lifted)
        self._arm.advance(count * step)
        sensed = self._sensed()
        self._daq.device.advance()
        with self._lock:
            self._position, self._speed, self._volts = sensed

    def step(self, torque_N_m: Array, dt_s: float) -> tuple[Array, Array]:
        """Return positions [rad] and speeds [rad/s] of the shafts, as the load of the drives."""
        with self._lock:
            return self._position, self._speed

    def _sensed(self) -> tuple[Array, Array, Array]:
        """Return positions [rad] and speeds [rad/s] of the shafts, and all inputs [V]."""
        signals, volts = self._arm.drives.sensor_signals().tolist(), self._rest_V.copy()
        for i, axis, zero, scale in self._sensors:
            volts[i] = (signals[axis] - zero) / scale
        drives = self._arm.drives
        return drives.shaft_positions(), drives.shaft_speeds(), volts

    def _volts_now(self) -> Array:
        with self._lock:
            return self._volts

    # -- faults and truth

    def inject(self, fault: str) -> str:
        """Inject or repair a fault; see `injected_faults`."""
        return inject({**servo_faults(self._drives), **daq_faults(self._daq)}, fault)

    def report(self) -> dict[str, str]:
        """Return the true torques, pressures and states."""
        return {
            'emulator': 'Modbus TCP server, gRPC service of DAQmx',
            'drives': ', '.join(self._drives.states),
            'brakes_lifted': _which(self._names, self._drives.brakes_lifted),
            'torque_N_m': _listed(self._drives.torque, 1.0, 4),
            'pressure_kPa': _listed(self._arm.drives.true_pressures(), 1e-3, 1),
            'boiled_s': _listed(self._arm.drives.boiled_s, 1.0, 3),
        }


def _listed(values: Array, factor: float, digits: int) -> str:
    return ' '.join(f'{factor * value:.{digits}f}' for value in values)


def _which(names: Sequence[str], chosen: NDArray[np.bool_]) -> str:
    if chosen.all():
        return 'all'
    return ', '.join(name for name, one in zip(names, chosen) if one) or 'none'


def build(
    plant: HydraulicPlant,
    config: HydraulicPlantConfig,
    drives: WaterCylinders,
    seed: int,
    servo: ServoConfig,
    daq: DaqConfig,
) -> EmulatedHydraulicArm:
    """Return the emulated drives and DAQ on the simulated arm."""
    return EmulatedHydraulicArm(plant, servo, daq, seed)
