"""Control table of Dynamixel X-series servos (MX with protocol 2.0 and X430, X540 as well)."""

from __future__ import annotations

from typing import NamedTuple


class Item(NamedTuple):
    """Entry of the table: address and size in bytes; `signed` for two's complement."""

    address: int
    size: int
    signed: bool = False

    def of(self, data: bytes, start: int = 0) -> int:
        """Return the value of the item in data that begin at address `start`."""
        at = self.address - start
        return int.from_bytes(data[at : at + self.size], 'little', signed=self.signed)

    def bytes_of(self, value: int) -> bytes:
        """Return a value as the bytes to write."""
        return value.to_bytes(self.size, 'little', signed=self.signed)


# EEPROM: kept without power; can be written only while the torque is off.
MODEL_NUMBER = Item(0, 2)
FIRMWARE = Item(6, 1)
ID = Item(7, 1)
DRIVE_MODE = Item(10, 1)
OPERATING_MODE = Item(11, 1)
CURRENT_LIMIT = Item(38, 2)
RAM_BEGINS = 64
# RAM: lost without power.
TORQUE_ENABLE = Item(64, 1)
STATUS_RETURN_LEVEL = Item(68, 1)
HARDWARE_ERROR = Item(70, 1)
BUS_WATCHDOG = Item(98, 1, signed=True)
GOAL_CURRENT = Item(102, 2, signed=True)
PROFILE_ACCELERATION = Item(108, 4)
PROFILE_VELOCITY = Item(112, 4)
GOAL_POSITION = Item(116, 4, signed=True)
PRESENT_CURRENT = Item(126, 2, signed=True)
PRESENT_VELOCITY = Item(128, 4, signed=True)
PRESENT_POSITION = Item(132, 4, signed=True)
VOLTAGE = Item(144, 2)
TEMPERATURE = Item(146, 1)
TABLE_SIZE = 147

COUNTS_PER_TURN = 4096
VELOCITY_RAD_S = 0.229 * 2.0 * 3.141592653589793 / 60.0  # one unit is 0.229 rev/min
ACCELERATION_RAD_S2 = 214.577 * 2.0 * 3.141592653589793 / 3600.0  # 214.577 rev/min^2
WATCHDOG_S = 0.02
WATCHDOG_TRIPPED = -1
VOLT = 0.1
CURRENT_BASED_POSITION = 5  # operating mode: position, with a limit of the current
MAX_PROFILE = 32_767
MAX_CURRENT = 2_047  # counts, of the largest servos

ALERT = 0x80  # in the error byte of an answer: HARDWARE_ERROR is not 0
REFUSALS = {
    1: 'the instruction failed',
    2: 'no such instruction',
    3: 'CRC error in the packet',
    4: 'value out of range',
    5: 'too few bytes of data',
    6: 'value beyond the limits of the servo',
    7: 'not allowed now, or read only',
}
HARDWARE_ERRORS = {
    0x01: 'input voltage out of range: check the power supply',
    0x04: 'overheated: let it cool down, and check what it pulls against',
    0x08: 'fault of the motor encoder',
    0x10: 'electrical shock, or too little power to run',
    0x20: 'overload: look for a jammed tendon, then reset',
}
MODELS = {
    1020: 'XM430-W350',
    1030: 'XM430-W210',
    1050: 'XH430-V210',
    1060: 'XL430-W250',
    1070: 'XC430-W150',
    1120: 'XM540-W270',
    1130: 'XM540-W150',
    1190: 'XL330-M077',
    1200: 'XL330-M288',
}


def hardware_error_text(bits: int) -> str:
    """Return the meaning of the bits of HARDWARE_ERROR."""
    named = [text for bit, text in HARDWARE_ERRORS.items() if bits & bit]
    return '; '.join(named) or 'unknown to this package'


def model_name(number: int) -> str:
    """Return the name of a model."""
    return MODELS.get(number, f'model {number}')
