"""Compiled drawing of a ball: how much of each pixel its outline covers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel


@kernel
def cover_ellipse(image: NDArray[np.float32], outline: Array, grey: float) -> None:
    """
    Cover an ellipse to a fraction of each pixel; outside the image nothing is drawn.

    Parameters
    ----------
    image : (rows, columns)
        Written to.
    outline : (n, 2)
        Points on it, evenly spaced [px].
    grey : float
        Of the ellipse.

    """
    count = outline.shape[0]
    cx = cy = 0.0
    for k in range(count):
        cx += outline[k, 0] / count
        cy += outline[k, 1] / count
    # An ellipse is an affine picture of the unit circle, whose points have the variance 1/2.
    a = b = c = d = 0.0
    reach_x = reach_y = 0.0
    for k in range(count):
        turn = 2.0 * math.pi * k / count
        x, y = outline[k, 0] - cx, outline[k, 1] - cy
        a += 2.0 * x * math.cos(turn) / count
        b += 2.0 * x * math.sin(turn) / count
        c += 2.0 * y * math.cos(turn) / count
        d += 2.0 * y * math.sin(turn) / count
        reach_x, reach_y = max(reach_x, abs(x)), max(reach_y, abs(y))
    size = a * d - b * c
    if size == 0.0:
        return
    ia, ib, ic, id_ = d / size, -b / size, -c / size, a / size
    height, width = image.shape
    for y in range(max(int(cy - reach_y - 1.5), 0), min(int(cy + reach_y + 3.5), height)):
        for x in range(max(int(cx - reach_x - 1.5), 0), min(int(cx + reach_x + 3.5), width)):
            u = ia * (x - cx) + ib * (y - cy)
            v = ic * (x - cx) + id_ * (y - cy)
            r = max(math.hypot(u, v), 1e-9)
            # Distance to the outline [px], to first order: (r - 1) by the length of its gradient.
            slope = math.hypot(u * ia + v * ic, u * ib + v * id_)
            covered = min(max(0.5 - (r - 1.0) * r / max(slope, 1e-12), 0.0), 1.0)
            image[y, x] += covered * (grey - image[y, x])
