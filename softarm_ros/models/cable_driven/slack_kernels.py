"""
Compiled slack rule of a section whose cables do not cut in.

A cable can hold a section bent, it cannot push it: cable i with contraction c_i [m] admits every
bending vector b with a_i . b >= c_i, a_i = d (cos beta_i, sin beta_i) [m]. The section, being
elastic, takes the least |b| among these. With two unknowns, at most two cables decide, so trying
all cables and pairs of cables solves the quadratic programme exactly.

Arrays: `cables` (m, 3), columns a_x, a_y [m] and beta [rad]; `contraction` (m,) [m].
"""

from __future__ import annotations

import math

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel

# Rounding of a contraction relative to the largest one, with a margin.
ROUNDING = 1e-14
# A cable this close to the switch between slack and taut counts as taut in derivatives [m].
JUST_TAUT_M = 1e-9
# Directions this close are the same [rad].
_ALIGNED_RAD = 1e-6


@kernel
def overpull_of(contraction: Array, cables: Array) -> float:
    """
    Return the least length [m] by which all cables must be paid out to admit some bend.

    This is the smallest s with some b such that a_i . b >= c_i - s for all i. It is negative where
    the cables leave play, and -inf where they lie on one side of the section and can never
    conflict. It follows from the certificates of infeasibility: cables whose directions cancel,
    sum_i w_i a_i = 0 with w_i >= 0, demand sum_i w_i c_i <= s sum_i w_i.
    """
    m = contraction.shape[0]
    worst = -math.inf
    for i in range(m):
        for j in range(i + 1, m):
            cross_ij = cables[i, 0] * cables[j, 1] - cables[i, 1] * cables[j, 0]
            dot_ij = cables[i, 0] * cables[j, 0] + cables[i, 1] * cables[j, 1]
            tiny = 1e-12 * abs(dot_ij) + 1e-24
            if abs(cross_ij) <= tiny and dot_ij < 0.0:
                worst = max(worst, 0.5 * (contraction[i] + contraction[j]))
            for k in range(j + 1, m):
                wi = cables[j, 0] * cables[k, 1] - cables[j, 1] * cables[k, 0]
                wj = cables[k, 0] * cables[i, 1] - cables[k, 1] * cables[i, 0]
                wk = cross_ij
                total = wi + wj + wk
                if total < 0.0:
                    wi, wj, wk, total = -wi, -wj, -wk, -total
                if total > tiny and min(wi, wj, wk) >= -1e-12 * total:
                    pull = wi * contraction[i] + wj * contraction[j] + wk * contraction[k]
                    worst = max(worst, pull / total)
    return worst


@kernel
def rounding_of(contraction: Array) -> float:
    """Return the length [m] below which differences between contractions are rounding."""
    largest = 0.0
    for i in range(contraction.shape[0]):
        largest = max(largest, abs(contraction[i]))
    return ROUNDING * largest


@kernel
def _admits(bx: float, by: float, contraction: Array, shift: float, cables: Array) -> bool:
    """Return whether every cable admits the bending vector, when paid out by `shift` [m]."""
    for i in range(contraction.shape[0]):
        if cables[i, 0] * bx + cables[i, 1] * by < contraction[i] - shift:
            return False
    return True


@kernel
def least_bend(contraction: Array, cables: Array) -> tuple[float, float, float]:
    """
    Return (b_x, b_y, overpull): the least bending vector that the cables admit.

    If the cables are pulled in against each other by an `overpull` > 0 [m], they admit no bending
    vector. The result is then the one for all contractions reduced by `overpull`, which spreads
    the excess evenly.
    """
    m = contraction.shape[0]
    overpull = overpull_of(contraction, cables)
    shift = max(overpull, 0.0)
    allowed = shift + rounding_of(contraction)
    if _admits(0.0, 0.0, contraction, allowed, cables):
        return 0.0, 0.0, overpull
    best = math.inf
    best_x, best_y = 0.0, 0.0
    for i in range(m):
        ax, ay = cables[i, 0], cables[i, 1]
        ci = contraction[i] - shift
        scale = ci / (ax * ax + ay * ay)
        if ci > 0.0 and _admits(scale * ax, scale * ay, contraction, allowed, cables):
            norm = abs(ci) / math.hypot(ax, ay)
            if norm < best:
                best, best_x, best_y = norm, scale * ax, scale * ay
    if best < math.inf:  # a single cable decides: no pair of cables admits a smaller bend
        return best_x, best_y, overpull
    for i in range(m):
        for j in range(i + 1, m):
            det = cables[i, 0] * cables[j, 1] - cables[i, 1] * cables[j, 0]
            if abs(det) <= 1e-12 * (cables[i, 0] ** 2 + cables[i, 1] ** 2):
                continue
            ci, cj = contraction[i] - shift, contraction[j] - shift
            bx = (ci * cables[j, 1] - cj * cables[i, 1]) / det
            by = (cj * cables[i, 0] - ci * cables[j, 0]) / det
            norm = math.hypot(bx, by)
            if norm < best and _admits(bx, by, contraction, allowed, cables):
                best, best_x, best_y = norm, bx, by
    return best_x, best_y, overpull


@kernel
def taut_bend_jacobian_into(
    bx: float, by: float, contraction: Array, cables: Array, jacobian: Array
) -> None:
    """
    Write d b / d contraction (2, m) of the just-taut cables, for motions that keep them just taut.

    Their rows a_i determine db in the least-squares sense (exactly, if dc is consistent) and with
    the least norm; slack cables have zero columns.
    """
    xx, xy, yy = 0.0, 0.0, 0.0
    for i in range(contraction.shape[0]):
        ax, ay = cables[i, 0], cables[i, 1]
        if contraction[i] >= ax * bx + ay * by - JUST_TAUT_M:
            xx += ax * ax
            xy += ax * ay
            yy += ay * ay
    det = xx * yy - xy * xy
    trace = xx + yy
    for i in range(contraction.shape[0]):
        ax, ay = cables[i, 0], cables[i, 1]
        jacobian[0, i] = 0.0
        jacobian[1, i] = 0.0
        if contraction[i] >= ax * bx + ay * by - JUST_TAUT_M:
            if det > 1e-12 * trace * trace:
                jacobian[0, i] = (yy * ax - xy * ay) / det
                jacobian[1, i] = (xx * ay - xy * ax) / det
            else:  # all taut cables along one line
                jacobian[0, i] = ax / trace
                jacobian[1, i] = ay / trace


@kernel
def holding_cables(bx: float, by: float, cables: Array) -> tuple[int, int, bool]:
    """
    Return (i, j, holdable): the two cables next to the bending direction, one on either side.

    These two carry the tension when the section holds b (for three cables, eq. 41). i == j where a
    cable lies in the direction of b and has no neighbour to share the load with. `holdable` is
    False where no two cables less than 180 degrees apart enclose the direction.
    """
    phi = math.atan2(by, bx)
    turn = 2.0 * math.pi
    ahead, behind = math.inf, math.inf
    i, j = 0, 0
    for k in range(cables.shape[0]):
        distance = (cables[k, 2] - phi) % turn
        if distance < ahead:
            ahead, i = distance, k
        distance = (phi - cables[k, 2]) % turn
        if distance < behind:
            behind, j = distance, k
    if i != j and ahead + behind < math.pi - _ALIGNED_RAD:
        return i, j, True
    if min(ahead, behind) > _ALIGNED_RAD:
        return i, j, False
    aligned = i if ahead < behind else j
    neighbour = aligned
    nearest = math.pi - _ALIGNED_RAD
    for k in range(cables.shape[0]):
        distance = abs((cables[k, 2] - cables[aligned, 2] + math.pi) % turn - math.pi)
        if _ALIGNED_RAD < distance < nearest:
            nearest, neighbour = distance, k
    return aligned, neighbour, True


@kernel
def holding_shares(bx: float, by: float, cables: Array) -> tuple[int, int, float, float, bool]:
    """
    Return (i, j, share_i, share_j, holdable) with share_i a_i + share_j a_j = b, shares >= 0.

    The shares [rad/m] times K_b / L are the moments per lever, m = T cos(alpha) [N], of the two
    holding cables. With i == j the whole share is share_i.
    """
    i, j, holdable = holding_cables(bx, by, cables)
    if i == j:
        ax, ay = cables[i, 0], cables[i, 1]
        return i, j, max((ax * bx + ay * by) / (ax * ax + ay * ay), 0.0), 0.0, holdable
    det = cables[i, 0] * cables[j, 1] - cables[i, 1] * cables[j, 0]
    share_i = (bx * cables[j, 1] - by * cables[j, 0]) / det
    share_j = (by * cables[i, 0] - bx * cables[i, 1]) / det
    # Rounding may make the share of a cable that carries nothing slightly negative.
    return i, j, max(share_i, 0.0), max(share_j, 0.0), holdable


@kernel
def nearest_holdable(bx: float, by: float, cables: Array) -> tuple[float, float]:
    """Return (b_x, b_y): the nearest bending vector the cables of the section can hold."""
    if bx == 0.0 and by == 0.0:
        return bx, by
    i, j, share_i, share_j, holdable = holding_shares(bx, by, cables)
    if holdable and share_i > 0.0 and share_j > 0.0:
        return bx, by
    if holdable:  # along a cable, but for rounding: project onto it
        share, n = (share_i, i) if share_i >= share_j else (share_j, j)
        return share * cables[n, 0], share * cables[n, 1]
    best, best_x, best_y = 0.0, 0.0, 0.0
    for i in range(cables.shape[0]):
        ax, ay = cables[i, 0], cables[i, 1]
        radius = math.hypot(ax, ay)
        along = (ax * bx + ay * by) / radius
        if along > best:
            best, best_x, best_y = along, along * ax / radius, along * ay / radius
    return best_x, best_y
