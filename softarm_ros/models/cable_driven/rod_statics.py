"""
Statics of a Cosserat rod on cables: its rest at given bends, or at given cable lengths.

The rotation of the tip and the tensions are solved together, which also finds shapes that dead
tensions would not hold. The contraction of a cable is the shortening of its path in the rod
against rest, plus its cutting in, plus its own stretch,

    c_i = l_i(rest) - l_i + e(t_i, b, K_t) + s_i t_i.

Cutting in is computed for an arc with the section's bend b (Qi et al. 2024, eq. 16-19). The rod,
however, feels the cable on the path that its guides prescribe, with t = T cos(alpha). This is
exact for arcs, and an approximation where weight changes the shape of a section.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import exp_so3, quaternion_from_matrix
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cable_driven.paired_cables import nominal_contractions
from softarm_ros.models.cable_driven.rod_holding import (
    FOUND_RAD,
    MAX_ROUNDS,
    MAX_TRIES,
    MAX_TURN_RAD,
    HeldRod,
)
from softarm_ros.models.cable_driven.rod_kernels import bends_into, cut_in_into
from softarm_ros.models.cable_driven.rod_layout import cables_of, rod_of
from softarm_ros.models.cable_driven.rod_rest import Lengths, RodRest, turned
from softarm_ros.models.cable_driven.slack_kernels import holding_shares
from softarm_ros.models.cable_driven.weight_layout import Loads
from softarm_ros.models.cable_driven.weighted_sections import WeightedSections
from softarm_ros.models.config import CableConfig, SectionConfig
from softarm_ros.models.cosserat.shots import DeadLoad, RodShots, Shot

Mask = NDArray[np.bool_]
_LEAST_STEP = 1.0 / 64.0  # least share of bends and load applied in a step
_ARC_PIECES = 8
_MOST_STEP = 1e100  # rad and N; its square is still finite
_MAX_TENSION_N = 1e4
_NEAR_RAD = 0.5  # a neighbour whose bends differ by more is not used as a start
_TOUCHING_M = 1e-8  # a cable that is slack by less counts as touching
_LENGTH_M = 1e-9  # tolerance of the cable lengths


class RodStatics:
    """
    Statics of an arm of sections on cables.

    Single cables: each has the tension `floor_N`, and the cables next to the direction of a
    section's moment hold it with additional tension. Pairs: both cables are wound by a pretension
    at rest; the motor pulls one in and pays the other out, which may go slack.

    Parameters
    ----------
    sections, cables
        Sections and cables of the arm; either all cables are pairs or none.
    gravity_m_s2 : (3,)
        Base frame.
    pretension_m : float
        Length by which all cables are wound beyond their lengths at rest.
    steps : int
        Number of integration steps in each section.

    """

    def __init__(
        self,
        sections: Sequence[SectionConfig],
        cables: Sequence[CableConfig],
        gravity_m_s2: Array,
        pretension_m: float,
        steps: int,
    ) -> None:
        self.sections = tuple(sections)
        self.names = [cable.name for cable in cables]
        self.cables = cables_of(sections, cables)
        self.paired = any(cable.pair for cable in cables)
        self.pretension_m = pretension_m
        self.shots = RodShots(rod_of(sections, cables, gravity_m_s2, steps))
        self._gravity = np.array(gravity_m_s2, dtype=float)
        self.count, self.dof = len(self.cables.motor), 2 * len(sections)
        self._cutting = np.array([[s.length_m, s.cutting_in_stiffness_N_m2] for s in sections])
        self._stiffness = np.repeat([s.bending_stiffness_N_m2 / s.length_m for s in sections], 2)
        self._rest_bend = np.radians([s.rest_bend_deg for s in sections]).reshape(-1)
        self.lever_m = float(np.linalg.norm(self.cables.levers, axis=1).min())
        angles = np.arctan2(self.cables.levers[:, 1], self.cables.levers[:, 0])
        paths = np.column_stack([self.cables.levers, angles])
        self._of_section = [np.flatnonzero(self.cables.own == k) for k in range(len(sections))]
        self._paths = [np.ascontiguousarray(paths[own]) for own in self._of_section]
        # Arcs under weight, for starts.
        self._arcs = WeightedSections(sections, gravity_m_s2, self._paths, 1, 0, _ARC_PIECES)
        self._caps = np.array([s.endcap_length_m for s in sections])
        self._base = np.array([0.0, 0.0, self._caps[0]])
        if self.paired and len(cables) != self.dof:
            raise ValueError(
                f'{len(cables)} pairs of cables bend {self.dof} coordinates; expected as many'
            )
        if self.paired:
            nominal = nominal_contractions(sections, cables)
            self._bends_of_arcs = np.linalg.pinv(nominal)
            self._first_guess = self._bends_of_arcs.T
        self.floor_N = np.zeros(self.count)

    # Loads.

    def load(self, tip_force: Array, tip_moment: Array) -> DeadLoad:
        """Return the load of gravity and of a force (3,) [N] and moment (3,) [N m] on the tip."""
        return DeadLoad(np.concatenate([tip_force, tip_moment]), self._gravity)

    # Results of a rest.

    def section_tips(self, rest: RodRest) -> Array:
        """Return the section tips (sections, 4, 4)."""
        turns, points = rest.shot.turns[1:], rest.shot.points
        tips = np.zeros((len(points), 4, 4))
        tips[:, :3, :3], tips[:, 3, 3] = turns, 1.0
        tips[:, :3, 3] = points + self._base + self._caps[:, None] * turns[:, :, 2]
        return tips

    def tip_twist(self, rest: RodRest) -> Array:
        """Return the tip twist per bend rate (6, dof), base frame, linear rows first."""
        return self._tip_by_columns(rest.shot) @ rest.by_bend

    def twist_by_contraction(self, rest: RodRest, wound: Array) -> Array:
        """
        Return the tip twist per contraction of each motor (6, m), base frame.

        `wound` (n,) [m] are the contractions of the cables. Cables that just touch count as taut;
        slack cables have no effect.
        """
        return self._tip_by_columns(rest.shot) @ self._by_contraction(rest, wound)

    def bends_by_contraction(self, rest: RodRest, wound: Array) -> Array:
        """Return the derivative of the bends by each motor's contraction (dof, m) [rad/m]."""
        return self.bends_of(rest.shot)[1][3:] @ self._by_contraction(rest, wound)

    def _by_contraction(self, rest: RodRest, wound: Array) -> Array:
        """Return the derivative of tip rotation and tensions by contraction (3 + n, m)."""
        taut = self._taut_or_touching(rest, wound)
        _, base = self.bends_of(rest.shot)
        keep = np.r_[0:3, 3 + np.flatnonzero(taut)]
        matrix = np.vstack([base[:3, keep], rest.lengths.slope[taut][:, keep]])
        right = np.zeros((len(keep), self.count))
        right[3 + np.arange(taut.sum()), np.flatnonzero(taut)] = 1.0
        try:
            moved = np.linalg.solve(matrix, right)
        except np.linalg.LinAlgError as error:
            raise ModelError(f'the lengths of the cables do not hold the arm: {error}') from None
        by_motor = np.zeros((3 + self.count, len(self.names)))
        for cable, (motor, sign) in enumerate(zip(self.cables.motor, self.cables.sign)):
            by_motor[keep, motor] += sign * moved[:, cable]
        return by_motor

    def centerline(self, rest: RodRest, n: int) -> Array:
        """Return (n, 3) points [m] from base to tip, evenly spaced along the arm at rest."""
        whole = sum(s.length_m + 2.0 * s.endcap_length_m for s in self.sections)
        along = np.linspace(0.0, whole, n) - self._caps[0]
        points = self.shots.state(rest.shot, rest.load).points_at(np.maximum(along, 0.0))
        points += self._base
        points[along < 0.0] = 0.0
        points[along < 0.0, 2] = along[along < 0.0] + self._caps[0]
        return points

    def motors(self, by_cable: Array, taut: Mask | None = None) -> Array:
        """
        Return the values of the motors (m, ...) from the values of the cables (n, ...).

        In a pair, the `taut` (n,) cable determines the value; if both cables are taut, or none,
        their mean does.
        """
        if not self.paired:
            return by_cable
        share = np.full(self.count, 0.5)
        if taut is not None:
            one = taut[0::2] != taut[1::2]
            share[np.repeat(one, 2)] = taut[np.repeat(one, 2)]
        shared = by_cable * share.reshape(-1, *[1] * (by_cable.ndim - 1))
        return np.asarray(shared[0::2] - shared[1::2])

    def contractions(self, rest: RodRest) -> Array:
        """Return the contractions of the motors (m,) [m]: those of the cables less pretension."""
        return self.motors(rest.lengths.contraction - self.pretension_m, rest.tension > 0.0)

    def contractions_by_bend(self, rest: RodRest) -> Array:
        """Return the derivative of `contractions` by the bends (m, dof) [m/rad]."""
        return self.motors(rest.lengths.slope @ rest.by_bend, rest.tension > 0.0)

    def wound(self, contraction: Array) -> Array:
        """Return the contractions of the cables (n,) [m] for motors (m,); pretension is added."""
        return self.pretension_m + self.cables.sign * contraction[self.cables.motor]

    @property
    def largest_gain_rad_m(self) -> float:
        """Largest bend per contraction of pairs, by geometry [rad/m]."""
        return float(np.linalg.norm(self._bends_of_arcs, 2))

    def arc_contractions(self, bend: Array) -> Array:
        """Return the contractions of pairs (m,) [m] that give arcs the bends (dof,) [rad]."""
        return np.linalg.solve(self._bends_of_arcs, bend - self._rest_bend)

    def arcs(self, contraction: Array) -> Array:
        """Return the bends (dof,) [rad] of arcs under contractions of pairs (m,) [m]."""
        return np.asarray(self._rest_bend + self._bends_of_arcs @ contraction)

    # Rest at given bends.

    def settled(self, bend: Array, load: DeadLoad, near: RodRest | None = None) -> RodRest:
        """
        Return the rod at rest with bends (dof,) [rad] held by its cables.

        `near` is a neighbouring rest under the same load; it speeds up the search.

        Raises
        ------
        ModelError
            If there is no rest, or if it is unstable however the cables hold it.

        """
        rest = None
        if near is not None and near.by_bend.size and near.load.tip.tolist() == load.tip.tolist():
            step = bend - near.bend
            if float(np.abs(step).max()) < _NEAR_RAD:
                rest = self._held_from(near, bend, load)
        if rest is None:
            rest = self._held_from_guess(bend, load)
        if rest is None:
            rest = self._walked(bend, load)
        if not self._is_stable(rest.shot, rest.lengths, np.ones(self.count, dtype=bool)):
            raise ModelError(f'{self._bent(bend)}, the arm falls aside under its weight and load')
        return rest

    def _held_from(self, near: RodRest, bend: Array, load: DeadLoad) -> RodRest | None:
        step = bend - near.bend
        turn = (near.by_bend @ step)[:3]
        tip = turned(near.shot.tip_rotation, turn)
        unknowns = near.unknowns + near.unknowns_by_bend @ step
        held = HeldRod(self, bend, load)
        return held.solve(tip, unknowns, near.shot.tensions, near.shot.strains)

    def _held_from_guess(self, bend: Array, load: DeadLoad) -> RodRest | None:
        turn = np.eye(3)
        for bx, by in bend.reshape(-1, 2):
            turn = turn @ exp_so3([-by, bx, 0.0])
        whole = float(np.linalg.norm(self._gravity))
        share = float(np.linalg.norm(load.gravity)) / whole if whole > 0.0 else 0.0
        forces = share * self._arcs.load(np.zeros(3), np.zeros(3)).forces
        forces[-1] += load.tip[:3]
        arcs = self._arcs.settled(bend, Loads(forces, load.tip[3:].copy()))
        moment = arcs.moments - self._stiffness * self._rest_bend
        unknowns = self._first_guess @ moment if self.paired else moment
        held = HeldRod(self, bend, load)
        return held.solve(quaternion_from_matrix(turn), unknowns, None, None)

    def _walked(self, bend: Array, load: DeadLoad) -> RodRest:
        """Return the rest reached by applying bends and load together, step by step."""
        rest = self._held_from_guess(self._rest_bend, load.share(0.0))
        done, pace = 0.0, 0.25
        while rest is not None and done < 1.0:
            share = min(done + pace, 1.0)
            wanted = self._rest_bend + share * (bend - self._rest_bend)
            found = self._held_from(rest, wanted, load.share(share))
            if found is None:
                pace *= 0.5
                if pace < _LEAST_STEP:
                    raise ModelError(
                        f'{self._bent(bend)}, the arm finds no rest: {100.0 * done:.0f} % of the '
                        'bends and the load are reached'
                    )
            else:
                rest, done, pace = found, share, min(2.0 * pace, 0.25)
        if rest is None:
            raise ModelError('no rest of the arm is found where it starts from')
        return rest

    # Rest at given cable lengths.

    def under(self, wound: Array, load: DeadLoad, start: Array | RodRest) -> RodRest:
        """
        Return the rod at rest on cables wound by (n,) [m]; any of them may be slack.

        `start`: bends (dof,) [rad] to start from, or a neighbouring rest.

        Raises
        ------
        ModelError
            If there is no rest, or it is not stable on these cables.

        """
        held = start if isinstance(start, RodRest) else self._held_from_guess(start, load)
        found = None if held is None else self._wound(wound, load, held.shot)
        if found is None:
            found = self._wound_up(wound, load)
        taut = self._taut_or_touching(found, wound)
        if not self._is_stable(found.shot, found.lengths, taut):
            raise ModelError(f'{self._pulled(wound)}, the arm falls aside: no stable rest')
        return found

    def _wound_up(self, wound: Array, load: DeadLoad) -> RodRest:
        """Return the rest reached by applying contractions and load together, step by step."""
        nothing = load.share(0.0)
        shot = self.shots.shot(self.shots.rest_rotation, np.zeros(self.count), nothing)
        done, pace = 0.0, 0.5
        rest: RodRest | None = None
        while done < 1.0:
            share = min(done + pace, 1.0)
            rest = self._wound(share * wound, load.share(share), shot)
            if rest is None:
                pace *= 0.5
                if pace < _LEAST_STEP:
                    raise ModelError(
                        f'no rest beyond {100.0 * done:.0f} % of contractions and load: '
                        f'{self._pulled(wound)}'
                    )
            else:
                shot, done, pace = rest.shot, share, min(2.0 * pace, 0.5)
        if rest is None:
            raise ModelError('no rest of the arm is found where it starts from')
        return rest

    def _wound(self, wound: Array, load: DeadLoad, start: Shot) -> RodRest | None:
        """Return the rest near a shot, or None, by Newton's method on the taut cables."""
        try:
            shot = self.shots.shot(start.tip_rotation, start.tensions, load, start.strains)
            state = self._off(shot, wound)
            for _ in range(MAX_ROUNDS):
                bends, base, lengths, size = state
                if size == 0.0:
                    return RodRest(
                        bends[3:].copy(), load, shot, lengths, np.zeros(0), np.zeros((0, 0)),
                        np.zeros((0, 0)),
                    )  # fmt: skip
                step = self._taut_step(bends, base, lengths, shot.tensions, wound)
                if not np.abs(step).max() < _MOST_STEP:
                    return None
                turn = float(np.linalg.norm(step[:3]))
                share, accepted = min(1.0, MAX_TURN_RAD / max(turn, 1e-300)), None
                for _ in range(MAX_TRIES):
                    tensions = np.maximum(shot.tensions + share * step[3:], 0.0)
                    if tensions.max() > _MAX_TENSION_N:
                        share *= 0.4
                        continue
                    tip = turned(shot.tip_rotation, share * step[:3])
                    try:
                        trial = self.shots.shot(tip, tensions, load, shot.strains)
                    except ModelError:
                        share *= 0.4
                        continue
                    found = self._off(trial, wound)
                    # The error may rise when a cable goes slack or taut: tolerate some rise.
                    if found[3] < 2.0 * size or share < 0.02:
                        accepted = trial, found
                        break
                    share *= 0.4
                if accepted is None:
                    return None
                shot, state = accepted
        except (ModelError, np.linalg.LinAlgError):
            return None
        return None

    def _off(self, shot: Shot, wound: Array) -> tuple[Array, Array, Lengths, float]:
        """Return the results of `bends_of`, the lengths, and the error [rad], 0 if converged."""
        bends, slopes = self.bends_of(shot)
        lengths = self.lengths(shot, bends, slopes)
        loose = lengths.contraction - wound
        taut = shot.tensions > 0.0
        off = np.where(taut, np.abs(loose), np.maximum(-loose, 0.0))
        base, cable = float(np.abs(bends[:3]).max()), float(off.max())
        size = 0.0 if base < FOUND_RAD and cable < _LENGTH_M else base + cable / self.lever_m
        return bends, slopes, lengths, size

    def _taut_step(
        self, bends: Array, base: Array, lengths: Lengths, tensions: Array, wound: Array
    ) -> Array:
        """Return the step (3 + n,) to the linearised rest: no cable pushes or is too long."""
        missing = wound - lengths.contraction
        taut = (tensions > 0.0) | (missing > 0.5 * _LENGTH_M)
        step = np.zeros(3 + self.count)
        for _ in range(4 * self.count):
            step[3:] = -tensions
            keep = np.r_[0:3, 3 + np.flatnonzero(taut)]
            matrix = np.vstack([base[:3, keep], lengths.slope[taut][:, keep]])
            let = np.r_[0:3, 3 + np.flatnonzero(~taut)][3:]
            right = np.concatenate([-bends[:3], missing[taut]])
            right -= np.vstack([base[:3, let], lengths.slope[taut][:, let]]) @ step[let]
            step[keep] = np.linalg.solve(matrix, right)
            pushing = np.where(taut, tensions + step[3:], 0.0)
            loose = np.where(taut, 0.0, lengths.contraction + lengths.slope @ step - wound)
            if pushing.min() < -1e-12:
                taut[int(np.argmin(pushing))] = False
            elif loose.min() < -0.5 * _LENGTH_M:
                taut[int(np.argmin(loose))] = True
            else:
                break
        return step

    # Helpers.

    def lengths(self, shot: Shot, bends: Array, slopes: Array) -> Lengths:
        """Return the cable contractions at a shot, given the bends and slopes of `bends_of`."""
        cables = self.cables
        excess, by_bend = np.empty(self.count), np.empty((self.count, 2))
        by_tension = np.empty(self.count)
        cut_in_into(
            bends[3:].copy(), shot.tensions, cables.own, cables.levers, self._cutting,
            excess, by_bend, by_tension,
        )  # fmt: skip
        contraction = self.shots.rest_lengths - shot.lengths
        contraction += excess + cables.stretch * shot.tensions
        slope = -shot.length_slopes
        first = 3 + 2 * cables.own
        slope = slope + by_bend[:, :1] * slopes[first] + by_bend[:, 1:] * slopes[first + 1]
        slope[np.arange(self.count), 3 + np.arange(self.count)] += by_tension + cables.stretch
        return Lengths(contraction, slope)

    def bends_of(self, shot: Shot) -> tuple[Array, Array]:
        """Return the rotation error at the base, the bends (3 + dof,) [rad], and their slopes."""
        values = np.empty(3 + self.dof)
        slopes = np.empty((3 + self.dof, 3 + self.count))
        bends_into(shot.turns, shot.turn_slopes, values, slopes)
        return values, slopes

    def _tip_by_columns(self, shot: Shot) -> Array:
        angular = np.zeros((3, 3 + self.count))
        angular[:, :3] = shot.turns[-1]
        return np.vstack([shot.tip_slope, angular])

    def _is_stable(self, shot: Shot, lengths: Lengths, taut: Mask) -> bool:
        """
        Tell whether cables that keep their lengths hold the arm stably.

        The cables must suppress every unstable mode that the arm has under dead tensions. They do
        if the softness d contraction / d tension of the taut cables has as many negative
        eigenvalues as there are unstable modes (inertia of the bordered Hessian).
        """
        if shot.folds == 0:
            return True
        if not taut.any():
            return False
        _, slopes = self.bends_of(shot)
        try:
            turn = -np.linalg.solve(slopes[:3, :3], slopes[:3, 3:])
        except np.linalg.LinAlgError:
            return False
        softness = lengths.slope[:, 3:] + lengths.slope[:, :3] @ turn
        softness = softness[taut][:, taut]
        values = np.linalg.eigvalsh(0.5 * (softness + softness.T))
        return int((values < 0.0).sum()) == shot.folds

    def _taut_or_touching(self, rest: RodRest, wound: Array) -> Mask:
        touching: Mask = rest.lengths.contraction - wound < _TOUCHING_M
        return touching | (rest.tension > 0.0)

    def shares(self, moments: Array) -> tuple[Array, Array]:
        """
        Return tensions (n,) [N] of single cables that make moments (dof,) [N m], and d / d moment.

        Raises
        ------
        ModelError
            If the cables of a section cannot make its moment.

        """
        tensions, slope = self.floor_N.copy(), np.zeros((self.count, self.dof))
        for k, (own, path) in enumerate(zip(self._of_section, self._paths)):
            x, y = float(moments[2 * k]), float(moments[2 * k + 1])
            i, j, share_i, share_j, holdable = holding_shares(x, y, path)
            if not holdable and (x != 0.0 or y != 0.0):
                raise ModelError(
                    f'section {self.sections[k].name}: its cables cannot hold a moment towards '
                    f'{math.degrees(math.atan2(y, x)):.0f} deg'
                )
            tensions[own[i]] += share_i
            two = slice(2 * k, 2 * k + 2)
            if i == j:
                slope[own[i], two] = path[i, :2] / (path[i, :2] @ path[i, :2])
            else:
                tensions[own[j]] += share_j
                slope[own[[i, j]], two] = np.linalg.inv(path[[i, j], :2].T)
        return tensions, slope

    def _bent(self, bend: Array) -> str:
        sizes = np.degrees(np.linalg.norm(bend.reshape(-1, 2), axis=1))
        return 'bent by ' + ', '.join(
            f'{s.name} {size:.1f} deg' for s, size in zip(self.sections, sizes)
        )

    def _pulled(self, wound: Array) -> str:
        pulled = self.motors(wound)
        return 'with contractions ' + ', '.join(
            f'{name} {1e3 * value:.5g} mm' for name, value in zip(self.names, pulled)
        )
