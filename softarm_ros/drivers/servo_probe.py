"""Read the state of servo drives; write nothing."""

from __future__ import annotations

from dataclasses import dataclass

from softarm_ros.drivers.cia402 import DriveState
from softarm_ros.drivers.connections import OF_THIS_COMPUTER, Connections
from softarm_ros.drivers.counters import LinkCounter
from softarm_ros.drivers.modbus_link import (
    LinkDownError,
    ModbusLink,
    NoAnswerError,
    RefusedError,
)
from softarm_ros.drivers.problems import DriverError, import_library
from softarm_ros.drivers.servo_config import ServoConfig
from softarm_ros.drivers.servo_exchange import AxisReading, UnitExchange

_RESPONSE_S = 0.5  # longer than the driver's, to tell a slow device from a silent one


@dataclass(frozen=True)
class AxisReport:
    """
    Report on one axis.

    Attributes
    ----------
    name :
        Name of the axis in the rig file.
    reading, state :
        Its reading, and the state from its status word; None if it does not answer.
    trouble :
        Fault found; '' if there is none.

    """

    name: str
    reading: AxisReading | None
    state: DriveState | None
    trouble: str


def probe_drives(
    config: ServoConfig, connections: Connections = OF_THIS_COMPUTER
) -> list[AxisReport]:
    """
    Read every axis once, with its status word.

    Raises
    ------
    DriverError
        If there is no connection.

    """
    import_library('pymodbus.client')
    link = ModbusLink(
        config.host,
        config.port,
        max(_RESPONSE_S, config.response_timeout_s),
        LinkCounter(),
        connections.clock,
        connections.make_client,
    )
    try:
        link.connect()
    except LinkDownError as error:
        raise DriverError(str(error)) from error
    found: dict[int, AxisReport] = {}
    try:
        for unit in sorted({axis.unit for axis in config.axes}):
            exchange = UnitExchange(config, unit)
            try:
                if not link.connected:
                    link.connect()
                began = connections.clock.now_s()
                readings = exchange.read(link)
                took_s = (connections.clock.now_s() - began) / exchange.reads
            except (LinkDownError, NoAnswerError, RefusedError) as error:
                code = f'modbus 0x{error.code:02x} ' if isinstance(error, RefusedError) else ''
                for i in exchange.axes:
                    found[i] = AxisReport(config.axes[i].name, None, None, f'{code}{error}')
                continue
            for i, reading in readings.items():
                found[i] = _judged(config, i, reading, took_s)
    finally:
        link.close()
    return [found[i] for i in range(len(config.axes))]


def _judged(config: ServoConfig, index: int, reading: AxisReading, took_s: float) -> AxisReport:
    state = config.status_words.state(reading.status_word)
    trouble = ''
    if state in (DriveState.FAULT, DriveState.FAULT_REACTION):
        code = reading.fault_code
        trouble = f'{state.value} 0x{code:04X} {config.fault_name(code)}'
    elif state is DriveState.UNKNOWN:
        trouble = f'status word 0x{reading.status_word:04X} is no state: wrong register or mask?'
    elif took_s > config.response_timeout_s:
        trouble = (
            f'answers within {1e3 * took_s:.0f} ms; the driver waits '
            f'{1e3 * config.response_timeout_s:g} ms (response_timeout_s)'
        )
    return AxisReport(config.axes[index].name, reading, state, trouble)
