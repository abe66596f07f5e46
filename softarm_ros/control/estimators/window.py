"""A sliding window: all measurements of the last tenth of a second fitted at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from softarm_ros.control.estimation.belief import Belief
from softarm_ros.control.estimation.config import PredictingConfig
from softarm_ros.control.estimation.measurements import Measured
from softarm_ros.control.estimation.predicting import PredictingEstimator
from softarm_ros.control.estimation.window_kernels import fit_window
from softarm_ros.control.estimator import Surroundings
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import Positive
from softarm_ros.geometry.parts import Part
from softarm_ros.models.arm_model import ArmModel


class WindowConfig(PredictingConfig):
    """The same as of a filter, and the window."""

    window_s: Positive = Field(default=0.1, description='whose measurements are fitted at once')
    iterations: int = Field(default=2, ge=1, le=10, description='of Gauss-Newton')


class Window(PredictingEstimator):
    """
    Fits the deviations at the times of all measurements of a window, the commands' prior between.

    The window begins with what the filter of this file's neighbour knew then, so that older
    measurements stay in it. Gauss-Newton on the chain of states is a Kalman filter and a backward
    pass (Bell 1994; `window_kernels`), repeated with shape and derivatives taken at the fitted
    states. A measurement within its gate counts fully; the weight of one beyond falls with the
    fourth power of its distance from the fit, which all others of the window decide with it.

    Of the filters that run side by side the likeliest is the prior.
    """

    config: WindowConfig

    def reset(self) -> None:
        """Forget everything: the arm begins anew."""
        super().reset()
        self._fitted: Belief | None = None
        self._known: dict[float, Array] = {}  # strains of the command, by time

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
        deviation, blocks = self._deviation, max(len(one.sizes) for one in window)
        x, P = start.x[index : index + 1].copy(), start.P[index : index + 1].copy()
        stamps = np.array([start.stamp_s, *(one.stamp_s for one in window)])
        fit_window(
            x,
            P,
            np.maximum(np.diff(stamps), 0.0),
            deviation.scales[index : index + 1],
            2.0 / deviation.memory_s * start.rates,
            deviation.memory_s,
            self._commands(window),
            deviation.spread,
            np.array([padded(one.sections, blocks) for one in window]),
            np.array([padded(one.fractions, blocks) for one in window]),
            np.array([padded(one.offsets, blocks) for one in window]),
            np.array([padded(one.poses, blocks) for one in window]),
            np.array([padded(one.covariances, blocks) for one in window]),
            np.array([padded(one.sizes, blocks) for one in window]),
            self._believer.gates,
            np.array([mean[: deviation.size] for mean in means]),
            self.config.iterations,
        )
        return x[0], P[0]

    def _commands(self, window: list[Measured]) -> Array:
        """Return the strains (times, sections, 6) of the command, of each time asked for once."""
        known = self._known
        self._known = {
            one.stamp_s: known[one.stamp_s]
            if one.stamp_s in known
            else self._commanded.at(one.stamp_s)[0]
            for one in window
        }
        return np.array([self._known[one.stamp_s] for one in window])


def padded(rows: NDArray[Any], blocks: int) -> NDArray[Any]:
    """Return rows (blocks, ...) with zeros behind."""
    if len(rows) == blocks:
        return rows
    out = np.zeros((blocks, *rows.shape[1:]), dtype=rows.dtype)
    out[: len(rows)] = rows
    return out


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
