"""A sliding window: all measurements of the last tenth of a second fitted at once."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from pydantic import Field

from softarm_ros.control.estimation.belief import Belief
from softarm_ros.control.estimation.config import PredictingConfig
from softarm_ros.control.estimation.kalman_kernels import absorb
from softarm_ros.control.estimation.measurements import Measured
from softarm_ros.control.estimation.predicting import PredictingEstimator
from softarm_ros.control.estimation.smoothing import smoothed, transition
from softarm_ros.control.estimator import Surroundings
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import Positive
from softarm_ros.geometry.parts import Part
from softarm_ros.models.arm_model import ArmModel

_OPEN = np.full(7, np.inf)  # nothing is left out: what is far off weighs little


class WindowConfig(PredictingConfig):
    """The same as of a filter, and the window."""

    window_s: Positive = Field(default=0.1, description='whose measurements are fitted at once')
    iterations: int = Field(default=2, ge=1, le=10, description='of Gauss-Newton')


class Window(PredictingEstimator):
    """
    Fits the deviations at the times of all measurements of a window, the commands' prior between.

    The window begins with what the filter of this file's neighbour knew then, so that older
    measurements stay in it. Gauss-Newton on the chain of states is a Kalman filter and a backward
    pass (Bell 1994), repeated with shape and derivatives taken at the fitted states. A
    measurement within its gate counts fully; the weight of one beyond falls with the fourth power
    of its distance from the fit, which all others of the window decide with it.

    Of the filters that run side by side the likeliest is the prior.
    """

    config: WindowConfig

    def reset(self) -> None:
        """Forget everything: the arm begins anew."""
        super().reset()
        self._fitted: Belief | None = None

    def _insert(self, measured: Measured) -> None:
        super()._insert(measured)
        self._fitted = None

    def _current(self) -> Belief | None:
        """Return the belief after a fit, made when it is asked for: once for several frames."""
        if self._fitted is None and self._belief is not None:
            self._fitted = self._fitted_to(self._belief)
        return self._fitted

    def _fitted_to(self, newest: Belief) -> Belief:
        begin = newest.stamp_s - self.config.window_s
        entries = [entry for entry in self._log if entry.measured.stamp_s >= begin]
        likeliest = int(np.argmax(newest.weights))
        after = [entry.before for entry in entries[1:]] + [newest]
        x, P = self._fit(
            entries[0].before,
            [entry.measured for entry in entries],
            [belief.x[likeliest] for belief in after],
            likeliest,
        )
        bank = len(newest.weights)
        return replace(newest, x=np.tile(x, (bank, 1)), P=np.tile(P, (bank, 1, 1)))

    def _fit(
        self, start: Belief, window: list[Measured], means: list[Array], index: int
    ) -> tuple[Array, Array]:
        """Return mean (2 n,) and covariance (2 n, 2 n) at the end of the window."""
        deviation = self._deviation
        n, scales = deviation.size, deviation.scales[index : index + 1]
        stamps = [one.stamp_s for one in window]
        transitions = [
            transition(n, deviation.memory_s, later - earlier)
            for earlier, later in pairwise(stamps)
        ]
        filtered: list[tuple[Array, Array]] = []
        for _ in range(self.config.iterations):
            x, P = start.x[index : index + 1].copy(), start.P[index : index + 1].copy()
            filtered, predicted, time_s = [], [], start.stamp_s
            for measured, mean in zip(window, means):
                if measured.stamp_s > time_s:
                    self._believer.predict(x, P, start.rates, measured.stamp_s - time_s, scales)
                    time_s = measured.stamp_s
                predicted.append((x[0].copy(), P[0].copy()))
                self._absorb(x, P, measured, mean)
                filtered.append((x[0].copy(), P[0].copy()))
            means = smoothed(filtered, predicted, transitions)
        return filtered[-1]

    def _absorb(self, x: Array, P: Array, measured: Measured, mean: Array) -> None:
        r, H = self._believer.linearised(measured, mean)
        blocks = len(r)
        absorb(
            x, P, np.zeros(1), np.ascontiguousarray(mean[: self._deviation.size]), H, r,
            measured.covariances * self._doubt(measured, r)[:, None, None], measured.sizes, _OPEN,
            np.zeros(blocks, dtype=np.int64), np.zeros(blocks),
        )  # fmt: skip

    def _doubt(self, measured: Measured, r: Array) -> Array:
        """Return the factor (blocks,) on each covariance, by the distance from the fit."""
        doubt = np.ones(len(r))
        for k, m in enumerate(measured.sizes):
            R = measured.covariances[k, :m, :m]
            far = float(r[k, :m] @ np.linalg.solve(R, r[k, :m]))
            doubt[k] = max(1.0, far / self._believer.gate(int(m))) ** 2
        return doubt


def build(
    config: WindowConfig, model: ArmModel, surroundings: Surroundings | None = None
) -> Window:
    """Return the estimator of an arm."""
    return Window(config, model, surroundings or Surroundings())


PART = Part(
    'estimator',
    'window',
    WindowConfig,
    {'estimator': f'{__name__}:build'},
    'all measurements of a sliding window fitted at once on SE(3), outliers weighed down',
)
