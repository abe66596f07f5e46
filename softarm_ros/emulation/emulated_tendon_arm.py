"""A tendon-driven arm at an emulated DAQ: winch amplifiers and load cells wired."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.attachments import PulledTendons
from softarm_ros.drivers.daq_actuators import WINCHES
from softarm_ros.drivers.daq_config import DaqConfig
from softarm_ros.emulation.emulated_daq_arm import EmulatedDaqArm, listed
from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.tendon_rod.config import TendonRodPlantConfig
from softarm_ros.plant.tendon_rod.plant import TendonRodPlant
from softarm_ros.plant.tendon_rod.terminals import cell_volts, winch_signal_N, winch_volts

if TYPE_CHECKING:
    from softarm_ros.emulation.daq_service import EmulatedDaq


class EmulatedTendonArm(EmulatedDaqArm[TendonRodPlant]):
    """
    The DAQ host of a tendon-driven arm.

    Each amplifier holds the tension of its set point with its own load cell, as the simulated
    winch of `sim` does.

    Parameters
    ----------
    plant
        The simulated arm.
    daq
        Channels of the arm.
    names
        Names of the actuators, in the order of the plant's cables.
    seed, clock, make_daq
        As in `EmulatedDaqArm`.

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
        inputs = [part.name for part in daq.inputs]
        outputs = [part.name for part in daq.outputs]
        self._cells = [inputs.index(name) for name in names]
        self._winches = [outputs.index(name + WINCHES.suffix) for name in names]
        self._span_N = plant.config.winch.span_N
        # A card keeps its last outputs, so the first ones hold the present tensions.
        output_V = np.zeros(len(outputs))
        output_V[self._winches] = winch_volts(plant.drives.state().position, self._span_N)
        super().__init__(plant, daq, output_V, seed, clock, make_daq)

    def drive(self, volts: Array, levels: NDArray[np.bool_], duration_s: float) -> None:
        """Apply the outputs to the winches."""
        wanted = winch_signal_N(volts[self._winches], self._span_N)
        self._arm.drives.command(wanted, self._arm.time_s, duration_s)

    def sensed(self) -> Array:
        """Return the volts of the load cells."""
        volts = np.zeros(len(self._config.input_channels))
        volts[self._cells] = cell_volts(self._arm.drives.state().position, self._span_N)
        return volts

    def truth(self) -> dict[str, str]:
        """Return the true tensions at the winches."""
        return {'true_tension_N': listed(self._arm.drives.true_tension())}


def build(
    plant: TendonRodPlant,
    config: TendonRodPlantConfig,
    drives: PulledTendons,
    seed: int,
    daq: DaqConfig,
) -> EmulatedTendonArm:
    """Return the emulated DAQ with the simulated arm at its terminals."""
    return EmulatedTendonArm(plant, daq, drives.names, seed)
