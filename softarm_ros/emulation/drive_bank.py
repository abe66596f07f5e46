"""The servo drives of a rig, the load that they turn, and their registers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.modbus_registers import Register
from softarm_ros.drivers.servo_config import ServoAxis, ServoConfig
from softarm_ros.emulation.cia402_drive import EXCESS_SPEED_FAULT, EmulatedDrive
from softarm_ros.geometry.arrays import Array


class DriveLoad(Protocol):
    """The load of the motors; arrays (n,) in the order and sense of the rig's axes."""

    def step(self, torque_N_m: Array, dt_s: float) -> tuple[Array, Array]:
        """Advance by dt with these torques; return positions [rad] and speeds [rad/s]."""


class Flywheels:
    """Independent inertias with viscous friction, integrated exactly over each step."""

    def __init__(self, n: int, inertia_kg_m2: float = 2e-3, damping_N_m_s: float = 0.02) -> None:
        self._inertia, self._damping = inertia_kg_m2, damping_N_m_s
        self._position, self._speed = np.zeros(n), np.zeros(n)

    def step(self, torque_N_m: Array, dt_s: float) -> tuple[Array, Array]:
        """Advance; see `DriveLoad`."""
        rate = self._damping / self._inertia
        final = torque_N_m / self._damping
        decay = np.exp(-rate * dt_s)
        lag = self._speed - final
        self._position = self._position + final * dt_s + lag * (1.0 - decay) / rate
        self._speed = final + lag * decay
        return self._position.copy(), self._speed.copy()


class DriveBank:
    """
    All drives of an arm, without a network; thread-safe.

    Parameters
    ----------
    config
        Axes and registers.
    load
        Load of the motors; flywheels by default.
    watchdog_s, brake_close_s
        Times of each drive (`EmulatedDrive`).
    clock
        Clock of the times in `torque_writes`.

    """

    def __init__(
        self,
        config: ServoConfig,
        load: DriveLoad | None = None,
        *,
        watchdog_s: float = 0.1,
        brake_close_s: float = 0.0,
        clock: Clock = MONOTONIC,
    ) -> None:
        self.config = config
        self._load: DriveLoad = load if load is not None else Flywheels(len(config.axes))
        self._clock = clock
        self._drives = [
            EmulatedDrive(axis.torque_limit_N_m, watchdog_s, brake_close_s) for axis in config.axes
        ]
        self._signs = np.array([-1.0 if axis.reversed else 1.0 for axis in config.axes])
        self._lock = threading.Lock()
        self._torque_writes: list[tuple[float, int, float]] = []

    @property
    def torque(self) -> Array:
        """Torques at the shafts (n,) [N m], in the sense of the rig's axes."""
        with self._lock:
            return self._signs * [drive.torque for drive in self._drives] + 0.0

    @property
    def brakes_lifted(self) -> NDArray[np.bool_]:
        """Whether each holding brake (n,) has current."""
        with self._lock:
            return np.array([drive.brake_lifted for drive in self._drives])

    @property
    def position(self) -> Array:
        """Positions (n,) [rad], in the sense of the rig's axes."""
        with self._lock:
            return self._signs * [drive.position for drive in self._drives]

    @property
    def speed(self) -> Array:
        """Speeds (n,) [rad/s], in the sense of the rig's axes."""
        with self._lock:
            return self._signs * [drive.speed for drive in self._drives]

    @property
    def states(self) -> tuple[str, ...]:
        """State of each drive."""
        with self._lock:
            return tuple(drive.state for drive in self._drives)

    def fail(self, axis: int, code: int, persists: bool = False) -> None:
        """Put a drive into a fault with this code; see `EmulatedDrive.fail`."""
        with self._lock:
            self._drives[axis].fail(code, persists)

    def disable(self, axis: int) -> None:
        """Disable a drive without a fault, as safe torque off does."""
        with self._lock:
            self._drives[axis].write_control(0)

    def heal(self, axis: int) -> None:
        """Remove the cause of a persistent fault."""
        with self._lock:
            self._drives[axis].heal()

    def torque_writes(self) -> list[tuple[float, int, float]]:
        """Return and clear the torques written: monotonic time [s], axis, N m (rig's sense)."""
        with self._lock:
            written, self._torque_writes = self._torque_writes, []
        return written

    def advance(self, dt_s: float) -> None:
        """Advance load and drives by a time [s]."""
        with self._lock:
            torque = self._signs * [drive.torque for drive in self._drives]
        position, speed = self._load.step(torque, dt_s)
        with self._lock:
            for i, drive in enumerate(self._drives):
                drive.position = float(self._signs[i] * position[i])
                drive.speed = float(self._signs[i] * speed[i])
                drive.advance(dt_s)
                # A drive trips a little later than the master should have stopped it.
                limit = 1.2 * self.config.axes[i].speed_limit_rad_s
                if drive.state == 'enabled' and abs(drive.speed) > limit:
                    drive.fail(EXCESS_SPEED_FAULT)

    # -- registers

    def written(self, unit: int, first: int, memory: list[int], addresses: range) -> None:
        """Apply written holding registers of a unit; its `memory` begins with register `first`."""
        registers = self.config.registers
        now = self._clock.now_s()
        with self._lock:
            for i, axis in enumerate(self.config.axes):
                if axis.unit != unit:
                    continue
                torque, control = registers.torque_command, registers.control_word
                if axis.base + torque.address in addresses:
                    value = torque.decode(_words(axis, torque, first, memory))
                    self._drives[i].write_torque(value)
                    self._torque_writes.append((now, i, float(self._signs[i] * value)))
                    del self._torque_writes[:-100_000]
                if axis.base + control.address in addresses:
                    word = int(control.decode_raw(_words(axis, control, first, memory)))
                    self._drives[i].write_control(word & 0xFFFF)

    def show(self, unit: int, table: str, first: int, memory: list[int]) -> None:
        """Write the state of a unit's drives into its `memory`, which begins with `first`."""
        registers = self.config.registers
        with self._lock:
            for axis, drive in zip(self.config.axes, self._drives):
                if axis.unit != unit:
                    continue
                shown: Sequence[tuple[Register, list[int]]] = (
                    (registers.torque, registers.torque.encode(drive.torque)),
                    (registers.speed, registers.speed.encode(drive.speed)),
                    (registers.position, registers.position.encode(drive.position)),
                    (registers.status_word, registers.status_word.encode_raw(drive.status_word)),
                    (registers.fault_code, registers.fault_code.encode_raw(drive.fault_code)),
                )
                for register, words in shown:
                    if register.table == table:
                        at = axis.base + register.address - first
                        memory[at : at + register.words] = words


def _words(axis: ServoAxis, register: Register, first: int, memory: list[int]) -> list[int]:
    at = axis.base + register.address - first
    return memory[at : at + register.words]
