"""Where the files of a run are that other processes look for: by user, ROS domain and rig."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def ros_domain() -> int:
    """Return the ROS domain of this process."""
    text = os.environ.get('ROS_DOMAIN_ID', '').strip()
    return int(text) if text.isdigit() else 0


def run_path(rig: str, suffix: str) -> Path:
    """Return a path of one user's runs of a rig in this ROS domain."""
    name = f'softarm-{os.getuid()}-domain{ros_domain()}-{rig}.{suffix}'
    return Path(tempfile.gettempdir()) / name


def devices_folder(rig: str) -> Path:
    """Return where the emulated devices of a rig put their addresses."""
    return run_path(rig, 'devices')
