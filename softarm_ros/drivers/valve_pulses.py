"""Batches of valve times to the board, and what its states report of them; no I/O.

The line delays and loses. So there is one batch under way at a time: the next one is made when a
state of the board shows that it has the last one. Only then the estimate of the lengths moves. A
batch leaves what still runs to go on by the board's own time, so that delays change no pulse.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softarm_ros.drivers import messages
from softarm_ros.drivers.muscle_lengths import TICK_S, MuscleLengths, PulseChoice
from softarm_ros.geometry.arrays import Array

_LATEST = 50  # batches from which the shortest way of the line is taken
_JITTER_S = 0.01  # by which the next one may be faster than all of these


class InterlockError(RuntimeError):
    """A batch would open both valves of a muscle; it was not sent."""


@dataclass(frozen=True)
class ValveBatch:
    """
    What an OPEN frame says.

    Attributes
    ----------
    number
        Of the batch, modulo 2^16.
    choice
        The pulses that begin; None if all valves close.
    open_ms
        Of each output.
    sent_s
        When it was last sent (monotonic).

    """

    number: int
    choice: PulseChoice | None
    open_ms: tuple[int, ...]
    sent_s: float

    def payload(self) -> bytes:
        """
        Return the payload of OPEN.

        Raises
        ------
        InterlockError
            If both valves of a muscle have a time.

        """
        for pair in range(messages.VALVES // 2):
            inflate, deflate = self.open_ms[2 * pair : 2 * pair + 2]
            if inflate and deflate:
                raise InterlockError(
                    f'pair {pair}: inflate {inflate} ms and deflate {deflate} ms (interlock)'
                )
        return messages.open_valves(self.number, self.open_ms)


@dataclass(frozen=True)
class _Latest:
    """The latest pulses of all muscles, each array (m,); times as of the board's states [s]."""

    inflate: NDArray[np.bool_]
    duration_s: Array
    sent_s: Array
    earliest_s: Array  # a state before the pulse
    latest_s: Array  # the first state after it had begun


class PulseBook:
    """
    Which pulses the board was sent, which it has, and where the lengths are by that.

    Parameters
    ----------
    lengths
        The estimate; moved as the board's states report.
    pairs
        (m,) of each muscle: outputs 2 p (inflate) and 2 p + 1 (deflate).

    Attributes
    ----------
    pending
        The batch that the board has not shown yet.
    pulses, cut
        How many were begun, and closed before their time.

    """

    def __init__(self, lengths: MuscleLengths, pairs: tuple[int, ...]) -> None:
        self.lengths = lengths
        self.pairs = pairs
        self.pending: ValveBatch | None = None
        self.pulses = 0
        self.cut = 0
        m = len(pairs)
        self._overtaken: ValveBatch | None = None  # sent, and closed again before it was seen
        self._number = 0
        self._stamp_s = -np.inf
        self._open = 0
        self._free_s = np.full(m, -np.inf)
        self._ways: deque[float] = deque(maxlen=_LATEST)
        never = [np.full(m, -np.inf) for _ in range(3)]
        self._latest = _Latest(np.zeros(m, np.bool_), np.zeros(m), *never)

    @property
    def number(self) -> int:
        """The number of the batch that the board has, as far as its states report."""
        return self._number

    def start(self, number: int) -> None:
        """Begin with a board that shows this number and has done nothing of what was sent."""
        self._number = number
        self._overtaken = self.pending = None
        self._free_s[:] = self._stamp_s = -np.inf
        self._latest.duration_s[:] = 0.0
        self._open = 0
        self._ways = deque(maxlen=_LATEST)

    def next_pulses(self, target: Array, now_s: float) -> ValveBatch | None:
        """Return a batch that leads towards lengths (m,) [m]; None if it would begin nothing."""
        # What is sent now arrives one way later, when that much more of the pulses is over.
        way = max(min(self._ways, default=0.0) - _JITTER_S, 0.0)
        idle = now_s + way >= self._free_s
        choice = self.lengths.choose(target, idle)
        if not choice.muscles.size:
            return None
        open_ms = [0] * messages.VALVES
        for i, pair in enumerate(self.pairs):
            open_ms[2 * pair + (not self._latest.inflate[i])] = messages.GO_ON
        for i in choice.muscles:
            pair, inflate = self.pairs[i], bool(choice.inflate[i])
            open_ms[2 * pair + (not inflate)] = int(choice.ticks[i])
            open_ms[2 * pair + inflate] = 0
        return ValveBatch(self._next(), choice, tuple(open_ms), now_s)

    def closing(self, now_s: float) -> ValveBatch:
        """Return a batch that closes all."""
        return ValveBatch(self._next(), None, (0,) * messages.VALVES, now_s)

    def anything_open(self, now_s: float) -> bool:
        """Return whether a valve may be open, or still open for a batch under way."""
        if self.pending is not None and self.pending.choice is not None:
            return True
        if self.pending is not None:
            return False  # it closes all
        over = self._latest.latest_s + self._latest.duration_s
        return self._open != 0 or bool(np.any(over + TICK_S > now_s))

    def left(self, stamp_s: float) -> Array:
        """Return how long (m,) [s] the latest pulses have to go at a state of the board."""
        return np.maximum(self._latest.latest_s + self._latest.duration_s - stamp_s, 0.0)

    def sent(self, batch: ValveBatch, now_s: float) -> None:
        """Take note that a batch was sent, once or again."""
        if self.pending is not None and self.pending.number != batch.number:
            self._overtaken = self.pending
        self.pending = replace(batch, sent_s=now_s)

    def seen(self, number: int, is_open: int, stamp_s: float) -> None:
        """Take in a state of the running board: its batch, its outputs, when that was."""
        if self._overtaken is not None and number == self._overtaken.number:
            self._begun(self._overtaken, stamp_s)
            self._overtaken = None
        if self.pending is not None and number == self.pending.number:
            if self.pending.choice is not None:
                self._ways.append(max(stamp_s - self.pending.sent_s, 0.0))
                self._begun(self.pending, stamp_s)
            else:
                self._closed(self.pending.sent_s, stamp_s)
            self._number, self.pending = number, None
        self._stamp_s, self._open = stamp_s, is_open

    def found(self, number: int, *, cut_s: float | None) -> None:
        """
        Take in what a board that did not start anew has, after the link was lost.

        Parameters
        ----------
        number
            Of its batch: the one under way was carried out if it is that one, else it was lost.
        cut_s
            When all was closed (monotonic, as the sending); None if every pulse ran to its end.

        """
        for batch in (self._overtaken, self.pending):
            if batch is None or batch.number != number:
                continue
            if batch.choice is not None:
                self._begun(batch, batch.sent_s)
            else:
                cut_s = batch.sent_s
        self._overtaken = self.pending = None
        self._number = number
        if cut_s is not None:
            latest = self._latest
            for i in np.flatnonzero(latest.sent_s + latest.duration_s > cut_s):
                self._cut(int(i), max(cut_s - latest.sent_s[i], 0.0))
        self._free_s[:] = self._stamp_s = -np.inf  # all is closed; stamps begin anew
        self._latest.latest_s[:] = -np.inf
        self._open = 0

    def refused(self) -> None:
        """Take note that the board will not have the batch under way."""
        self.pending = None

    def _next(self) -> int:
        last = self._number if self.pending is None else self.pending.number
        return (last + 1) & 0xFFFF

    def _begun(self, batch: ValveBatch, stamp_s: float) -> None:
        choice = batch.choice
        assert choice is not None
        opened = np.zeros(len(self.pairs))
        opened[choice.muscles] = choice.ticks[choice.muscles] * TICK_S
        self._carry_out(choice, opened, batch.sent_s, stamp_s)
        self.pulses += choice.muscles.size

    def _closed(self, sent_s: float, stamp_s: float) -> None:
        """Let estimates go back where a closing batch, shown by the state at `stamp_s`, cut."""
        before = self._overtaken
        begun: set[int] = set()
        if before is not None and before.choice is not None:
            # No state has shown it. If two frames of the same delay came between two states, it
            # was carried out until it was closed; if they were sent further apart, it was lost.
            apart = max(sent_s - before.sent_s, 0.0)
            if apart < stamp_s - self._stamp_s:
                self._begun(before, stamp_s)
                begun = set(before.choice.muscles.tolist())
                for muscle in begun:
                    self._cut(muscle, apart)
        self._overtaken = None
        latest = self._latest
        for i in np.flatnonzero(latest.sent_s + latest.duration_s > sent_s):
            if int(i) in begun:
                continue
            # Both frames took the same way, unless the states say otherwise.
            output = 2 * self.pairs[i] + (not latest.inflate[i])
            least = self._stamp_s - latest.latest_s[i] if self._open >> output & 1 else 0.0
            most = stamp_s - latest.earliest_s[i]
            self._cut(int(i), min(max(sent_s - latest.sent_s[i], least), most))
        self._free_s = np.minimum(self._free_s, stamp_s + self.lengths.config.guard_s)

    def _cut(self, muscle: int, opened_s: float) -> None:
        latest = self._latest
        if opened_s < latest.duration_s[muscle]:
            self.lengths.cut(muscle, bool(latest.inflate[muscle]), opened_s)
            latest.duration_s[muscle] = opened_s
            self.cut += 1

    def _carry_out(
        self, choice: PulseChoice, opened: Array, sent_s: float, stamp_s: float
    ) -> None:
        self.lengths.carry_out(choice, opened)
        latest, chosen = self._latest, choice.muscles
        latest.inflate[chosen] = choice.inflate[chosen]
        latest.duration_s[chosen] = opened[chosen]
        latest.sent_s[chosen] = sent_s
        latest.earliest_s[chosen] = self._stamp_s
        latest.latest_s[chosen] = stamp_s
        guard = self.lengths.config.guard_s
        self._free_s[chosen] = stamp_s + opened[chosen] + guard
