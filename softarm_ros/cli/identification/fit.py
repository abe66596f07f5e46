"""
The one identification: rows, parameters and a robust fit; what the data cannot tell; intervals.

    minimise  sum_i w_i^2 rho(|e_i|) + |x|^2,    rho(e) = 2 (sqrt(1 + e^2) - 1),

e_i the error of a measured point (m) or axis (-) in row i, in units of what a good model may be
wrong by, w_i^2 the share of independent information in a row (rows that follow each other err
alike), rho the soft L1 loss, and x the parameters in units of their priors. The loss is one of
distances, not of coordinates: it does not depend on how the frame of the measurements lies, and
what counts as mistaken does not depend on how often a row was recorded.

Intervals come from blocks of rows drawn again with replacement. For each draw one Newton step is
made from the found parameters with the weights of the draw, which costs no further fit (checked
against repeated fits in the tests).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.stats import t as student

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.identification.recordings import Recorded
from softarm_ros.cli.score import predict
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel
from softarm_ros.models.identifiable import Parameter, moved_by
from softarm_ros.rigs.field_values import values_of, with_values
from softarm_ros.rigs.schema import Rig

ERROR_SHARE = 0.01  # of the arm's length: what a good model may be wrong by
ERROR_AXIS = 0.03  # of an axis
CORRELATION_S = 0.25  # rows of a moving arm closer than this carry the same information
DRAWS = 400
_STEP = 1e-3  # of differences, in spreads
_MAX_EVALUATIONS = 25
_REFUSED = 10.0  # of the above, where a model refuses a row
_INSIDE = 0.3  # spreads, from a bound


@dataclass(frozen=True)
class Fit:
    """
    What was found.

    Attributes
    ----------
    x : (k,)
        In units of the priors.
    jacobian : (n, k), error : (n,)
        In units of what a good model may be wrong by, times `weight`, at x; without loss and
        prior. Three coordinates of a point or axis follow each other.
    weight : (n,)
        Roots of the shares of information.
    block : (n,)
        Of each row of these.
    cost : float
        As minimised, and how many times the model was asked.

    """

    parameters: tuple[Parameter, ...]
    known: dict[str, float]
    x: Array
    jacobian: Array
    error: Array
    weight: Array
    block: NDArray[np.int64]
    cost: float
    evaluations: int

    @property
    def values(self) -> dict[str, float]:
        """All fields that the parameters change, as found."""
        return moved_by(self.parameters, self.known, self.x)

    def rig(self, rig: Rig) -> Rig:
        """Return the rig with them."""
        return with_values(rig, self.values)


def chosen(parameters: Sequence[Parameter], groups: Sequence[str]) -> tuple[Parameter, ...]:
    """
    Return the parameters of some groups, or with some names.

    Raises
    ------
    UsageError
        If there is no such group or name.

    """
    known = list(dict.fromkeys(p.group for p in parameters))
    wrong = [g for g in groups if g not in known and all(p.name != g for p in parameters)]
    if wrong:
        raise UsageError(
            f'--parameters {",".join(wrong)}: no such group; there are {", ".join(known)}'
        )
    return tuple(p for p in parameters if p.group in groups or p.name in groups)


def fit(
    rig: Rig, recorded: Sequence[Recorded], parameters: Sequence[Parameter], most_rows: int
) -> Fit:
    """
    Return the parameters that explain the rows `train` of recordings best.

    Raises
    ------
    UsageError
        If there are fewer measured coordinates than parameters.

    """
    if not parameters:
        raise UsageError('nothing to identify: name --parameters')
    fields = list(dict.fromkeys(f for p in parameters for f in p.fields))
    known = values_of(rig, fields)
    thin = _thinned(recorded, most_rows)
    scale = ERROR_SHARE * rig.model().rest_length_m
    weights = [_weight(r, rows) for r, rows in zip(recorded, thin)]

    # The search asks for its slope where it has just asked for the errors, and it ends there.
    @lru_cache(maxsize=1)
    def errors_at(key: bytes) -> Array:
        changed = with_values(rig, moved_by(parameters, known, np.frombuffer(key)))
        models: dict[tuple[float, ...], tuple[Rig, ArmModel]] = {}
        parts = []
        for one, rows, weight in zip(recorded, thin, weights):
            if not len(rows):
                continue
            run = one.seen_by(changed, rows)
            around = tuple(run.around.values())
            if around not in models:
                then = run.as_it_was(changed)
                models[around] = (then, then.physics())
            found = predict(*models[around], run, strict=False)
            each = [(found.points[n] - v) / scale for n, v in run.points.items()]
            each += [
                np.where(np.isfinite(v), found.axes[n] - v, 0.0) / ERROR_AXIS
                for n, v in run.axes.items()
            ]
            stacked = np.concatenate([e.reshape(len(rows), -1) for e in each], axis=1)
            parts.append(weight * np.nan_to_num(stacked, nan=_REFUSED).ravel())
        return np.concatenate(parts)

    def errors(x: Array) -> Array:
        return errors_at(x.tobytes())

    count = len(parameters)
    bounds = _bounds(parameters, known)
    # A search that starts at a bound cannot leave it.
    start = np.clip(np.zeros(count), bounds[:, 0] + _INSIDE, bounds[:, 1] - _INSIDE)
    size = len(errors(start))
    if size < count:
        raise UsageError(
            f'{size} measured coordinates for {count} parameters; expected at least as many'
        )

    def tried(x: Array) -> Array:
        try:
            return errors(x)
        except ValueError:  # no arm: one that would buckle, or whose cables leave a bend free
            return np.full(size, _REFUSED)

    @lru_cache(maxsize=1)
    def slope_at(key: bytes) -> Array:
        x = np.frombuffer(key)
        base, columns = errors(x), np.empty((size + count, count))
        for k in range(count):
            step = _STEP if x[k] + _STEP <= bounds[k, 1] else -_STEP
            moved = x.copy()
            moved[k] += step
            try:
                there = errors(moved)
            except ValueError:
                step = -step
                moved[k] = x[k] + step
                there = errors(moved)
            columns[:size, k] = (there - base) / step
        columns[size:] = np.eye(count)
        return columns

    def slope(x: Array) -> Array:
        return slope_at(x.tobytes()).copy()  # which the search weighs in place

    share = _each(recorded, thin, weights)

    def loss(squares: Array) -> Array:
        """
        Return soft L1 and its derivatives, of the errors; the prior is Gaussian.

        Each coordinate has a third of the loss of its point and the slope of the whole.
        """
        root = _root(squares[:size], share)
        third = share**2 * 2.0 * (root - 1.0) / 3.0
        rho = np.empty((3, size + count))
        rho[:, :size] = np.stack([third, 1.0 / root, -0.5 / (share**2 * root**3)])
        rho[:, size:] = np.stack([squares[size:], np.ones(count), np.zeros(count)])
        return rho

    solved = least_squares(
        lambda x: np.concatenate([tried(x), x]),
        start,
        jac=slope,
        loss=loss,
        bounds=(bounds[:, 0], bounds[:, 1]),
        max_nfev=_MAX_EVALUATIONS,
        ftol=1e-5,
        xtol=1e-5,
    )
    error, jacobian = solved.fun[:size], slope(solved.x)[:size]
    return Fit(
        tuple(parameters),
        known,
        solved.x,
        jacobian,
        error,
        share,
        _blocks(recorded, thin),
        float(solved.cost),
        int(solved.nfev) * (count + 1),
    )


def _bounds(parameters: Sequence[Parameter], known: dict[str, float]) -> Array:
    return np.array([p.bounds(known) for p in parameters]).reshape(-1, 2)


def _thinned(recorded: Sequence[Recorded], most: int) -> list[NDArray[np.int64]]:
    total = sum(len(r.train) for r in recorded)
    every = max(1, -(-total // most))
    return [r.train[::every] for r in recorded]


def _weight(recorded: Recorded, rows: NDArray[np.int64]) -> float:
    """Return the share of information that a row has of its own, as a root."""
    time = recorded.whole.time_s
    if time is None or len(rows) < 2:
        return 1.0
    spacing = float(np.median(np.diff(time[rows])))
    return float(min(1.0, spacing / CORRELATION_S) ** 0.5)


def _each(
    recorded: Sequence[Recorded], thin: Sequence[NDArray[np.int64]], weights: Sequence[float]
) -> Array:
    """Return the weight of each error (n,)."""
    return np.concatenate(
        [
            np.full(3 * len(rows) * (len(one.whole.points) + len(one.whole.axes)), weight)
            for one, rows, weight in zip(recorded, thin, weights)
        ]
    )


def _root(squares: Array, weight: Array) -> Array:
    """Return sqrt(1 + |e|^2) (n,) of the point that each of the weighed squares (n,) is of."""
    own = (squares / weight**2).reshape(-1, 3)
    return np.asarray(np.sqrt(1.0 + np.repeat(own.sum(axis=1), 3)))


def _curvature(found: Fit, rows: NDArray[np.bool_]) -> Array:
    """Return the second derivative (k, k) of half the loss of whole points, by the parameters."""
    error, jacobian, weight = found.error[rows], found.jacobian[rows], found.weight[rows]
    root = _root(error**2, weight)
    along = (error / (weight * root**1.5))[:, None] * jacobian
    along = along.reshape(-1, 3, jacobian.shape[1]).sum(axis=1)
    return np.asarray((jacobian.T / root) @ jacobian - along.T @ along)


def _blocks(recorded: Sequence[Recorded], thin: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the block of each error; blocks of different files differ."""
    parts, first = [], 0
    for one, rows in zip(recorded, thin):
        if not len(rows):
            continue
        block = one.blocks(rows)
        width = 3 * (len(one.whole.points) + len(one.whole.axes))
        parts.append(np.repeat(block + first, width))
        first += int(block.max()) + 1
    return np.concatenate(parts)


def intervals(found: Fit, seed: int = 0) -> Array:
    """
    Return the 95 % intervals (k, 2) of x.

    Few blocks show too little spread: Student's t of their number widens it, and a block counts
    with the error it would have if it were left out.
    The prior is a measurement as well, of its own: it is drawn, too.
    """
    names, index = np.unique(found.block, return_inverse=True)
    count, size = len(names), len(found.x)
    gradients, curvatures = np.zeros((count, size)), np.zeros((count, size, size))
    pull = found.error / _root(found.error**2, found.weight)
    for b in range(count):
        rows = index == b
        gradients[b] = found.jacobian[rows].T @ pull[rows]
        curvatures[b] = _curvature(found, rows)
    # What a block would err by if it had not been fitted: the exact form of leaving it out.
    whole = curvatures.sum(axis=0) + np.eye(size)
    for b in range(count):
        share = np.linalg.solve(whole, curvatures[b]).T
        gradients[b] = np.linalg.solve(np.eye(size) - share, gradients[b])
    rng = np.random.default_rng(seed)
    draws = np.empty((DRAWS, size))
    for i in range(DRAWS):
        weight = np.bincount(rng.integers(0, count, count), minlength=count).astype(float)
        curvature = np.tensordot(weight, curvatures, 1) + np.eye(size)
        # At x the gradient of all blocks and the prior is zero.
        gradient = (weight - 1.0) @ gradients + rng.standard_normal(size)
        draws[i] = -np.linalg.solve(curvature, gradient)
    wide = float(student.ppf(0.975, max(count - 1, 1)) / student.ppf(0.975, 1e6))
    low, high = np.percentile(draws, [2.5, 97.5], axis=0)
    ends = np.stack([found.x + wide * low, found.x + wide * high], axis=1)
    bounds = _bounds(found.parameters, found.known)
    return np.clip(ends, bounds[:, :1], bounds[:, 1:])


@dataclass(frozen=True)
class Untold:
    """A combination of parameters that the data leave at the prior: shares and what is left."""

    shares: tuple[tuple[str, float], ...]
    left: float


def untold(found: Fit, least: float = 0.8, named: float = 0.3) -> list[Untold]:
    """
    Return the combinations of which the data tell next to nothing, the worst first.

    By the singular values s of the Jacobian in units of the priors (roots of the eigenvalues of
    J' J): along each right singular vector 1 / sqrt(1 + s^2) of the prior's spread is left.
    """
    curvature = (found.jacobian.T / _root(found.error**2, found.weight)) @ found.jacobian
    squares, columns = np.linalg.eigh(curvature)
    sizes, rows = np.sqrt(np.maximum(squares, 0.0)), columns.T
    out = []
    for size, row in sorted(zip(sizes, rows), key=lambda pair: pair[0]):
        left = 1.0 / (1.0 + size * size) ** 0.5
        if left < least:
            break
        order = np.argsort(-np.abs(row))
        sign = np.sign(row[order[0]])
        # Of many alike, none has much: the largest is named all the same.
        large = [order[0], *(k for k in order[1:] if abs(row[k]) >= named)]
        shares = tuple((found.parameters[k].name, float(sign * row[k])) for k in large)
        out.append(Untold(shares, left))
    return out
