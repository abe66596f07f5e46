"""Tests of a rig's devices without motion: reports and faults of each device."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from softarm_ros.cli.edge_units import edge_unit
from softarm_ros.drivers.board_probe import PINGS, BoardReport, probe_board
from softarm_ros.drivers.connections import OF_THIS_COMPUTER, Connections
from softarm_ros.drivers.daq_config import DaqConfig
from softarm_ros.drivers.daq_probe import ChannelReport, probe_daq
from softarm_ros.drivers.daq_session import DaqFaultError
from softarm_ros.drivers.dynamixel.config import DynamixelConfig
from softarm_ros.drivers.dynamixel.probe import probe_servos
from softarm_ros.drivers.messages import Cause, Kind, StepperState
from softarm_ros.drivers.port_list import access_trouble
from softarm_ros.drivers.problems import DriverError
from softarm_ros.drivers.servo_config import ServoConfig
from softarm_ros.drivers.servo_probe import AxisReport, probe_drives
from softarm_ros.rigs.devices import Devices
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.arm_assembly import build_driver
from softarm_ros.runtime.part_failure import FAILURES, failure_text, refuses_or_fails

PATIENCE_S = 3.0  # time for a driver to find its device
POLL_S = 0.01


@dataclass(frozen=True)
class Finding:
    """
    Result of one check.

    Attributes
    ----------
    ok :
        Whether the check passed.
    device, part :
        Name of the device in the rig file, and of its part; '' for the device as a whole.
    text :
        Report of the device, or description of the fault.

    """

    ok: bool
    device: str
    part: str
    text: str


def check_devices(
    rig: Rig, devices: Devices, connections: Connections = OF_THIS_COMPUTER
) -> Iterator[Finding]:
    """
    Yield the findings of each device of a rig; takes up to a few seconds per device.

    `devices` are those of the rig, with their present addresses. A drive of another package is
    checked by its own driver, which also connects the further devices of that package.
    """
    checks: dict[str, Callable[[Any, Connections], Iterator[Finding]]] = {
        'dynamixel': _dynamixel,
        'steppers': partial(_board, 'steppers', Kind.STEPPERS),
        'valves': partial(_board, 'valves', Kind.VALVES),
        'servo': _servo,
        'daq': _daq,
    }
    for name in devices.names:
        try:
            if name in checks:
                yield from checks[name](getattr(devices, name), connections)
            elif name == devices.DRIVING:
                yield _driven(rig, devices)
        except DriverError as error:
            yield Finding(False, name, '', str(error))


def of_failure(part: str, error: BaseException) -> Finding:
    """Return the finding that a part refuses or fails; raise the error if it is a bug of ours."""
    if not refuses_or_fails(error):
        raise error
    return Finding(False, part, '', failure_text(error))


def _driven(rig: Rig, devices: Devices) -> Finding:
    """Return whether a measurement comes from a driver, which moves nothing before a command."""
    name = devices.DRIVING
    try:
        driver = build_driver(rig, devices)
        try:
            driver.start()
            end = time.monotonic() + PATIENCE_S
            while (reading := driver.reading()) is None and time.monotonic() < end:
                time.sleep(POLL_S)
            problems, not_ready = driver.problems(), driver.not_ready()
        finally:
            driver.close()
    except DriverError:
        raise
    except FAILURES as error:
        return of_failure(name, error)
    if problems:
        return Finding(False, name, '', '; '.join(map(str, problems)))
    state = f': {not_ready}' if not_ready else ''
    if reading is None:
        return Finding(False, name, '', f'no measurement within {PATIENCE_S:g} s{state}')
    return Finding(True, name, '', f'measures{state}')


def board_text(report: BoardReport) -> str:
    """Return a board's report in one line."""
    who, state = report.identity, report.state
    words = [
        f'{who.kind.name.lower()}, firmware {who.firmware[0]}.{who.firmware[1]}',
        f'boot id {who.boot_id:08x} (started by {who.reset_cause.name.lower().replace("_", " ")})',
        state.state.name
        + (f' ({state.cause.name.lower()})' if state.cause is not Cause.NONE else ''),
    ]
    if isinstance(state, StepperState):
        zeroed = [str(m) for m in range(who.channels) if state.zeroed >> m & 1]
        words.append(f'zeroed: {" ".join(zeroed) or "none"}')
    else:
        words.append(f'{state.open.bit_count()} of {who.channels} outputs open')
    ping = report.ping
    words.append(
        f'ping {1e3 * ping.p50_s:.1f} / {1e3 * ping.p99_s:.1f} ms (p50 / p99)'
        if ping.count
        else 'no ping came back'
    )
    return '; '.join(words)


def board_trouble(report: BoardReport) -> str:
    """Return a description of faults of a board's serial line, '' if there are none."""
    lost = PINGS - report.ping.count
    if not lost and not report.damaged:
        return ''
    return f'bad line: {lost} of {PINGS} pings lost, {report.damaged} frames damaged'


def _dynamixel(config: DynamixelConfig, connections: Connections) -> Iterator[Finding]:
    denied = '' if '://' in config.port else access_trouble(config.port)
    if denied:
        yield Finding(False, 'dynamixel', config.port, denied)
        return
    for report in probe_servos(config, connections):
        text = '; '.join(filter(None, (report.trouble, report.text)))
        yield Finding(not report.trouble, 'dynamixel', report.name, text)


def _board(name: str, kind: Kind, config: Any, connections: Connections) -> Iterator[Finding]:
    where = config.port
    denied = '' if '://' in where else access_trouble(where)
    if denied:
        yield Finding(False, name, where, denied)
        return
    report = probe_board(where, [config.baud], connections)
    if report.identity.kind is not kind:
        found = report.identity.kind.name.lower()
        yield Finding(
            False,
            name,
            where,
            f'a board of {found} is there, expected {name}: correct port in the rig file, or '
            'flash the board',
        )
        return
    trouble = board_trouble(report)
    text = board_text(report)
    yield Finding(not trouble, name, where, f'{trouble}; {text}' if trouble else text)


def _servo(config: ServoConfig, connections: Connections) -> Iterator[Finding]:
    yield from map(_axis, probe_drives(config, connections))


def _axis(report: AxisReport) -> Finding:
    reading, state = report.reading, report.state
    if reading is None or state is None:
        return Finding(False, 'servo', report.name, report.trouble)
    said = (
        f'{state.value} (status 0x{reading.status_word:04X}); {reading.torque:.3f} N m, '
        f'{reading.speed:.3f} rad/s, {reading.position:.3f} rad'
    )
    text = f'{report.trouble}; {said}' if report.trouble else said
    return Finding(not report.trouble, 'servo', report.name, text)


def _daq(config: DaqConfig, connections: Connections) -> Iterator[Finding]:
    try:
        reports = probe_daq(config, connections)
    except DaqFaultError as error:
        place = 'this computer' if config.host is None else f'{config.host.host}'
        yield Finding(False, 'daq', place, f'{error.code} {error.text}'.strip())
        return
    yield from map(_channel, reports)


def _channel(report: ChannelReport) -> Finding:
    part = f'{report.name} ({report.channel})'
    if report.trouble:
        return Finding(False, 'daq', part, report.trouble)
    if math.isnan(report.volts):
        return Finding(True, 'daq', part, 'found; nothing written to it')
    unit, factor = edge_unit(report.unit)
    value = '' if report.unit == 'V' else f', {round(factor * report.value, 2) + 0.0:.2f} {unit}'
    return Finding(True, 'daq', part, f'{report.volts:.4f} V{value}')
