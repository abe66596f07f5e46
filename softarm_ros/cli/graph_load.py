"""Processor time and memory of all processes of a running graph."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class GraphLoad:
    """
    Use of the computer by a graph while it moved its arm.

    Attributes
    ----------
    cpu_percent : float
        Processor time of all processes [% of one processor].
    memory_mb : float
        Memory of all processes; what they share is counted once (PSS) [MB, 1e6 bytes].

    """

    cpu_percent: float
    memory_mb: float


class LoadMeter:
    """
    Measures this process and all it has started, including emulators of boards.

    A process that ends in between does not count.
    """

    def __init__(self) -> None:
        this = psutil.Process()
        self._processes = [this, *this.children(recursive=True)]
        self._used_s = {p.pid: _used_s(p) for p in self._processes}
        self._began_s = time.monotonic()

    def result(self) -> GraphLoad:
        """Return what was used since this meter was made, and the memory held now."""
        alive = [p for p in self._processes if p.is_running()]
        used_s = sum(max(_used_s(p) - self._used_s[p.pid], 0.0) for p in alive)
        # Before memory is counted, which takes a while on a busy computer.
        passed_s = time.monotonic() - self._began_s
        memory = 0
        for process in alive:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                memory += _memory(process)
        return GraphLoad(100.0 * used_s / max(passed_s, 1e-9), 1e-6 * memory)


def age_s() -> float:
    """Return how long ago the command that runs here was started [wall s]."""
    return time.time() - float(psutil.Process().create_time())


def _used_s(process: psutil.Process) -> float:
    """Return the processor time of a process, its children's left out."""
    try:
        return float(sum(process.cpu_times()[:2]))
    except psutil.NoSuchProcess:
        return 0.0


def _memory(process: psutil.Process) -> int:
    """Return the proportional set size [bytes]; where nobody counts it, the resident size."""
    full = process.memory_full_info()
    return int(getattr(full, 'pss', full.rss))
