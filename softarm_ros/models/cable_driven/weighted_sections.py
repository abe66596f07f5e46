"""Bending sections under weight and a load at the tip, held at given bends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.legendre import Legendre

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import exp_so3
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cable_driven.weight_balance_kernels import HELD, UNSTABLE, settle_into
from softarm_ros.models.cable_driven.weight_kernels import (
    frames_into,
    gradient_into,
    tip_twist_into,
)
from softarm_ros.models.cable_driven.weight_layout import Cables, Frames, Loads, Rod
from softarm_ros.models.config import SectionConfig

# Torsion over bending stiffness of a round, incompressible body: G J / E I with G = E / 3.
_TORSION_SHARE = 2.0 / 3.0
_NO_FACTOR = np.zeros((0, 0))
_CHEAPEST_TURN_RAD = 1e-12
# Two rests of the same bends twist to opposite sides; below this twist, they count as one.
_TWISTED_RAD = 0.05
_APART_RAD = 1e-3
_DIFFERENCE_RAD = 1e-4


@dataclass(frozen=True)
class HeldSections:
    """
    Sections at rest whose bends are held.

    Attributes
    ----------
    bend : (dof,)
        The bends held: the integral of the curvature over each section [rad].
    unknowns : (n,)
        Bends and free unknowns, as in `weight_kernels`.
    moments : (dof,)
        Moments that the cables must hold, D = dV / d bend [N m].
    stiffness : (dof, dof)
        d moments / d bend [N m/rad].
    slopes : (f, dof)
        Derivative of the free unknowns by the bends.
    factor : (f, f)
        Cholesky factor of the free unknowns' stiffness; speeds up neighbours.

    """

    bend: Array
    unknowns: Array
    moments: Array
    stiffness: Array
    slopes: Array
    factor: Array


class WeightedSections:
    """
    Statics of sections in series at given bends, whatever holds them.

    Parameters
    ----------
    sections
        From base to tip.
    gravity_m_s2 : (3,)
        Base frame.
    cables
        For each section (m, 3): a_x, a_y [m] and angle [rad] of its cables.
    bends, twists
        Number of Legendre polynomials of curvature and of twist in each section.
    pieces
        Number of pieces of each section.

    """

    def __init__(
        self,
        sections: Sequence[SectionConfig],
        gravity_m_s2: Sequence[float] | Array,
        cables: Sequence[Array],
        bends: int = 3,
        twists: int = 2,
        pieces: int = 8,
    ) -> None:
        rods = np.array(
            [
                [s.length_m, s.endcap_length_m, s.bending_stiffness_N_m2,
                 _TORSION_SHARE * s.bending_stiffness_N_m2]
                for s in sections
            ]
        )  # fmt: skip
        self._names = [s.name for s in sections]
        self._rod = Rod(rods, _means(max(bends, twists), pieces), bends, twists)
        self._pieces = pieces
        self._paths = list(cables)
        first = np.cumsum([0, *(len(path) for path in cables)]).astype(np.int64)
        self._cables = Cables(np.concatenate(list(cables)), first)
        per_section = 2 * bends + twists
        self._count = per_section * len(sections)
        self._held = np.array([a % per_section < 2 for a in range(self._count)])
        self._weights = _weights(sections, np.asarray(gravity_m_s2, dtype=float), pieces)

    def load(self, tip_force: Array, tip_moment: Array) -> Loads:
        """Return the load of the sections' weight, and of a force [N] and moment [N m] (3,)."""
        forces = self._weights.copy()
        forces[-1] += tip_force
        return Loads(forces, np.array(tip_moment, dtype=float))

    def settled(self, bend: Array, load: Loads, near: HeldSections | None = None) -> HeldSections:
        """
        Return the sections at rest with bends (dof,) [rad] under a load.

        `near` is a neighbouring rest under the same load; it speeds up the search, and is ignored
        if it leads to no rest or to one of two.

        Raises
        ------
        ModelError
            If there is no stable rest, however the cables hold the sections; or if there are two,
            so that the bends alone do not determine the rest.

        """
        held = self.rest_near(bend, load, near)
        if near is not None and self._has_another_rest(held, load):
            return self.settled(bend, load)
        self.check_the_only(held, load)
        return held

    def rest_near(
        self, bend: Array, load: Loads, near: HeldSections | None = None
    ) -> HeldSections:
        """Return sections at rest as `settled` does, but accept either of two rests."""
        unknowns = np.zeros(self._count)
        factor_near = _NO_FACTOR
        if near is not None:
            free = near.slopes @ (bend - near.bend)
            unknowns[~self._held] = near.unknowns[~self._held] + free
            factor_near = near.factor
        unknowns[self._held] = bend
        status, held = self._settle(unknowns, load, factor_near)
        if status != HELD and near is not None:
            return self.rest_near(bend, load)
        if status != HELD:
            what = 'falls aside' if status == UNSTABLE else 'finds no rest'
            raise ModelError(f'{self._bent(bend)}, the arm {what} {self._under(load)}')
        return held

    def check_the_only(self, held: HeldSections, load: Loads) -> None:
        """Raise `ModelError` if the same bends have another stable rest."""
        if self._has_another_rest(held, load):
            raise ModelError(
                f'{self._bent(held.bend)}, the arm may fall to either side: '
                f'{self._under(load)} it has two rests'
            )

    def _settle(self, start: Array, load: Loads, factor_near: Array) -> tuple[int, HeldSections]:
        """Return the status and the rest found from unknowns (n,), keeping their bends."""
        unknowns = start.copy()
        dof = int(self._held.sum())
        free_count = self._count - dof
        moments, stiffness = np.empty(dof), np.empty((dof, dof))
        factor, slopes = np.zeros((free_count, free_count)), np.empty((free_count, dof))
        status = settle_into(
            unknowns, self._rod, load, self._cables, factor_near,
            moments, stiffness, factor, slopes,
        )  # fmt: skip
        bend = start[self._held]
        return status, HeldSections(bend, unknowns, moments, stiffness, slopes, factor)

    def _has_another_rest(self, held: HeldSections, load: Loads) -> bool:
        """
        Tell whether the same bends have a second stable rest.

        Sections that are bent far in a plane buckle sideways under weight, twisting to either
        side. The search for the other rest starts from the mirror image of this one, with each
        section mirrored in the plane of its bend.
        """
        _, _, bends, twists = self._rod
        mirrored = held.unknowns.reshape(-1, 2 * bends + twists).copy()
        twisted = mirrored[:, 2 * bends :]
        if float(np.abs(twisted).max(initial=0.0)) < _TWISTED_RAD:
            return False
        twisted *= -1.0
        for rows, bend in zip(mirrored, held.bend.reshape(-1, 2)):
            size = float(np.linalg.norm(bend))
            along = bend / size if size > _CHEAPEST_TURN_RAD else np.array([1.0, 0.0])
            curvatures = rows[2 : 2 * bends].reshape(-1, 2)
            curvatures[:] = 2.0 * np.outer(curvatures @ along, along) - curvatures
        start = mirrored.ravel()
        if self._curved_halfway(held.unknowns, start, load) > 0.0:
            return False  # no energy barrier in between: the mirror image would return here
        status, other = self._settle(start, load, _NO_FACTOR)
        return status == HELD and bool(np.abs(other.unknowns - held.unknowns).max() > _APART_RAD)

    def _curved_halfway(self, one: Array, other: Array, load: Loads) -> float:
        """Return the energy's curvature [J] halfway on the line between two unknowns (n,)."""
        frames, middle = self._room(), 0.5 * (one + other)
        way = one - other
        step = _DIFFERENCE_RAD / float(np.abs(way).max())
        ahead, behind = np.empty(self._count), np.empty(self._count)
        gradient_into(middle + step * way, self._rod, load, frames, ahead)
        gradient_into(middle - step * way, self._rod, load, frames, behind)
        return float(way @ (ahead - behind)) / (2.0 * step)

    def section_tips(self, held: HeldSections) -> Array:
        """Return the section tips (sections, 4, 4)."""
        frames = self._frames(held.unknowns)
        ends = (self._pieces + 2) * np.arange(1, len(self._rod.sections) + 1)
        tips = np.zeros((len(ends), 4, 4))
        tips[:, :3, :3], tips[:, :3, 3], tips[:, 3, 3] = (
            frames.rotation[ends],
            frames.place[ends],
            1.0,
        )
        return tips

    def tip_twist(self, held: HeldSections) -> Array:
        """Return the tip twist per bend rate (6, dof), base frame, linear rows first."""
        twist = np.empty((6, self._count))
        tip_twist_into(held.unknowns, self._rod, self._room(), twist)
        return np.asarray(twist[:, self._held] + twist[:, ~self._held] @ held.slopes)

    def lengthening(self, held: HeldSections) -> tuple[Array, Array]:
        """
        Return the lengthening of cables by twist (sections,) [m], and d / d bend.

        A cable at distance r becomes longer by r^2 / 2 times the integral of tau^2.
        """
        sections, _, bends, twists = self._rod
        count = 2 * bends + twists
        weights = np.zeros((len(sections), self._count))
        for k, (length, path) in enumerate(zip(sections[:, 0], self._paths)):
            square = path[0, 0] ** 2 + path[0, 1] ** 2
            for j in range(twists):
                weights[k, count * k + 2 * bends + j] = square / (length * (2 * j + 1))
        by_unknown = weights * held.unknowns
        return 0.5 * by_unknown @ held.unknowns, by_unknown[:, ~self._held] @ held.slopes

    def centerline(self, held: HeldSections, n: int) -> Array:
        """Return (n, 3) points [m] from base to tip, evenly spaced in arc length."""
        rotation, place, phi, _ = self._frames(held.unknowns)
        lengths = np.concatenate(
            [[cap, *[length / self._pieces] * self._pieces, cap]
             for length, cap in self._rod.sections[:, :2]]
        )  # fmt: skip
        ends = np.concatenate([[0.0], np.cumsum(lengths)])
        points = np.empty((n, 3))
        for i, s in enumerate(np.linspace(0.0, ends[-1], n)):
            e = min(int(np.searchsorted(ends, s, side='right')) - 1, len(lengths) - 1)
            share = (s - ends[e]) / lengths[e] if lengths[e] > 0.0 else 0.0
            turn = share * phi[e]
            half = 0.5 * math.hypot(turn[0], turn[1])
            chord = (
                share * lengths[e] * (math.sin(half) / half if half > _CHEAPEST_TURN_RAD else 1)
            )
            points[i] = place[e] + chord * (rotation[e] @ exp_so3(0.5 * turn))[:, 2]
        return points

    def _frames(self, unknowns: Array) -> Frames:
        frames = self._room()
        frames_into(unknowns, self._rod, frames)
        return frames

    def _room(self) -> Frames:
        elements = len(self._weights) - 1
        return Frames(
            np.empty((elements + 1, 3, 3)),
            np.empty((elements + 1, 3)),
            np.empty((elements, 3)),
            np.empty((elements, 3)),
        )

    def _bent(self, bend: Array) -> str:
        degrees = np.degrees(np.hypot(*bend.reshape(-1, 2).T))
        return 'bent by ' + ', '.join(f'{n} {d:.1f} deg' for n, d in zip(self._names, degrees))

    def _under(self, load: Loads) -> str:
        weight = -float(load.forces.sum(axis=0) @ self._up(load))
        return f'under {weight:.3g} N of weight and load'

    @staticmethod
    def _up(load: Loads) -> Array:
        """Return the direction (3,) opposite to the total force."""
        whole = load.forces.sum(axis=0)
        size = float(np.linalg.norm(whole))
        return -whole / size if size > 0.0 else np.zeros(3)


def _means(count: int, pieces: int) -> Array:
    """Return the means of P_0, P_1, ... over each piece, divided by N pieces (N, count)."""
    ends = np.linspace(-1.0, 1.0, pieces + 1)
    columns = [np.diff(Legendre.basis(j).integ()(ends)) / 2.0 for j in range(count)]
    return np.ascontiguousarray(np.stack(columns, axis=1))


def _weights(sections: Sequence[SectionConfig], gravity: Array, pieces: int) -> Array:
    """Return the sections' weights (E + 1, 3) [N]; half of each element acts on either end."""
    masses: list[float] = []
    for s in sections:
        masses += [s.endcap_mass_kg, *[s.body_mass_kg / pieces] * pieces, s.endcap_mass_kg]
    halves = 0.5 * np.array([*masses, 0.0]) + 0.5 * np.array([0.0, *masses])
    return np.asarray(halves[:, None] * gravity)
