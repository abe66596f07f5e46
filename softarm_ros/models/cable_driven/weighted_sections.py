"""Bending sections under weight and a load at the tip, with bends that something holds."""

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
from softarm_ros.models.cable_driven.weight_kernels import frames_into, tip_twist_into
from softarm_ros.models.cable_driven.weight_layout import Cables, Frames, Loads, Rod
from softarm_ros.models.config import SectionConfig

# Torsion over bending stiffness of a round, incompressible body: G J / E I with G = E / 3.
_TORSION_SHARE = 2.0 / 3.0
_NO_FACTOR = np.zeros((0, 0))
_CHEAPEST_TURN_RAD = 1e-12


@dataclass(frozen=True)
class HeldSections:
    """
    Sections at rest whose bends are held.

    Attributes
    ----------
    bend : (dof,)
        The bends held: the integral of the curvature over each section [rad].
    unknowns : (n,)
        Bends and what follows from them, as in `weight_kernels`.
    moments : (dof,)
        What the cables have to hold, D = dV / d bend [N m].
    stiffness : (dof, dof)
        d moments / d bend [N m/rad].
    slopes : (f, dof)
        Derivative of the unknowns that are free.
    factor : (f, f)
        Of their stiffness; a start for neighbours.

    """

    bend: Array
    unknowns: Array
    moments: Array
    stiffness: Array
    slopes: Array
    factor: Array


class WeightedSections:
    """
    Statics of sections in series, whatever holds their bends.

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
        Of each section.

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
        """Return the weight of the sections, and a force (3,) [N] and moment [N m] on the tip."""
        forces = self._weights.copy()
        forces[-1] += tip_force
        return Loads(forces, np.array(tip_moment, dtype=float))

    def settled(self, bend: Array, load: Loads, near: HeldSections | None = None) -> HeldSections:
        """
        Return the sections at rest with bends (dof,) [rad] under a load.

        `near` is a neighbour of the same load, for speed; one that leads nowhere is left aside.

        Raises
        ------
        ModelError
            If there is no stable rest: the sections fall aside, however the cables hold them.

        """
        unknowns = np.zeros(self._count)
        factor_near = _NO_FACTOR
        if near is not None:
            free = near.slopes @ (bend - near.bend)
            unknowns[~self._held] = near.unknowns[~self._held] + free
            factor_near = near.factor
        unknowns[self._held] = bend
        dof, free_count = len(bend), self._count - len(bend)
        moments, stiffness = np.empty(dof), np.empty((dof, dof))
        factor, slopes = np.zeros((free_count, free_count)), np.empty((free_count, dof))
        status = settle_into(
            unknowns, self._rod, load, self._cables, factor_near,
            moments, stiffness, factor, slopes,
        )  # fmt: skip
        if status != HELD and near is not None:
            return self.settled(bend, load)
        if status != HELD:
            degrees = np.degrees(np.hypot(*bend.reshape(-1, 2).T))
            bent = ', '.join(f'{n} {d:.1f} deg' for n, d in zip(self._names, degrees))
            what = 'falls aside under' if status == UNSTABLE else 'finds no rest under'
            weight = -float(load.forces.sum(axis=0) @ self._up(load))
            raise ModelError(f'bent by {bent}, the arm {what} {weight:.3g} N of weight and load')
        return HeldSections(bend, unknowns, moments, stiffness, slopes, factor)

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
        """Return the twist of the tip by the bends (6, dof), base frame, linear rows first."""
        twist = np.empty((6, self._count))
        tip_twist_into(held.unknowns, self._rod, self._room(), twist)
        return np.asarray(twist[:, self._held] + twist[:, ~self._held] @ held.slopes)

    def lengthening(self, held: HeldSections) -> tuple[Array, Array]:
        """
        Return by how much twist makes cables longer (sections,) [m], and d / d bend.

        A cable at the distance r becomes longer by r^2 / 2 times the integral of tau^2.
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

    @staticmethod
    def _up(load: Loads) -> Array:
        """Return the direction (3,) against the whole load."""
        whole = load.forces.sum(axis=0)
        size = float(np.linalg.norm(whole))
        return -whole / size if size > 0.0 else np.zeros(3)


def _means(count: int, pieces: int) -> Array:
    """Return the mean of P_0, P_1, ... over each piece, over the number of pieces (N, count)."""
    ends = np.linspace(-1.0, 1.0, pieces + 1)
    columns = [np.diff(Legendre.basis(j).integ()(ends)) / 2.0 for j in range(count)]
    return np.ascontiguousarray(np.stack(columns, axis=1))


def _weights(sections: Sequence[SectionConfig], gravity: Array, pieces: int) -> Array:
    """Return the sections' weights (E + 1, 3) [N], half of each element on either end."""
    masses: list[float] = []
    for s in sections:
        masses += [s.endcap_mass_kg, *[s.body_mass_kg / pieces] * pieces, s.endcap_mass_kg]
    halves = 0.5 * np.array([*masses, 0.0]) + 0.5 * np.array([0.0, *masses])
    return np.asarray(halves[:, None] * gravity)
