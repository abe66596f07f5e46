"""List the serial ports of this computer, and whether this user may open them."""

from __future__ import annotations

import getpass
import os
from dataclasses import dataclass
from pathlib import Path

from softarm_ros.drivers.problems import import_library

# USB ids of Arduino's makers, old and new. Other USB devices are probed on request only.
_MEGA = {(0x2341, 0x0010), (0x2341, 0x0042), (0x2341, 0x0242), (0x2A03, 0x0010), (0x2A03, 0x0042)}
_LINK_FOLDERS = (Path('/dev'), Path('/dev/serial/by-id'))
OURS = 'softarm'  # prefix of the links of udev/70-softarm.rules


@dataclass(frozen=True)
class SerialPort:
    """
    One port.

    Attributes
    ----------
    device :
        Path, such as /dev/ttyACM0.
    links :
        Persistent names; the first is the best one for a rig file.
    usb_id :
        vendor:product in hexadecimal; '' if there is none.
    description :
        The device's own description.
    trouble :
        Why this user cannot open the port; '' if it is accessible.
    likely :
        Whether the port probably belongs to one of our boards.

    """

    device: str
    links: tuple[str, ...]
    usb_id: str
    description: str
    trouble: str
    likely: bool


def list_serial_ports() -> list[SerialPort]:
    """Return the ports, sorted by name; raise DriverError if pyserial is not installed."""
    import_library('serial.tools.list_ports')
    from serial.tools.list_ports import comports

    links = _links()
    ports = []
    for info in sorted(comports(), key=lambda info: str(info.device)):
        device = str(info.device)
        known = links.get(str(Path(device).resolve()), ())
        usb = (info.vid, info.pid)
        ports.append(
            SerialPort(
                device=device,
                links=known,
                usb_id=f'{info.vid:04x}:{info.pid:04x}' if info.vid is not None else '',
                description=info.description if info.description != 'n/a' else '',
                trouble=access_trouble(device),
                likely=usb in _MEGA or any(Path(k).name.startswith(OURS) for k in known),
            )
        )
    return ports


def access_trouble(device: str) -> str:
    """Return why this user cannot open a device, with the remedy; '' if it is accessible."""
    path = Path(device)
    if not path.exists():
        return 'is not there'
    if os.access(path, os.R_OK | os.W_OK):
        return ''
    try:
        import grp

        group = grp.getgrgid(path.stat().st_gid).gr_name
    except (ImportError, KeyError, OSError):
        return 'this user may not open it'
    user = getpass.getuser()
    return f'{user} may not open it: sudo usermod -aG {group} {user}, then log in again'


def _links() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for folder in _LINK_FOLDERS:
        if not folder.is_dir():
            continue
        for link in sorted(folder.iterdir()):
            if link.is_symlink() and (folder != _LINK_FOLDERS[0] or link.name.startswith(OURS)):
                target = str(link.resolve())
                found[target] = (*found.get(target, ()), str(link))
    return found
