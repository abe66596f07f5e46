"""Newton search for the rest of a rod on cables at given bends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cable_driven.rod_rest import RodRest, turned
from softarm_ros.models.cosserat.shots import DeadLoad, Shot

if TYPE_CHECKING:
    from softarm_ros.models.cable_driven.rod_statics import RodStatics

FOUND_RAD = 1e-9  # tolerance of the base rotation and of the bends
MAX_ROUNDS, MAX_TRIES = 40, 12
MAX_TURN_RAD = 0.8  # largest turn of the tip in a step


class HeldRod:
    """
    Newton search for the rod at given bends.

    The unknowns are the rotation of the tip and, with single cables, the moments (dof,) [N m] that
    the cables next to their direction share; with pairs, the tensions of the taut cables. Both
    cables of a pair are taut if the sum of their lengths requires it.
    """

    def __init__(self, statics: RodStatics, bend: Array, load: DeadLoad) -> None:
        self._statics, self._bend, self._load = statics, bend, load

    def solve(
        self, tip: Array, unknowns: Array, tensions: Array | None, strains: Array | None
    ) -> RodRest | None:
        """Return the rest found from a start, or None."""
        try:
            if self._statics.paired:
                return self._solve_pairs(tip, unknowns, tensions, strains)
            return self._solve_single(tip, unknowns, strains)
        except (ModelError, np.linalg.LinAlgError):
            return None

    def _solve_single(self, tip: Array, moments: Array, strains: Array | None) -> RodRest | None:
        statics = self._statics
        tensions, share = statics.shares(moments)
        shot = statics.shots.shot(tip, tensions, self._load, strains)
        miss, slopes = self._miss(shot)
        for _ in range(MAX_ROUNDS):
            system = np.hstack([slopes[:, :3], slopes[:, 3:] @ share])
            size = float(np.abs(miss).max())
            if size < FOUND_RAD:
                return self._rest(shot, miss, slopes, moments, share, system)
            step = np.asarray(np.linalg.solve(system, -miss), dtype=np.float64)
            turn = float(np.linalg.norm(step[:3]))
            part, accepted = min(1.0, MAX_TURN_RAD / max(turn, 1e-300)), False
            for _ in range(MAX_TRIES):
                try:
                    trial_moments = moments + part * step[3:]
                    tensions, trial_share = statics.shares(trial_moments)
                    trial = statics.shots.shot(
                        turned(shot.tip_rotation, part * step[:3]), tensions, self._load,
                        shot.strains,
                    )  # fmt: skip
                except ModelError:
                    part *= 0.4
                    continue
                found, found_slopes = self._miss(trial)
                if float(np.abs(found).max()) < (1.0 - 0.1 * part) * size:
                    shot, miss, slopes = trial, found, found_slopes
                    moments, share, accepted = trial_moments, trial_share, True
                    break
                part *= 0.4
            if not accepted:
                return None
        return None

    def _solve_pairs(
        self, tip: Array, pulls: Array, tensions: Array | None, strains: Array | None
    ) -> RodRest | None:
        statics, count = self._statics, self._statics.count
        near = tensions is not None
        if tensions is None:
            tensions = np.zeros(count)
            tensions[0::2], tensions[1::2] = np.maximum(pulls, 0.0), np.maximum(-pulls, 0.0)
        taut = tensions > 0.0
        for j in range(count // 2):
            if not taut[2 * j : 2 * j + 2].any():
                taut[2 * j] = True
        if near:  # first-order prediction from the neighbour
            tensions = np.where(taut, np.maximum(pulls, 0.0), 0.0)
        shot = statics.shots.shot(tip, tensions, self._load, strains)
        for _ in range(MAX_ROUNDS):
            miss, slopes = self._miss(shot)
            values = miss.copy()
            values[3:] += self._bend
            lengths = statics.lengths(shot, values, slopes)
            together = lengths.contraction[0::2] + lengths.contraction[1::2]
            together -= 2.0 * statics.pretension_m
            short = together < -FOUND_RAD * statics.lever_m
            one = ~(taut[0::2] & taut[1::2])
            taut |= np.repeat(short & one, 2)
            both = taut[0::2] & taut[1::2]
            joint = lengths.slope[0::2][both] + lengths.slope[1::2][both]
            columns = np.r_[0:3, 3 + np.flatnonzero(taut)]
            system = np.vstack([slopes, joint / statics.lever_m])[:, columns]
            whole = np.concatenate([miss, together[both] / statics.lever_m])
            if float(np.abs(whole).max()) < FOUND_RAD:
                inverse = np.linalg.inv(system)[:, 3 : 3 + statics.dof]
                by_bend = np.zeros((3 + count, statics.dof))
                by_bend[columns] = inverse
                return RodRest(
                    self._bend.copy(), self._load, shot, lengths, shot.tensions, by_bend,
                    by_bend[3:],
                )  # fmt: skip
            step = np.zeros(3 + count)
            step[columns] = np.linalg.solve(system, -whole)
            part = min(1.0, MAX_TURN_RAD / max(float(np.linalg.norm(step[:3])), 1e-300))
            for _ in range(MAX_TRIES):
                following, now_taut = _pulling(shot.tensions + part * step[3:], taut)
                try:
                    trial = statics.shots.shot(
                        turned(shot.tip_rotation, part * step[:3]), following, self._load,
                        shot.strains,
                    )  # fmt: skip
                except ModelError:
                    part *= 0.4
                    continue
                size = float(np.abs(self._miss(trial)[0]).max())
                if size < 2.0 * max(float(np.abs(whole).max()), FOUND_RAD) or part < 0.05:
                    shot, taut = trial, now_taut
                    break
                part *= 0.4
            else:
                return None
        return None

    def _miss(self, shot: Shot) -> tuple[Array, Array]:
        values, slopes = self._statics.bends_of(shot)
        values[3:] -= self._bend
        return values, slopes

    def _rest(
        self, shot: Shot, miss: Array, slopes: Array, moments: Array, share: Array, system: Array
    ) -> RodRest:
        values = miss.copy()
        values[3:] += self._bend
        inverse = np.asarray(np.linalg.inv(system)[:, 3:], dtype=np.float64)
        by_bend = np.vstack([inverse[:3], share @ inverse[3:]])
        lengths = self._statics.lengths(shot, values, slopes)
        return RodRest(self._bend.copy(), self._load, shot, lengths, moments, by_bend, inverse[3:])


def _pulling(tensions: Array, taut: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
    """Return tensions (n,) [N] with pushing cables at 0, and the taut ones, one a pair or more."""
    pushing = taut & (tensions < 0.0)
    following, now_taut = np.where(pushing, 0.0, tensions), taut & ~pushing
    for first in np.flatnonzero(~(now_taut[0::2] | now_taut[1::2])) * 2:
        now_taut[first + (0 if pushing[first + 1] else 1)] = True
    return following, now_taut
