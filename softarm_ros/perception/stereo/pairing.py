"""Pairing of images of two cameras that were exposed at the same time."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

from softarm_ros.perception.stereo.cameras import SIDES, Side

T = TypeVar('T')
_KEPT = 8
_CLOCK_SET_NS = 1_000_000_000


@dataclass(frozen=True)
class Pair(Generic[T]):
    """Images of both cameras, mean of their time stamps, and right minus left stamp [ns]."""

    stamp_ns: int
    left: T
    right: T
    skew_ns: int


class PairByStamp(Generic[T]):
    """
    Pairs the images of two cameras, nearest in time first; each image is used once.

    Attributes
    ----------
    unpaired : dict
        Number of images of each camera without a partner.
    stuck : dict
        Stamp [ns] of each camera whose last image was refused because its stamp did not advance.

    """

    def __init__(self, max_skew_s: float) -> None:
        self._max_skew_ns = round(1e9 * max_skew_s)
        self._waiting: dict[Side, deque[tuple[int, T]]] = {s: deque() for s in SIDES}
        self._newest: dict[Side, int] = {}
        self.unpaired: dict[Side, int] = dict.fromkeys(SIDES, 0)
        self.stuck: dict[Side, int] = {}

    @property
    def behind(self) -> Side:
        """The camera with the older newest image: the next one is expected from it."""
        return min(SIDES, key=lambda side: self._newest.get(side, -1))

    def push(self, side: Side, stamp_ns: int, image: T) -> Pair[T] | None:
        """
        Take an image; return the pair that it completes, or None.

        An image is refused if its stamp is not later than the last one of its camera: it was seen
        already. If stamps go back by more than a second, a clock has been set, and pairing
        restarts.
        """
        newest = self._newest.get(side, -1)
        if stamp_ns < newest - _CLOCK_SET_NS:
            self._newest.clear()
            for each in SIDES:
                self.unpaired[each] += len(self._waiting[each])
                self._waiting[each].clear()
        elif stamp_ns <= newest:
            self.stuck[side] = stamp_ns
            return None
        self.stuck.pop(side, None)
        self._newest[side] = stamp_ns
        other: Side = 'right' if side == 'left' else 'left'
        candidates = self._waiting[other]
        best = min(candidates, key=lambda c: abs(c[0] - stamp_ns), default=None)
        if best is None or abs(best[0] - stamp_ns) > self._max_skew_ns:
            mine = self._waiting[side]
            mine.append((stamp_ns, image))
            if len(mine) > _KEPT:
                mine.popleft()
                self.unpaired[side] += 1
            return None
        while candidates.popleft() is not best:
            self.unpaired[other] += 1
        # Older images of this camera can no longer be paired in order.
        self.unpaired[side] += len(self._waiting[side])
        self._waiting[side].clear()
        left, right = (image, best[1]) if side == 'left' else (best[1], image)
        skew = stamp_ns - best[0] if side == 'right' else best[0] - stamp_ns
        return Pair((stamp_ns + best[0]) // 2, left, right, skew)
