"""
Robust fit of parameters to rows of recordings, and the combinations the data leave untold.

    minimise  sum_i w_i^2 rho(|e_i|) + |x|^2,    rho(e) = 2 (sqrt(1 + e^2) - 1),

with e_i the error of a measured point (m) or axis (-) in row i, in units of a good model's error,
w_i^2 the share of independent information in a row (errors of successive rows are correlated),
rho the soft L1 loss (`robust_loss`), and x the parameters in units of their priors.

At the end of the search, the errors are expanded to second order along untold directions: those
that their slopes leave undetermined. If the expansion shows a lower cost, the search continues
from there. `intervals` uses the same expansion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, least_squares

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.identification.misfit import Errors, Misfit
from softarm_ros.cli.identification.recordings import Recorded
from softarm_ros.cli.identification.robust_loss import RobustLoss
from softarm_ros.cli.identification.second_order import Bending, Cost, bending, untold_directions
from softarm_ros.cli.identification.tried_delay import TriedDelay, WithDelay, secant, try_delays
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.identifiable import Parameter, moved_by
from softarm_ros.rigs.field_values import with_values
from softarm_ros.rigs.schema import Rig

_MAX_EVALUATIONS = 25
_INSIDE = 0.3  # least distance of a start from a bound, in spreads
_FAR = 6.0  # spreads: no search reaches a bound this far away
_RESTARTS = 3
_DRAWN, _SEARCHED = 8, 3  # other starts, and how many of the best are searched from
_TURNS = 4  # alternations between the delay and the other parameters
_PLACES = 16  # drawn from the prior, to look for a lower cost
_LOWER = 0.05  # least decrease of the cost that counts


@dataclass(frozen=True)
class Fit:
    """
    Result of a fit.

    Attributes
    ----------
    x : (k,)
        Parameters in units of their priors.
    jacobian : (n, k), error : (n,)
        At x, in units of a good model's error, times the weights of the loss; without loss and
        prior.
    loss : RobustLoss
        Loss of the errors.
    block : (n,)
        Block of each error.
    bounds : (k, 2)
        Bounds of x.
    bending : Bending, optional
        Second-order expansion of the errors, if the data leave directions untold.
    cost : float, evaluations : int
        Minimised cost, and number of evaluations of the model.
    tried : TriedDelay, optional
        Cost of each delay, if commands jump.
    rows, refused : int
        Rows fitted, and those of them that the model refuses at x: they carry no information.

    """

    parameters: tuple[Parameter, ...]
    known: dict[str, float]
    x: Array
    jacobian: Array
    error: Array
    loss: RobustLoss
    block: NDArray[np.int64]
    bounds: Array
    bending: Bending | None
    cost: float
    evaluations: int
    tried: TriedDelay | None = None
    rows: int = 0
    refused: int = 0

    @property
    def values(self) -> dict[str, float]:
        """Found values of all fields that the parameters change."""
        return moved_by(self.parameters, self.known, self.x)

    def rig(self, rig: Rig) -> Rig:
        """Return the rig with the found values."""
        return with_values(rig, self.values)


def chosen(parameters: Sequence[Parameter], groups: Sequence[str]) -> tuple[Parameter, ...]:
    """
    Return the parameters that `groups` names, by group or by name.

    Raises
    ------
    UsageError
        If a group or name does not exist.

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
    Return the parameters that best explain the rows `train` of recordings.

    Raises
    ------
    UsageError
        If there are fewer measured coordinates than parameters.

    """
    if not parameters:
        raise UsageError('nothing to identify: name --parameters')
    errors = Misfit(rig, recorded, parameters, most_rows)
    if len(errors) < len(parameters):
        raise UsageError(
            f'{len(errors)} measured coordinates for {len(parameters)} parameters; expected at '
            'least as many'
        )
    if errors.jump_period_s is not None:
        found = _fit_with_delay(errors, tuple(parameters), errors.jump_period_s)
    else:
        found = fit_of(errors, parameters, errors.known)
    refused = np.unique(errors.row[np.isnan(errors.at(found.x))])
    return replace(found, rows=len(np.unique(errors.row)), refused=len(refused))


def _fit_with_delay(errors: Misfit, parameters: tuple[Parameter, ...], period_s: float) -> Fit:
    """Fit the delay by trying values (`tried_delay`) and, in turn, the others by search."""
    index = next(k for k, p in enumerate(parameters) if p.group == 'delay')
    others = parameters[:index] + parameters[index + 1 :]
    x, asked, part = _begin(errors), 0, None
    tried = try_delays(errors, parameters[index], index, x, period_s)
    for _ in range(_TURNS):
        x[index] = tried.best
        if others:
            part = fit_of(WithDelay(errors, index, x[index]), others, errors.known)
            x, asked = np.insert(part.x, index, x[index]), asked + part.evaluations
        tried = try_delays(errors, parameters[index], index, x, period_s)
        asked += len(tried.x)
        if tried.best == x[index]:
            break
    beside = secant(errors, tried, x)
    jacobian = np.zeros((len(errors), 0)) if part is None else part.jacobian
    bent = None if part is None or part.bending is None else part.bending.with_another(index)
    error = errors.filled(x)
    return Fit(
        parameters, errors.known, x, np.insert(jacobian, index, beside, axis=1), error,
        errors.loss, errors.block, errors.bounds, bent, _cost(errors, x), asked, tried,
    )  # fmt: skip


def fit_of(errors: Errors, parameters: Sequence[Parameter], known: dict[str, float]) -> Fit:
    """Return the parameters with the least cost; `known` are the rig's values of their fields."""
    size, count, bounds = len(errors), len(parameters), errors.bounds
    place = _begin(errors)
    slope = errors.slope(place)
    began, _ = untold_directions(slope.T @ slope)
    solved = _searched(errors, place)
    asked = int(solved.nfev)
    if errors.rough(solved.x):
        for other in _others(errors, place):
            there = _searched(errors, other)
            asked += int(there.nfev)
            if there.cost < solved.cost:
                solved = there
            if not errors.rough(solved.x):
                break
    for restarts in range(_RESTARTS + 1):
        error, jacobian = solved.fun[:size], errors.slope(solved.x)
        bent = bending(errors, solved.x, error, jacobian, began)
        if bent is None or restarts == _RESTARTS:
            break
        lower = _lower(errors, solved, jacobian, bent)
        if lower is None:
            break
        solved = _searched(errors, lower)
        asked += int(solved.nfev)
    return Fit(
        tuple(parameters), known, solved.x, jacobian, error, errors.loss, errors.block, bounds,
        bent, float(solved.cost), asked * (count + 1),
    )  # fmt: skip


def _begin(errors: Errors) -> Array:
    """Return the start (k,) of a search, and call `errors.begin` with it."""
    # A search that starts at a bound cannot leave it.
    low, high = errors.bounds[:, 0] + _INSIDE, errors.bounds[:, 1] - _INSIDE
    place = np.clip(np.zeros(len(low)), low, high)
    errors.begin(place)
    return place


def _searched(errors: Errors, start: Array) -> OptimizeResult:
    """Search from `start` (k,) and return the result."""
    size, count = len(errors), len(start)
    # Steps scale with the root of the distance to the bound ahead. Bounds a hundred spreads away,
    # which only exclude impossible values, would lead to impossible arms; without a bound, the
    # first step is one spread.
    low = np.where(start - errors.bounds[:, 0] > _FAR, -np.inf, errors.bounds[:, 0])
    high = np.where(errors.bounds[:, 1] - start > _FAR, np.inf, errors.bounds[:, 1])

    def loss(squares: Array) -> Array:
        """Return the loss and its derivatives: soft L1 for errors, quadratic for the prior."""
        prior = np.stack([squares[size:], np.ones(count), np.zeros(count)])
        return np.hstack([errors.loss.as_searched(squares[:size]), prior])

    return least_squares(
        lambda x: np.concatenate([errors.filled(x), x]),
        start,
        jac=lambda x: np.vstack([errors.slope(x), np.eye(count)]),
        loss=loss,
        bounds=(low, high),
        max_nfev=_MAX_EVALUATIONS,
        ftol=1e-5,
        xtol=1e-5,
    )


def _others(errors: Errors, place: Array) -> list[Array]:
    """
    Return other starts (k,) of a search: the best of some drawn from the prior.

    If rows snap or are refused, a search stops at the first edge; from another start it may not
    meet one.
    """
    low, high = errors.bounds[:, 0] + _INSIDE, errors.bounds[:, 1] - _INSIDE
    drawn = np.random.default_rng(1).standard_normal((_DRAWN, len(place)))
    places = [np.clip(place + one, low, high) for one in drawn]
    return sorted(places, key=lambda one: _cost(errors, one))[:_SEARCHED]


def _cost(errors: Errors, x: Array) -> float:
    """Return the cost at x (k,), as the search counts it."""
    return errors.loss.total(errors.filled(x)) + float(0.5 * x @ x)


def _lower(errors: Errors, solved: OptimizeResult, jacobian: Array, bent: Bending) -> Array | None:
    """Return a point (k,) with lower cost than a search result, if the expansion shows one."""
    x, error = solved.x, solved.fun[: len(errors)]
    # Parabolas that touch the loss here and lie above it elsewhere.
    above = 1.0 / errors.loss.roots(error)
    columns = np.concatenate([jacobian, bent.columns], axis=1)
    slope = columns.T @ (above * error)
    slope[: len(x)] = 0.0  # at the end of a search, the prior included
    cost = Cost(bent, slope, (columns.T * above) @ columns)
    rng = np.random.default_rng(0)
    places = rng.standard_normal((_PLACES, len(x))) - x
    change, gain = cost.lowest(list(places @ bent.directions @ bent.directions.T))
    if gain > -_LOWER:
        return None
    there = np.clip(x + change, errors.bounds[:, 0], errors.bounds[:, 1])
    return there if _cost(errors, there) < solved.cost - _LOWER else None


@dataclass(frozen=True)
class Untold:
    """A combination of parameters that the data leave untold, and the share of its prior left."""

    shares: tuple[tuple[str, float], ...]
    left: float


def untold(found: Fit, least: float = 0.8, named: float = 0.3) -> list[Untold]:
    """
    Return the combinations that the data hardly determine, the worst first.

    By the singular values s of the Jacobian in units of the priors (roots of the eigenvalues of
    J' J): along each right singular vector, 1 / sqrt(1 + s^2) of the prior's spread is left.
    """
    curvature = (found.jacobian.T / found.loss.roots(found.error)) @ found.jacobian
    squares, columns = np.linalg.eigh(curvature)
    sizes, rows = np.sqrt(np.maximum(squares, 0.0)), columns.T
    out = []
    for size, row in sorted(zip(sizes, rows), key=lambda pair: pair[0]):
        left = 1.0 / (1.0 + size * size) ** 0.5
        if left < least:
            break
        order = np.argsort(-np.abs(row))
        sign = np.sign(row[order[0]])
        # If many parameters have similar shares, none reaches `named`; list the largest anyway.
        large = [order[0], *(k for k in order[1:] if abs(row[k]) >= named)]
        shares = tuple((found.parameters[k].name, float(sign * row[k])) for k in large)
        out.append(Untold(shares, left))
    return out
