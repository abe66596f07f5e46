"""Relays and solenoid valves of the simulated muscles: when they follow the board's outputs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.plant.pam_arm.config import RelayConfig

NEVER = -1.0
DEFLATE, INFLATE = 0, 1  # columns of everything that is (m, 2)


class Relays:
    """
    Two valves a muscle, each behind a relay.

    Every valve has its own delay, closes a little later or earlier than it opens, and jitters.

    Parameters
    ----------
    muscles
        How many.
    config
        Delays.
    rng
        Of the delays and their jitter.

    Attributes
    ----------
    open_s, close_s : (m, 2)
        When the valves of the latest pulse open and close [s]: deflate, inflate.
    delays_s : (m, 2, 2)
        Of opening, of closing.

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
        self._late_s = np.zeros(valves)  # opening that is still owed

    def draw_jitter(self) -> tuple[float, float]:
        """Return by how much the next two operations are later than usual [s]."""
        bound = 3.0 * self.config.jitter_s
        first, second = np.clip(self.config.jitter_s * self._rng.standard_normal(2), -bound, bound)
        return first, second

    def set_pulse(
        self, muscle: int, valve: int, open_s: float, close_s: float, now_s: float
    ) -> None:
        """
        Let a valve be open between two times [s]; a pulse that began before ends by itself.

        With the opening of a pulse that was set already, its times are these instead.
        """
        at = (muscle, valve)
        if now_s < self.close_s[at] < open_s:
            self._next[at] = [open_s, close_s]
        else:
            self._next.pop(at, None)
            self.open_s[at], self.close_s[at] = open_s, close_s

    def switch(self, outputs: NDArray[np.bool_], at_s: float, now_s: float) -> None:
        """
        Let the relays follow outputs.

        Parameters
        ----------
        outputs : (m, 2)
            Which relays are on: deflate, inflate.
        at_s
            When the outputs became so.
        now_s
            Up to when the arm has moved already. What of an opening lies before is made up for
            at its end, so that it lasts as long as its relay was on.

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
        """Let pulses begin that waited for the one before to end."""
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
        self._late_s[at] = wanted - self.close_s[at]  # below zero: the next one is shorter
