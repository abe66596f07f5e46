"""Observer of the load at the tip, from the arm's deflection: small Kalman filters."""

from __future__ import annotations

import abc
from dataclasses import dataclass

import numpy as np

from softarm_ros.control.estimator import TipLoad
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import displacement
from softarm_ros.models.arm_model import ArmModel, ModelError

PERIOD_S = 0.1  # between updates: the arm takes longer than that to deflect
ERROR_MEMORY_S = 1.0  # correlation time of the varying part of the model's error
LEARNING_S = 10.0  # time constant with which the size of that part is learnt
CHANGE_S = 10.0  # mean time between changes of the load
# Standard deviation of the model's error before any measurement, of its constant part (bias) and
# its varying part: share of the arm's length, rad. As the tip moves, the bias does a random walk:
# for each step, given as a share of the length and in rad, it changes by `_WAY_SHARE` of the step.
_BIAS, _VARIES = (0.1, 0.5), (0.002, 0.005)
_WAY_SHARE, _STEPS = 0.05, (0.2, 1.0)
_STEP = 0.02  # of finite differences, as a share of the spread of loads
_ELSEWHERE = 0.02  # share of the configuration's scale after which the deflection is recomputed
_OTHER_LOAD = 0.05  # likewise, share of the spread of loads
_TURNS = 2  # iterations for the lever, which rotates with the tip: the second changes it by 1 %
ERROR = slice(6, 12)  # of the state: the varying error
LOAD = slice(12, None)
_TOLD = 0.5  # share of the spread: a load with a larger standard deviation is a problem


@dataclass(frozen=True)
class TipSeen:
    """
    The tip as seen by an estimator.

    Attributes
    ----------
    tip, covariance
        Pose (4, 4), and covariance (6, 6) of position and rotation vector, base axes.
    moving, moving_covariance
        Velocity (6,) of its deviation from the model, and covariance (6, 6).

    """

    tip: Array
    covariance: Array
    moving: Array
    moving_covariance: Array


@dataclass(frozen=True)
class _Give:
    """Deflection of the model's tip at a configuration: `moved` (6,) under `load` (k,)."""

    configuration: Array
    load: Array
    moved: Array
    slope: Array


class TipLoadObserver(abc.ABC):
    """
    Estimates the load that was added to the tip since the arm was first seen.

    The deviation of the tip from the model's tip, at the present actuation, is the sum of a bias
    that changes as the tip moves, an error that varies as the arm moves (Ornstein-Uhlenbeck of
    `ERROR_MEMORY_S`; its size and directions are learnt), and the effect of the load. Several
    filters, each with its own time of a change of load, run in parallel and are mixed by their
    likelihoods, because a load comes suddenly and the model's error does not. The load at the
    start counts as that of the rig file; it is part of the bias.

    Parameters
    ----------
    model : ArmModel
    directions : (3, k)
        Unit vectors along which a load may act.
    beyond_m : float
        Distance beyond the tip, along its z axis, at which it acts: the middle of a gripper.
    spread_N : float
        Standard deviation of the expected loads.
    model_share : float
        Standard deviation of the model's deflection under a load, as a share of it.

    Raises
    ------
    ModelError
        If the model cannot compute a load at the tip.

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
            self._actuation = model.actuation_of(rest)
            self._first = self._give(rest, self._actuation, np.zeros(self._size))
        except ModelError as error:
            raise ModelError(f'the load at the tip cannot be estimated: {error}') from error
        self.reset()

    def reset(self) -> None:
        """Forget everything: the present load of the arm counts as that of the rig file."""
        n, length = 12 + self._size, self._model.rest_length_m
        unit = np.repeat([length, 1.0], 3)
        self._errors = np.diag((np.repeat(_VARIES, 3) * unit) ** 2)
        P = np.zeros((n, n))
        P[:6, :6], P[ERROR, ERROR] = np.diag((np.repeat(_BIAS, 3) * unit) ** 2), self._errors
        # States, covariances and probabilities of the filters.
        self._x, self._P, self._weights = np.zeros((1, n)), P[None], np.ones(1)
        self._now_s: float | None = None
        self._tip: Array | None = None  # model's tip at the last update
        self._at = self._first
        self._trouble = 'nothing has been seen'

    def due(self, now_s: float) -> bool:
        """Return whether an update is due."""
        return self._now_s is None or now_s - self._now_s >= PERIOD_S - 1e-6

    def actuated(self, now_s: float, actuation: Array) -> None:
        """Take the actuation (m,), without pretension."""
        self._actuation = actuation

    def update(self, now_s: float, seen: TipSeen) -> None:
        """Take the tip's estimate, under the newest actuation."""
        actuation = self._actuation
        self._predict(now_s)
        try:
            configuration = self._model.configuration_of(actuation)
            tip = self._model.forward(actuation).tip
            self._follow(configuration, actuation)
        except ValueError as error:  # the model does not cover this actuation
            self._trouble = f'the model refuses the actuation: {error}'
            return
        self._trouble = ''
        self._wander(tip)
        y = self._beyond(tip, seen)
        H = np.hstack([np.eye(6), np.eye(6), self._at.slope])
        self._take(now_s, y, H, seen)

    def _beyond(self, tip: Array, seen: TipSeen) -> Array:
        """Return the deviation (6,) of the tip from the model's (4, 4), linearised in the load."""
        return displacement(tip, seen.tip) - self._at.moved + self._at.slope @ self._at.load

    @abc.abstractmethod
    def _predict(self, now_s: float) -> None:
        """Predict the filters to a time [s]."""

    @abc.abstractmethod
    def _take(self, now_s: float, y: Array, H: Array, seen: TipSeen) -> None:
        """Update the filters and their weights by y = H x (6,)."""

    def load(self) -> TipLoad:
        """Return the load, with a problem if its standard deviation is too large."""
        x, P = mixed(self._x, self._P, self._weights)
        d, f, P = self._directions, x[LOAD], P[LOAD, LOAD]
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

    def _passed(self, now_s: float) -> float:
        """Return the time since the last update [s], and note that one happens now."""
        period = 0.0 if self._now_s is None else now_s - self._now_s
        self._now_s = now_s
        return period

    def _learn(self, x: Array, P: Array, period: float) -> None:
        """Learn the size of the varying error from a state (n,) and its covariance."""
        share = -np.expm1(-period / LEARNING_S)
        moment = np.outer(x[ERROR], x[ERROR]) + P[ERROR, ERROR]
        self._errors = (1.0 - share) * self._errors + share * moment

    def _pass(self, period: float) -> None:
        """Advance the bias and error of all filters by a period [s]."""
        left = float(np.exp(-period / ERROR_MEMORY_S))
        F = np.ones(12 + self._size)
        F[ERROR] = left
        self._x, self._P = self._x * F, self._P * np.outer(F, F)
        self._P[:, ERROR, ERROR] += (1.0 - left**2) * self._errors

    def _wander(self, tip: Array) -> None:
        """Widen the bias by the motion of the model's tip (4, 4) since the last update."""
        if self._tip is not None:
            way = displacement(self._tip, tip)
            steps = np.array([_STEPS[0] * self._model.rest_length_m, _STEPS[1]])
            ways = np.array([np.linalg.norm(way[:3]), np.linalg.norm(way[3:])])
            self._P[:, :6, :6] += np.diag(np.repeat(_WAY_SHARE**2 * steps * ways, 3))
        self._tip = tip

    def _follow(self, configuration: Array, actuation: Array) -> None:
        """Recompute the deflection if the configuration or the load has changed."""
        load = (self._weights @ self._x)[LOAD]
        moved = np.abs(configuration - self._at.configuration) / self._model.configuration_scale
        other = np.abs(load - self._at.load).max() > _OTHER_LOAD * self._spread
        if other or moved.max() > _ELSEWHERE:
            self._at = self._give(configuration, actuation, load)

    def _give(self, configuration: Array, actuation: Array, load: Array) -> _Give:
        """Return the deflection of the tip about a load (k,), by finite differences."""
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
        """Return the tip under a load (k,); `tip`, near it, gives the direction of the lever."""
        force = self._directions @ load
        if self._beyond_m == 0.0 or not force.any():
            return self._model.forward(actuation, force).tip
        for _ in range(_TURNS):
            moment = np.cross(self._beyond_m * tip[:3, 2], force)
            tip = self._model.forward(actuation, force, moment).tip
        return tip


def mixed(x: Array, P: Array, weights: Array) -> tuple[Array, Array]:
    """Return mean (n,) and covariance (n, n) of a mixture of x (K, n), P (K, n, n)."""
    mean = weights @ x
    apart = x - mean
    return mean, np.tensordot(weights, P, 1) + (apart.T * weights) @ apart
