"""
95 % intervals of fitted parameters, by resampling blocks of rows with replacement.

For each draw, the robust loss is minimised again near the fitted parameters, without another fit
(the tests compare this with repeated fits). If the slopes determine all parameters, one Newton
step suffices. If the data leave directions untold, second-order errors are used (`second_order`),
from the fitted parameters and from draws of the prior. The prior counts as a measurement of its
own and is drawn, too.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import t as student

from softarm_ros.cli.identification.fit import Fit
from softarm_ros.cli.identification.second_order import Cost
from softarm_ros.geometry.arrays import Array

DRAWS = 400


def intervals(found: Fit, seed: int = 0) -> Array:
    """
    Return the 95 % intervals (k, 2) of x; they contain the fitted x.

    Few blocks underestimate the spread: Student's t for their number widens it, and each block
    counts with the error it would have if it were left out of the fit. No end lies further than
    the prior's own interval from both the fitted x and the mean of the prior.
    """
    names, index = np.unique(found.block, return_inverse=True)
    count, size = len(names), len(found.x)
    bending = found.bending
    columns = found.jacobian
    if bending is not None:
        columns = np.concatenate([columns, bending.columns], axis=1)
    wide = columns.shape[1]
    gradients, curvatures = np.zeros((count, wide)), np.zeros((count, wide, wide))
    pull = found.loss.slope(found.error)
    for b in range(count):
        rows = index == b
        gradients[b] = columns[rows].T @ pull[rows]
        curvatures[b] = found.loss.curvature(found.error, columns, rows)
    # Gradient of each block as if it had been left out of the fit, in closed form.
    whole = curvatures[:, :size, :size].sum(axis=0) + np.eye(size)
    slopes = np.empty((count, size))
    for b in range(count):
        share = np.linalg.solve(whole, curvatures[b, :size, :size]).T
        slopes[b] = np.linalg.solve(np.eye(size) - share, gradients[b, :size])
    rng = np.random.default_rng(seed)
    draws = np.empty((DRAWS, size))
    for i in range(DRAWS):
        weight = np.bincount(rng.integers(0, count, count), minlength=count).astype(float)
        curvature = np.tensordot(weight, curvatures, 1)
        # At x the gradient of all blocks and the prior is zero.
        prior = rng.standard_normal(size)
        slope = (weight - 1.0) @ slopes + prior
        draws[i] = -np.linalg.solve(curvature[:size, :size] + np.eye(size), slope)
        if bending is not None:
            cost = Cost(bending, np.concatenate([slope, weight @ gradients[:, size:]]), curvature)
            # The data may allow separate solutions, such as an angle's mirror image.
            untold = bending.directions
            apart = draws[i] - untold @ (untold.T @ (draws[i] + found.x + prior))
            draws[i], _ = cost.lowest([draws[i], apart])
        if found.tried is not None:
            delay = found.tried.redrawn(weight, -float(prior[found.tried.index]))
            draws[i, found.tried.index] = delay - found.x[found.tried.index]
    quantile = float(student.ppf(0.975, max(count - 1, 1)))
    widened = quantile / float(student.ppf(0.975, 1e6))
    low, high = widened * np.percentile(draws, [2.5, 97.5], axis=0)
    ends = np.stack([found.x + np.minimum(low, 0.0), found.x + np.maximum(high, 0.0)], axis=1)
    # Measurements cannot widen the prior. If a single block determines most of a parameter, draws
    # without that block may lie anywhere.
    ends[:, 0] = np.maximum(ends[:, 0], np.minimum(found.x, 0.0) - quantile)
    ends[:, 1] = np.minimum(ends[:, 1], np.maximum(found.x, 0.0) + quantile)
    if found.tried is not None:
        k = found.tried.index
        ends[k] = found.tried.interval(found.x[k] + widened * draws[:, k])
    return np.clip(ends, found.bounds[:, :1], found.bounds[:, 1:])
