"""Latency and loss on one link."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array

_KEPT = 2048  # number of latest latencies kept


@dataclass(frozen=True)
class Latency:
    """Percentiles of the latest latencies [s]; NaN before the first."""

    p50_s: float
    p99_s: float
    max_s: float
    count: int

    @property
    def text(self) -> str:
        """Text for diagnostics, in ms."""
        if not self.count:
            return 'none yet'
        return f'{1e3 * self.p50_s:.1f} / {1e3 * self.p99_s:.1f} (p50 / p99)'


class LatencyRecord:
    """The latest latencies of one kind of work; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values = np.empty(_KEPT)
        self._count = 0

    def add(self, seconds: float) -> None:
        """Record one latency [s]."""
        with self._lock:
            self._values[self._count % _KEPT] = seconds
            self._count += 1

    def summary(self) -> Latency:
        """Return percentiles of the latest 2048 latencies, and the number of all recorded."""
        with self._lock:
            kept = self._values[: min(self._count, _KEPT)].copy()
            count = self._count
        if count == 0:
            return Latency(np.nan, np.nan, np.nan, 0)
        kept.sort()
        return Latency(_quantile(kept, 0.50), _quantile(kept, 0.99), float(kept[-1]), count)


def _quantile(ordered: Array, share: float) -> float:
    """
    Return the quantile of numbers (n,) in ascending order, exactly as `np.quantile`.

    That takes five times as long, in each heartbeat of each driver.
    """
    place = (len(ordered) - 1) * share
    below = int(place)
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    part = place - below
    step = high - low
    return low + step * part if part < 0.5 else high - step * (1.0 - part)


@dataclass(frozen=True)
class LinkCounts:
    """
    Counts and latencies of a link since the driver started.

    Attributes
    ----------
    requests, answers :
        Requests sent, and those answered in time and in order.
    timeouts, refusals, lost :
        Requests not answered in time; answered with an error code; all without a usable answer.
    connections :
        Number of times the link came up.
    commands, superseded :
        Commands of the caller, and those replaced by a newer one before they were sent.
    command_latency :
        Time from the caller's command to the device's answer.
    cycle :
        Duration of one exchange with all devices on the link.

    """

    requests: int
    answers: int
    timeouts: int
    refusals: int
    lost: int
    connections: int
    commands: int
    superseded: int
    command_latency: Latency
    cycle: Latency


class LinkCounter:
    """Counter of a link; one thread writes each count, any thread may read it."""

    def __init__(self) -> None:
        self.requests = 0
        self.answers = 0
        self.timeouts = 0
        self.refusals = 0
        self.lost = 0
        self.connections = 0
        self.commands = 0
        self.superseded = 0
        self.command_latency = LatencyRecord()
        self.cycle = LatencyRecord()

    def summary(self) -> LinkCounts:
        """Return the counts now."""
        return LinkCounts(
            self.requests,
            self.answers,
            self.timeouts,
            self.refusals,
            self.lost,
            self.connections,
            self.commands,
            self.superseded,
            self.command_latency.summary(),
            self.cycle.summary(),
        )
