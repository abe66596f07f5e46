"""`softarm ports`: list connected devices, and check whether they fit the rig file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.device_checks import board_text, board_trouble, check_devices
from softarm_ros.cli.sensor_checks import check_sensor
from softarm_ros.drivers.board_probe import probe_board
from softarm_ros.drivers.connections import OF_THIS_COMPUTER, Connections
from softarm_ros.drivers.measured import Measured, measured_by
from softarm_ros.drivers.port_list import SerialPort, list_serial_ports
from softarm_ros.drivers.problems import DriverError
from softarm_ros.perception.config import PoseSensorConfig
from softarm_ros.perception.stereo.video_devices import list_video_devices
from softarm_ros.rigs.devices import Devices
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.addresses import addressed, addressed_sensor

Print = Callable[[str], None]


def show_ports(test: bool | None, out: Print) -> bool:
    """
    Print the serial ports; return whether all boards that were tested are fine.

    `test`: True tests every port, None only those that look like boards of this package, False
    none. A test resets an Arduino Mega, and sends bytes that other devices may not understand.
    """
    ports = list_serial_ports()
    if not ports:
        out('no serial port')
        return True
    well = True
    for port in ports:
        out(_line(port))
        for link in port.links:
            out(f'    {link}')
        if port.trouble:
            well &= not port.likely
            out(f'    {"FAILED" if port.likely else "note  "}  {port.trouble}')
        elif port.likely if test is None else test:
            well &= _ask(port, out)
        elif test is None:
            out('    not tested: does not look like a board of softarm (--test tests all)')
    return well


def _line(port: SerialPort) -> str:
    words = [port.device, port.usb_id]
    if port.description not in ('', Path(port.device).name):
        words.append(port.description)
    return '  '.join(word for word in words if word)


def _ask(port: SerialPort, out: Print) -> bool:
    try:
        report = probe_board(port.device)
    except DriverError as error:
        what = str(error).removeprefix(f'{port.device}: ')
        out(f'    {"FAILED" if port.likely else "note  "}  {what}')
        return not port.likely
    trouble = board_trouble(report)
    out(f'    {"FAILED" if trouble else "OK    "}  {board_text(report)}')
    if trouble:
        out(f'            {trouble}')
    return not trouble


def show_cameras(out: Print) -> None:
    """Print the cameras of this computer."""
    for camera in list_video_devices():
        out(f'{camera.device}  {camera.name}')


def show_rig(
    rig: Rig,
    folder: Path | None,
    test: bool | None,
    out: Print,
    connections: Connections = OF_THIS_COMPUTER,
    image: Path | None = None,
) -> bool:
    """
    Print the findings at the devices of a rig; return whether all are fine.

    `folder` holds the addresses of emulated devices; None uses the rig's own. If `test` is False,
    addresses are printed without any test. The cameras' view is written to `image`.

    Raises
    ------
    RigError
        If the rig declares no devices.
    NoDevicesYetError
        If `folder` contains no addresses.
    UsageError
        If `image` is given and no sensor is tested.

    """
    if image is not None and (test is False or not rig.sensors.devices()):
        why = '--no-test tests no camera' if test is False else f'{rig.name} has no camera'
        raise UsageError(f'--image {image}: {why}')
    devices = addressed(rig.required_devices('hardware'), folder)
    sensors = rig.sensors.devices()
    if test is False:
        wide = max(len(name) for name in (*devices.names, *sensors))
        for name in devices.names:
            out(f'{name:{wide}}  {_address(getattr(devices, name))}')
        for name, config in sensors.items():
            out(f'{name:{wide}}  {_address(addressed_sensor(name, config, folder))}')
        return True
    findings = list(check_devices(rig, devices, connections))
    for name in sensors:
        findings += check_sensor(rig, name, folder, image)
    width = max(len(finding.part) for finding in findings)
    for finding in findings:
        verdict = 'OK    ' if finding.ok else 'FAILED'
        out(f'{verdict}  {finding.device:9} {finding.part:{width}}  {finding.text}')
    for measured in _measured(devices):
        out(
            f'        {measured.device:9} measures {measured.what}: {measured.topic}, '
            f'{measured.rate_hz:g} Hz'
        )
    for name, config in sensors.items():
        out(f'        {name:9} measures poses: tip/pose, {config.rate_hz:g} Hz')
    failed = sum(not finding.ok for finding in findings)
    if failed:
        out(f'{rig.name}: {failed} of {len(findings)} checks failed')
    else:
        out(f'{rig.name}: all {len(findings)} answer; nothing was moved')
    return not failed


def _measured(devices: Devices) -> Iterator[Measured]:
    for name in devices.names:
        yield from measured_by(name, getattr(devices, name), drives=name == devices.DRIVING)


def _address(config: object) -> str:
    if isinstance(config, PoseSensorConfig):
        return config.address
    port, host = getattr(config, 'port', None), getattr(config, 'host', None)
    if isinstance(port, str):
        return port
    if host is None:
        return 'this computer'
    return f'{host}:{port}' if isinstance(host, str) else f'{host.host}:{host.port}'
