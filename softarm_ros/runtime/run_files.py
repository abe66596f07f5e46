"""Paths of the files that processes of a run share, by user, ROS domain and rig."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def ros_domain() -> int:
    """Return the ROS domain of this process."""
    text = os.environ.get('ROS_DOMAIN_ID', '').strip()
    return int(text) if text.isdigit() else 0


def run_path(rig: str, suffix: str) -> Path:
    """Return a path for the user's runs of a rig in this ROS domain."""
    name = f'softarm-{os.getuid()}-domain{ros_domain()}-{rig}.{suffix}'
    return Path(tempfile.gettempdir()) / name


def devices_folder(rig: str) -> Path:
    """Return the folder into which a rig's emulated devices write their addresses."""
    return run_path(rig, 'devices')
