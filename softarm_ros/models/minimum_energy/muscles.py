"""Geometry of the parallel muscles along a backbone (Chen et al. 2022, eq. 1, 52-54)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from softarm_ros.geometry.arrays import Array, finite_array
from softarm_ros.models.minimum_energy.config import ParallelModulesConfig
from softarm_ros.models.minimum_energy.muscle_kernels import Springs, muscle_vectors_into
from softarm_ros.models.minimum_energy.rod import RodEquilibrium


@dataclass(frozen=True)
class MusclesInBalance:
    """
    Muscles of an arm in equilibrium.

    Attributes
    ----------
    vectors, springs : (modules, 3, 3), Springs
        Muscles from disk to disk [m], base frame, and their springs.

    """

    vectors: Array
    springs: Springs

    @cached_property
    def lengths(self) -> Array:
        """Actual lengths (3 modules,) [m] of the muscles."""
        return np.asarray(np.linalg.norm(self.vectors, axis=2).ravel())

    @cached_property
    def tensions(self) -> Array:
        """Muscle forces (3 modules,) [N], positive pulling."""
        stiffness, rest, gas = (one.ravel() for one in self.springs[:3])
        return np.asarray(stiffness * (self.lengths - rest) - gas / self.lengths)


@dataclass(frozen=True)
class MuscleClamp:
    """A muscle whose wanted length [m] is outside its limits."""

    muscle: str
    wanted_m: float
    limit_m: float

    def __str__(self) -> str:
        """Return the clamp in millimetres, for messages."""
        side = 'longest' if self.wanted_m > self.limit_m else 'shortest'
        return (
            f'{self.muscle} would be {1e3 * self.wanted_m:.2f} mm, '
            f'{side} {1e3 * self.limit_m:.2f} mm'
        )


def muscle_names(modules: int) -> tuple[str, ...]:
    """Return the names of the muscles from base to tip: three per module."""
    return tuple(f'module_{t}_muscle_{i}' for t in range(1, modules + 1) for i in (1, 2, 3))


def muscle_anchors(config: ParallelModulesConfig) -> Array:
    """
    Return the anchors (modules, 3, 3) [m] in the frames of both disks of a module.

    Module t = 1, 2, ... has muscle i = 1, 2, 3 at 120 i + 30 degrees for odd t and 120 i - 30
    degrees for even t (eq. 1), around z from x.
    """
    t = np.arange(1, config.modules + 1)[:, None]
    i = np.arange(1, 4)[None, :]
    angle = i * 2.0 * np.pi / 3.0 + np.where(t % 2 == 1, 1.0, -1.0) * np.pi / 6.0
    radius = config.anchor_radius_m
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros_like(angle)], axis=2)


def muscle_lengths(
    rod: RodEquilibrium, config: ParallelModulesConfig, anchors: Array | None = None
) -> Array:
    """
    Return the lengths (3 modules,) [m] of the muscles on a rod: eq. 54 with corrected anchors.

    `anchors` are those of `muscle_anchors`, if known.

    Raises
    ------
    ValueError
        If the disks do not fall on nodes of the rod.

    """
    intervals = len(rod.nodes) - 1
    check_disks(intervals, config)
    vectors = np.empty((config.modules, 3, 3))
    anchors = muscle_anchors(config) if anchors is None else anchors
    muscle_vectors_into(rod.nodes, rod.positions, anchors, vectors)
    return np.linalg.norm(vectors, axis=2).ravel()


def clamp_lengths(
    lengths: Array, config: ParallelModulesConfig
) -> tuple[Array, tuple[MuscleClamp, ...]]:
    """Return the lengths (3 modules,) [m] clipped to the limits, and the clamped muscles."""
    wanted = finite_array(lengths, (3 * config.modules,), 'lengths')
    clamped = np.clip(wanted, *config.command_range_m)
    beyond = np.flatnonzero(clamped != wanted)
    names = muscle_names(config.modules) if len(beyond) else ()
    return clamped, tuple(
        MuscleClamp(names[i], float(wanted[i]), float(clamped[i])) for i in beyond
    )


def check_disks(intervals: int, config: ParallelModulesConfig) -> None:
    """Raise `ValueError` unless every disk is at a node."""
    if intervals % config.modules:
        raise ValueError(
            f'intervals = {intervals} is not a multiple of modules = {config.modules}: the disks '
            f'must fall on nodes'
        )
