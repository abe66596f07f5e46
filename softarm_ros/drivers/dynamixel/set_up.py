"""Find the servos of a Dynamixel bus and write their settings, without moving them."""

from __future__ import annotations

from collections.abc import Sequence

from softarm_ros.drivers.dynamixel import control_table as table
from softarm_ros.drivers.dynamixel.bus import DynamixelBus
from softarm_ros.drivers.dynamixel.config import DynamixelConfig

_REBOOTED_TRIES = 40  # number of pings, each with its time-out


class MissingError(RuntimeError):
    """A servo is not on the bus, or answers too late. `name` is the actuator's."""

    def __init__(self, name: str, servo: int, found: Sequence[int], timeout_s: float) -> None:
        there = ' '.join(map(str, found)) or 'none'
        super().__init__(
            f'{name}: id {servo} is on the bus, but has not answered within answer_timeout_s = '
            f'{timeout_s:g} s. Set the latency timer of the USB adapter to 1 ms, look at the '
            'termination, or raise answer_timeout_s'
            if servo in found
            else f'{name}: no servo with id {servo}; on the bus: {there}. Look at its plug, its '
            'power, its baud rate, or give it the id of the rig file'
        )
        self.name = name


def find_servos(bus: DynamixelBus, config: DynamixelConfig) -> None:
    """Raise MissingError for the first servo that does not answer."""
    for servo in config.servos:
        if bus.ping(servo.id) is None:
            raise MissingError(servo.name, servo.id, bus.find(), config.answer_timeout_s)


def set_up(
    bus: DynamixelBus, config: DynamixelConfig, profiles: Sequence[tuple[int, int]]
) -> bool:
    """
    Write mode, limits and watchdog to every servo; return whether all of them hold their cables.

    Settings in the EEPROM are written only if they differ; only then is the torque switched off.

    Raises
    ------
    MissingError, NoAnswerError, RefusedError
        If a servo is missing, falls silent, or refuses a value.

    """
    find_servos(bus, config)
    units = round(config.current_limit_A / config.current_unit_A)
    holding = True
    for servo, (acceleration, velocity) in zip(config.servos, profiles):
        _keep(bus, servo.id, table.DRIVE_MODE, 0)
        _keep(bus, servo.id, table.OPERATING_MODE, table.CURRENT_BASED_POSITION)
        for item, value in (
            (table.BUS_WATCHDOG, 0),  # clears an earlier watchdog stop
            (table.GOAL_CURRENT, units),
            (table.PROFILE_ACCELERATION, acceleration),
            (table.PROFILE_VELOCITY, velocity),
            (table.BUS_WATCHDOG, round(config.watchdog_s / table.WATCHDOG_S)),
        ):
            bus.write(servo.id, item, value)
        holding &= bool(_value(bus, servo.id, table.TORQUE_ENABLE))
    return holding


def reboot_failed(bus: DynamixelBus, config: DynamixelConfig) -> None:
    """Reboot servos that have switched off after an error; raise the same errors as `set_up`."""
    find_servos(bus, config)
    for servo in config.servos:
        if not _value(bus, servo.id, table.HARDWARE_ERROR):
            continue
        bus.reboot(servo.id)
        if not any(bus.ping(servo.id) for _ in range(_REBOOTED_TRIES)):
            raise MissingError(servo.name, servo.id, bus.find(), config.answer_timeout_s)


def _keep(bus: DynamixelBus, servo: int, item: table.Item, wanted: int) -> None:
    if _value(bus, servo, item) == wanted:
        return
    bus.write(servo, table.TORQUE_ENABLE, 0)
    bus.write(servo, item, wanted)


def _value(bus: DynamixelBus, servo: int, item: table.Item) -> int:
    return item.of(bus.read(servo, item.address, item.size).data, item.address)
