"""Cameras that this computer has, by what the kernel says of them; none is opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_CLASS = Path('/sys/class/video4linux')


@dataclass(frozen=True)
class VideoDevice:
    """A V4L2 device: what to write into a rig file, and what it calls itself."""

    device: str
    name: str


def list_video_devices(folder: Path = _CLASS) -> list[VideoDevice]:
    """Return the devices that deliver images, by number; one camera may have several."""
    found = []
    for entry in folder.glob('video*'):
        try:
            # The further nodes of a camera carry its metadata, no images.
            if (entry / 'index').read_text().strip() != '0':
                continue
            name = (entry / 'name').read_text().strip()
        except OSError:
            continue
        found.append(VideoDevice(f'/dev/{entry.name}', name))
    return sorted(found, key=lambda each: int(each.device.removeprefix('/dev/video') or 0))
