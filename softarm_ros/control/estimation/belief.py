"""What a bank of filters believes about the arm at one time, and how a measurement changes it."""

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

_LEAST_SCALE = 0.5  # of variances: about this part of them is noise of sensors alone
_TRUST = 6.0  # in the covariance as it is: two comparisons' worth


@dataclass(frozen=True)
class Hindsight:
    """
    Whether what was expected of the tip agrees with what is known of it a little later.

    Innovations hardly show that a covariance is too large, because most of theirs is the sensor's
    noise. What is left of that when later measurements are in is a third or less.

    Attributes
    ----------
    expected : (3, 3)
        Covariance of the tip's position before an earlier measurement; zero: nothing is compared.
    past, past_with_now, past_P : (K, 3), (K, 3, 2 n), (K, 3, 3)
        How far from there each filter has the tip of that time by now, the covariance of that
        with its state now, and its own.
    tests : (3,)
        Time since then [s]; sums over comparisons of the squared difference in units of
        `expected`, and of what that should be.

    """

    expected: Array
    past: Array
    past_with_now: Array
    past_P: Array
    tests: Array

    @staticmethod
    def first(bank: int, size: int) -> Hindsight:
        """Return it before anything is measured, of so many filters of so many deviations."""
        return Hindsight(
            np.zeros((3, 3)),
            np.zeros((bank, 3)),
            np.zeros((bank, 3, 2 * size)),
            np.zeros((bank, 3, 3)),
            np.array([0.0, _TRUST, _TRUST]),
        )

    def copied(self, anew: bool) -> Hindsight:
        """Return a copy; `anew`: what was compared is given up."""
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
        """Times which covariances agree with hindsight."""
        return max(float(self.tests[1] / self.tests[2]), _LEAST_SCALE)


@dataclass(frozen=True)
class Belief:
    """
    State of a bank; arrays are not to be written to.

    Attributes
    ----------
    stamp_s : float
    x, P, weights
        (K, 2 n), (K, 2 n, 2 n), (K,): `kalman_kernels`.
    rates : (n, n)
        Covariance of the velocities of the deviations as it has been learnt, up to the scale of
        the filter that fits.
    scales : (K,)
        Of the filters, on `rates`.
    hindsight : Hindsight
    accepted_s : float
        Time of the newest measurement of which something was used; -inf: none.
    rejected_since_s : mapping
        Body or point -> since when all its measurements have been rejected.
    partly : str
        What of the newest measurement was rejected.

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
    """What came of a measurement, a block each: rows used, and squared distances."""

    rows: NDArray[np.int64]
    distances: Array


PlacesAt = tuple[NDArray[np.int64], Array, Array]  # sections (n,), fractions (n,), offsets


class Foreseen(NamedTuple):
    """
    What a belief says of places on the arm.

    Attributes
    ----------
    strains, strain_rates : (sections, 6)
    poses : (places, 4, 4)
    by_deviations : (6, n)
        Derivative of the last place's position and rotation by the deviations.
    twist, last_covariance : (6,), (6, 6)
        Velocity of the last place and covariance of its pose, base axes.
    strain_covariance : (6 sections, 6 sections)
    mean, covariance
        Of deviations and their velocities (2 n,), (2 n, 2 n).

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
        """Return the deviation's part (6,) of the last place's velocity, and its covariance."""
        n, H = len(self.mean) // 2, self.by_deviations
        return H @ self.mean[n:], H @ self.covariance[n:, n:] @ H.T


class Believer:
    """
    Predicts beliefs and updates them.

    Parameters
    ----------
    deviation : DeviationModel
    commanded : CommandedStrains
        Asked for past and present.
    gate_probability, max_rejected_s, learning_s : float
        As `PredictingConfig`.

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
        # The quantile of chi squared; scipy.stats, which names it, takes long to import.
        self.gates = np.zeros(7)
        self.gates[1:] = 2.0 * gammaincinv(0.5 * np.arange(1, 7), gate_probability)
        self._max_rejected_s, self._learning_s = max_rejected_s, learning_s

    def first(self, stamp_s: float) -> Belief:
        """Return the belief before anything is measured."""
        x, P = self.deviation.first()
        return Belief(
            stamp_s, x, P, np.zeros(len(x)), self.deviation.rates, self.deviation.scales,
            Hindsight.first(len(x), self.deviation.size),
        )  # fmt: skip

    def foreseen(self, belief: Belief, time_s: float, places: PlacesAt) -> Foreseen:
        """Return what a belief says of places at a time [s]; as it is where that is past."""
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
        """Return whether all has contradicted a belief for so long that it is given up."""
        since = belief.rejected_since_s
        return bool(since) and any(
            measured.stamp_s - since[name] > self._max_rejected_s
            for name in measured.names
            if name in since
        )

    def updated(self, belief: Belief, measured: Measured) -> tuple[Belief, Taken]:
        """Return the belief with a measurement in it, linearised at the predicted mean."""
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
