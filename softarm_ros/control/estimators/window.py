"""Sliding window: fits all measurements of the last tenth of a second at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pydantic import Field

from softarm_ros.control.estimation.belief import Belief, Taken
from softarm_ros.control.estimation.config import PredictingConfig
from softarm_ros.control.estimation.fitted_window import Arrived, Begin, FittedWindow
from softarm_ros.control.estimation.measurements import Measured
from softarm_ros.control.estimation.predicting import Entry, PredictingEstimator
from softarm_ros.control.estimator import Surroundings
from softarm_ros.geometry.configs import Positive
from softarm_ros.geometry.parts import Part
from softarm_ros.models.arm_model import ArmModel

# Allowed linearisation error of the shape, as a share of the noise: to second order, the effect of
# a deviation that rotates the whole length of the arm.
_SHAPE_SHARE = 0.05


class WindowConfig(PredictingConfig):
    """The fields of a filter, and those of the window."""

    window_s: Positive = Field(
        default=0.1, description='length of the window whose measurements are fitted at once'
    )
    iterations: int = Field(
        default=2, ge=1, le=10, description='largest number of Gauss-Newton iterations'
    )


class Window(PredictingEstimator):
    """
    Fits the deviations at the times of all measurements of a window, with the commands as prior.

    The window starts from the belief of the filter at that time and then keeps its own, so that
    older measurements remain in it. Gauss-Newton on the chain of states is a Kalman filter and a
    backward pass (Bell 1994; `window_kernels`), repeated with shape and derivatives at the fitted
    states if these have moved (`FittedWindow`). A measurement within its gate has full weight.
    Beyond the gate its weight falls with the fourth power of its distance from the fit, to which
    all other measurements of the window contribute.

    The likeliest of the parallel filters is the prior. If another one becomes the likeliest, or a
    measurement arrives late, the window is fitted afresh. The other filters may be right too: the
    estimate is the mixture of all, with the fit in place of the likeliest.
    """

    config: WindowConfig

    def reset(self) -> None:
        """Forget everything, for a fresh start of the arm."""
        super().reset()
        self._window = FittedWindow(
            self._deviation,
            self._believer.gates,
            self.config.iterations,
            float(np.sqrt(2.0 * _SHAPE_SHARE * self._noise_m / self._model.rest_length_m)),
        )
        self._index: int | None = None  # of the filter used as the prior
        self._fitted: Belief | None = None

    def _insert(self, measured: Measured) -> None:
        super()._insert(measured)
        if self._log[-1].measured is not measured:
            self._window.forget()
        self._fitted = None

    def _applied(self, belief: Belief, measured: Measured) -> tuple[Belief, Taken]:
        """Return the belief after a measurement; keep it even if rejected: the fit weighs it."""
        return self._believer.updated(belief, measured)

    def _current(self) -> Belief | None:
        """Return the fitted belief; fit only on request, so once for several measurements."""
        if self._fitted is None and self._belief is not None:
            self._fitted = self._fitted_to(self._belief)
        return self._fitted

    def _fitted_to(self, newest: Belief) -> Belief:
        entries = self._window_of(newest)
        likeliest = int(newest.weights.argmax())
        if likeliest != self._index:
            self._window.forget()
            self._index = likeliest
        new = self._window.newcomers([entry.measured for entry in entries])
        before = entries[0].before if entries else newest
        after = [*(entry.before for entry in entries[len(entries) - new + 1 :]), newest]
        arrived = [
            Arrived(
                entry.measured,
                self._commanded.strains_at(entry.measured.stamp_s),
                belief.x[likeliest, : self._deviation.size],
            )
            for entry, belief in zip(entries[len(entries) - new :], after)
        ]
        x, P = newest.x.copy(), newest.P.copy()
        x[likeliest], P[likeliest] = self._window.fit(
            Begin(likeliest, before.stamp_s, before.x[likeliest], before.P[likeliest]),
            arrived,
            newest.rates,
        )
        return replace(newest, x=x, P=P)

    def _window_of(self, newest: Belief) -> list[Entry]:
        """Return the log entries in the window, none from before a belief was given up."""
        begin, log = newest.stamp_s - self.config.window_s, self._log
        first = len(log)
        while first > 0 and log[first - 1].measured.stamp_s >= begin:
            first -= 1
            before = log[first].before
            if before.rejected_since_s and self._believer.contradicted(
                before, log[first].measured
            ):
                first += 1
                break
        return log[first:]


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
    'fit of all measurements of a sliding window at once on SE(3), outliers with less weight',
)
