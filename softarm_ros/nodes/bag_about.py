"""Metadata of a bag: the rig file, the command that started the run, and versions."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

import softarm_ros
from softarm_ros.rigs.schema import Rig

RIG_FILE = 'rig_file'
PACKAGES = ('numpy', 'scipy', 'numba', 'rosbags', 'ros-rclpy', 'ros-kilted-rclpy')
_GIT_S = 5.0


def about_run(rig: Rig, run: Mapping[str, str]) -> dict[str, str]:
    """
    Return names and values for the metadata of a bag.

    `run` holds the values that only the starting process knows (backend, trajectory, seed, ...).
    Empty values are left out.
    """
    source = rig.source
    stated = {
        'rig': rig.name,
        'rig_path': str(source or ''),
        'settings': '; '.join(rig.settings),
        **run,
        'command_line': ' '.join(command_line()),
        'started': datetime.now(timezone.utc).isoformat(timespec='seconds'),
        'softarm_ros': softarm_ros.__version__,
        'git_revision': git_revision(Path(softarm_ros.__file__).parent),
        'rig_git_revision': git_revision(source.parent) if source is not None else '',
        'python': sys.version.split()[0],
        'platform': platform.platform(),
        'packages': ' '.join(f'{name} {found}' for name in PACKAGES if (found := _version(name))),
        RIG_FILE: rig.text,
    }
    return {name: value for name, value in stated.items() if value}


def command_line() -> list[str]:
    """Return the command line of this process; for a node of a run, that of its parent."""
    process = psutil.Process()
    try:
        if any(
            'softarm_ros.nodes' in word or word.endswith('_node') for word in process.cmdline()
        ):
            process = process.parent() or process
        return process.cmdline()
    except psutil.Error:
        return sys.argv


def git_revision(folder: Path) -> str:
    """Return the git revision of a folder, with `-dirty` if it has changes; '' without git."""
    # Without locks: git would write its index while the user works in the folder.
    command = ['git', '--no-optional-locks', '-C', str(folder)]
    command += ['describe', '--always', '--dirty', '--abbrev=40']
    try:
        answer = subprocess.run(
            [*command, '--exclude=*'], capture_output=True, text=True, timeout=_GIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ''
    return answer.stdout.strip() if answer.returncode == 0 else ''


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ''
