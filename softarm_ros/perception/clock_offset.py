"""Offset of a device's clock to this computer's, estimated from the stamps in its stream."""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass

import numpy as np

BIN_S = 1.0  # the fastest packet of each bin counts
BINS = 60  # a minute: long enough for the drift of a quartz, short enough for its temperature
MAX_DRIFT = 5.0e-4  # ten times that of a poor quartz
JUMP_S = 0.05  # a longer delay means a packet held back, or a clock that was set
CONFIRM_PACKETS = 3
CONFIRM_S = 0.2  # duration on both clocks after which a delay means a clock that was set


@dataclass(frozen=True)
class Mapped:
    """
    An instant of the device's clock, mapped to this computer's clock.

    Attributes
    ----------
    time_s : float
        Time on this computer's clock [s].
    delay_s : float
        Delay of the packet relative to the fastest packets [s].
    trusted : bool
        False while it is unclear whether the packet is late or the device's clock was set.

    """

    time_s: float
    delay_s: float
    trusted: bool


@dataclass
class _Off:
    """Consecutive packets that do not fit the clock: first times, range of delays, number."""

    sent_s: float
    arrived_s: float
    least_s: float
    most_s: float
    packets: int = 1

    def goes_on(self, delay_s: float) -> bool:
        """Add a delay; return whether all delays are about the same."""
        self.least_s, self.most_s = min(self.least_s, delay_s), max(self.most_s, delay_s)
        return self.most_s - self.least_s < 0.5 * JUMP_S


class ClockOffset:
    """
    Estimates offset and drift of a device's clock from sending and arrival times of packets.

    A packet arrives late by its delay, never early. So the fastest packets of each second lie on a
    line, whose height is the offset and whose slope is the drift, however much other packets
    jitter. The delay of the fastest packets themselves (0.1 to 0.3 ms on a local network) cannot
    be separated from the offset; mapped times are late by this delay.

    The device's clock has been set if three packets in a row arrive before they were sent, or if
    packets stay late by the same amount while both clocks advance by `CONFIRM_S`; after a mere
    stall of the network, packets arrive faster than they were sent. The estimate then restarts,
    and `jumps` is incremented.
    """

    def __init__(self) -> None:
        self.jumps = 0
        self.last_jump_s = 0.0
        self._bins: deque[list[float]] = deque(
            maxlen=BINS
        )  # [sent, arrived - sent] of the fastest
        self._line = (0.0, 0.0, 0.0)  # device time, offset at that time, slope
        self._off: _Off | None = None
        self._newest_s = -np.inf

    @property
    def offset_s(self) -> float:
        """Lead of this computer's clock over the device's now [s]; nan without packets."""
        return self._offset(self._newest_s) if self._bins else np.nan

    @property
    def drift(self) -> float:
        """Rate at which this computer's clock gains on the device's [s/s]."""
        return self._line[2]

    @property
    def drifts_too_fast(self) -> bool:
        """Whether the drift is at its limit: mapped times may be wrong by up to `JUMP_S`."""
        return abs(self.drift) >= MAX_DRIFT

    def update(self, sent_s: float, arrived_s: float, event_s: float | None = None) -> Mapped:
        """
        Take the times of a packet; return the time of an event that the device stamped.

        Parameters
        ----------
        sent_s
            Time of sending, on the device's clock [s].
        arrived_s
            Time of arrival, on this computer's clock [s].
        event_s
            Time of the event, on the device's clock [s]; None for `sent_s`.

        """
        event_s = sent_s if event_s is None else event_s
        delay = arrived_s - sent_s - self._offset(sent_s) if self._bins else 0.0
        trusted = True
        if abs(delay) <= JUMP_S:
            self._off = None
        elif self._was_set(sent_s, arrived_s, delay):
            self._begin_anew(delay)
            delay = 0.0
        else:
            trusted = False
        if trusted:
            self._newest_s = sent_s
            self._note(sent_s, arrived_s - sent_s)
            delay = arrived_s - sent_s - self._offset(sent_s)
        return Mapped(event_s + self._offset(event_s), delay, trusted)

    def _offset(self, device_s: float) -> float:
        at, offset, slope = self._line
        return offset + slope * (device_s - at)

    def _was_set(self, sent_s: float, arrived_s: float, delay: float) -> bool:
        off = self._off
        if off is None or sent_s < off.sent_s or not off.goes_on(delay):
            self._off = _Off(sent_s, arrived_s, delay, delay)
            return False
        off.packets += 1
        if delay < 0.0:  # impossible for a network; a single packet may be garbled
            return off.packets >= CONFIRM_PACKETS
        return min(sent_s - off.sent_s, arrived_s - off.arrived_s) >= CONFIRM_S

    def _begin_anew(self, jump_s: float) -> None:
        self.jumps += 1
        self.last_jump_s = jump_s
        self._bins.clear()
        self._off = None

    def _note(self, sent_s: float, difference_s: float) -> None:
        newest = self._bins[-1] if self._bins else None
        number = np.floor(sent_s / BIN_S)
        if newest is None or number > np.floor(newest[0] / BIN_S):
            self._bins.append([sent_s, difference_s])
        elif difference_s < newest[1]:
            newest[:] = [sent_s, difference_s]
        elif len(self._bins) > 1:
            return  # the packet does not change the line
        self._fit()

    def _fit(self) -> None:
        """Fit the highest line that lies below the fastest packets of all bins."""
        sent, difference = np.array(self._bins).T
        at = sent[-1]
        slope = _lower_slope(sent - at, difference)
        self._line = (at, float(np.min(difference - slope * (sent - at))), slope)


def _lower_slope(x: np.ndarray, y: np.ndarray) -> float:
    """
    Return the slope of the line that lies below all points and nearest to their mean.

    This line extends the edge of the lower convex hull that spans the mean of x (Moon, Skelly and
    Towsley 1999, for one-way delays). The slope is 0 while there are too few points.
    """
    if len(x) < 10:
        return 0.0
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) >= 2:
            a, b = hull[-2], hull[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            hull.pop()
        hull.append(i)
    mean = float(x.mean())
    for a, b in itertools.pairwise(hull):
        if x[a] <= mean <= x[b]:
            return float(np.clip((y[b] - y[a]) / (x[b] - x[a]), -MAX_DRIFT, MAX_DRIFT))
    return 0.0
