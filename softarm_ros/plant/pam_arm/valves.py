"""Simulated valve board and driver: from lengths to pulses of the relays."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softarm_ros.drivers.muscle_lengths import TICK_S, MuscleLengths
from softarm_ros.drivers.valve_config import ValveDriveConfig
from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.pam_arm.relays import NEVER, Relays


@dataclass(frozen=True)
class Pulse:
    """
    One opening of one valve [s].

    Attributes
    ----------
    muscle, inflate
        Index of the muscle, and which of its two valves.
    on_s, off_s
        When the board switches the relay.
    open_s, close_s
        When the valve opens and closes; if close_s <= open_s, it never opened.

    """

    muscle: int
    inflate: bool
    on_s: float
    off_s: float
    open_s: float
    close_s: float


class ValveBoard:
    """
    The board that times the relays, given pulses in simulated time.

    A pulse is a valve and a number of ticks. The board has the interlock: while a relay of a
    muscle is on, and for the guard time after that, the muscle accepts no other pulse, so its two
    valves are never open together. `log` keeps every pulse.

    Parameters
    ----------
    drive
        Timing of the board.
    relays
        The relays that it switches.

    """

    def __init__(self, drive: ValveDriveConfig, relays: Relays) -> None:
        self.drive, self.relays = drive, relays
        self.log: list[Pulse] = []
        muscles = len(relays.open_s)
        self._last: list[int] = [-1] * muscles  # index in the log
        self._free_s = np.full(muscles, NEVER)

    def busy(self, now_s: float) -> NDArray[np.bool_]:
        """Return whether each muscle (m,) would refuse a pulse now."""
        return self._tick(now_s) < self._free_s - 0.5 * TICK_S

    def fire(self, now_s: float, muscle: int, inflate: bool, ticks: int) -> Pulse:
        """
        Open a valve for a number of ticks.

        Raises
        ------
        ValueError
            If the muscle is busy (interlock), or the pulse is too short or too long.

        """
        on = self._tick(now_s)
        if on < self._free_s[muscle] - 0.5 * TICK_S:
            raise ValueError(
                f'muscle {muscle}: busy until {self._free_s[muscle]:.3f} s, pulse refused at '
                f'{on:.3f} s (interlock)'
            )
        shortest, longest = self.drive.shortest_pulse_s, self.drive.longest_pulse_s
        if not shortest - 0.5 * TICK_S <= ticks * TICK_S <= longest + 0.5 * TICK_S:
            raise ValueError(
                f'muscle {muscle}: pulse of {ticks * TICK_S:g} s; '
                f'expected {shortest:g} to {longest:g} s'
            )
        off = on + ticks * TICK_S
        to_open, to_close = self.relays.delays_s[muscle, int(inflate)]
        early, late = self.relays.draw_jitter()
        pulse = Pulse(muscle, inflate, on, off, on + to_open + early, off + to_close + late)
        self._last[muscle] = len(self.log)
        self.log.append(pulse)
        self._take(pulse, now_s)
        return pulse

    def cut(self, now_s: float) -> list[Pulse]:
        """Switch all relays off; return the pulses that were cut short, with their new times."""
        now = self._tick(now_s)
        cut = []
        for index in self._last:
            if index < 0 or self.log[index].off_s <= now:
                continue
            pulse = self.log[index]
            # A relay that is not on yet stays off: the valve does not move.
            off = max(now, pulse.on_s)
            shut = pulse.close_s - pulse.off_s + off if off > pulse.on_s else pulse.open_s
            self.log[index] = replace(pulse, off_s=off, close_s=shut)
            self._take(self.log[index], now_s)
            cut.append(self.log[index])
        return cut

    def left(self, now_s: float) -> Array:
        """Return the remaining time (m,) [s] for which the relay of each muscle stays on."""
        left = np.zeros(len(self._last))
        for muscle, index in enumerate(self._last):
            if index >= 0 and self.log[index].off_s > now_s:
                pulse = self.log[index]
                left[muscle] = pulse.off_s - max(now_s, pulse.on_s)
        return left

    def _take(self, pulse: Pulse, now_s: float) -> None:
        self.relays.set_pulse(pulse.muscle, int(pulse.inflate), pulse.open_s, pulse.close_s, now_s)
        self._free_s[pulse.muscle] = pulse.off_s + self.drive.guard_s

    def _tick(self, now_s: float) -> float:
        """Return the tick [s] at which a message sent now is executed."""
        return math.ceil((now_s + self.relays.config.link_delay_s) / TICK_S - 1e-6) * TICK_S


class MuscleDrive:
    """
    Simulates the driver: its length estimates, with a board that obeys at once.

    Parameters
    ----------
    config, lengths, load_of
        As in `MuscleLengths`.
    board
        The board that opens the valves.

    """

    def __init__(
        self,
        config: ValveDriveConfig,
        board: ValveBoard,
        lengths: Array,
        load_of: Callable[[Array], Array],
    ) -> None:
        self.config, self.board = config, board
        self.lengths = MuscleLengths(config, lengths, load_of)
        self.velocity = np.zeros(self.estimate.size)

    @property
    def estimate(self) -> Array:
        """The driver's estimate of the lengths after all pulses so far (m,) [m]."""
        return self.lengths.estimate

    def reading(self, now_s: float) -> Array:
        """Return the driver's estimate of the present lengths (m,) [m], also during a pulse."""
        return self.lengths.under_way(self.board.left(now_s))

    def command(self, now_s: float, target: Array, period_s: float) -> None:
        """Send the pulses towards lengths (m,) [m]; busy muscles have to wait."""
        self.lengths.leak(now_s)
        before = self.estimate
        choice = self.lengths.choose(target, ~self.board.busy(now_s))
        opened = np.zeros(before.size)
        for i in choice.muscles:
            inflate, ticks = bool(choice.inflate[i]), int(choice.ticks[i])
            pulse = self.board.fire(now_s, int(i), inflate, ticks)
            opened[i] = pulse.off_s - pulse.on_s
        self.lengths.carry_out(choice, opened)
        self.velocity = (self.estimate - before) / period_s

    def hold(self, now_s: float) -> None:
        """Close all valves as fast as the board can; correct the estimate for cut pulses."""
        for pulse in self.board.cut(now_s):
            self.lengths.cut(pulse.muscle, pulse.inflate, pulse.off_s - pulse.on_s)
        self.velocity = np.zeros(self.estimate.size)
