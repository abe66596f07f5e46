"""Time from a command to the first motion: cold and warm caches, quiet and busy machine."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from softarm_ros.cli.beginning import beginning
from softarm_ros.cli.soak import busy_loops
from softarm_ros.rigs.loader import list_rigs, load_rig

BUSY_LOOPS = 2
_STRETCH_M = 0.002  # length of the default path to drive; any short length will do
_LIMIT_S = 900.0
_RUNNING = '.supervisor]: running'  # in the launch output when motion begins


class StartError(RuntimeError):
    """A run ended or timed out before the arm moved; the message holds its last lines."""


@dataclass(frozen=True)
class StartTimes:
    """Times [s] from command to first motion: with an empty kernel cache, then a filled one."""

    rig: str
    way: str
    busy: int
    cold_s: float
    warm_s: float


def rows(names: Sequence[str] = (), busy: Sequence[int] = (0, BUSY_LOOPS)) -> Iterator[StartTimes]:
    """
    Yield the start times of rigs (default: all) for each way to start and number of busy loops.

    Raises
    ------
    StartError
        If an arm does not move.

    """
    ways = {'softarm run': _by_run} | ({'ros2 launch': _by_launch} if _launches() else {})
    for name in names or [known.name for known in list_rigs()]:
        for loops in busy:
            for way, start in ways.items():
                with (
                    tempfile.TemporaryDirectory(prefix='softarm_start_') as folder,
                    busy_loops(loops),
                ):
                    path = beginning(load_rig(name), _STRETCH_M, Path(folder))
                    cold, warm = (start(name, path, Path(folder)) for _ in range(2))
                yield StartTimes(name, way, loops, cold, warm)


def _launches() -> bool:
    """Return whether `ros2 launch` is installed and finds this package."""
    if shutil.which('ros2') is None:
        return False
    found = subprocess.run(['ros2', 'pkg', 'prefix', 'softarm_ros'], capture_output=True)
    return found.returncode == 0


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, 'NUMBA_CACHE_DIR': str(folder / 'kernels')}


def _by_run(rig: str, path: str, folder: Path) -> float:
    summary = folder / 'run.json'
    summary.unlink(missing_ok=True)
    command = [sys.executable, '-m', 'softarm_ros.cli', 'run', rig, '--trajectory', path]
    command += ['--laps', '1', '--json', str(summary)]
    done = subprocess.run(
        command, env=_environment(folder), capture_output=True, text=True, timeout=_LIMIT_S
    )
    moved = json.loads(summary.read_text())['loop']['first_motion_s'] if summary.exists() else None
    if moved is None:
        raise StartError(f'{" ".join(command)}: {(done.stderr or done.stdout)[-500:]}')
    return float(moved)


def _by_launch(rig: str, path: str, folder: Path) -> float:
    command = ['ros2', 'launch', 'softarm_ros', 'arm.launch.py', f'rig:={rig}']
    command += [f'trajectory:={path}', 'laps:=1', 'exit_on_done:=true']
    began, moved = time.monotonic(), None
    with subprocess.Popen(
        command,
        env=_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as launch:
        late = threading.Timer(_LIMIT_S, _end, (launch,))
        late.start()
        lines = []
        for line in launch.stdout or ():
            lines.append(line)
            if moved is None and _RUNNING in line:
                moved = time.monotonic() - began
        late.cancel()
    if moved is None:
        raise StartError(f'{" ".join(command)}: {"".join(lines[-5:])}')
    return moved


def _end(launch: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(launch.pid, signal.SIGINT)
