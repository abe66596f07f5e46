"""The servo drives of a rig, the load that they turn, and their registers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.modbus_registers import (
    LAST_ADDRESS,
    RegisterRow,
    Span,
    merge_spans,
)
from softarm_ros.drivers.servo_config import COMMANDS, ServoConfig
from softarm_ros.emulation.cia402_drive import EXCESS_SPEED_FAULT, EmulatedDrive
from softarm_ros.geometry.arrays import Array

# Registers of the state of a drive; of two with the same address, the later one is shown.
_SHOWN = ('torque', 'speed', 'position', 'status_word', 'fault_code')


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


class _Row(NamedTuple):
    """
    Registers of one unit in one table, drive by drive.

    They belong to the drives of these indices, and to the names of these indices.
    """

    drives: list[int]
    names: list[int]
    registers: RegisterRow
    spans: list[Span]


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
        self._signs = [-1.0 if axis.reversed else 1.0 for axis in config.axes]
        # A drive trips a little later than the master should have stopped it.
        self._trip_speeds = [1.2 * axis.speed_limit_rad_s for axis in config.axes]
        units = {axis.unit for axis in config.axes}
        self._shown = {
            (unit, table): self._row(unit, table, _SHOWN)
            for unit in units
            for table in ('holding', 'input')
        }
        self._commanded = {unit: self._row(unit, 'holding', COMMANDS) for unit in units}
        commands = [getattr(config.registers, name) for name in COMMANDS]
        self._command_at = [[axis.base + one.address for one in commands] for axis in config.axes]
        self._lock = threading.Lock()
        self._torque_writes: list[tuple[float, int, float]] = []

    @property
    def torque(self) -> Array:
        """Torques at the shafts (n,) [N m], in the sense of the rig's axes."""
        with self._lock:
            return self._in_rig([drive.torque for drive in self._drives]) + 0.0

    @property
    def brakes_lifted(self) -> NDArray[np.bool_]:
        """Whether each holding brake (n,) has current."""
        with self._lock:
            return np.array([drive.brake_lifted for drive in self._drives])

    @property
    def position(self) -> Array:
        """Positions (n,) [rad], in the sense of the rig's axes."""
        with self._lock:
            return self._in_rig([drive.position for drive in self._drives])

    @property
    def speed(self) -> Array:
        """Speeds (n,) [rad/s], in the sense of the rig's axes."""
        with self._lock:
            return self._in_rig([drive.speed for drive in self._drives])

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
            torque = self._in_rig([drive.torque for drive in self._drives])
        position, speed = self._load.step(torque, dt_s)
        with self._lock:
            for drive, sign, position_rad, speed_rad_s, trip_rad_s in zip(
                self._drives, self._signs, position.tolist(), speed.tolist(), self._trip_speeds
            ):
                drive.position, drive.speed = sign * position_rad, sign * speed_rad_s
                drive.advance(dt_s)
                if drive.state == 'enabled' and abs(speed_rad_s) > trip_rad_s:
                    drive.fail(EXCESS_SPEED_FAULT)

    def _in_rig(self, values: list[float]) -> Array:
        """Return values of the drives (n,) in the sense of the rig's axes."""
        return np.array([sign * value for sign, value in zip(self._signs, values)])

    # -- registers

    def written(self, unit: int, first: int, memory: list[int], addresses: range) -> None:
        """Apply written holding registers of a unit; its `memory` begins with register `first`."""
        row = self._commanded[unit]
        values = row.registers.decode(_words(row, first, memory))
        now = self._clock.now_s()
        with self._lock:
            for i, word, torque_N_m in zip(row.drives, values[::2], values[1::2]):
                control_at, torque_at = self._command_at[i]
                if torque_at in addresses:
                    self._drives[i].write_torque(torque_N_m)
                    self._torque_writes.append((now, i, self._signs[i] * torque_N_m))
                if control_at in addresses:
                    self._drives[i].write_control(int(word) & 0xFFFF)
            del self._torque_writes[:-100_000]

    def show(self, unit: int, table: str, first: int, memory: list[int]) -> None:
        """Write the state of a unit's drives into its `memory`, which begins with `first`."""
        row = self._shown[unit, table]
        values = []
        with self._lock:
            for i in row.drives:
                one = self._drives[i]
                state = one.torque, one.speed, one.position, one.status_word, one.fault_code
                values += [state[column] for column in row.names]
        words = row.registers.encode(values)
        at = 0
        for span in row.spans:
            memory[span.start - first : span.end - first] = words[at : at + span.count]
            at += span.count

    def _row(self, unit: int, table: str, names: Sequence[str]) -> _Row:
        """Return the registers of these names that a table of a unit has."""
        registers = [getattr(self.config.registers, name) for name in names]
        there = [column for column, one in enumerate(registers) if one.table == table]
        drives = [i for i, axis in enumerate(self.config.axes) if axis.unit == unit]
        places = [
            (registers[column], self.config.axes[i].base + registers[column].address)
            for i in drives
            for column in there
        ]
        spans = merge_spans(
            [Span(unit, one.table, start, one.words) for one, start in places], 0, LAST_ADDRESS
        )
        return _Row(drives, there, RegisterRow(places, spans), spans)


def _words(row: _Row, first: int, memory: list[int]) -> list[int]:
    """Return the words of a row in a unit's `memory`, which begins with register `first`."""
    return [word for span in row.spans for word in memory[span.start - first : span.end - first]]
