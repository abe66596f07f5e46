"""Processor time and memory of all processes of a running graph."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class GraphLoad:
    """
    Processor and memory use of a graph while it moves its arm.

    Attributes
    ----------
    cpu_percent : float
        Processor time of all processes [% of one processor].
    memory_mb : float
        Memory of all processes, with shared memory counted once (PSS) [MB, 1e6 bytes].

    """

    cpu_percent: float
    memory_mb: float


class LoadMeter:
    """
    Measures this process and all its descendants, including emulators of boards.

    Processes that end before `result` is called are not counted.
    """

    def __init__(self) -> None:
        this = psutil.Process()
        self._processes = [this, *this.children(recursive=True)]
        self._used_s = {p.pid: _used_s(p) for p in self._processes}
        self._began_s = time.monotonic()

    def result(self) -> GraphLoad:
        """Return the processor time used since this meter was created, and the present memory."""
        alive = [p for p in self._processes if p.is_running()]
        used_s = sum(max(_used_s(p) - self._used_s[p.pid], 0.0) for p in alive)
        # Taken before memory is measured, which takes a while on a busy computer.
        passed_s = time.monotonic() - self._began_s
        memory = 0
        for process in alive:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                memory += _memory(process)
        return GraphLoad(100.0 * used_s / max(passed_s, 1e-9), 1e-6 * memory)


def age_s() -> float:
    """Return the time [s, wall clock] since this process was started."""
    return time.time() - float(psutil.Process().create_time())


def _used_s(process: psutil.Process) -> float:
    """Return the processor time [s] of a process without its children."""
    try:
        return float(sum(process.cpu_times()[:2]))
    except psutil.NoSuchProcess:
        return 0.0


def _memory(process: psutil.Process) -> int:
    """Return the proportional set size [bytes], or the resident size where it is not available."""
    full = process.memory_full_info()
    return int(getattr(full, 'pss', full.rss))
