"""Relays and solenoid valves of the simulated muscles, and their delays."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.plant.pam_arm.config import RelayConfig

NEVER = -1.0
DEFLATE, INFLATE = 0, 1  # columns of all (m, 2) arrays


class Relays:
    """
    Two valves per muscle, each behind a relay.

    Every valve has its own delay, closes a little later or earlier than it opens, and jitters.

    Parameters
    ----------
    muscles
        Number of muscles.
    config
        Delays.
    rng
        Random numbers for the delays and their jitter.

    Attributes
    ----------
    open_s, close_s : (m, 2)
        Times at which the valves of the latest pulse open and close [s]: deflate, inflate.
    delays_s : (m, 2, 2)
        Delays of opening and of closing.

    """

    def __init__(self, muscles: int, config: RelayConfig, rng: np.random.Generator) -> None:
        self.config = config
        valves = (muscles, 2)
        opening = rng.uniform(config.shortest_delay_s, config.longest_delay_s, valves)
        later = config.closing_spread_s * np.clip(rng.standard_normal(valves), -2.0, 2.0)
        self.delays_s = np.stack([opening, opening + later], axis=2)
        self.open_s, self.close_s = np.full(valves, NEVER), np.full(valves, NEVER)
        self._rng = rng
        self._on = np.zeros(valves, dtype=np.bool_)
        # A pulse that begins before the last one of its valve has ended, as (open, close).
        self._next: dict[tuple[int, int], list[float]] = {}
        self._due_s = np.full(valves, NEVER)  # when the latest pulse should have begun
        self._late_s = np.zeros(valves)  # opening time still to make up for

    def draw_jitter(self) -> tuple[float, float]:
        """Return the extra delays of the next two operations [s]."""
        bound = 3.0 * self.config.jitter_s
        first, second = np.clip(self.config.jitter_s * self._rng.standard_normal(2), -bound, bound)
        return first, second

    def set_pulse(
        self, muscle: int, valve: int, open_s: float, close_s: float, now_s: float
    ) -> None:
        """
        Open a valve between two times [s]; a pulse that began earlier ends by itself.

        If a pulse with the same opening was set before, its times are replaced.
        """
        at = (muscle, valve)
        if now_s < self.close_s[at] < open_s:
            self._next[at] = [open_s, close_s]
        else:
            self._next.pop(at, None)
            self.open_s[at], self.close_s[at] = open_s, close_s

    def switch(self, outputs: NDArray[np.bool_], at_s: float, now_s: float) -> None:
        """
        Switch the relays to new outputs.

        Parameters
        ----------
        outputs : (m, 2)
            Whether the relays are on: deflate, inflate.
        at_s
            When the outputs changed.
        now_s
            Time to which the arm has advanced. The part of an opening before that is added at its
            end, so that the valve is open as long as its relay was on.

        """
        self.catch_up(now_s)
        for muscle, valve in np.argwhere(outputs != self._on).tolist():
            at = (muscle, valve)
            opening, closing = self.delays_s[at] + self.draw_jitter()
            if outputs[at]:
                self._opens(at, at_s + opening, now_s)
            else:
                self._closes(at, at_s + closing, now_s)
        self._on = outputs.copy()

    def catch_up(self, now_s: float) -> None:
        """Start pulses that waited for the previous one to end."""
        for at, (opens, closes) in list(self._next.items()):
            if self.close_s[at] <= now_s:
                del self._next[at]
                self._opens(at, opens, now_s)
                if math.isfinite(closes):
                    self._closes(at, closes, now_s)

    def _opens(self, at: tuple[int, int], open_s: float, now_s: float) -> None:
        if at in self._next:
            self._next[at][1] = math.inf
        elif self.close_s[at] > now_s:
            if open_s <= self.close_s[at]:
                self.close_s[at] = math.inf  # it never closed
            else:
                self._next[at] = [open_s, math.inf]
        else:
            self._due_s[at] = open_s
            self._late_s[at] += max(now_s - open_s, 0.0)
            self.open_s[at], self.close_s[at] = max(open_s, now_s), math.inf

    def _closes(self, at: tuple[int, int], close_s: float, now_s: float) -> None:
        if at in self._next:
            self._next[at][1] = close_s
            return
        wanted = max(close_s, self._due_s[at]) + self._late_s[at]
        self.close_s[at] = max(wanted, now_s, self.open_s[at])
        self._late_s[at] = wanted - self.close_s[at]  # negative: the next opening is shorter
