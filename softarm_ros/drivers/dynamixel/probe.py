"""Query the identity and state of the servos of a Dynamixel bus; nothing moves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from softarm_ros.drivers.connections import OF_THIS_COMPUTER, Connections
from softarm_ros.drivers.counters import LinkCounter
from softarm_ros.drivers.dynamixel import control_table as table
from softarm_ros.drivers.dynamixel.bus import DynamixelBus, NoAnswerError, RefusedError
from softarm_ros.drivers.dynamixel.config import DynamixelConfig
from softarm_ros.drivers.problems import DriverError, import_library
from softarm_ros.drivers.serial_port import PortError


@dataclass(frozen=True)
class ServoReport:
    """
    Report on one servo.

    Attributes
    ----------
    name, id :
        As in the rig file.
    text :
        Model, firmware, position, supply, in one line; '' if it does not answer.
    trouble :
        Fault found; '' if there is none.

    """

    name: str
    id: int
    text: str
    trouble: str


def probe_servos(
    config: DynamixelConfig, connections: Connections = OF_THIS_COMPUTER
) -> Iterator[ServoReport]:
    """
    Ping every servo of a rig and read its table; yield a report on each.

    Raises
    ------
    DriverError
        If the port cannot be opened, is in use, or no servo answers.

    """
    import_library('serial', 'fastcrc')
    try:
        with contextlib.closing(connections.open_port(config.port, config.baud)) as port:
            bus = DynamixelBus(port, config.answer_timeout_s, LinkCounter(), connections.clock)
            found = bus.find()
            if not found:
                raise DriverError(
                    f'{config.port}: no servo answers at {config.baud} baud: check the power of '
                    'the bus, and at the baud rate of the servos'
                )
            for servo in config.servos:
                if servo.id in found:
                    yield _of(bus, config, servo.name, servo.id)
                else:
                    there = ' '.join(map(str, found))
                    yield ServoReport(
                        servo.name, servo.id, '', f'no servo with id {servo.id}; found: {there}'
                    )
    except PortError as error:
        raise DriverError(error.of(config.port)) from error


def _of(bus: DynamixelBus, config: DynamixelConfig, name: str, servo: int) -> ServoReport:
    try:
        known = bus.ping(servo)
        data = bus.read(servo, 0, table.TABLE_SIZE).data
    except (NoAnswerError, RefusedError) as error:
        return ServoReport(name, servo, '', str(error))
    model, firmware = known or (table.MODEL_NUMBER.of(data), table.FIRMWARE.of(data))
    angle_deg = 360.0 * table.PRESENT_POSITION.of(data) / table.COUNTS_PER_TURN
    text = (
        f'id {servo}: {table.model_name(model)}, firmware {firmware}; {angle_deg:.1f} deg, '
        f'{table.VOLT * table.VOLTAGE.of(data):.1f} V, {table.TEMPERATURE.of(data)} deg C, torque '
        f'{"on" if table.TORQUE_ENABLE.of(data) else "off"}'
    )
    bits = table.HARDWARE_ERROR.of(data)
    trouble = f'hardware 0x{bits:02X} {table.hardware_error_text(bits)}' if bits else ''
    return ServoReport(name, servo, text, trouble)
