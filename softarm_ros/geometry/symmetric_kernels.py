"""Compiled algebra of small symmetric matrices."""

from __future__ import annotations

import math

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel


@kernel(allocates=False)
def invert_symmetric_4(D: Array) -> bool:
    """
    Replace a positive definite matrix (4, 4), given by its lower triangle, by its full inverse.

    If it is not positive definite, fill it with NaN and return False.
    """
    # D = L diag(d) L^T with ones on the diagonal of L, then L^-T diag(1/d) L^-1; c is d times l.
    # Local scalars instead of elements in place: each of those would wait for the last store.
    d0, c10, c20, c30 = D[0, 0], D[1, 0], D[2, 0], D[3, 0]
    r0 = 1.0 / d0
    l10, l20, l30 = c10 * r0, c20 * r0, c30 * r0
    d1 = D[1, 1] - l10 * c10
    c21 = D[2, 1] - l20 * c10
    c31 = D[3, 1] - l30 * c10
    r1 = 1.0 / d1
    l21, l31 = c21 * r1, c31 * r1
    d2 = D[2, 2] - l20 * c20 - l21 * c21
    c32 = D[3, 2] - l30 * c20 - l31 * c21
    r2 = 1.0 / d2
    l32 = c32 * r2
    d3 = D[3, 3] - l30 * c30 - l31 * c31 - l32 * c32
    if not (d0 > 0.0 and d1 > 0.0 and d2 > 0.0 and d3 > 0.0):
        D[:] = math.nan
        return False
    r3 = 1.0 / d3
    # L^-1: -l10, -l21 and -l32 beside the diagonal, then m20, m31 and m30 below.
    m20, m31 = l21 * l10 - l20, l32 * l21 - l31
    m30 = l31 * l10 - l30 - l32 * m20
    s20, s21 = r2 * m20, -r2 * l21
    s30, s31, s32 = r3 * m30, r3 * m31, -r3 * l32
    D[0, 0] = r0 + r1 * l10 * l10 + s20 * m20 + s30 * m30
    D[1, 1] = r1 - s21 * l21 + s31 * m31
    D[2, 2] = r2 - s32 * l32
    D[3, 3] = r3
    D[1, 0] = D[0, 1] = s21 * m20 + s31 * m30 - r1 * l10
    D[2, 0] = D[0, 2] = s20 + s32 * m30
    D[2, 1] = D[1, 2] = s21 + s32 * m31
    D[3, 0] = D[0, 3] = s30
    D[3, 1] = D[1, 3] = s31
    D[3, 2] = D[2, 3] = s32
    return True
