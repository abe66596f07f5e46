"""Lengths to valve times to open valves: the driver's table, the valve board, the relays."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softarm_ros.models.minimum_energy.valves import ValveCommand
from softarm_ros.plant.actuator_state import Array
from softarm_ros.plant.pam_arm.config import RelayConfig, ValveDriveConfig

TICK_S = 1e-3  # of the board
# A way shorter than this share of the shortest pulse is left for later: it would be overshot by
# more than what remains, and then back.
_WORTH_A_PULSE = 0.75
_NEVER = -1.0
_FLOW_RATES = (0.2, 3.0)  # beyond, the load is beyond what the muscle can do


@dataclass(frozen=True)
class Pulse:
    """
    One opening of one valve [s].

    Attributes
    ----------
    muscle, inflate
        Which muscle (index), and which of its two valves.
    on_s, off_s
        When the board switches the relay.
    open_s, close_s
        When the valve follows; with close_s <= open_s it never opened.

    """

    muscle: int
    inflate: bool
    on_s: float
    off_s: float
    open_s: float
    close_s: float


class ValveBoard:
    """
    The board that times the relays, and the relays and valves behind it.

    A pulse is a valve and a number of ticks. The interlock is here: while a relay of a muscle is
    on, and for the guard time after that, the muscle takes no other pulse, so that its two valves
    are never open together. `log` keeps every pulse.

    Parameters
    ----------
    muscles
        How many; each has two valves.
    drive, relays
        Timing of the board; delays of relays and valves.
    rng
        Of the delays and their jitter.

    """

    def __init__(
        self, muscles: int, drive: ValveDriveConfig, relays: RelayConfig, rng: np.random.Generator
    ) -> None:
        self.drive, self.relays = drive, relays
        valves = (muscles, 2)  # deflate, inflate
        opening = rng.uniform(relays.shortest_delay_s, relays.longest_delay_s, valves)
        later = relays.closing_spread_s * np.clip(rng.standard_normal(valves), -2.0, 2.0)
        self.delays_s = np.stack([opening, opening + later], axis=2)
        self._rng = rng
        self.log: list[Pulse] = []
        self._last: list[int] = [-1] * muscles  # index in the log
        self.open_s = np.full(muscles, _NEVER)
        self.close_s = np.full(muscles, _NEVER)
        self.inflating = np.zeros(muscles, dtype=np.bool_)
        self._free_s = np.full(muscles, _NEVER)

    def busy(self, now_s: float) -> NDArray[np.bool_]:
        """Return which muscles (m,) would not take a pulse now."""
        return self._tick(now_s) < self._free_s - 0.5 * TICK_S

    def fire(self, now_s: float, muscle: int, inflate: bool, ticks: int) -> Pulse:
        """
        Open a valve for some ticks.

        Raises
        ------
        ValueError
            If the muscle is busy (interlock) or the pulse is not between shortest and longest.

        """
        on = self._tick(now_s)
        if on < self._free_s[muscle] - 0.5 * TICK_S:
            raise ValueError(
                f'muscle {muscle}: busy until {self._free_s[muscle]:.3f} s, pulse refused at '
                f'{on:.3f} s (interlock)'
            )
        shortest, longest = self.drive.shortest_pulse_s, self.drive.longest_pulse_s
        if not shortest - 0.5 * TICK_S <= ticks * TICK_S <= longest + 0.5 * TICK_S:
            raise ValueError(f'muscle {muscle}: pulse of {ticks} ms, {shortest} to {longest} s')
        off = on + ticks * TICK_S
        to_open, to_close = self.delays_s[muscle, int(inflate)]
        bound = 3.0 * self.relays.jitter_s
        early, late = np.clip(self.relays.jitter_s * self._rng.standard_normal(2), -bound, bound)
        pulse = Pulse(muscle, inflate, on, off, on + to_open + early, off + to_close + late)
        self._last[muscle] = len(self.log)
        self.log.append(pulse)
        self._take(pulse)
        return pulse

    def cut(self, now_s: float) -> list[Pulse]:
        """Switch all relays off; return the pulses that were cut short, as they are now."""
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
            self._take(self.log[index])
            cut.append(self.log[index])
        return cut

    def _take(self, pulse: Pulse) -> None:
        i = pulse.muscle
        self.open_s[i], self.close_s[i] = pulse.open_s, pulse.close_s
        self.inflating[i] = pulse.inflate
        self._free_s[i] = pulse.off_s + self.drive.guard_s

    def _tick(self, now_s: float) -> float:
        """Return the tick [s] at which what is sent now is carried out."""
        return math.ceil((now_s + self.relays.link_delay_s) / TICK_S - 1e-6) * TICK_S


class MuscleDrive:
    """
    The driver: brings muscles to lengths by valve times alone, as nothing measures a length.

    It keeps an estimate of every length: where its table says the pulses have led since homing.
    What delays, loads, leaks and play make of them does not show in it.

    Parameters
    ----------
    config
        Tables and timing.
    board
        What opens the valves.
    lengths
        (m,) [m] after homing.
    load_of
        Pull of the muscles (m,) [N] when they hold lengths (m,) [m], by the model of the arm: a
        muscle that pulls empties slowly and fills fast.

    """

    def __init__(
        self,
        config: ValveDriveConfig,
        board: ValveBoard,
        lengths: Array,
        load_of: Callable[[Array], Array],
    ) -> None:
        self.config, self.board = config, board
        self._load_of = load_of
        self.valves = config.table()
        self.estimate = np.array(lengths, dtype=np.float64)
        self.velocity = np.zeros(self.estimate.size)
        self._before = self.estimate.copy()
        self._rates = np.ones((self.estimate.size, 2))

    def command(self, now_s: float, target: Array, period_s: float) -> None:
        """Send the pulses that lead towards lengths (m,) [m], those of busy muscles later."""
        rates = self._flow_rates(target)
        way = self.valves.times(self.estimate, target)
        inflate = way.inflate_s > way.deflate_s
        wanted = np.where(inflate, way.inflate_s / rates[:, 1], way.deflate_s / rates[:, 0])
        shortest, longest = self.config.shortest_pulse_s, self.config.longest_pulse_s
        idle = ~self.board.busy(now_s)
        chosen = np.flatnonzero(idle & (wanted >= _WORTH_A_PULSE * shortest))
        ticks = np.rint(np.clip(wanted, shortest, longest) / TICK_S).astype(int)
        opened = np.zeros(wanted.size)
        for i in chosen:
            pulse = self.board.fire(now_s, int(i), bool(inflate[i]), int(ticks[i]))
            opened[i] = pulse.off_s - pulse.on_s
        after = self._after(self.estimate, opened, inflate, rates)
        self._before[chosen] = self.estimate[chosen]
        self._rates[chosen] = rates[chosen]
        self.velocity = (after - self.estimate) / period_s
        self.estimate = after

    def hold(self, now_s: float) -> None:
        """Close all valves as fast as the board can; the estimate goes back by what was cut."""
        for pulse in self.board.cut(now_s):
            i = pulse.muscle
            opened = np.array([pulse.off_s - pulse.on_s])
            inflate = np.array([pulse.inflate])
            self.estimate[i] = self._after(
                self._before[i : i + 1], opened, inflate, self._rates[i : i + 1]
            )[0]
        self.velocity = np.zeros(self.estimate.size)

    def _flow_rates(self, target: Array) -> Array:
        """
        Return how fast muscles empty and fill (m, 2) under their load, by the unloaded tables.

        Gas flows with the difference of pressures, of which pulling takes its share: at a length
        where the pump could pull F more than the skeleton takes, T of which are used, emptying
        slows down by 1 - T / F; filling likewise quickens.
        """
        config, load = self.config, self._load_of(target)
        low, high = config.deflating.lengths_m[-1], config.deflating.lengths_m[0]
        skeleton = config.max_pull_N / (high - low)
        empty = np.maximum(self.estimate - low, 1e-3 * high)
        fill = high - self.estimate + config.supply_push_N / skeleton
        rates = np.stack([1.0 - load / skeleton / empty, 1.0 + load / skeleton / fill], axis=1)
        return np.clip(rates, *_FLOW_RATES)

    def _after(
        self, lengths: Array, opened_s: Array, inflate: NDArray[np.bool_], rates: Array
    ) -> Array:
        none = np.zeros(opened_s.size)
        return self.valves.lengths(
            lengths,
            ValveCommand(
                np.where(inflate, opened_s * rates[:, 1], none),
                np.where(inflate, none, opened_s * rates[:, 0]),
            ),
        )
