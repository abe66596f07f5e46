"""Muscles behind closed valves: a folded skeleton, and gas whose amount stays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.minimum_energy.muscle_kernels import Springs


@dataclass(frozen=True)
class GasSprings:
    """
    The law of vacuum muscles, told by lengths.

    A skeleton, a spring k = max_pull / (longest - shortest), pushes a muscle out to its full
    length; the air pushes it together, as hard as the skeleton is when it is folded; gas inside
    pushes it out. Shut in, at the temperature of the room, gas keeps pressure by volume. What is
    told of it is its free length g: that which it gives a muscle without load, as fig. 4b of Chen
    et al. 2022 has it against the time a valve was open. At a length l the muscle pulls

        T = k (l - shortest) - k g (g - shortest) / l

    Beyond the longest length g is what the law says, though the film of a bag without load stops
    there: a bag that a load holds shorter takes gas up to the supply's pressure.

    Attributes
    ----------
    shortest_m, longest_m : float
        Lengths of an empty muscle and of one that is vented.
    max_pull_N : float
        Of the longest one, empty.
    supply_push_N : float
        Pressure of the supply above that of the air, by cross-section.

    """

    shortest_m: float
    longest_m: float
    max_pull_N: float
    supply_push_N: float

    @property
    def skeleton_N_m(self) -> float:
        """Stiffness k of the skeleton."""
        return self.max_pull_N / (self.longest_m - self.shortest_m)

    @property
    def most_m(self) -> float:
        """Free length of a full bag at the pressure of the supply, the film aside."""
        return float(self.free(-self.supply_push_N, self.longest_m))

    def gas(self, free_m: Array) -> Array:
        """Return pressure by cross-section by length [N m] of free lengths."""
        return np.asarray(self.skeleton_N_m * free_m * (free_m - self.shortest_m))

    def pull(self, length_m: Array, free_m: Array) -> Array:
        """Return the pull [N] at lengths of muscles whose gas has free lengths."""
        skeleton = self.skeleton_N_m * (length_m - self.shortest_m)
        return np.asarray(skeleton - self.gas(free_m) / length_m)

    def free(self, pull_N: Array | float, length_m: Array | float) -> Array:
        """Return the free lengths [m] of gas with which muscles of some lengths pull so hard."""
        pressed = self.skeleton_N_m * (length_m - self.shortest_m) - pull_N  # by the gas
        gas = np.maximum(pressed, 0.0) * length_m / self.skeleton_N_m
        half = 0.5 * self.shortest_m
        return np.asarray(half + np.sqrt(half * half + gas))

    def length(self, pull_N: Array, free_m: Array) -> Array:
        """Return the lengths [m] at which gas of free lengths lets muscles pull so hard."""
        half = 0.5 * (self.shortest_m + pull_N / self.skeleton_N_m)
        gas = self.gas(free_m) / self.skeleton_N_m
        return np.asarray(half + np.sqrt(half * half + np.maximum(gas, 0.0)))

    def vented(self, length_m: Array | float) -> Array:
        """Return the free lengths [m] of gas at the pressure of the air, at some lengths."""
        return self.free(-self.skeleton_N_m * (self.longest_m - length_m), length_m)

    def middle_pull(self, length_m: Array) -> Array:
        """Return the pull [N] at a pressure halfway between vacuum and supply."""
        most = self.skeleton_N_m * (length_m - self.shortest_m)
        return np.asarray(most - 0.5 * (self.max_pull_N + self.supply_push_N))

    def springs(self, free_m: Array) -> Springs:
        """Return the muscles (modules, 3) under commanded free lengths [m]."""
        k, low = self.skeleton_N_m, self.shortest_m
        return Springs(
            np.full(free_m.shape, k),
            np.full(free_m.shape, low),
            np.ascontiguousarray(self.gas(free_m)),
            np.zeros(free_m.shape),
            np.ascontiguousarray(k * (2.0 * free_m - low)),
        )


def linear_springs(lengths_m: Array, stiffness_N_m: float) -> Springs:
    """Return muscles of one stiffness [N/m] under commanded lengths without load (modules, 3)."""
    k, none = np.full(lengths_m.shape, stiffness_N_m), np.zeros(lengths_m.shape)
    return Springs(k, np.ascontiguousarray(lengths_m), none, k, none)
