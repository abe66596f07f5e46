"""Sliding window of measurements; the results of its last fit are kept for the next one."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from softarm_ros.control.estimation.deviation import DeviationModel
from softarm_ros.control.estimation.measurements import Measured
from softarm_ros.control.estimation.window_kernels import fit_window
from softarm_ros.geometry.arrays import Array, IntArray

_ROOM, _LEAST_ROOM = 2, 16  # factor on the rows needed, and fewest rows: arrays are rarely renewed


@dataclass(frozen=True)
class Begin:
    """
    Initial state of the window of one filter.

    Attributes
    ----------
    index : int
        Of the filter.
    stamp_s : float
    x, P : (2 n,), (2 n, 2 n)

    """

    index: int
    stamp_s: float
    x: Array
    P: Array


@dataclass(frozen=True)
class Arrived:
    """A measurement, the command's strains (sections, 6) and deviations (n,) near the fit."""

    measured: Measured
    commanded: Array
    near: Array


class _Rows(NamedTuple):
    """Arrays of `fit_window` for the times of a window, in the order of its parameters."""

    commanded: Array
    sections: IntArray
    fractions: Array
    offsets: Array
    poses: Array
    covariances: Array
    sizes: IntArray
    means: Array
    ahead_x: Array
    ahead_P: Array
    H: Array
    W: Array
    L: Array
    y: Array
    smoothed: Array

    @staticmethod
    def of(rows: int, blocks: int, deviation: DeviationModel) -> _Rows:
        """Allocate a window of n rows, each with this many bodies and points (blocks)."""
        n, each = deviation.size, (rows, blocks)
        return _Rows(
            np.zeros((rows, len(deviation.modes) // 6, 6)),
            np.zeros(each, dtype=np.int64),
            np.zeros(each),
            np.zeros((*each, 4, 4)),
            np.zeros((*each, 4, 4)),
            np.zeros((*each, 6, 6)),
            np.zeros(each, dtype=np.int64),
            np.zeros((rows, n)),
            np.zeros((rows, 2 * n)),
            np.zeros((rows, 2 * n, 2 * n)),
            np.zeros((*each, 6, n)),
            np.zeros((*each, 6, 2 * n)),
            np.zeros((*each, 6, 6)),
            np.zeros((*each, 6)),
            np.zeros((rows, n)),
        )


class FittedWindow:
    """
    Fits the deviations at the times of all measurements of a window.

    A measurement that leaves the window is marginalised: its information, as it was linearised,
    stays in the prior of the first time left. So a fit costs one update for each new measurement
    and a pass back, and more only if the fit has moved away from where measurements were
    linearised.

    Parameters
    ----------
    deviation : DeviationModel
    gates : (7,)
        As in `Believer`.
    iterations : int
        As in `fit_window`.
    tolerance : float
        As in `fit_window`, in rad and m.

    Attributes
    ----------
    updates : int
        Updates in the last fit; equal to the number of new measurements, unless the fit moved.

    """

    def __init__(
        self, deviation: DeviationModel, gates: Array, iterations: int, tolerance: float
    ) -> None:
        self._deviation, self._gates = deviation, gates
        self._iterations, self._tolerance = iterations, tolerance
        self.updates = 0
        self._held: deque[Measured] = deque()
        self._first = 0  # row of the oldest measurement held
        self._make(0, 0)

    def forget(self) -> None:
        """Start afresh with the next fit."""
        self._held.clear()

    def newcomers(self, window: Sequence[Measured]) -> int:
        """
        Drop measurements older than a window; return how many at its end are new.

        All are new if the window does not begin with the measurements held, or needs more rows.
        """
        held, (room, most) = self._held, self._rows.sizes.shape
        while held and (not window or held[0] is not window[0]):
            held.popleft()
            self._first = (self._first + 1) % room
        blocks = max((len(one.sizes) for one in window), default=0)
        if len(window) > room or blocks > most:
            self._make(max(_ROOM * len(window), _LEAST_ROOM), max(blocks, most))
        elif len(held) > len(window) or any(a is not b for a, b in zip(held, window)):
            held.clear()
        return len(window) - len(held)

    def fit(self, begin: Begin, arrived: Sequence[Arrived], rates: Array) -> tuple[Array, Array]:
        """
        Add new measurements; return mean (2 n,) and covariance (2 n, 2 n) at the end.

        If no measurement was held, the window starts from `begin`. `rates` (n, n) are the
        covariance of the velocities learnt so far.
        """
        d, rows = self._deviation, self._rows
        if not self._held:
            self._x, self._P = begin.x[None].copy(), begin.P[None].copy()
            self._end_s = begin.stamp_s
        for one in arrived:
            self._append(one)
        self.updates = fit_window(
            self._x, self._P, self._first, len(self._held), len(arrived), self._periods,
            d.scales[begin.index : begin.index + 1], rates, d.memory_s, d.modes, d.shares,
            self._gates, self._iterations, self._tolerance, *rows,
        )  # fmt: skip
        return self._x[0].copy(), self._P[0].copy()

    def _append(self, one: Arrived) -> None:
        measured, rows, blocks = one.measured, self._rows, len(one.measured.sizes)
        row = (self._first + len(self._held)) % len(rows.sizes)
        self._periods[row] = max(measured.stamp_s - self._end_s, 0.0)
        rows.commanded[row], rows.means[row] = one.commanded, one.near
        rows.sections[row, :blocks] = measured.sections
        rows.fractions[row, :blocks] = measured.fractions
        rows.offsets[row, :blocks] = measured.offsets
        rows.poses[row, :blocks] = measured.poses
        rows.covariances[row, :blocks] = measured.covariances
        rows.sizes[row] = 0
        rows.sizes[row, :blocks] = measured.sizes
        self._end_s = max(measured.stamp_s, self._end_s)
        self._held.append(measured)

    def _make(self, rows: int, blocks: int) -> None:
        self._rows, self._periods = _Rows.of(rows, blocks, self._deviation), np.zeros(rows)
        self._held.clear()
        self._first = 0
