"""Observer of a weight at the tip: filters for its possible times of arrival, weighted."""

from __future__ import annotations

import contextlib

import numpy as np

from softarm_ros.control.estimation.swung_actuation import SwungActuation
from softarm_ros.control.estimation.tip_load import (
    CHANGE_S,
    LOAD,
    PERIOD_S,
    TipLoadObserver,
    TipSeen,
    mixed,
)
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel

SETTLED_S = 1.2  # time after its arrival from which a weight counts as known
# Until this time after the arm was first seen, motion of the tip counts as model error: if it
# starts where a weight hardly moves it, the error is as large as the effect of many weights.
FIRST_S = 3.0
# Response of the arm to a weight: the swing of a mass on the arm's compliance, with one of these
# dampings, uncertain by one of these shares of the weight's effect, and by all of it before the
# phase of the swing exceeds about `_BEGINS_RAD`. The arm follows its actuation by the same swing.
_DAMPINGS, _SHAPES, _BEGINS_RAD = (0.15, 0.3, 0.6), (0.2, 0.4), 1.4
# A swing with fewer updates per period than `_LOOKS` is not followed, nor one where the expected
# loads move the tip by less than the share `_FAR` of the arm's length, since the model's error
# swings as far there. The response then counts as immediate, uncertain by one of the shares
# `_AT_ONCE` of the weight's effect, and by all of it before `_BEGINS_S`.
_LOOKS, _FAR = 5.0, 0.1
_AT_ONCE, _BEGINS_S = (0.1, 0.4), 0.05
# (damping, share); damping 0: immediate response.
_FOLLOWED = np.array([(damping, share) for damping in _DAMPINGS for share in _SHAPES])
_AVERAGED = np.array([(0.0, share) for share in _AT_ONCE])
_LEAST_ALONG = 0.02  # least cosine of deflection and gravity: a hanging arm yields only sideways
# Factor on the gain with which a known weight is still updated: later, slow changes are model
# error, which is larger than a random walk of the bias along the same motion.
_LATER = 0.05
_PASSES = 3  # of an update: the uncertainty of the swing depends on the weight itself


class TipWeightObserver(TipLoadObserver):
    """
    Estimates a weight at the tip.

    At every update, filters begin that assume the arrival of another weight just now; each has the
    weight of its likelihood (change-point detection). The arm swings on a new weight: each filter
    expects the response of a mass on a spring, i.e. of the swinging mass and the weight on the
    arm's compliance, with its own damping. The model's tip also swings, following the actuators;
    otherwise a tracker that works against the weight makes it seem up to half larger. After
    `SETTLED_S`, a filter is merged with that of the known weight, in which the weight hardly
    changes any more, and the rest of its swing counts as noise. A weight that arrives within
    `FIRST_S` of the first update cannot be told from the model's error.

    Parameters
    ----------
    model, beyond_m, spread_N, model_share
        As in `TipLoadObserver`.
    gravity : (3,)
        Base frame [m/s^2].
    swung_mass_kg : float
        Mass at the tip with the same inertia in a swing as the arm; 0: unknown, no swing followed.

    """

    def __init__(
        self,
        model: ArmModel,
        gravity: Array,
        beyond_m: float,
        spread_N: float,
        model_share: float,
        swung_mass_kg: float = 0.0,
    ) -> None:
        self._gravity_m_s2, self._swung_kg = float(np.linalg.norm(gravity)), swung_mass_kg
        self._swung = SwungActuation(np.array(_DAMPINGS))
        down = (gravity / self._gravity_m_s2)[:, None]
        super().__init__(model, down, beyond_m, spread_N, model_share)

    def reset(self) -> None:
        """Forget everything: the present load of the arm counts as that of the rig file."""
        super().reset()
        self._swung.reset()
        self._first_s = np.inf
        # Filter 0 has the known weight; the others have a weight that arrived at some time. Each:
        # log likelihood, time of arrival, expected response, load before, and largest load so far.
        self._logs, self._came_s = np.zeros(1), np.full(1, -np.inf)
        self._answer = np.zeros((1, 2))
        self._before, self._most = np.zeros((1, self._size)), np.zeros((1, self._size))
        # Last weight that settled: its time of arrival, and the increase.
        self._last_s, self._more = -np.inf, np.zeros(self._size)

    def actuated(self, now_s: float, actuation: Array) -> None:
        """Take the actuation as in `TipLoadObserver`, and let the arm swing after it."""
        super().actuated(now_s, actuation)
        if self._swung_kg > 0.0 and np.isfinite(actuation).all():
            weight = np.clip(self._weights @ self._x[:, LOAD.start], 0.0, self._spread)
            natural = float(self._natural_rad_s(np.array([weight]))[0])
            self._swung.take(now_s, actuation, natural)

    def _take(self, now_s: float, y: Array, H: Array, seen: TipSeen) -> None:
        reached, share = self._answers(now_s)
        R = seen.covariance + self._rest_of_swing(now_s)
        self._absorb(self._beyond_swung(y, seen), H, R, reached, share)

    def _beyond_swung(self, y: Array, seen: TipSeen) -> Array:
        """
        Return the deviation (filters, 6) of the tip from the model's, by each filter's damping.

        `y` (6,) is the deviation if the arm followed its actuation immediately.
        """
        far = dict.fromkeys((0.0, *_DAMPINGS), y)
        for damping, actuation in zip(_DAMPINGS, self._swung.value):
            if (self._answer[:, 0] == damping).any():
                with contextlib.suppress(ValueError):  # the model does not cover this actuation
                    far[damping] = self._beyond(self._model.forward(actuation).tip, seen)
        return np.array([far[damping] for damping in self._answer[:, 0]])

    def _absorb(self, y: Array, H: Array, R: Array, reached: Array, share: Array) -> None:
        """
        Update all filters, each by its y (filters, 6) = H x with covariance R.

        A new weight has reached the share `reached` (filters,) of its full effect, with a standard
        deviation of `share` of the full effect.
        """
        x, P, slope = self._x, self._P, self._at.slope
        rows = np.repeat(H[None], len(x), axis=0)
        rows[:, :, LOAD] *= reached[:, None, None]
        there = (1.0 - reached)[:, None] * (self._before @ slope.T)
        innovation = y - there - np.einsum('kij,kj->ki', rows, x)
        HP = rows @ P
        after, new = x, P
        for _ in range(_PASSES):
            noise = R + self._uncertain(after[:, LOAD], new[:, LOAD, LOAD], share)
            S = HP @ rows.swapaxes(1, 2) + noise
            gain = np.linalg.solve(S, HP).swapaxes(1, 2)
            gain[0, LOAD] *= _LATER
            left = np.eye(x.shape[1]) - gain @ rows
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
        """Return the deflection of the tip (filters,) [m] under loads (filters, k)."""
        return np.asarray(np.linalg.norm(loads @ slope[:3].T, axis=1))

    def _answers(self, now_s: float) -> tuple[Array, Array]:
        """
        Return, for each filter (filters,), the share of the weight's effect reached by now.

        The second array is the standard deviation of that, as a share of the full effect.
        """
        since = now_s - self._came_s
        damping, shape = self._answer.T
        share = shape + np.exp(-since / _BEGINS_S)
        reached, swings = np.ones(since.size), damping > 0.0
        weights = np.clip(self._x[swings, LOAD.start], 0.0, self._spread)
        turn = self._natural_rad_s(weights) * since[swings]
        reached[swings] = step_answer(turn, damping[swings])
        share[swings] = shape[swings] + np.exp(-turn / _BEGINS_RAD)
        return reached, share

    def _natural_rad_s(self, weights: Array) -> Array:
        """Return the natural frequency (n,) [rad/s] of the arm's swing with weights (n,) [N]."""
        mass = self._swung_kg + weights / self._gravity_m_s2
        return natural_rad_s(self._at.slope[:3, 0], self._directions[:, 0], mass)

    def _rest_of_swing(self, now_s: float) -> Array:
        """Return the covariance (6, 6) of the remaining swing on the weight that settled last."""
        if self._swung_kg <= 0.0 or np.isinf(self._last_s):
            return np.zeros((6, 6))
        turn = self._natural_rad_s(np.abs(self._more[:1]))[0] * (now_s - self._last_s)
        far = float(np.exp(-min(_DAMPINGS) * turn)) * (self._at.slope @ self._more)
        return np.outer(far, far)

    def _uncertain(self, loads: Array, covariances: Array, swings: Array) -> Array:
        """
        Return covariances (filters, 6, 6) of the effect of loads (filters, k).

        The first part is the uncertainty of the swing, for the largest weight so far: if it shrank
        with the estimate, it would draw the estimate to zero. The second is the error of the
        model's deflection, in every direction: without it, directions of small deflection, in
        which the error is not small, would determine the weight.
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
        """Normalise the likelihoods of the filters to weights."""
        weights = np.exp(self._logs - self._logs.max())
        self._weights = weights / weights.sum()

    def _predict(self, now_s: float) -> None:
        period = self._passed(now_s)
        self._first_s = min(self._first_s, now_s)
        self._settle(now_s)
        self._learn(self._x[0], self._P[0], period)
        self._pass(period)
        if now_s > self._first_s + FIRST_S:
            self._begin(now_s, -np.expm1(-period / CHANGE_S))
        self._weigh()

    def _settle(self, now_s: float) -> None:
        """Merge the filter of the known weight with those whose weight has settled."""
        settled = self._came_s <= now_s - SETTLED_S + 1e-6
        logs = self._logs[settled]
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        if np.count_nonzero(settled) > 1 and weights[0] < 0.5:
            came = int(np.argmax(weights))
            self._last_s = float(self._came_s[settled][came])
            self._more = (self._x[settled][came] - self._x[0])[LOAD]
        x, P = mixed(self._x[settled], self._P[settled], weights)
        self._x = np.concatenate([x[None], self._x[~settled]])
        self._P = np.concatenate([P[None], self._P[~settled]])
        log = logs.max() + np.log(np.exp(logs - logs.max()).sum())
        self._logs = np.concatenate([[log], self._logs[~settled]])
        self._came_s = np.concatenate([[-np.inf], self._came_s[~settled]])
        self._answer = np.concatenate([np.zeros((1, 2)), self._answer[~settled]])
        none = np.zeros((1, self._size))
        self._before = np.concatenate([none, self._before[~settled]])
        self._most = np.concatenate([none, self._most[~settled]])

    def _begin(self, now_s: float, chance: float) -> None:
        """Start filters that assume another weight arrived now, with the probability `chance`."""
        answers = _FOLLOWED if self._followed() else _AVERAGED
        P, many = self._P[0].copy(), len(answers)
        P[LOAD, LOAD] += self._spread**2 * np.eye(self._size)
        before = np.repeat(self._x[:1, LOAD], many, axis=0)
        self._x = np.concatenate([self._x, np.repeat(self._x[:1], many, axis=0)])
        self._P = np.concatenate([self._P, np.repeat(P[None], many, axis=0)])
        self._logs = np.append(self._logs, np.full(many, self._logs[0] + np.log(chance / many)))
        self._logs[0] += np.log1p(-chance)
        self._came_s = np.append(self._came_s, np.full(many, now_s))
        self._answer = np.concatenate([self._answer, answers])
        self._before = np.concatenate([self._before, before])
        self._most = np.concatenate([self._most, np.zeros((many, self._size))])

    def _followed(self) -> bool:
        """Return whether the swing on a weight that arrives now is followed."""
        if self._swung_kg <= 0.0:
            return False
        turn = float(self._natural_rad_s(np.zeros(1))[0]) * PERIOD_S
        far = float(np.linalg.norm(self._at.slope[:3, 0])) * self._spread
        return turn * _LOOKS < 2.0 * np.pi and far > _FAR * self._model.rest_length_m


def natural_rad_s(give: Array, down: Array, mass_kg: Array) -> Array:
    """
    Return the natural frequencies (n,) [rad/s] of masses (n,) at the tip on an arm's compliance.

    A force of one newton along `down` (3,) moves the tip by `give` (3,) [m/N], of size c and unit
    vector u. In the direction of u the force is down . u, so the stiffness is down . u / c.
    """
    far = max(float(np.linalg.norm(give)), np.finfo(float).tiny)
    along = max(float(give @ down) / far, _LEAST_ALONG)
    return np.asarray(np.sqrt(along / (far * mass_kg)))


def step_answer(turn: Array, damping: Array) -> Array:
    """Return the step response (n,) of a mass on a spring at angles w t (n,) [rad]."""
    slow = np.sqrt(1.0 - damping**2)
    swing = np.cos(slow * turn) + damping / slow * np.sin(slow * turn)
    return np.asarray(1.0 - np.exp(-damping * turn) * swing)
