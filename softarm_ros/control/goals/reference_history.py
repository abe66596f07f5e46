"""Recent references, kept to match them with measurements that arrive late."""

from __future__ import annotations

from collections import deque

import numpy as np

from softarm_ros.geometry.arrays import Array

REMEMBERED_S = 1.0


class ReferenceHistory:
    """References (3,) [m] of the last second, by time."""

    def __init__(self) -> None:
        self._past: deque[tuple[float, Array]] = deque()

    def clear(self) -> None:
        """Forget all references."""
        self._past.clear()

    def add(self, now_s: float, reference: Array) -> None:
        """Add the reference at a time; if earlier than the last one, the clock was set back."""
        if self._past and now_s < self._past[-1][0]:
            self._past.clear()
        self._past.append((now_s, reference))
        while self._past[0][0] < now_s - REMEMBERED_S:
            self._past.popleft()

    def at(self, stamp_s: float) -> Array | None:
        """
        Return the reference (3,) [m] at a time, interpolated linearly; None if there is none.

        Before the oldest it is the oldest, after the newest the newest.
        """
        later: tuple[float, Array] | None = None
        for time, reference in reversed(self._past):
            if time <= stamp_s:
                if later is None or later[0] <= time:
                    return reference
                share = (stamp_s - time) / (later[0] - time)
                return np.asarray(reference + share * (later[1] - reference))
            later = (time, reference)
        return None if later is None else later[1]
