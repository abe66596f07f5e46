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
from softarm_ros.control.estimation.kalman_kernels import predict
from softarm_ros.control.estimation.measurements import Measured
from softarm_ros.geometry.arrays import Array


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
    twist : (6,)
        Velocity of the last place, base axes.
    mean, covariance
        Of deviations and their velocities (2 n,), (2 n, 2 n).

    """

    strains: Array
    strain_rates: Array
    poses: Array
    by_deviations: Array
    twist: Array
    mean: Array
    covariance: Array

    def at_last(self, velocities: bool = False) -> Array:
        """Return the covariance (6, 6) of the last place, or of its velocity's deviation."""
        n = len(self.mean) // 2
        part = slice(n, None) if velocities else slice(n)
        of: Array = self.by_deviations @ self.covariance[part, part] @ self.by_deviations.T
        return of


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
        return Belief(stamp_s, x, P, np.zeros(len(x)), self.deviation.rates)

    def predicted(self, belief: Belief, time_s: float) -> Belief:
        """Return a belief moved on to a time [s]; as it is where that is past."""
        period = time_s - belief.stamp_s
        if period <= 0.0:
            return belief
        x, P = belief.x.copy(), belief.P.copy()
        self.predict(x, P, belief.rates, period)
        return Belief(
            time_s,
            x,
            P,
            belief.weights,
            belief.rates,
            belief.accepted_s,
            belief.rejected_since_s,
            belief.partly,
        )

    def predict(
        self, x: Array, P: Array, rates: Array, period_s: float, scales: Array | None = None
    ) -> None:
        """Move filters on in place: those of the bank, or of other `scales` (K,)."""
        d = self.deviation
        of_each = d.scales if scales is None else scales
        predict(x, P, of_each, 2.0 / d.memory_s * rates, d.memory_s, period_s)

    def foreseen(self, belief: Belief, time_s: float, places: PlacesAt) -> Foreseen:
        """Return what a belief says of places at a time [s]."""
        then = self.predicted(belief, time_s)
        strains, rates = self.commanded.at(time_s)
        return Foreseen(
            *foreseen(then.x, then.P, then.weights, strains, rates, self.deviation.spread, *places)
        )

    def updated(self, belief: Belief, measured: Measured) -> tuple[Belief, Taken]:
        """Return the belief with a measurement in it, linearised at the predicted mean."""
        before, d = self.predicted(belief, measured.stamp_s), self.deviation
        now = measured.stamp_s
        x, P, weights = before.x.copy(), before.P.copy(), belief.weights.copy()
        since = belief.rejected_since_s
        if any(now - since.get(name, now) > self._max_rejected_s for name in measured.names):
            _, wide = d.first()  # what contradicts for so long is right
            P += wide
        count = len(measured.sizes)
        rates, rows, distances = (
            belief.rates.copy(), np.zeros(count, dtype=np.int64), np.zeros(count),
        )  # fmt: skip
        take_in(
            x, P, weights, rates, d.scales, d.memory_s, self._learning_s, d.least_rates,
            now - belief.stamp_s, self.commanded.at(now)[0], d.spread, measured.sections,
            measured.fractions, measured.offsets, measured.poses, measured.covariances,
            measured.sizes, self.gates, rows, distances,
        )  # fmt: skip
        taken = Taken(rows, distances)
        seen = dict(zip(measured.names, rows))
        left = {name: at_s for name, at_s in since.items() if not seen.get(name)}
        left |= {name: left.get(name, now) for name, used in seen.items() if not used}
        return Belief(
            before.stamp_s,
            x,
            P,
            weights,
            rates,
            now if rows.any() else belief.accepted_s,
            left,
            _rejected(measured, rows),
        ), taken


def _rejected(measured: Measured, rows: NDArray[np.int64]) -> str:
    parts = []
    for name, used, size in zip(measured.names, rows, measured.sizes):
        if used < size:
            parts.append(f'{name} rejected' if used == 0 else f'attitude of {name} rejected')
    return ', '.join(parts)
