"""A weight at the tip: filters of when it may have come, of which the likeliest count."""

from __future__ import annotations

import numpy as np

from softarm_ros.control.estimation.tip_load import CHANGE_S, LOAD, TipLoadObserver, TipSeen, mixed
from softarm_ros.geometry.arrays import Array

SETTLED_S = 1.2  # after a weight has come, from when on it counts as known
# After it has come the arm swings on it, by one of these shares of what the weight does; before
# that has begun, by all of it as well.
_SWINGS, _BEGINS_S = (0.1, 0.4), 0.05
# Of a weight that is known, the share of the gain with which it is still learnt: what changes
# later and slowly is the model's error, which is larger than a random walk along the same way.
_LATER = 0.05
_PASSES = 3  # of an update: how far the arm swings is known from how large the weight is


class TipWeightObserver(TipLoadObserver):
    """
    Estimates a weight at the tip.

    At every update filters begin for which another weight came just now, and each counts by its
    likelihood (change-point detection). The arm swings on what has come: to a filter of the last
    `SETTLED_S` that is noise along the give, so that it takes the mean of the swing; how far the
    arm swings, the likelihood says as well. After that it is one with the filter of what is known,
    in which weights hardly change any more.
    """

    def reset(self) -> None:
        """Forget everything: what the arm carries from now on is the rig file's load."""
        super().reset()
        # Of what is known, then of weights that came at some time: logarithms of likelihoods, when
        # they came, shares of the swing, and the largest weight of each so far.
        self._logs, self._came_s = np.zeros(1), np.full(1, -np.inf)
        self._swing, self._most = np.zeros(1), np.zeros((1, self._size))

    def _take(self, now_s: float, y: Array, H: Array, seen: TipSeen) -> None:
        self._absorb(y, H, seen.covariance, self._swings(now_s))

    def _absorb(self, y: Array, H: Array, R: Array, share: Array) -> None:
        """Update all filters by y = H x of covariance R, and shares (filters,) of a swing."""
        x, P, slope = self._x, self._P, self._at.slope
        innovation, HP = y - x @ H.T, H @ P
        after, new = x, P
        for _ in range(_PASSES):
            noise = R + self._uncertain(after[:, LOAD], new[:, LOAD, LOAD], share)
            S = HP @ H.T + noise
            gain = np.linalg.solve(S, HP).swapaxes(1, 2)
            gain[0, LOAD] *= _LATER
            left = np.eye(x.shape[1]) - gain @ H
            after = x + np.einsum('kij,kj->ki', gain, innovation)
            new = left @ P @ left.swapaxes(1, 2) + gain @ noise @ gain.swapaxes(1, 2)
        far = np.einsum('ki,ki->k', innovation, np.linalg.solve(S, innovation[..., None])[..., 0])
        logs = self._logs - 0.5 * (far + np.linalg.slogdet(S)[1])
        self._x, self._P, self._logs = after, new, logs - logs.max()
        self._weigh()
        more = self._gives(after[:, LOAD], slope) > self._gives(self._most, slope)
        self._most = np.where(more[:, None], after[:, LOAD], self._most)

    @staticmethod
    def _gives(loads: Array, slope: Array) -> Array:
        """Return how far loads (filters, k) move the tip (filters,) [m]."""
        return np.asarray(np.linalg.norm(loads @ slope[:3].T, axis=1))

    def _swings(self, now_s: float) -> Array:
        """Return by which share (filters,) of what its weight does the arm swings now."""
        since = now_s - self._came_s
        shares = np.where(np.isinf(since), 0.0, self._swing + np.exp(-since / _BEGINS_S))
        return np.asarray(shares)

    def _uncertain(self, loads: Array, covariances: Array, swings: Array) -> Array:
        """
        Return covariances (filters, 6, 6) of what loads (filters, k) do, beyond the model's give.

        That is the swing, of the largest weight so far: one that shrank with it would draw it to
        nothing. And it is what the model is wrong by about the give, any way: without it a weight
        is told by the directions in which the give is small and its error is not.
        """
        slope = self._at.slope
        largest = self._gives(self._most, slope) > self._gives(loads, slope)
        largest &= swings > 0.0
        of = np.where(largest[:, None], self._most, loads)
        moment = of[:, :, None] * of[:, None, :] + covariances
        gives = slope @ moment @ slope.T
        squares = np.einsum('kii->ki', gives)
        sums = [squares[:, :3].sum(axis=1), squares[:, 3:].sum(axis=1)]
        beside = self._share**2 * np.repeat(np.transpose(sums), 3, axis=1)
        out = swings[:, None, None] ** 2 * gives + beside[:, :, None] * np.eye(6)
        return np.asarray(out)

    def _weigh(self) -> None:
        """Set how likely each filter is."""
        weights = np.exp(self._logs - self._logs.max())
        self._weights = weights / weights.sum()

    def _predict(self, now_s: float) -> None:
        period = self._passed(now_s)
        self._settle(now_s)
        self._learn(self._x[0], self._P[0], period)
        self._pass(period)
        if period > 0.0:
            self._begin(now_s, -np.expm1(-period / CHANGE_S))
        self._weigh()

    def _settle(self, now_s: float) -> None:
        """Make one filter of that of what is known and those whose weight has settled."""
        settled = self._came_s <= now_s - SETTLED_S + 1e-6
        logs = self._logs[settled]
        weights = np.exp(logs - logs.max())
        x, P = mixed(self._x[settled], self._P[settled], weights / weights.sum())
        self._x = np.concatenate([x[None], self._x[~settled]])
        self._P = np.concatenate([P[None], self._P[~settled]])
        log = logs.max() + np.log(weights.sum())
        self._logs = np.concatenate([[log], self._logs[~settled]])
        self._came_s = np.concatenate([[-np.inf], self._came_s[~settled]])
        self._most = np.concatenate([np.zeros((1, self._size)), self._most[~settled]])
        self._swing = np.concatenate([[0.0], self._swing[~settled]])

    def _begin(self, now_s: float, chance: float) -> None:
        """Let another filter begin, for which a weight has come now, with a chance."""
        P, many = self._P[0].copy(), len(_SWINGS)
        P[LOAD, LOAD] += self._spread**2 * np.eye(self._size)
        self._x = np.concatenate([self._x, np.repeat(self._x[:1], many, axis=0)])
        self._P = np.concatenate([self._P, np.repeat(P[None], many, axis=0)])
        self._logs = np.append(self._logs, np.full(many, self._logs[0] + np.log(chance / many)))
        self._logs[0] += np.log1p(-chance)
        self._came_s = np.append(self._came_s, np.full(many, now_s))
        self._swing = np.append(self._swing, _SWINGS)
        self._most = np.concatenate([self._most, np.zeros((many, self._size))])
