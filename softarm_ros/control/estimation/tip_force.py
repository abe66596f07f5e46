"""A force at the tip, in any direction: of two filters, one of which has it come just now."""

from __future__ import annotations

import numpy as np

from softarm_ros.control.estimation.tip_load import CHANGE_S, LOAD, TipLoadObserver, TipSeen, mixed
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel

_COMING_S = 0.2  # during which it comes
# Chi-square of six, one in a thousand; share of what is to be explained that is still to come.
_UNUSUAL, _UNDER_WAY, _LONGEST_WAIT_S = 22.5, 0.25, 0.65
_LEAST = 1e-12  # weight


class TipForceObserver(TipLoadObserver):
    """
    Estimates a force at the tip.

    Two filters, of a force that stays and of one that is just coming, are mixed by their
    likelihoods (interacting multiple models, Blom and Bar-Shalom 1988). A deviation that moves has
    not come to rest: it counts less, by what it moves within `settling_s`.

    Parameters
    ----------
    settling_s : float
        Within which a deviation that moves comes to rest.
    model, beyond_m, spread_N, model_share
        As `TipLoadObserver`.

    """

    def __init__(
        self,
        model: ArmModel,
        beyond_m: float,
        spread_N: float,
        model_share: float,
        settling_s: float,
    ) -> None:
        self._settling_s = settling_s
        super().__init__(model, np.eye(3), beyond_m, spread_N, model_share)

    def reset(self) -> None:
        """Forget everything: what the arm carries from now on is the rig file's load."""
        super().reset()
        # Of a force that stays, and of one that is coming.
        self._x, self._P = np.repeat(self._x, 2, axis=0), np.repeat(self._P, 2, axis=0)
        self._weights = np.array([1.0, 0.0])
        self._usual_s = np.inf  # when last nothing was coming

    def _take(self, now_s: float, y: Array, H: Array, seen: TipSeen) -> None:
        if self._waits(now_s, y - H @ self._x[0], H, seen):
            return
        moving = np.outer(seen.moving, seen.moving) + seen.moving_covariance
        self._absorb(y, H, seen.covariance + self._settling_s**2 * moving)

    def _waits(self, now_s: float, innovation: Array, H: Array, seen: TipSeen) -> bool:
        """Return whether something has come, and the arm has yet to give way to it.

        Meanwhile the mixing makes room for a load in both filters, and no bias takes it in.
        """
        S = H @ self._P[0] @ H.T + seen.covariance
        far = float(innovation @ np.linalg.solve(S, innovation))
        way = self._settling_s * float(np.linalg.norm(seen.moving[:3]))
        under_way = way > _UNDER_WAY * float(np.linalg.norm(innovation[:3]))
        if not (far > _UNUSUAL and under_way):
            self._usual_s = now_s
        return 0.0 < now_s - self._usual_s < _LONGEST_WAIT_S

    def _absorb(self, y: Array, H: Array, R: Array) -> None:
        """Update both filters by y = H x, and their weights."""
        likely = np.empty(2)
        for k in range(2):
            x, P = self._x[k], self._P[k]
            innovation, S = y - H @ x, H @ P @ H.T + R
            gain = np.linalg.solve(S, H @ P).T
            left = np.eye(len(x)) - gain @ H
            self._x[k], self._P[k] = x + gain @ innovation, left @ P @ left.T + gain @ R @ gain.T
            far = innovation @ np.linalg.solve(S, innovation)
            likely[k] = np.log(max(self._weights[k], _LEAST)) - 0.5 * (
                far + np.linalg.slogdet(S)[1]
            )
        weights = np.exp(likely - likely.max())
        self._weights = weights / weights.sum()

    def _predict(self, now_s: float) -> None:
        period = self._passed(now_s)
        self._learn(*mixed(self._x, self._P, self._weights), period)
        begins, ends = -np.expm1(-period / CHANGE_S), -np.expm1(-period / _COMING_S)
        stays, comes = self._weights
        into = np.array(
            [[(1.0 - begins) * stays, ends * comes], [begins * stays, (1.0 - ends) * comes]]
        )
        both = [mixed(self._x, self._P, row / max(row.sum(), _LEAST)) for row in into]
        self._weights = into.sum(axis=1)
        self._x, self._P = np.array([x for x, _ in both]), np.array([P for _, P in both])
        self._pass(period)
        if period > 0.0:
            self._P[1, LOAD, LOAD] += self._spread**2 * np.eye(self._size)
