"""Backward pass of Rauch, Tung and Striebel over the steps of a Kalman filter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softarm_ros.geometry.arrays import Array


def transition(n: int, memory_s: float, period_s: float) -> Array:
    """Return F (2 n, 2 n) of the process of `kalman_kernels` over a period [s]."""
    F = np.eye(2 * n)
    F[:n, n:] = memory_s * -np.expm1(-period_s / memory_s) * np.eye(n)
    F[n:, n:] = np.exp(-period_s / memory_s) * np.eye(n)
    return F


def smoothed(
    filtered: Sequence[tuple[Array, Array]],
    predicted: Sequence[tuple[Array, Array]],
    transitions: Sequence[Array],
) -> list[Array]:
    """
    Return the means (N,) at all times, given all measurements.

    Parameters
    ----------
    filtered, predicted
        Mean (N,) and covariance (N, N) after and before each of the measurements.
    transitions
        F (N, N) from each time to the next; one less.

    """
    means = [filtered[-1][0]]
    for (x, P), (ahead, ahead_P), F in zip(
        reversed(filtered[:-1]), reversed(predicted[1:]), reversed(transitions)
    ):
        gain = np.linalg.solve(ahead_P, F @ P).T
        means.append(x + gain @ (means[-1] - ahead))
    return means[::-1]
