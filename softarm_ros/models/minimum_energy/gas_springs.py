"""Muscles behind closed valves: a folded skeleton and a constant amount of gas."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.minimum_energy.muscle_kernels import Springs


@dataclass(frozen=True)
class GasSprings:
    """
    The law of vacuum muscles, in terms of lengths.

    A skeleton, a spring of stiffness k = max_pull / (longest - shortest), extends a muscle to its
    full length. The ambient air compresses it with the force of the fully folded skeleton, and the
    gas inside extends it. Enclosed gas at room temperature keeps pressure times volume. The amount
    of gas is given by its free length g: the length of the muscle without load, which fig. 4b of
    Chen et al. 2022 plots against the time a valve was open. At a length l the muscle pulls

        T = k (l - shortest) - k g (g - shortest) / l

    g may exceed the longest length. Without load the film stops the bag there, but a bag that a
    load holds shorter takes gas up to the supply pressure.

    Attributes
    ----------
    shortest_m, longest_m : float
        Lengths of an empty and of a vented muscle without load.
    max_pull_N : float
        Pull of an empty muscle at the longest length.
    supply_push_N : float
        Supply pressure above ambient, times the cross-section.

    """

    shortest_m: float
    longest_m: float
    max_pull_N: float
    supply_push_N: float

    @property
    def skeleton_N_m(self) -> float:
        """Stiffness k of the skeleton [N/m]."""
        return self.max_pull_N / (self.longest_m - self.shortest_m)

    @property
    def most_m(self) -> float:
        """Free length [m] of a bag at full length and supply pressure, ignoring the film."""
        return float(self.free(-self.supply_push_N, self.longest_m))

    def gas(self, free_m: Array) -> Array:
        """Return pressure times cross-section times length [N m] of gas with free lengths [m]."""
        return np.asarray(self.skeleton_N_m * free_m * (free_m - self.shortest_m))

    def pull(self, length_m: Array, free_m: Array) -> Array:
        """Return the pull [N] of muscles at lengths [m] whose gas has free lengths [m]."""
        skeleton = self.skeleton_N_m * (length_m - self.shortest_m)
        return np.asarray(skeleton - self.gas(free_m) / length_m)

    def free(self, pull_N: Array | float, length_m: Array | float) -> Array:
        """Return the free lengths [m] of gas for which muscles at lengths [m] pull with [N]."""
        pressed = self.skeleton_N_m * (length_m - self.shortest_m) - pull_N  # push of the gas
        gas = np.maximum(pressed, 0.0) * length_m / self.skeleton_N_m
        half = 0.5 * self.shortest_m
        return np.asarray(half + np.sqrt(half * half + gas))

    def length(self, pull_N: Array, free_m: Array) -> Array:
        """Return the lengths [m] at which muscles with gas of free lengths [m] pull with [N]."""
        half = 0.5 * (self.shortest_m + pull_N / self.skeleton_N_m)
        gas = self.gas(free_m) / self.skeleton_N_m
        return np.asarray(half + np.sqrt(half * half + np.maximum(gas, 0.0)))

    def vented(self, length_m: Array | float) -> Array:
        """Return the free lengths [m] of gas at ambient pressure in muscles at lengths [m]."""
        return self.free(-self.skeleton_N_m * (self.longest_m - length_m), length_m)

    def middle_pull(self, length_m: Array) -> Array:
        """Return the pull [N] at lengths [m] and a pressure halfway from vacuum to supply."""
        most = self.skeleton_N_m * (length_m - self.shortest_m)
        return np.asarray(most - 0.5 * (self.max_pull_N + self.supply_push_N))

    def springs(self, free_m: Array) -> Springs:
        """Return the springs of the muscles under commanded free lengths (modules, 3) [m]."""
        k, low = self.skeleton_N_m, self.shortest_m
        return Springs(
            np.full(free_m.shape, k),
            np.full(free_m.shape, low),
            np.ascontiguousarray(self.gas(free_m)),
            np.zeros(free_m.shape),
            np.ascontiguousarray(k * (2.0 * free_m - low)),
        )


def linear_springs(lengths_m: Array, stiffness_N_m: float) -> Springs:
    """Return linear springs of one stiffness [N/m] with rest lengths (modules, 3) [m]."""
    k, none = np.full(lengths_m.shape, stiffness_N_m), np.zeros(lengths_m.shape)
    return Springs(k, np.ascontiguousarray(lengths_m), none, k, none)
