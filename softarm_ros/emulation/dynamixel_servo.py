"""A Dynamixel X servo as seen from its bus: control table, profile, watchdog, errors."""

from __future__ import annotations

import numpy as np

from softarm_ros.drivers.dynamixel import control_table as table
from softarm_ros.drivers.dynamixel.control_table import Item
from softarm_ros.plant.stepper_kernels import advance_motor

_RANGE, _ACCESS = 4, 7  # errors in a status packet
_MODEL, _FIRMWARE = 1130, 46
_READ_ONLY = range(table.PRESENT_CURRENT.address - 6, table.TABLE_SIZE)  # from the tick item on
_RATED_COUNTS_S = 66.0 / 60.0 * table.COUNTS_PER_TURN  # without load at 14.8 V
_RATED_COUNTS_S2 = 1e5
_OVERLOAD = 0x20
_BOOT_S = 0.3


class EmulatedServo:
    """
    One servo, without its load.

    `goal` is the current set point of the shaft: it follows the goal position with the profile's
    velocity and acceleration. `turned` returns the shaft's true position to the servo.

    Parameters
    ----------
    number
        Id of the servo.
    position
        Encoder count at the start.

    """

    def __init__(self, number: int, position: int) -> None:
        self.id = number
        self.answers = True
        self._position = position
        self._booted_s = -np.inf
        self._broken = 0  # error bits that survive a reboot
        self._table = bytearray(table.TABLE_SIZE)
        self._set(table.MODEL_NUMBER, _MODEL)
        self._set(table.FIRMWARE, _FIRMWARE)
        self._set(table.OPERATING_MODE, 3)
        self._set(table.CURRENT_LIMIT, 2047)
        self._goal = float(position)
        self._speed = 0.0
        self._heard_s = np.inf
        self._lose_volatile()

    @property
    def goal(self) -> float:
        """Current set point of the shaft [counts]; with torque off, its position at switch-off."""
        return self._goal

    @property
    def torque(self) -> bool:
        """Whether torque is enabled, so that the servo holds its position."""
        return bool(self.get(table.TORQUE_ENABLE))

    @property
    def error(self) -> int:
        """Alert bit of its answers."""
        return table.ALERT if self.get(table.HARDWARE_ERROR) else 0

    def get(self, item: Item) -> int:
        """Return the value of an item of the control table."""
        return item.of(bytes(self._table))

    def present(self, now_s: float) -> bool:
        """Return whether the servo takes packets: it answers and has booted."""
        return self.answers and now_s >= self._booted_s

    def hear(self, now_s: float) -> None:
        """Note that an instruction arrived on the bus, for any servo."""
        self._heard_s = now_s

    # -- instructions

    def read(self, address: int, length: int) -> tuple[int, bytes]:
        """Return the error and the data at an address."""
        if address + length > table.TABLE_SIZE:
            return _RANGE, b''
        return 0, bytes(self._table[address : address + length])

    def write(self, address: int, data: bytes) -> int:
        """Write data to the table; return the error, 0 for none."""
        end = address + len(data)
        if not data or end > table.TABLE_SIZE:
            return _RANGE
        read_only = address in _READ_ONLY or address == table.HARDWARE_ERROR.address
        if read_only or (address < table.RAM_BEGINS and self.torque):
            return _ACCESS
        goals = range(table.GOAL_CURRENT.address, table.GOAL_POSITION.address + 4)
        if self.get(table.BUS_WATCHDOG) == table.WATCHDOG_TRIPPED and address in goals:
            return _RANGE
        if address == table.TORQUE_ENABLE.address:
            if data[0] and self.get(table.HARDWARE_ERROR):
                return _ACCESS
            if bool(data[0]) != self.torque:
                self._stay()
        current = int.from_bytes(data, 'little', signed=True)
        if address == table.GOAL_CURRENT.address and abs(current) > self.get(table.CURRENT_LIMIT):
            return _RANGE
        self._table[address:end] = data
        return 0

    def reboot(self, now_s: float) -> None:
        """Restart: volatile values are lost, and torque is off."""
        self._lose_volatile()
        self._booted_s = now_s + _BOOT_S
        if self._broken:
            self.fail(self._broken)

    # -- what happens to it

    def fail(self, bits: int = _OVERLOAD, persists: bool = False) -> None:
        """Report a hardware error and switch off; with `persists`, also after a reboot."""
        self._broken = bits if persists else self._broken
        self._set(table.HARDWARE_ERROR, self.get(table.HARDWARE_ERROR) | bits)
        self._set(table.TORQUE_ENABLE, 0)
        self._stay()

    def heal(self) -> None:
        """Remove a persistent error; it disappears with the next reboot."""
        self._broken = 0

    def watch(self, now_s: float) -> None:
        """Stop if no instruction arrived within the watchdog's time."""
        units = self.get(table.BUS_WATCHDOG)
        if units > 0 and now_s - self._heard_s > units * table.WATCHDOG_S:
            self._set(table.BUS_WATCHDOG, table.WATCHDOG_TRIPPED)
            self._stay()

    def advance(self, duration_s: float) -> None:
        """Advance the set point of the shaft along its profile by a duration [s]."""
        if not self.torque:
            return  # the gears hold the shaft where torque was switched off
        velocity = self.get(table.PROFILE_VELOCITY) * table.VELOCITY_RAD_S
        acceleration = self.get(table.PROFILE_ACCELERATION) * table.ACCELERATION_RAD_S2
        counts = table.COUNTS_PER_TURN / (2.0 * np.pi)
        self._goal, self._speed = advance_motor(
            self._goal,
            self._speed,
            float(self.get(table.GOAL_POSITION)),
            velocity * counts or _RATED_COUNTS_S,
            acceleration * counts or _RATED_COUNTS_S2,
            duration_s,
        )

    def turned(self, position: float, velocity: float, current: float) -> None:
        """Take the shaft's position [counts], its speed [counts/s] and the motor current [A]."""
        self._position = round(position)
        rad_s = velocity * 2.0 * np.pi / table.COUNTS_PER_TURN
        limit = abs(self.get(table.GOAL_CURRENT)) or self.get(table.CURRENT_LIMIT)
        units = min(max(round(current / 2.69e-3), -limit), limit) if self.torque else 0
        self._set(table.PRESENT_POSITION, self._position)
        self._set(table.PRESENT_VELOCITY, round(rad_s / table.VELOCITY_RAD_S))
        self._set(table.PRESENT_CURRENT, units)

    @staticmethod
    def load() -> None:
        """Load the compiled code of profiles now, rather than in motion."""
        advance_motor(0.0, 0.0, 1.0, 1.0, 1.0, 1.0)

    def _stay(self) -> None:
        """Set the goal to the present position."""
        self._goal, self._speed = float(self._position), 0.0
        self._set(table.GOAL_POSITION, self._position)

    def _lose_volatile(self) -> None:
        self._table[table.RAM_BEGINS :] = bytes(table.TABLE_SIZE - table.RAM_BEGINS)
        self._set(table.STATUS_RETURN_LEVEL, 2)
        self._set(table.GOAL_CURRENT, self.get(table.CURRENT_LIMIT))
        self._set(table.PRESENT_POSITION, self._position)
        self._set(table.VOLTAGE, 120)
        self._set(table.TEMPERATURE, 34)
        self._stay()

    def _set(self, item: Item, value: int) -> None:
        self._table[item.address : item.address + item.size] = item.bytes_of(value)
