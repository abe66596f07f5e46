"""List the cameras of this computer as known to the kernel, without opening them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_CLASS = Path('/sys/class/video4linux')


@dataclass(frozen=True)
class VideoDevice:
    """A V4L2 device: path for a rig file, and the device's own name."""

    device: str
    name: str


def list_video_devices(folder: Path = _CLASS) -> list[VideoDevice]:
    """Return the devices that deliver images, sorted by number."""
    found = []
    for entry in folder.glob('video*'):
        try:
            # Further nodes of a camera deliver its metadata, not images.
            if (entry / 'index').read_text().strip() != '0':
                continue
            name = (entry / 'name').read_text().strip()
        except OSError:
            continue
        found.append(VideoDevice(f'/dev/{entry.name}', name))
    return sorted(found, key=lambda each: int(each.device.removeprefix('/dev/video') or 0))
