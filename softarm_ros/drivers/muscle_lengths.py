"""Gas in muscles from valve times alone: pulses towards a target, and their estimated result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from softarm_ros.drivers.valve_config import ValveDriveConfig
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.minimum_energy.valves import ValveCommand

TICK_S = 1e-3  # time unit of the board
# Opening times below this share of the shortest pulse are postponed: a shortest pulse would
# overshoot, and the muscle would oscillate.
_WORTH_A_PULSE = 0.75
_FLOW_RATES = (0.05, 3.0)  # bounds; beyond them, the load exceeds the muscle's ability


@dataclass(frozen=True)
class PulseChoice:
    """
    Pulses that lead towards a target.

    Attributes
    ----------
    muscles : (k,)
        Indices of the muscles that get a pulse.
    inflate : (m,)
        Whether each muscle needs its inflating valve rather than the deflating one.
    ticks : (m,)
        Pulse durations [ms], within shortest and longest pulse; valid for the chosen muscles only.
    rates : (m, 2)
        Emptying and filling rates under load, relative to the unloaded tables.

    """

    muscles: NDArray[np.intp]
    inflate: NDArray[np.bool_]
    ticks: NDArray[np.int_]
    rates: Array


# Whether to fill (m,), opening times (m,) [s], emptying and filling rates (m, 2).
_Way: TypeAlias = tuple[NDArray[np.bool_], Array, Array]


class MuscleLengths:
    """
    Estimates the gas in every muscle, since no sensor measures it.

    The amount of gas is expressed as the length that it gives a muscle without load; the tables
    have this length against time (`GasSprings`). The estimate follows from all pulses and leaks
    since homing. It does not account for delays or differences between the muscles.

    Parameters
    ----------
    config
        Tables and timing.
    lengths
        Lengths (m,) [m] after homing.
    load_of
        Maps lengths (m,) [m] that express the gas to the tensions of the muscles (m,) [N], by the
        model of the arm. With the same gas, a stretched muscle empties slowly and fills fast.

    Attributes
    ----------
    estimate : (m,)
        Lengths [m] after all pulses so far; `under_way` returns those during the pulses.

    """

    def __init__(
        self, config: ValveDriveConfig, lengths: Array, load_of: Callable[[Array], Array]
    ) -> None:
        self.config = config
        self._load_of = load_of
        self.valves, self._law = config.table(), config.law
        self.estimate = np.array(lengths, dtype=np.float64)
        self._before = self.estimate.copy()
        self._rates = np.ones((self.estimate.size, 2))
        self._leaked_s: float | None = None  # time up to which leaks are counted
        self._inflate = np.zeros(self.estimate.size, dtype=np.bool_)
        self._opened_s = np.zeros(self.estimate.size)
        # Cached: pulses are chosen far more often than target or estimate change.
        self._target = np.full(self.estimate.size, np.nan)
        self._load = np.zeros(self.estimate.size)
        self._known: tuple[Array, _Way] | None = None

    def choose(
        self, target: Array, idle: NDArray[np.bool_], near: Array | None = None
    ) -> PulseChoice:
        """
        Return pulses of idle muscles (m,) towards lengths (m,) [m] in the tables' range.

        With lengths `near` on the way, pulses lead no farther; the load is that at the target.
        """
        inflate, wanted, rates = self._way_to(target, target if near is None else near)
        shortest, longest = self.config.shortest_pulse_s, self.config.longest_pulse_s
        chosen = np.flatnonzero(idle & (wanted >= _WORTH_A_PULSE * shortest))
        ticks = np.rint(np.clip(wanted, shortest, longest) / TICK_S).astype(int)
        return PulseChoice(chosen, inflate, ticks, rates)

    def home(self, lengths: Array, now_s: float) -> None:
        """Set the estimate to known lengths (m,) [m]."""
        self.estimate, self._leaked_s = np.array(lengths, dtype=np.float64), now_s

    def leak(self, now_s: float) -> None:
        """Update the estimate by the leaks of closed valves since the last call."""
        before, self._leaked_s = self._leaked_s, now_s
        leak_s, law, gas = self.config.leak_time_s, self._law, self.estimate
        if leak_s is None or before is None:
            return
        # n' = c (P_out A - n / l) with n = k g (g - shortest); time constant leak_s when full.
        full, low = law.longest_m, law.shortest_m
        head = full - low - (gas - low) * gas / self._lengths()
        rate = (2.0 * full - low) / (2.0 * gas - low) * head / leak_s
        after = self.estimate + (now_s - before) * rate
        self.estimate = np.clip(after, *self.config.range_m)

    def _way_to(self, target: Array, near: Array) -> _Way:
        """Return valves, opening times and flow rates from the estimate to `near`."""
        ends = np.stack([target, near, self.estimate])
        if self._known is not None and np.array_equal(self._known[0], ends):
            return self._known[1]
        rates = self._flow_rates(target)
        way = self.valves.times(self.estimate, near)
        inflate = way.inflate_s > way.deflate_s
        wanted = np.where(inflate, way.inflate_s / rates[:, 1], way.deflate_s / rates[:, 0])
        self._known = ends, (inflate, wanted, rates)
        return inflate, wanted, rates

    def _lengths(self) -> Array:
        """Return the lengths (m,) [m] of the muscles with their gas under their last load."""
        return self._law.length(self._load, self.estimate)

    def carry_out(self, choice: PulseChoice, opened_s: Array) -> None:
        """Update the estimate by pulses of durations (m,) [s], 0 for muscles not chosen."""
        if choice.muscles.size == 0:
            return
        after = self._after(self.estimate, opened_s, choice.inflate, choice.rates)
        self._before[choice.muscles] = self.estimate[choice.muscles]
        self._rates[choice.muscles] = choice.rates[choice.muscles]
        self._inflate[choice.muscles] = choice.inflate[choice.muscles]
        self._opened_s[choice.muscles] = opened_s[choice.muscles]
        self.estimate = after

    def under_way(self, left_s: Array) -> Array:
        """Return the lengths (m,) [m] while the latest pulses have (m,) [s] left to run."""
        lengths, running = self.estimate.copy(), left_s > 0.0
        if running.any():
            done = np.maximum(self._opened_s - left_s, 0.0)[running]
            lengths[running] = self._after(
                self._before[running], done, self._inflate[running], self._rates[running]
            )
        return lengths

    def cut(self, muscle: int, inflate: bool, opened_s: float) -> None:
        """Correct a muscle's estimate: its last pulse was cut short after `opened_s`."""
        i = slice(muscle, muscle + 1)
        self._opened_s[muscle] = opened_s
        self.estimate[muscle] = self._after(
            self._before[i], np.array([opened_s]), np.array([inflate]), self._rates[i]
        )[0]

    def _flow_rates(self, target: Array) -> Array:
        """
        Return emptying and filling rates (m, 2) under load, relative to the unloaded tables.

        Gas flow is proportional to the pressure difference. The pressure of the same gas falls by
        the factor g / l as a load stretches a muscle from its unloaded length g to l.
        """
        if not np.array_equal(target, self._target):
            self._load = self._load_of(target)
            self._target = target.copy()
        law, gas = self._law, self.estimate
        shorter = gas / self._lengths()
        most = law.longest_m - law.shortest_m + law.supply_push_N / law.skeleton_N_m
        inside = gas - law.shortest_m  # pressures, by the skeleton's stiffness
        fill = (most - inside * shorter) / np.maximum(most - inside, 1e-3 * most)
        return np.clip(np.stack([shorter, fill], axis=1), *_FLOW_RATES)

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
