"""What a bank of filters believes about the arm at one time, and how a measurement changes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from softarm_ros.control.estimation.chain_kernels import places_into
from softarm_ros.control.estimation.commanded import CommandedStrains
from softarm_ros.control.estimation.deviation import DeviationModel
from softarm_ros.control.estimation.kalman_kernels import absorb, merged, predict
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
        self.deviation, self.commanded = deviation, commanded
        self.gates = np.array([0.0] + [float(chi2.ppf(gate_probability, m)) for m in range(1, 7)])
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
        return replace(belief, stamp_s=time_s, x=x, P=P)

    def predict(
        self, x: Array, P: Array, rates: Array, period_s: float, scales: Array | None = None
    ) -> None:
        """Move filters on in place: those of the bank, or of other `scales` (K,)."""
        d = self.deviation
        of_each = d.scales if scales is None else scales
        predict(x, P, of_each, 2.0 / d.memory_s * rates, d.memory_s, period_s)

    def strains(self, mean: Array, time_s: float) -> tuple[Array, Array]:
        """Return strains and rates (sections, 6) for the mean (2 n,) of a bank at a time [s]."""
        n, spread = self.deviation.size, self.deviation.spread
        strains, rates = self.commanded.at(time_s)
        shape = strains.shape
        return strains + (spread @ mean[:n]).reshape(shape), rates + (spread @ mean[n:]).reshape(
            shape
        )

    def linearised(self, measured: Measured, mean: Array) -> tuple[Array, Array]:
        """Return residuals (n, 6) of a measurement and derivatives (n, 6, modes) at a mean."""
        strains, _ = self.strains(mean, measured.stamp_s)
        poses, jacobians = poses_at(
            strains, measured.sections, measured.fractions, measured.offsets
        )
        return measured.residuals(poses), jacobians @ self.deviation.spread

    def updated(
        self, belief: Belief, measured: Measured, at: Array | None = None
    ) -> tuple[Belief, Taken]:
        """
        Return the belief with a measurement in it.

        `at` (n,): where to linearise; the predicted mean without it.
        """
        before = self.predicted(belief, measured.stamp_s)
        now = measured.stamp_s
        passed = now - belief.stamp_s
        x, P, weights = before.x.copy(), before.P.copy(), self._doubted(belief.weights, passed)
        since = belief.rejected_since_s
        if any(now - since.get(name, now) > self._max_rejected_s for name in measured.names):
            _, wide = self.deviation.first()  # what contradicts for so long is right
            P += wide
        n = self.deviation.size
        point = merged(x, P, weights)[0][:n] if at is None else at
        r, H = self.linearised(measured, np.concatenate([point, np.zeros(n)]))
        rows, distances = np.zeros(len(r), dtype=np.int64), np.zeros(len(r))
        absorb(
            x, P, weights, point, H, r, measured.covariances, measured.sizes, self.gates,
            rows, distances,
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
            self._learnt(belief.rates, x, P, weights, passed),
            now if rows.any() else belief.accepted_s,
            left,
            _rejected(measured, rows),
        ), taken

    def _doubted(self, weights: Array, period_s: float) -> Array:
        """
        Return logarithms of weights after a period: which filter is right may have changed.

        A change comes at random, once within the memory, and then any filter is as likely.
        """
        share = -np.expm1(-period_s / self.deviation.memory_s)
        likely = np.exp(weights - weights.max())
        doubted: Array = np.log((1.0 - share) * likely / likely.sum() + share / len(weights))
        return doubted

    def _learnt(self, rates: Array, x: Array, P: Array, weights: Array, period_s: float) -> Array:
        """
        Return the covariance (n, n) of the velocities, with those of the last period in it.

        What is averaged is the second moment of the velocity as each filter has it, over its scale
        (expectation maximisation). Where nothing is seen that is what was believed before: what is
        not observed is neither learnt nor unlearnt.
        """
        d = self.deviation
        n, share = d.size, -np.expm1(-period_s / self._learning_s)
        likely = np.exp(weights - weights.max())
        of_each = share * likely / (likely.sum() * d.scales)
        v = x[:, n:]
        learnt: Array = (1.0 - share) * rates
        learnt += np.tensordot(of_each, P[:, n:, n:], 1) + (v.T * of_each) @ v
        learnt[np.diag_indices(n)] += np.maximum(d.least_rates - np.diagonal(learnt), 0.0)
        return learnt


def poses_at(
    strains: Array, sections: NDArray[np.int64], fractions: Array, offsets: Array
) -> tuple[Array, Array]:
    """Return poses (n, 4, 4) of places and derivatives (n, 6, 6 sections) by the strains."""
    poses = np.empty((len(sections), 4, 4))
    jacobians = np.empty((len(sections), 6, 6 * len(strains)))
    places_into(strains, sections, fractions, offsets, poses, jacobians)
    return poses, jacobians


def _rejected(measured: Measured, rows: NDArray[np.int64]) -> str:
    parts = []
    for name, used, size in zip(measured.names, rows, measured.sizes):
        if used < size:
            parts.append(f'{name} rejected' if used == 0 else f'attitude of {name} rejected')
    return ', '.join(parts)
