"""Observer of a force at the tip, in any direction: one filter for a steady, one for a new one."""

from __future__ import annotations

import numpy as np

from softarm_ros.control.estimation.tip_load import CHANGE_S, LOAD, TipLoadObserver, TipSeen, mixed
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel

_COMING_S = 0.2  # mean duration of the rise of a force
# Chi-square of six, one in a thousand; share of the innovation that the tip has yet to move.
_UNUSUAL, _UNDER_WAY, _LONGEST_WAIT_S = 22.5, 0.25, 0.65
_LEAST = 1e-12  # lower bound of a weight


class TipForceObserver(TipLoadObserver):
    """
    Estimates a force at the tip.

    Two filters, one for a steady force and one for a force that is just coming, are mixed by their
    likelihoods (interacting multiple models, Blom and Bar-Shalom 1988). A deviation still in
    motion is less certain: its covariance includes its motion within `settling_s`.

    Parameters
    ----------
    settling_s : float
        Time in which a moving deviation comes to rest.
    model, beyond_m, spread_N, model_share
        As in `TipLoadObserver`.

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
        """Forget everything: the present load of the arm counts as that of the rig file."""
        super().reset()
        # Filter 0: a steady force; filter 1: a force that is coming.
        self._x, self._P = np.repeat(self._x, 2, axis=0), np.repeat(self._P, 2, axis=0)
        self._weights = np.array([1.0, 0.0])
        self._usual_s = np.inf  # last time at which no force was coming

    def _take(self, now_s: float, y: Array, H: Array, seen: TipSeen) -> None:
        if self._waits(now_s, y - H @ self._x[0], H, seen):
            return
        moving = np.outer(seen.moving, seen.moving) + seen.moving_covariance
        self._absorb(y, H, seen.covariance + self._settling_s**2 * moving)

    def _waits(self, now_s: float, innovation: Array, H: Array, seen: TipSeen) -> bool:
        """Return whether a force has come but the arm is still yielding to it.

        Meanwhile the mixing widens the load in both filters, and the bias does not absorb it.
        """
        S = H @ self._P[0] @ H.T + seen.covariance
        far = float(innovation @ np.linalg.solve(S, innovation))
        way = self._settling_s * float(np.linalg.norm(seen.moving[:3]))
        under_way = way > _UNDER_WAY * float(np.linalg.norm(innovation[:3]))
        if not (far > _UNUSUAL and under_way):
            self._usual_s = now_s
        return 0.0 < now_s - self._usual_s < _LONGEST_WAIT_S

    def _absorb(self, y: Array, H: Array, R: Array) -> None:
        """Update both filters and their weights by y = H x with covariance R."""
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
        # A force that cannot come yet, at the first update, is as uncertain as a steady one.
        shares = [row / row.sum() if row.any() else self._weights for row in into]
        both = [mixed(self._x, self._P, share) for share in shares]
        self._weights = into.sum(axis=1)
        self._x, self._P = np.array([x for x, _ in both]), np.array([P for _, P in both])
        self._pass(period)
        if period > 0.0:
            self._P[1, LOAD, LOAD] += self._spread**2 * np.eye(self._size)
