"""A bank's belief about the arm at one time, and its update by a measurement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softarm_ros.control.estimation.bank_kernels import foreseen, take_in
from softarm_ros.control.estimation.commanded import CommandedStrains
from softarm_ros.control.estimation.deviation import DeviationModel
from softarm_ros.control.estimation.measurements import Measured
from softarm_ros.geometry.arrays import Array

_LEAST_SCALE = 0.5  # of variances: about this part of them is sensor noise alone
_TRUST = 6.0  # initial sums of `tests`: as if two comparisons had confirmed the covariance


@dataclass(frozen=True)
class Hindsight:
    """
    Comparison of the expected tip position with its estimate a little later.

    Innovations hardly show that a covariance is too large, because sensor noise dominates them.
    Once later measurements are used, a third of that noise or less is left.

    Attributes
    ----------
    expected : (3, 3)
        Covariance of the tip position before an earlier measurement; zero if there is none.
    past, past_with_now, past_P : (K, 3), (K, 3, 2 n), (K, 3, 3)
        For each filter, the tip position at that earlier time relative to the expected one, as
        known by now; its covariance with the filter's present state; and its own covariance.
    tests : (3,)
        Time since then [s]; the sum over comparisons of the squared difference normalized by
        `expected`; and the sum that a right covariance would give.

    """

    expected: Array
    past: Array
    past_with_now: Array
    past_P: Array
    tests: Array

    @staticmethod
    def first(bank: int, size: int) -> Hindsight:
        """Return the state before any measurement, for a bank of filters of size deviations."""
        return Hindsight(
            np.zeros((3, 3)),
            np.zeros((bank, 3)),
            np.zeros((bank, 3, 2 * size)),
            np.zeros((bank, 3, 3)),
            np.array([0.0, _TRUST, _TRUST]),
        )

    def copied(self, anew: bool) -> Hindsight:
        """Return a copy; `anew` discards the pending comparison."""
        tests = self.tests.copy()
        if anew:
            tests[0] = 0.0
        return Hindsight(
            np.zeros((3, 3)) if anew else self.expected.copy(),
            self.past.copy(),
            self.past_with_now.copy(),
            self.past_P.copy(),
            tests,
        )

    @property
    def scale(self) -> float:
        """Factor by which covariances must be scaled to agree with hindsight."""
        return max(float(self.tests[1] / self.tests[2]), _LEAST_SCALE)


@dataclass(frozen=True)
class Belief:
    """
    State of a bank of filters; its arrays must not be modified.

    Attributes
    ----------
    stamp_s : float
    x, P, weights
        (K, 2 n), (K, 2 n, 2 n), (K,): see `kalman_kernels`.
    rates : (n, n)
        Learnt covariance of the velocities of the deviations, up to the scale of the filter that
        fits.
    scales : (K,)
        Factor of each filter on `rates`.
    hindsight : Hindsight
    accepted_s : float
        Time of the newest measurement that was used at least in part; -inf if none was.
    rejected_since_s : mapping
        Time since which all measurements of a body or point have been rejected, by its name.
    partly : str
        Text: which parts of the newest measurement were rejected.

    """

    stamp_s: float
    x: Array
    P: Array
    weights: Array
    rates: Array
    scales: Array
    hindsight: Hindsight
    accepted_s: float = -np.inf
    rejected_since_s: Mapping[str, float] = field(default_factory=dict)
    partly: str = ''

    @property
    def measured(self) -> bool:
        """Whether anything has been measured, used or not."""
        return self.accepted_s > -np.inf or bool(self.rejected_since_s)


@dataclass(frozen=True)
class Taken:
    """Outcome of a measurement, for each block: rows used, and squared distance."""

    rows: NDArray[np.int64]
    distances: Array


PlacesAt = tuple[NDArray[np.int64], Array, Array]  # sections (n,), fractions (n,), offsets


class Foreseen(NamedTuple):
    """
    Prediction of a belief for places on the arm.

    Attributes
    ----------
    strains, strain_rates : (sections, 6)
    poses : (places, 4, 4)
    by_deviations : (6, n)
        Derivative of the last place's position and rotation by the deviations.
    twist, last_covariance : (6,), (6, 6)
        Velocity of the last place and covariance of its pose, along the base axes.
    strain_covariance : (6 sections, 6 sections)
    mean, covariance
        Of the deviations and their velocities (2 n,), (2 n, 2 n).

    """

    strains: Array
    strain_rates: Array
    poses: Array
    by_deviations: Array
    twist: Array
    last_covariance: Array
    strain_covariance: Array
    mean: Array
    covariance: Array

    def drift(self) -> tuple[Array, Array]:
        """Return the deviations' part (6,) of the last place's velocity, and its covariance."""
        n, H = len(self.mean) // 2, self.by_deviations
        return H @ self.mean[n:], H @ self.covariance[n:, n:] @ H.T


class Believer:
    """
    Predicts beliefs and updates them.

    Parameters
    ----------
    deviation : DeviationModel
    commanded : CommandedStrains
        Commanded strains of past and present.
    gate_probability, max_rejected_s, learning_s : float
        As in `PredictingConfig`.

    Attributes
    ----------
    gates : (7,)
        Largest squared distance of a measurement, by its number of rows.

    """

    def __init__(
        self,
        deviation: DeviationModel,
        commanded: CommandedStrains,
        gate_probability: float,
        max_rejected_s: float,
        learning_s: float,
    ) -> None:
        from scipy.special import gammaincinv  # late: only these estimators need it

        self.deviation, self.commanded = deviation, commanded
        # Quantiles of chi squared; scipy.stats, which provides them, takes long to import.
        self.gates = np.zeros(7)
        self.gates[1:] = 2.0 * gammaincinv(0.5 * np.arange(1, 7), gate_probability)
        self._max_rejected_s, self._learning_s = max_rejected_s, learning_s

    def first(self, stamp_s: float) -> Belief:
        """Return the belief before any measurement."""
        x, P = self.deviation.first()
        return Belief(
            stamp_s, x, P, np.zeros(len(x)), self.deviation.rates, self.deviation.scales,
            Hindsight.first(len(x), self.deviation.size),
        )  # fmt: skip

    def foreseen(self, belief: Belief, time_s: float, places: PlacesAt) -> Foreseen:
        """Return the prediction for places at a time [s]; without prediction if that is past."""
        d, period = self.deviation, max(time_s - belief.stamp_s, 0.0)
        sections, fractions, offsets = places
        return Foreseen(
            *foreseen(
                belief.x, belief.P, belief.weights, belief.rates, belief.scales, d.memory_s,
                period, *self.commanded.at(time_s), d.modes, d.shares,
                sections, fractions, offsets,
            )
        )  # fmt: skip

    def contradicted(self, belief: Belief, measured: Measured) -> bool:
        """Return whether a body or point has been rejected too long to keep the belief."""
        since = belief.rejected_since_s
        return bool(since) and any(
            measured.stamp_s - since[name] > self._max_rejected_s
            for name in measured.names
            if name in since
        )

    def updated(self, belief: Belief, measured: Measured) -> tuple[Belief, Taken]:
        """Return the belief updated by a measurement, linearised at the predicted mean."""
        d, now = self.deviation, measured.stamp_s
        x, P, weights = belief.x.copy(), belief.P.copy(), belief.weights.copy()
        contradicted = self.contradicted(belief, measured)
        if contradicted:
            _, wide = d.first()
            P += wide
        hindsight = belief.hindsight.copied(anew=contradicted)
        count = len(measured.sizes)
        rates, rows, distances = (
            belief.rates.copy(), np.zeros(count, dtype=np.int64), np.empty(count),
        )  # fmt: skip
        take_in(
            x, P, weights, rates, belief.scales, d.memory_s, self._learning_s, d.least_rates,
            now - belief.stamp_s, self.commanded.strains_at(now), d.modes, d.shares,
            measured.sections, measured.fractions, measured.offsets, measured.poses,
            measured.covariances, measured.sizes, self.gates, rows, distances,
            hindsight.expected, hindsight.past, hindsight.past_with_now, hindsight.past_P,
            hindsight.tests,
        )  # fmt: skip
        left, partly, accepted_s = belief.rejected_since_s, '', now
        if left or (rows != measured.sizes).any():
            seen = dict(zip(measured.names, rows))
            left = {name: at_s for name, at_s in left.items() if not seen.get(name)}
            left |= {name: left.get(name, now) for name, used in seen.items() if not used}
            partly = _rejected(measured, rows)
            accepted_s = now if rows.any() else belief.accepted_s
        after = Belief(
            max(now, belief.stamp_s), x, P, weights, rates, belief.scales, hindsight,
            accepted_s, left, partly,
        )  # fmt: skip
        return after, Taken(rows, distances)


def _rejected(measured: Measured, rows: NDArray[np.int64]) -> str:
    parts = []
    for name, used, size in zip(measured.names, rows, measured.sizes):
        if used < size:
            parts.append(f'{name} rejected' if used == 0 else f'attitude of {name} rejected')
    return ', '.join(parts)
