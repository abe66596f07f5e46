"""
Find the addresses of a rig's devices: from the rig file, or from a folder of emulated devices.

Drivers also note in that folder that an emulated arm may have moved.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from softarm_ros.emulation.emulated_sensor import address_file
from softarm_ros.geometry.configs import ConfigBlock, first_mistake
from softarm_ros.rigs.devices import Devices
from softarm_ros.rigs.errors import RigError

BlockT = TypeVar('BlockT', bound=ConfigBlock)
LOCALHOST = '127.0.0.1'
SERIAL = ('dynamixel', 'steppers', 'valves')  # devices behind a serial port


class NoDevicesYetError(RuntimeError):
    """Emulated devices have not written their addresses into the folder yet."""


def addressed(devices: Devices, folder: str | Path | None) -> Devices:
    """
    Return `devices` with the addresses of the emulated ones in `folder`, or unchanged without one.

    Raises
    ------
    NoDevicesYetError
        If an address is missing; the message names the file.
    RigError
        If an address does not fit the fields of its device.

    """
    if not folder:
        return devices
    where = Path(folder)
    return devices.model_copy(
        update={
            name: _placed(f'device {name!r}', getattr(devices, name), _address(name, where))
            for name in devices.names
        }
    )


def addressed_sensor(name: str, config: BlockT, folder: str | Path | None) -> BlockT:
    """
    Return `config` with the address of the emulated sensor in `folder`, or unchanged without one.

    Raises
    ------
    NoDevicesYetError
        If the address is missing; the message names the file.
    RigError
        If the address does not fit the fields of the sensor.

    """
    if not folder:
        return config
    where = address_file(Path(folder), name)
    try:
        fields = json.loads(where.read_text(encoding='utf-8'))
    except OSError:
        raise NoDevicesYetError(f'no emulated sensor in {where} yet') from None
    return _placed(f'sensor {name!r}', config, fields)


def _placed(who: str, config: BlockT, address: dict[str, Any]) -> BlockT:
    """
    Return a device's fields with the address of the emulated one; RigError if they do not fit.

    With an unknown field, a driver of another package would reach the real device instead.
    """
    try:
        return type(config).model_validate({**dict(config), **address})
    except ValidationError as error:
        raise RigError(
            '', f'the address of the emulated {who} does not fit: {first_mistake(error)}'
        ) from None


def note_moved(name: str, folder: str | Path) -> None:
    """Record that the emulated arm of a device may have moved, until its emulator restarts."""
    with contextlib.suppress(FileNotFoundError):  # the emulator has ended, and its arm with it
        _moved_file(name, folder).touch()


def may_have_moved(name: str, folder: str | Path) -> bool:
    """Return whether a driver of this device has recorded that its emulated arm may have moved."""
    return _moved_file(name, folder).exists()


def forget_addresses(names: Iterable[str], folder: Path) -> None:
    """Delete the addresses of emulated devices and sensors, and the notes about their arm."""
    for name in names:
        port, moved = _port_file(name, folder), _moved_file(name, folder)
        for file in (folder / name, port, moved, address_file(folder, name)):
            file.unlink(missing_ok=True)


def _port_file(name: str, folder: Path) -> Path:
    return folder / f'{name}.port'


def _moved_file(name: str, folder: str | Path) -> Path:
    return Path(folder) / f'{name}.moved'


def _address(name: str, folder: Path) -> dict[str, Any]:
    if name in SERIAL:
        link = folder / name
        if not link.exists():
            raise NoDevicesYetError(f'no emulated device at {link} yet')
        return {'port': str(link)}
    path = _port_file(name, folder)
    try:
        port = int(path.read_text())
    except (OSError, ValueError):
        raise NoDevicesYetError(f'no emulated device in {path} yet') from None
    if name == 'daq':
        from softarm_ros.drivers.daq_config import DaqHost  # imported here: few arms have a DAQ

        return {'host': DaqHost(host=LOCALHOST, port=port)}
    return {'host': LOCALHOST, 'port': port}
