"""A cable-driven arm whose motors are the servos of an emulated Dynamixel bus."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.attachments import WoundCables
from softarm_ros.drivers.dynamixel.config import DynamixelConfig
from softarm_ros.drivers.dynamixel.control_table import COUNTS_PER_TURN
from softarm_ros.emulation.dynamixel_bus import EmulatedDynamixelBus
from softarm_ros.emulation.dynamixel_servo import EmulatedServo
from softarm_ros.emulation.emulated_arm import EmulationError, check_winding
from softarm_ros.emulation.pty_line import PtyLine
from softarm_ros.plant.arm_plant import ArmPlant
from softarm_ros.plant.config import PlantConfig
from softarm_ros.plant.faults import InjectedFault, inject, milliseconds
from softarm_ros.plant.plant import Plant

DEVICE = 'dynamixel'
TORQUE_PER_CURRENT_N_M_A = 1.66  # XM540-W150: 7.3 N m at 4.4 A


class Line(Protocol):
    """The line to the bus: a `PtyLine`, or a substitute in tests."""

    failure: str

    def start(self, link: Path) -> None:
        """Open the port at this link."""

    def close(self) -> None:
        """Close the port."""

    def plug(self) -> None:
        """Plug the cable in."""

    def unplug(self) -> None:
        """Pull the cable out."""

    def delay(self, seconds: float) -> None:
        """Delay answers."""


MakeLine = Callable[[Callable[[bytes], bytes], Callable[[], object], str], Line]


class EmulatedServoArm:
    """
    Servos turn pulleys, and pulleys wind cables; an `EmulatedArm`.

    The set point of a servo acts on the simulated motors like a command in `sim`: with their
    delay, speed, acceleration and play. Each count winds as much cable as a step of these motors,
    whatever the driver assumes. When the servos get power, the arm is at rest, and the encoders
    read the counts that the rig file states for rest.

    Parameters
    ----------
    plant
        The simulated arm.
    step_m
        Cable length per count [m].
    config
        Servos, in the order of the actuators.
    seed
        Seed of faults on the wire.
    clock, make_line
        Default: the computer's clock and a pseudo-terminal.

    """

    def __init__(
        self,
        plant: ArmPlant,
        step_m: float,
        config: DynamixelConfig,
        seed: int = 0,
        clock: Clock = MONOTONIC,
        make_line: MakeLine = PtyLine,
    ) -> None:
        self.plant: Plant = plant
        self._arm = plant
        self._steps = np.array([-step_m if servo.reversed else step_m for servo in config.servos])
        self._zeros = config.zeros
        self._radius_m = COUNTS_PER_TURN * step_m / (2.0 * np.pi)
        self._clock = clock
        names = [servo.name for servo in config.servos]
        servos = [EmulatedServo(s.id, s.zero) for s in config.servos]
        self.bus = EmulatedDynamixelBus(servos, names, seed)
        self._line = make_line(self._answer, self._idle, DEVICE)
        self._faults: list[str] = []

    @property
    def time_s(self) -> float:
        """Simulated time [s]."""
        return self.plant.time_s

    def start(self, folder: Path) -> None:
        """Power the servos; their port becomes the link `dynamixel` in the folder."""
        EmulatedServo.load()
        self._line.start(folder / DEVICE)

    def advance(self, duration_s: float) -> None:
        """Let the motors follow the servos for a time [s]; see `EmulatedArm`."""
        if self._line.failure:
            raise EmulationError(f'emulated servos: {self._line.failure}')
        with self.bus.lock:
            for servo in self.bus.servos:
                servo.advance(duration_s)
            goals = np.array([servo.goal for servo in self.bus.servos])
        drives = self._arm.drives
        drives.command((goals - self._zeros) * self._steps, self._arm.time_s, duration_s)
        self._arm.advance(duration_s)
        state = drives.state()
        counts = self._zeros + state.position / self._steps
        speeds = state.velocity / self._steps
        currents = np.sign(self._steps) * state.effort * self._radius_m / TORQUE_PER_CURRENT_N_M_A
        with self.bus.lock:
            for servo, values in zip(self.bus.servos, zip(counts, speeds, currents)):
                servo.turned(*map(float, values))

    def close(self) -> None:
        """Switch the servos off; may be called twice."""
        self._line.close()

    def inject(self, fault: str) -> str:
        """Inject or repair a fault, as `dynamixel unplug`; ValueError lists the known ones."""
        known = {
            'dynamixel unplug': InjectedFault((), self._line.unplug),
            'dynamixel plug': InjectedFault((), self._line.plug),
            'dynamixel delay': InjectedFault((('MS', milliseconds),), self._line.delay),
            **self.bus.faults(),
            'dynamixel mend': InjectedFault((), self._mend),
        }
        done = inject(known, fault)
        self._faults.append(done)
        return done

    def report(self) -> dict[str, str]:
        """Return the true state: set points, torques, packets on the bus and faults."""
        with self.bus.lock:
            torque = ''.join(str(int(servo.torque)) for servo in self.bus.servos)
            goals = ' '.join(f'{servo.goal:.0f}' for servo in self.bus.servos)
        return {
            'servo_goals_counts': goals,
            'servo_torque': torque,
            'bus_packets': str(self.bus.packets),
            'faults': ', '.join(self._faults[-5:]) or 'none',
        }

    def _mend(self) -> None:
        self._line.delay(0.0)
        self.bus.mend()

    # -- called by the line's thread

    def _answer(self, data: bytes) -> bytes:
        return self.bus.take(data, self._clock.now_s())

    def _idle(self) -> None:
        self.bus.watch(self._clock.now_s())


def build(
    plant: ArmPlant,
    config: PlantConfig,
    drives: WoundCables,
    seed: int,
    dynamixel: DynamixelConfig,
) -> EmulatedServoArm:
    """Return the emulated servos on the simulated arm."""
    check_winding(config.stepper.step_m, {one.name: one.step_m for one in dynamixel.servos})
    return EmulatedServoArm(plant, config.stepper.step_m, dynamixel, seed)
