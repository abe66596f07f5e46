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

Array = NDArray[np.float64]
_MOST_INFLATED = 100.0
_FORGETTING = 0.99  # of the filters' likelihoods, per exposure: what fits may change in a second


@dataclass(frozen=True)
class Belief:
    """
    State of a bank; arrays are not to be written to.

    Attributes
    ----------
    stamp_s : float
    x, P, weights
        (K, 2 n), (K, 2 n, 2 n), (K,): `kalman_kernels`.
    accepted_s : float
        Time of the newest measurement of which something was used; -inf: none.
    rejected_since_s : mapping
        Body or point -> since when all its measurements have been rejected.
    partly : str
        What of the newest measurement was rejected.
    excess, own : float
        Sums, forgotten with time: by how much squared innovations exceed what the filters expect,
        and how much of that expectation is their own uncertainty.

    """

    stamp_s: float
    x: Array
    P: Array
    weights: Array
    accepted_s: float = -np.inf
    rejected_since_s: Mapping[str, float] = field(default_factory=dict)
    partly: str = ''
    excess: float = 0.0
    own: float = 0.0

    @property
    def measured(self) -> bool:
        """Whether anything has been measured, used or not."""
        return self.accepted_s > -np.inf or bool(self.rejected_since_s)

    @property
    def inflation(self) -> float:
        """
        Return by what the covariance is too small, as the innovations show; at least 1.

        The factor on the filters' own uncertainty with which the mean squared innovation is what
        is expected: errors that last longer than the filters believe are seen so.
        """
        if self.own <= 0.0:
            return 1.0
        return min(max(1.0 + self.excess / self.own, 1.0), _MOST_INFLATED)


@dataclass(frozen=True)
class Taken:
    """What came of a measurement, a block each: rows used, and distances as in `absorb`."""

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
    gate_probability, max_rejected_s : float
        As `PredictingConfig`.

    """

    def __init__(
        self,
        deviation: DeviationModel,
        commanded: CommandedStrains,
        gate_probability: float,
        max_rejected_s: float,
    ) -> None:
        self.deviation, self.commanded = deviation, commanded
        self._gates = np.array([0.0] + [float(chi2.ppf(gate_probability, m)) for m in range(1, 7)])
        self._max_rejected_s = max_rejected_s

    def gate(self, rows: int) -> float:
        """Return the largest squared distance of a measurement with some rows."""
        return float(self._gates[rows])

    def first(self, stamp_s: float) -> Belief:
        """Return the belief before anything is measured."""
        x, P = self.deviation.first()
        return Belief(stamp_s, x, P, np.zeros(len(x)))

    def predicted(self, belief: Belief, time_s: float) -> Belief:
        """Return a belief moved on to a time [s]; as it is where that is past."""
        period = time_s - belief.stamp_s
        if period <= 0.0:
            return belief
        x, P = belief.x.copy(), belief.P.copy()
        predict(x, P, self.deviation.densities, self.deviation.memory_s, period)
        return replace(belief, stamp_s=time_s, x=x, P=P)

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
        x, P, weights = before.x.copy(), before.P.copy(), before.weights.copy()
        now = measured.stamp_s
        since = belief.rejected_since_s
        if any(now - since.get(name, now) > self._max_rejected_s for name in measured.names):
            _, wide = self.deviation.first()  # what contradicts for so long is right
            P += wide
        n = self.deviation.size
        point = merged(x, P, weights)[0][:n] if at is None else at
        r, H = self.linearised(measured, np.concatenate([point, np.zeros(n)]))
        rows, distances = np.zeros(len(r), dtype=np.int64), np.zeros((len(r), 3))
        absorb(
            x, P, weights, point, H, r, measured.covariances, measured.sizes, self._gates,
            _FORGETTING, rows, distances,
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
            now if rows.any() else belief.accepted_s,
            left,
            _rejected(measured, rows),
            _FORGETTING * belief.excess + float(distances[:, 1].sum()),
            _FORGETTING * belief.own + float(distances[:, 2].sum()),
        ), taken


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
