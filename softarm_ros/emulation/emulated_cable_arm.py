"""A cable-driven arm whose motors are driven by the firmware of its stepper board."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.attachments import WoundCables
from softarm_ros.drivers.messages import MOTORS
from softarm_ros.drivers.stepper_config import MotorConfig, SteppersConfig
from softarm_ros.emulation.emulated_arm import BOARD_LATE_MS, check_winding
from softarm_ros.emulation.firmware_board import FirmwareBoard
from softarm_ros.emulation.firmware_build import Emulator
from softarm_ros.emulation.wall_times import WallTimes
from softarm_ros.plant.arm_plant import ArmPlant
from softarm_ros.plant.config import PlantConfig
from softarm_ros.plant.plant import Plant

DEVICE = 'steppers'


class EmulatedCableArm:
    """
    Coils turn shafts, and shafts wind cables; an `EmulatedArm`.

    The shafts belong to the board's test bench: they follow what the motor shields received over
    I2C, not what the board reports. Each microstep of a shaft winds as much cable as a microstep
    of the simulated steppers, whatever the driver assumes. The arm is at rest, and the shafts are
    at zero, when the board is powered.

    Parameters
    ----------
    plant
        The simulated arm.
    step_m
        Cable length per microstep [m].
    motors
        Motor of each actuator and its direction, in the order of the actuators.
    emulator
        auto: the board's own binary, if its compiler and emulator are installed.
    clock, board
        Clock, and a board that runs on it. Default: the computer's clock, and a board in
        `emulator`.

    """

    def __init__(
        self,
        plant: ArmPlant,
        step_m: float,
        motors: Sequence[MotorConfig],
        emulator: Emulator = 'auto',
        clock: Clock = MONOTONIC,
        board: FirmwareBoard | None = None,
    ) -> None:
        self.plant: Plant = plant
        self._arm = plant
        self._step_m = np.array([-step_m if motor.reversed else step_m for motor in motors])
        self._motors = [motor.motor for motor in motors]
        self._board = board or FirmwareBoard('steppers', emulator)
        self._clock = clock
        self._shafts = np.zeros(MOTORS)
        self._wall = WallTimes()
        self._faults: list[str] = []

    @property
    def time_s(self) -> float:
        """Simulated time [s]."""
        return self.plant.time_s

    def start(self, folder: Path) -> None:
        """Power the board; its port becomes the link `steppers` in the folder."""
        self._board.start(folder / DEVICE)

    def advance(self, duration_s: float) -> None:
        """Advance the arm by a time [s], with the motors at the shafts' positions at its end."""
        self._board.poll()
        end_s = self._wall.of(self.plant.time_s + duration_s, self._clock.now_s())
        changes = self._board.shafts
        while changes and changes[0][0] <= end_s:
            self._shafts = np.array(changes.popleft()[1], dtype=float)
        position = self._shafts[self._motors] * self._step_m
        with self._arm.drives.turning(position, duration_s):
            self._arm.advance(duration_s)

    def close(self) -> None:
        """Switch the board off; may be called twice."""
        self._board.close()

    def inject(self, fault: str) -> str:
        """Inject or repair a board fault, such as `steppers unplug`; return what was done."""
        device, _, what = fault.strip().partition(' ')
        if device != DEVICE:
            raise ValueError(f'no device {device!r} here; known: {DEVICE}')
        done = self._board.inject(what)
        self._faults.append(what)
        return done

    def report(self) -> dict[str, str]:
        """Return what the motor shields had received at the previous report; never waits."""
        self._board.ask_status()
        counts = self._board.status
        values = {
            'emulator': self._board.emulator,
            'board_resets': str(self._board.resets),
            'clock_slips': str(self._wall.slips),
            'faults': ', '.join(self._faults[-5:]) or 'none',
        }
        if 'shafts' in counts:
            values['shafts_microsteps'] = _listed(counts['shafts'][m] for m in self._motors)
            values['microsteps_made'] = _listed(counts['moved'][m] for m in self._motors)
            values['jumps'] = _listed(counts['jumps'][m] for m in self._motors)
            values['i2c_transactions'] = str(counts['transactions'][0])
            values['i2c_failures'] = str(counts['failed'][0])
            values[BOARD_LATE_MS] = f'{1e-3 * counts["late"][0]:.0f}'
        return values


def _listed(counts: Iterable[int]) -> str:
    return ' '.join(map(str, counts))


def build(
    plant: ArmPlant,
    config: PlantConfig,
    drives: WoundCables,
    seed: int,
    steppers: SteppersConfig,
) -> EmulatedCableArm:
    """Return the emulated stepper board on the simulated arm."""
    check_winding(config.stepper.step_m, {one.name: one.step_m for one in steppers.motors})
    return EmulatedCableArm(plant, config.stepper.step_m, steppers.motors)
