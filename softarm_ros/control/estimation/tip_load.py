"""The load at the tip, from how the arm gives way to it: a small Kalman filter beside the bank."""

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
_COMING_S = 0.2  # during which it comes
# Of the model's error before anything is seen, what stays and what varies: share of the arm's
# length, rad. On its way the first changes by a share of the way, as a walk with steps of that
# share of the length, and of so many rad.
_BIAS, _VARIES = (0.1, 0.5), (0.002, 0.005)
_WAY_SHARE, _STEPS = 0.05, (0.2, 1.0)
_STEP = 0.02  # of finite differences, as a share of the spread of loads
_ELSEWHERE = 0.02  # of the scale of a configuration, after which the arm gives way otherwise
_OTHER_LOAD = 0.05  # likewise, of the spread of loads
_TURNS = 2  # of the lever with the tip: the second changes the give by a hundredth
# Chi-square of six, one in a thousand; share of what is to be explained that is still to come.
_UNUSUAL, _UNDER_WAY, _LONGEST_WAIT_S = 22.5, 0.25, 0.65
_LEAST = 1e-12  # weight
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
    moving, moving_covariance
        Velocity (6,) of its deviation from the model, (6, 6).

    """

    tip: Array
    covariance: Array
    moving: Array
    moving_covariance: Array


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
    along what is learnt), and what the load does. Two filters run side by side, of a load that
    stays and of one that is just coming, and are mixed by their likelihoods (interacting multiple
    models, Blom and Bar-Shalom 1988): a load comes suddenly, the model's error does not. What the
    arm carries at the start counts as the rig file's load; it is in the bias. A deviation that
    moves has not come to rest: it counts less, by what it moves within `settling_s`.

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
    settling_s : float
        Within which a deviation that moves comes to rest.

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
        settling_s: float,
    ) -> None:
        self._model, self._directions, self._beyond_m = model, directions, beyond_m
        self._spread, self._share, self._settling_s = spread_N, model_share, settling_s
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
        # Of a load that stays, and of one that is coming.
        self._x, self._P, self._weights = np.zeros((2, n)), np.array([P, P]), np.array([1.0, 0.0])
        self._now_s: float | None = None
        self._usual_s = np.inf  # when last nothing was coming
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
        if self._waits(now_s, y - H @ self._x[0], H, seen):
            return
        moving = np.outer(seen.moving, seen.moving) + seen.moving_covariance
        self._absorb(y, H, seen.covariance + self._settling_s**2 * moving + self._misgiven())

    def _misgiven(self) -> Array:
        """
        Return the covariance (6, 6) of what the model is wrong by about the give: any way.

        Without it a moving arm is told its weight by the directions in which it does not move, in
        which the model's give is small and its error is not. A force in any direction has room
        for that error itself.
        """
        if self._size > 1:
            return np.zeros((6, 6))
        x, P = _mixed(self._x, self._P, self._weights)
        slope, load = self._at.slope, np.outer(x[12:], x[12:]) + P[12:, 12:]
        gives = np.diag(slope @ load @ slope.T)
        return self._share**2 * np.diag(np.repeat([gives[:3].sum(), gives[3:].sum()], 3))

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

    def load(self) -> TipLoad:
        """Return the load as far as it is told."""
        x, P = _mixed(self._x, self._P, self._weights)
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
        x, P = _mixed(self._x, self._P, self._weights)
        share = -np.expm1(-period / LEARNING_S)
        moment = np.outer(x[_B], x[_B]) + P[_B, _B]
        self._errors = (1.0 - share) * self._errors + share * moment
        begins, ends = -np.expm1(-period / CHANGE_S), -np.expm1(-period / _COMING_S)
        stays, comes = self._weights
        into = np.array(
            [[(1.0 - begins) * stays, ends * comes], [begins * stays, (1.0 - ends) * comes]]
        )
        mixed = [_mixed(self._x, self._P, row / max(row.sum(), _LEAST)) for row in into]
        self._weights = into.sum(axis=1)
        left = float(np.exp(-period / ERROR_MEMORY_S))
        F = np.eye(12 + self._size)
        F[_B, _B] *= left
        noise = np.zeros_like(F)
        noise[_B, _B] = (1.0 - left**2) * self._errors
        for k, (mean, covariance) in enumerate(mixed):
            self._x[k], self._P[k] = F @ mean, F @ covariance @ F.T + noise
        if period > 0.0:
            self._P[1, 12:, 12:] += self._spread**2 * np.eye(self._size)

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
        load = (self._weights @ self._x)[12:]
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
    """Return mean (n,) and covariance (n, n) of a mixture of x (2, n), P (2, n, n)."""
    mean = weights @ x
    apart = x - mean
    return mean, np.tensordot(weights, P, 1) + (apart.T * weights) @ apart
