"""Measure how long a rig takes to become ready, with an empty and a filled kernel cache."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass

from softarm_ros.rigs.loader import list_rigs

BAR_S = 20.0  # for the slowest rig, on two idle cores
_READY = (
    'import sys; from softarm_ros import load_rig; '
    'from softarm_ros.runtime.warm_up import warm_up; warm_up(load_rig(sys.argv[1]))'
)


@dataclass(frozen=True)
class ReadyTimes:
    """Wall time [s] from the start of Python until a rig is ready, and CPU time on all cores."""

    rig: str
    cold_s: float
    cold_cpu_s: float
    warm_s: float


def measure(rig: str) -> ReadyTimes:
    """
    Return the times of a rig (name or file) with an empty cache, then with a filled one.

    Raises
    ------
    subprocess.CalledProcessError
        If the rig cannot be loaded or warmed up; its message is on stderr.

    """
    with tempfile.TemporaryDirectory(prefix='softarm_kernels_') as cache:
        cold, cpu = _ready(rig, cache)
        warm, _ = _ready(rig, cache)
    return ReadyTimes(rig, cold, cpu, warm)


def rows() -> Iterator[ReadyTimes]:
    """Yield the times of every rig of the package, one after the other."""
    for info in list_rigs():
        yield measure(info.name)


def _ready(rig: str, cache: str) -> tuple[float, float]:
    """Return wall and CPU time [s] of a new process that loads and warms up a rig."""
    before, start = _cpu_of_children(), time.perf_counter()
    subprocess.run(
        [sys.executable, '-c', _READY, rig],
        env={**os.environ, 'NUMBA_CACHE_DIR': cache},
        check=True,
    )
    return time.perf_counter() - start, _cpu_of_children() - before


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
