"""A pneumatic arm at an emulated DAQ: regulators, vacuum, monitors and force sensor wired."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.attachments import RegulatedChambers
from softarm_ros.drivers.daq_actuators import REGULATORS
from softarm_ros.drivers.daq_config import DaqConfig
from softarm_ros.drivers.gripper_logic import GripperDriveConfig
from softarm_ros.emulation.emulated_daq_arm import EmulatedDaqArm, listed
from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.faults import Faults, InjectedFault, kilograms, metres
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


class EmulatedPneumaticArm(EmulatedDaqArm[PneumaticPlant]):
    """
    The DAQ host of a pneumatic arm, with regulators, their monitors, a gripper and a force sensor.

    Parameters
    ----------
    plant
        The simulated arm.
    daq, gripper
        Channels of the arm and of the gripper.
    names
        Names of the actuators, in the order of the plant's chambers.
    seed, clock, make_daq
        As in `EmulatedDaqArm`.

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
        inputs = [part.name for part in daq.inputs]
        outputs = [part.name for part in daq.outputs]
        self._monitors = [inputs.index(name) for name in names]
        self._valves = [outputs.index(name + REGULATORS.suffix) for name in names]
        # Empty without a gripper.
        wired = [] if gripper is None else [gripper]
        self._gripper_valves = [outputs.index(g.pressure_output) for g in wired]
        self._gripper_inputs = [
            i for i, x in enumerate(inputs) for g in wired if x == g.pressure_input
        ]
        self._vacuum_lines = [
            i for i, line in enumerate(daq.lines) for g in wired if line.name == g.vacuum_line
        ]
        self._channels = len(daq.input_channels)
        sensor = daq.force_sensor
        if sensor is not None:
            inverse: Array = np.asarray(np.linalg.inv(sensor.calibration), dtype=np.float64)
            self._gauges = (inverse, np.array(sensor.bias_V))
        super().__init__(plant, daq, np.zeros(len(outputs)), seed, clock, make_daq)

    def drive(self, volts: Array, levels: NDArray[np.bool_], duration_s: float) -> None:
        """Apply the outputs to the regulators and the gripper's valves."""
        span = self._arm.config.regulators.span_Pa
        self._arm.drives.follow(
            regulator_signal_Pa(volts[self._valves], span),
            float(regulator_signal_Pa(volts[self._gripper_valves], span).sum()),
            self._vacuum(levels),
        )

    def sensed(self) -> Array:
        """Return the volts of the monitors, the gripper's sensor and the force sensor."""
        config, arm = self._config, self._arm
        volts = np.zeros(self._channels)
        span = arm.config.regulators.span_Pa
        volts[self._monitors] = monitor_volts(arm.chamber_pressures(), span)
        if (gripper := arm.config.gripper) is not None:
            pressure = arm.gripper_pressure()
            volts[self._gripper_inputs] = compound_volts(pressure, gripper.sensor_span_Pa)
        sensor = config.force_sensor
        if sensor is not None and arm.weighed is not None:
            volts[len(config.inputs) :] = gauge_volts(arm.base_wrench(), *self._gauges)
        return volts

    def truth(self) -> dict[str, str]:
        """Return the true pressures and the state of the gripper."""
        pressures = {'true_pressure_Pa': listed(self._arm.drives.true_pressures())}
        if self._arm.gripping is None:
            return pressures
        place = self._arm.drives.object_position()
        return pressures | {
            'gripper_pressure_Pa': f'{self._arm.gripper_pressure():.0f}',
            'holds_object': str(self._arm.drives.holds_object).lower(),
            'object_m': 'none' if place is None else listed(place),
        }

    def faults(self) -> Faults:
        """Return `object put X_M Y_M Z_M KG` and `object remove`, for arms with a gripper."""
        if self._arm.gripping is None:
            return {}
        put = (('X_M', metres), ('Y_M', metres), ('Z_M', metres), ('KG', kilograms))
        return {
            'object put': InjectedFault(put, self._put_object),
            'object remove': InjectedFault((), lambda: self._arm.drives.place_object(None)),
        }

    def _put_object(self, x: float, y: float, z: float, mass_kg: float) -> None:
        self._arm.drives.place_object(GrippedObject((x, y, z), mass_kg))

    def _vacuum(self, levels: NDArray[np.bool_]) -> bool:
        return any(bool(levels[i]) != self._config.lines[i].inverted for i in self._vacuum_lines)


def build(
    plant: PneumaticPlant,
    config: PneumaticPlantConfig,
    drives: RegulatedChambers,
    seed: int,
    daq: DaqConfig,
    gripper: GripperDriveConfig | None = None,
) -> EmulatedPneumaticArm:
    """Return the emulated DAQ with the simulated arm at its terminals."""
    return EmulatedPneumaticArm(plant, daq, gripper, drives.names, seed)
