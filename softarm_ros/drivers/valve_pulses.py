"""Batches of valve times for the board, and their confirmation by its states; no I/O.

The line may delay or lose frames, so only one batch is pending at a time. The next one is made
when a state of the board confirms the last one; only then the estimate of the lengths moves. The
board times running pulses itself and a batch does not touch them, so delays change no pulse.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softarm_ros.drivers import messages
from softarm_ros.drivers.muscle_lengths import TICK_S, MuscleLengths, PulseChoice
from softarm_ros.geometry.arrays import Array

_LATEST = 50  # number of batches from which the shortest delay of the line is taken
_JITTER_S = 0.01  # by this much the next batch may be faster than all of these


class InterlockError(RuntimeError):
    """A batch would open both valves of a muscle, and is not sent."""


@dataclass(frozen=True)
class ValveBatch:
    """
    Content of an OPEN frame.

    Attributes
    ----------
    number
        Number of the batch, modulo 2^16.
    choice
        The pulses that begin; None if all valves close.
    open_ms
        Opening time of each output.
    sent_s
        Monotonic time at which it was last sent.

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
            If both valves of a muscle have an opening time.

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
    """The latest pulses of all muscles, each array (m,); stamps of board states in [s]."""

    inflate: NDArray[np.bool_]
    duration_s: Array
    sent_s: Array
    earliest_s: Array  # stamp of the last state before the pulse
    latest_s: Array  # stamp of the first state after its start


class PulseBook:
    """
    Keeps track of sent and confirmed pulses, and updates the estimated lengths.

    Parameters
    ----------
    lengths
        The estimate; updated when the board's states confirm pulses.
    pairs
        Output pair p of each muscle (m,): outputs 2 p (inflate) and 2 p + 1 (deflate).

    Attributes
    ----------
    pending
        The batch that no state of the board has confirmed yet.
    pulses, cut
        Number of pulses that began; number that were closed before their time.

    """

    def __init__(self, lengths: MuscleLengths, pairs: tuple[int, ...]) -> None:
        self.lengths = lengths
        self.pairs = pairs
        self.pending: ValveBatch | None = None
        self.pulses = 0
        self.cut = 0
        m = len(pairs)
        self._overtaken: ValveBatch | None = None  # sent, superseded unconfirmed
        self._number = 0
        self._stamp_s = -np.inf
        self._open = 0
        self._free_s = np.full(m, -np.inf)
        self._ways: deque[float] = deque(maxlen=_LATEST)
        never = [np.full(m, -np.inf) for _ in range(3)]
        self._latest = _Latest(np.zeros(m, np.bool_), np.zeros(m), *never)

    @property
    def number(self) -> int:
        """Number of the last batch that the board's states have confirmed."""
        return self._number

    def start(self, number: int) -> None:
        """Start with a board that reports this number and has executed no batch of ours."""
        self._number = number
        self._overtaken = self.pending = None
        self._free_s[:] = self._stamp_s = -np.inf
        self._latest.duration_s[:] = 0.0
        self._open = 0
        self._ways = deque(maxlen=_LATEST)

    def next_pulses(
        self, target: Array, now_s: float, near: Array | None = None
    ) -> ValveBatch | None:
        """Return pulses to lengths (m,) [m], or `near` on the way; None if none would begin."""
        # The batch arrives after the line's delay; by then the pulses have advanced as much.
        way = max(min(self._ways, default=0.0) - _JITTER_S, 0.0)
        idle = now_s + way >= self._free_s
        choice = self.lengths.choose(target, idle, near)
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
        """Return a batch that closes all valves."""
        return ValveBatch(self._next(), None, (0,) * messages.VALVES, now_s)

    def anything_open(self, now_s: float) -> bool:
        """Return whether a valve may be open now, or may yet open for the pending batch."""
        if self.pending is not None and self.pending.choice is not None:
            return True
        if self.pending is not None:
            return False  # the pending batch closes all valves
        over = self._latest.latest_s + self._latest.duration_s
        return self._open != 0 or bool(np.any(over + TICK_S > now_s))

    def left(self, stamp_s: float) -> Array:
        """Return the remaining times (m,) [s] of the latest pulses at a state of the board."""
        return np.maximum(self._latest.latest_s + self._latest.duration_s - stamp_s, 0.0)

    def sent(self, batch: ValveBatch, now_s: float) -> None:
        """Record that a batch was sent or resent."""
        if self.pending is not None and self.pending.number != batch.number:
            self._overtaken = self.pending
        self.pending = replace(batch, sent_s=now_s)

    def seen(self, number: int, is_open: int, stamp_s: float) -> None:
        """Process a state of the running board: its batch number, open outputs, time stamp."""
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
        Process the first state after a lost link of a board that did not restart.

        Parameters
        ----------
        number
            Number of its batch: a sent batch of this number was executed, any other was lost.
        cut_s
            Monotonic time at which all valves were closed; None if every pulse ran to its end.

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
        self._free_s[:] = self._stamp_s = -np.inf  # all valves are closed; stamps restart
        self._latest.latest_s[:] = -np.inf
        self._open = 0

    def refused(self) -> None:
        """Record that the board has refused the pending batch."""
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
        """Correct the estimates for pulses cut by the closing batch confirmed at `stamp_s`."""
        before = self._overtaken
        begun: set[int] = set()
        if before is not None and before.choice is not None:
            # No state has confirmed the batch before. With equal delays, both frames can arrive
            # between two states only if sent closer together: then the batch was executed until
            # the closing one. Otherwise it was lost.
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
            # Assume equal delays of both frames, within the bounds from the states.
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
