"""The load at the tip, from how the arm gives way to it: small Kalman filters beside the bank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softarm_ros.control.estimator import TipLoad
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import displacement
from softarm_ros.models.arm_model import ArmModel, ModelError

PERIOD_S = 0.1  # of updates: the arm needs longer than that to give way
ERROR_MEMORY_S = 1.0  # of what varies of the model's error
LEARNING_S = 10.0  # over which it learns how much that is
CHANGE_S = 10.0  # in which another load is to be expected once
SETTLED_S = 1.5  # after a load has come, from when on it counts as known
# After a load has come the arm swings on it: by a share of what the load does, and before that has
# begun by as much more as all of it.
_SWINGS, _BEGINS_S = (0.1, 0.4), 0.1
# Of a load that is known, the share of the gain with which it is still learnt: what changes later
# and slowly is the model's error, which is larger than a random walk along the same way.
_LATER = 0.05
# Of the model's error before anything is seen, what stays and what varies: share of the arm's
# length, rad. On its way the first changes by a share of the way, as a walk with steps of that
# share of the length, and of so many rad.
_BIAS, _VARIES = (0.1, 0.5), (0.002, 0.005)
_WAY_SHARE, _STEPS = 0.05, (0.2, 1.0)
_STEP = 0.02  # of finite differences, as a share of the spread of loads
_ELSEWHERE = 0.02  # of the scale of a configuration, after which the arm gives way otherwise
_OTHER_LOAD = 0.05  # likewise, of the spread of loads
_TURNS = 2  # of the lever with the tip: the second changes the give by a hundredth
_PASSES = 3  # of an update: how far the arm swings is known from how large the load is
_B = slice(6, 12)  # of the state: the error that varies
_TOLD = 0.5  # of the spread: a load that is known no better than that is not told


@dataclass(frozen=True)
class TipSeen:
    """
    The tip as an estimator has it.

    Attributes
    ----------
    tip, covariance
        Pose (4, 4), (6, 6) of position and rotation vector, base axes.

    """

    tip: Array
    covariance: Array


@dataclass(frozen=True)
class _Give:
    """How the model's tip gives way at a configuration: by `moved` (6,) under `load` (k,)."""

    configuration: Array
    load: Array
    moved: Array
    slope: Array


class TipLoadObserver:
    """
    Estimates what has been hung onto the tip since the arm began to be seen.

    The tip's distance from the model's, at the actuation of now, is a bias that goes its way, an
    error that varies as the arm moves about (Ornstein-Uhlenbeck of `ERROR_MEMORY_S`; how much and
    along what is learnt), and what the load does. A load comes suddenly, the model's error does
    not: at every update one more filter begins, for which another load came just now, and each
    counts by its likelihood (change-point detection). The arm swings on what has come: to a filter
    of the last `SETTLED_S` that is noise along the give, so that it takes the mean of the swing.
    After that it is one with the filter of what is known, in which loads hardly change any more.
    What the arm carries at the start counts as the rig file's load; it is in the bias.

    Parameters
    ----------
    model : ArmModel
    directions : (3, k)
        Unit vectors along which a load may act.
    beyond_m : float
        How far beyond the tip it acts, along the tip's z axis: in the middle of a gripper.
    spread_N : float
        Standard deviation of loads that may come.
    model_share : float
        Standard deviation of the model's give under a load, in any direction, as a share of it.

    Raises
    ------
    ModelError
        If the model knows no load at the tip.

    """

    def __init__(
        self,
        model: ArmModel,
        directions: Array,
        beyond_m: float,
        spread_N: float,
        model_share: float,
    ) -> None:
        self._model, self._directions, self._beyond_m = model, directions, beyond_m
        self._spread, self._share = spread_N, model_share
        self._size = directions.shape[1]
        rest = model.rest_configuration
        try:
            self._first = self._give(rest, model.actuation_of(rest), np.zeros(self._size))
        except ModelError as error:
            raise ModelError(f'the load at the tip cannot be estimated: {error}') from error
        self.reset()

    def reset(self) -> None:
        """Forget everything: what the arm carries from now on is the rig file's load."""
        n, length = 12 + self._size, self._model.rest_length_m
        unit = np.repeat([length, 1.0], 3)
        self._errors = np.diag((np.repeat(_VARIES, 3) * unit) ** 2)
        P = np.zeros((n, n))
        P[:6, :6], P[_B, _B] = np.diag((np.repeat(_BIAS, 3) * unit) ** 2), self._errors
        # Of what is known, then of loads that came at some time: states, covariances, logarithms
        # of likelihoods, and the largest load of each so far.
        self._x, self._P, self._logs = np.zeros((1, n)), P[None], np.zeros(1)
        self._came_s, self._most = np.full(1, -np.inf), np.zeros((1, self._size))
        self._swing = np.zeros(1)
        self._now_s: float | None = None
        self._tip: Array | None = None  # the model's, of the last update
        self._at = self._first
        self._trouble = 'nothing has been seen'

    def due(self, now_s: float) -> bool:
        """Return whether an update is wanted."""
        return self._now_s is None or now_s - self._now_s >= PERIOD_S - 1e-6

    def update(self, now_s: float, seen: TipSeen, actuation: Array) -> None:
        """Take where the tip is and the actuation (m,), without pretension, that holds it."""
        self._predict(now_s)
        try:
            configuration = self._model.configuration_of(actuation)
            tip = self._model.forward(actuation).tip
            self._follow(configuration, actuation)
        except ValueError as error:  # what the model does not cover
            self._trouble = f'the model refuses the actuation: {error}'
            return
        self._trouble = ''
        self._wander(tip)
        y = displacement(tip, seen.tip) - self._at.moved + self._at.slope @ self._at.load
        H = np.hstack([np.eye(6), np.eye(6), self._at.slope])
        self._absorb(y, H, seen.covariance)

    def _absorb(self, y: Array, H: Array, R: Array) -> None:
        """Update all filters by y = H x of covariance R and what the arm swings."""
        x, P, slope, share = self._x, self._P, self._at.slope, self._swings()
        innovation, HP = y - x @ H.T, H @ P
        after, new = x, P
        for _ in range(_PASSES):
            noise = R + self._uncertain(after[:, 12:], new[:, 12:, 12:], share)
            S = HP @ H.T + noise
            gain = np.linalg.solve(S, HP).swapaxes(1, 2)
            gain[0, 12:] *= _LATER
            left = np.eye(x.shape[1]) - gain @ H
            after = x + np.einsum('kij,kj->ki', gain, innovation)
            new = left @ P @ left.swapaxes(1, 2) + gain @ noise @ gain.swapaxes(1, 2)
        far = np.einsum('ki,ki->k', innovation, np.linalg.solve(S, innovation[..., None])[..., 0])
        logs = self._logs - 0.5 * (far + np.linalg.slogdet(S)[1])
        self._x, self._P, self._logs = after, new, logs - logs.max()
        more = self._gives(after[:, 12:], slope) > self._gives(self._most, slope)
        self._most = np.where(more[:, None], after[:, 12:], self._most)

    @staticmethod
    def _gives(loads: Array, slope: Array) -> Array:
        """Return how far loads (filters, k) move the tip (filters,) [m]."""
        return np.asarray(np.linalg.norm(loads @ slope[:3].T, axis=1))

    def _swings(self) -> Array:
        """Return by which share (filters,) of what its load does the arm swings now."""
        assert self._now_s is not None
        since = self._now_s - self._came_s
        shares = np.where(np.isinf(since), 0.0, self._swing + np.exp(-since / _BEGINS_S))
        return np.asarray(shares)

    def _uncertain(self, loads: Array, covariances: Array, swings: Array) -> Array:
        """
        Return covariances (filters, 6, 6) of what loads (filters, k) do, beyond the model's give.

        That is the swing, of the largest load so far: one that shrank with the load would draw it
        to nothing. And it is what the model is wrong by about the give, any way: without it a
        weight is told by the directions in which the give is small and its error is not. A force
        in any direction has room for that error itself.
        """
        slope = self._at.slope
        largest = self._gives(self._most, slope) > self._gives(loads, slope)
        largest &= swings > 0.0
        of = np.where(largest[:, None], self._most, loads)
        moment = of[:, :, None] * of[:, None, :] + covariances
        gives = slope @ moment @ slope.T
        out = swings[:, None, None] ** 2 * gives
        if self._size == 1:
            squares = np.einsum('kii->ki', gives)
            sums = [squares[:, :3].sum(axis=1), squares[:, 3:].sum(axis=1)]
            spread = self._share**2 * np.repeat(np.transpose(sums), 3, axis=1)
            out = out + spread[:, :, None] * np.eye(6)
        return np.asarray(out)

    def _weights(self) -> Array:
        """Return how likely each filter is (filters,)."""
        weights = np.exp(self._logs - self._logs.max())
        return np.asarray(weights / weights.sum())

    def load(self) -> TipLoad:
        """Return the load as far as it is told."""
        x, P = _mixed(self._x, self._P, self._weights())
        d, f, P = self._directions, x[12:], P[12:, 12:]
        P = P + self._share**2 * np.outer(f, f)
        sizes, axes = np.linalg.eigh(P)
        sd = float(np.sqrt(sizes[-1]))
        problem = self._trouble
        if not problem and sd > _TOLD * self._spread:
            along = d @ axes[:, -1]
            gives = float(np.linalg.norm(self._at.slope[:3] @ axes[:, -1]))
            problem = (
                f'not observed along {np.round(along, 2).tolist()}: standard deviation {sd:.2g} N '
                f'(limit {_TOLD * self._spread:.2g} N); a newton moves the tip by '
                f'{1e3 * gives:.2g} mm there'
            )
        return TipLoad(d @ f, d @ P @ d.T, problem)

    def _predict(self, now_s: float) -> None:
        period = 0.0 if self._now_s is None else now_s - self._now_s
        self._now_s = now_s
        self._settle(now_s)
        share = -np.expm1(-period / LEARNING_S)
        x, P = self._x[0, _B], self._P[0, _B, _B]
        self._errors = (1.0 - share) * self._errors + share * (np.outer(x, x) + P)
        left = float(np.exp(-period / ERROR_MEMORY_S))
        F = np.ones(12 + self._size)
        F[_B] = left
        self._x, self._P = self._x * F, self._P * np.outer(F, F)
        self._P[:, _B, _B] += (1.0 - left**2) * self._errors
        if period > 0.0:
            self._begin(now_s, -np.expm1(-period / CHANGE_S))

    def _settle(self, now_s: float) -> None:
        """Make one filter of that of what is known and those whose load has settled."""
        settled = self._came_s <= now_s - SETTLED_S + 1e-6
        logs = self._logs[settled]
        weights = np.exp(logs - logs.max())
        x, P = _mixed(self._x[settled], self._P[settled], weights / weights.sum())
        self._x = np.concatenate([x[None], self._x[~settled]])
        self._P = np.concatenate([P[None], self._P[~settled]])
        log = logs.max() + np.log(weights.sum())
        self._logs = np.concatenate([[log], self._logs[~settled]])
        self._came_s = np.concatenate([[-np.inf], self._came_s[~settled]])
        self._most = np.concatenate([np.zeros((1, self._size)), self._most[~settled]])
        self._swing = np.concatenate([[0.0], self._swing[~settled]])

    def _begin(self, now_s: float, chance: float) -> None:
        """Let another filter begin, for which a load has come now, with a chance."""
        P, many = self._P[0].copy(), len(_SWINGS)
        P[12:, 12:] += self._spread**2 * np.eye(self._size)
        self._x = np.concatenate([self._x, np.repeat(self._x[:1], many, axis=0)])
        self._P = np.concatenate([self._P, np.repeat(P[None], many, axis=0)])
        self._logs = np.append(self._logs, np.full(many, self._logs[0] + np.log(chance / many)))
        self._logs[0] += np.log1p(-chance)
        self._came_s = np.append(self._came_s, np.full(many, now_s))
        self._swing = np.append(self._swing, _SWINGS)
        self._most = np.concatenate([self._most, np.zeros((many, self._size))])

    def _wander(self, tip: Array) -> None:
        """Let the bias change by the way of the model's tip (4, 4) since the last update."""
        if self._tip is not None:
            way = displacement(self._tip, tip)
            steps = np.array([_STEPS[0] * self._model.rest_length_m, _STEPS[1]])
            ways = np.array([np.linalg.norm(way[:3]), np.linalg.norm(way[3:])])
            self._P[:, :6, :6] += np.diag(np.repeat(_WAY_SHARE**2 * steps * ways, 3))
        self._tip = tip

    def _follow(self, configuration: Array, actuation: Array) -> None:
        """Have the model asked again where the arm or the load is another."""
        load = (self._weights() @ self._x)[12:]
        moved = np.abs(configuration - self._at.configuration) / self._model.configuration_scale
        other = np.abs(load - self._at.load).max() > _OTHER_LOAD * self._spread
        if other or moved.max() > _ELSEWHERE:
            self._at = self._give(configuration, actuation, load)

    def _give(self, configuration: Array, actuation: Array, load: Array) -> _Give:
        """Return how the tip gives way around a load (k,), by differences."""
        step = _STEP * self._spread
        bare = self._model.forward(actuation).tip
        there = self._tip_under(actuation, load, bare)
        slope = np.empty((6, self._size))
        for j in range(self._size):
            more = load.copy()
            more[j] += step
            slope[:, j] = displacement(there, self._tip_under(actuation, more, there)) / step
        return _Give(configuration, load, displacement(bare, there), slope)

    def _tip_under(self, actuation: Array, load: Array, tip: Array) -> Array:
        """Return the tip under a load (k,); `tip` is near it: which way the lever points."""
        force = self._directions @ load
        if self._beyond_m == 0.0 or not force.any():
            return self._model.forward(actuation, force).tip
        for _ in range(_TURNS):
            moment = np.cross(self._beyond_m * tip[:3, 2], force)
            tip = self._model.forward(actuation, force, moment).tip
        return tip


def _mixed(x: Array, P: Array, weights: Array) -> tuple[Array, Array]:
    """Return mean (n,) and covariance (n, n) of a mixture of x (K, n), P (K, n, n)."""
    mean = weights @ x
    apart = x - mean
    return mean, np.tensordot(weights, P, 1) + (apart.T * weights) @ apart
