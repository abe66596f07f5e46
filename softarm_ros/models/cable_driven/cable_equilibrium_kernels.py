"""
Compiled forward statics of a section: cable contractions -> bending vector and tensions (eq. 30).

The only unknown is the bending vector b. At a given b, a cable is either slack (contraction below
p_i = a_i . b: no tension) or shortened by cutting in; in that case, its own scalar equation gives
m_i = T_i cos(alpha_i). The remaining equation is the vector balance of moments,

    r(b) = L / K_b sum_i m_i(b) a_i - b = 0    [rad],

solved by a damped Newton method with the analytic derivative. A cable cannot be shorter than its
chord; m_i grows without bound as it approaches the chord, which keeps the iterates inside.
"""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.models.cable_driven.cable_statics_kernels import (
    MAX_BENDING_RAD,
    NOT_CONVERGED,
    OK,
    OVERPULLED,
    TOO_BENT,
    incident_angle_of_excess,
    length_slopes,
    moment_terms,
)
from softarm_ros.models.cable_driven.slack_kernels import (
    JUST_TAUT_M,
    holding_shares,
    least_bend,
    rounding_of,
)

# Cables pulled in against each other by less than this count as just taut [m]; the value is far
# below the step of any drive.
OVERPULL_TOLERANCE_M = 1e-6
# Largest bend of an iterate [rad]; a solution must not exceed MAX_BENDING_RAD.
_DOMAIN_RAD = math.radians(179.9)
# Below this bend, double precision does not resolve the cut-in: the cables guide the section
# exactly.
STRAIGHT_RAD = 1e-6
# Below this bend, conflicting cables cannot cut in by as much as the tolerance, and cutting in
# changes the bend by a share of less than 1e-4.
NEARLY_STRAIGHT_RAD = 1e-3
# Tolerances of the moment balance and of the Newton correction, relative to the bend.
_BALANCED = 1e-11
_CONVERGED = 1e-11
_LIMP = 1e-6  # share of the bending stiffness from which it is raised
_LEAST_FACTOR = 1.01  # by which it is raised


@kernel
def balance(
    bx: float,
    by: float,
    contraction: Array,
    section: Array,
    cables: Array,
    moments: Array,
    alphas: Array,
) -> tuple[bool, float, float, float, float, float, float]:
    """
    Write m_i and alpha_i; return (possible, r_x, r_y, J_xx, J_xy, J_yx, J_yy), J = dr/db.

    `possible` is False where a cable would be shorter than its chord, and where |b| is zero or
    beyond the range of the model.
    """
    length, cutting = section[0], section[3]
    gain = length / section[2]
    theta = math.hypot(bx, by)
    if not (0.0 < theta <= _DOMAIN_RAD):
        return False, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    x, ex, ey = 0.5 * theta, bx / theta, by / theta
    rounding = rounding_of(contraction)
    rx, ry = -bx, -by
    jxx, jxy, jyx, jyy = -1.0, 0.0, 0.0, -1.0
    for i in range(cables.shape[0]):
        ax, ay = cables[i, 0], cables[i, 1]
        p = ax * bx + ay * by
        excess = contraction[i] - p
        moments[i] = 0.0
        alphas[i] = 0.0
        if excess < -rounding:
            continue
        alpha = incident_angle_of_excess(excess, x, p, length)
        if not 0.0 <= alpha < x:
            return False, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        m, m_alpha, m_x, m_p = moment_terms(alpha, x, p, length, cutting)
        l_alpha, l_x, l_p = length_slopes(alpha, x, p, length)
        ratio = m_alpha / l_alpha
        by_x = gain * 0.5 * (m_x - ratio * l_x)
        by_p = gain * (m_p - ratio * l_p)
        mx, my = by_x * ex + by_p * ax, by_x * ey + by_p * ay
        alphas[i] = alpha
        moments[i] = m
        rx += gain * m * ax
        ry += gain * m * ay
        jxx += mx * ax
        jxy += my * ax
        jyx += mx * ay
        jyy += my * ay
    return True, rx, ry, jxx, jxy, jyx, jyy


@kernel
def _newton(
    bx: float,
    by: float,
    contraction: Array,
    section: Array,
    cables: Array,
    moments: Array,
    alphas: Array,
) -> tuple[bool, float, float]:
    """
    Run Newton's method from a start, damped by the natural (affine invariant) test.

    Return (converged, b_x, b_y). The method has converged when the moments balance, or when the
    Newton correction has vanished although the moments cannot be balanced better: near the
    straight pose the cables are so stiff that r amplifies the rounding of the contractions, while
    b is exact to all digits.
    """
    possible, rx, ry, jxx, jxy, jyx, jyy = balance(
        bx, by, contraction, section, cables, moments, alphas
    )
    if not possible:
        return False, bx, by
    for _ in range(80):
        det = jxx * jyy - jxy * jyx
        dx = -(jyy * rx - jxy * ry) / det
        dy = -(jxx * ry - jyx * rx) / det
        size = math.hypot(dx, dy)
        if not size < math.inf:
            return False, bx, by
        theta = math.hypot(bx, by)
        if math.hypot(rx, ry) <= _BALANCED * theta and size <= _CONVERGED * theta:
            return True, bx, by
        factor = min(1.0, 1.0 / size)
        accepted = False
        vanished = size <= _CONVERGED * theta
        while factor > (1e-2 if vanished else 1e-9):
            tx, ty = bx + factor * dx, by + factor * dy
            possible, rx, ry, kxx, kxy, kyx, kyy = balance(
                tx, ty, contraction, section, cables, moments, alphas
            )
            if possible:
                nx = (jyy * rx - jxy * ry) / det
                ny = (jxx * ry - jyx * rx) / det
                if math.hypot(nx, ny) <= (1.0 - 0.25 * factor) * size:
                    accepted = True
                    break
            factor *= 0.5
        if not accepted:
            if vanished:  # the failed trials have overwritten moments and alphas
                balance(bx, by, contraction, section, cables, moments, alphas)
            return vanished, bx, by
        bx, by = tx, ty
        jxx, jxy, jyx, jyy = kxx, kxy, kyx, kyy
    return False, bx, by


@kernel
def _tighten(
    bx: float,
    by: float,
    contraction: Array,
    overpull: float,
    section: Array,
    cables: Array,
    moments: Array,
    alphas: Array,
) -> tuple[bool, float, float]:
    """Pull in all cables gradually, from just in conflict; return (converged, b_x, b_y)."""
    shifted = contraction - overpull
    done, pace = 0.0, 0.25
    found, bx, by = _newton(bx, by, shifted, section, cables, moments, alphas)
    if not found:
        return False, bx, by
    for _ in range(100):
        trial = min(done + pace, 1.0)
        shifted = contraction - (1.0 - trial) * overpull
        found, tx, ty = _newton(bx, by, shifted, section, cables, moments, alphas)
        if found:
            done, bx, by = trial, tx, ty
            if done == 1.0:
                return True, bx, by
            pace *= 2.0
        else:
            pace *= 0.5
            if pace < 1e-4:
                break
    return False, bx, by


@kernel
def _stiffen(
    bx: float,
    by: float,
    contraction: Array,
    section: Array,
    cables: Array,
    moments: Array,
    alphas: Array,
) -> tuple[bool, float, float]:
    """
    Stiffen the backbone gradually; return (converged, b_x, b_y).

    Around a limp backbone cables do not cut in, so the bend found without cutting in is a start.
    """
    softer = section.copy()
    share, factor = _LIMP, 10.0
    softer[2] = share * section[2]
    found, bx, by = _newton(bx, by, contraction, softer, cables, moments, alphas)
    while found and share < 1.0:
        trial = min(share * factor, 1.0)
        softer[2] = trial * section[2]
        reached, tx, ty = _newton(bx, by, contraction, softer, cables, moments, alphas)
        if reached:
            share, bx, by = trial, tx, ty
        else:
            factor = math.sqrt(factor)
            found = factor > _LEAST_FACTOR
    return found, bx, by


@kernel
def _scan(
    contraction: Array, section: Array, cables: Array, moments: Array, alphas: Array
) -> tuple[bool, float, float]:
    """
    Try starts on a grid over all bends, small ones first; return (converged, b_x, b_y).

    Used for very soft bodies, in which the cables run almost straight, so that the solution
    without cutting in is no useful start.
    """
    for ring in range(1, 35):
        theta = _DOMAIN_RAD * ring / 35.0
        for spoke in range(24):
            phi = 2.0 * math.pi * spoke / 24.0
            found, bx, by = _newton(
                theta * math.cos(phi),
                theta * math.sin(phi),
                contraction,
                section,
                cables,
                moments,
                alphas,
            )
            if found:
                return True, bx, by
    return False, 0.0, 0.0


@kernel
def _guide(
    bx: float, by: float, section: Array, cables: Array, moments: Array, alphas: Array
) -> None:
    """Write the moments of cables that guide the section exactly, without cutting in."""
    moments[:] = 0.0
    alphas[:] = 0.0
    i, j, share_i, share_j, _ = holding_shares(bx, by, cables)
    moments[j] = section[2] / section[0] * share_j
    moments[i] = section[2] / section[0] * share_i


@kernel
def equilibrium_into(
    contraction: Array, section: Array, cables: Array, guess: Array, moments: Array, alphas: Array
) -> tuple[int, float, float, float]:
    """
    Solve the forward statics of one section; return (status, b_x, b_y, overpull).

    `guess` (2,) [rad] starts the search; NaN means no guess. Writes moments [N] and alphas [rad]
    (m,). `overpull` [m] is the length by which the cables are pulled in against each other,
    computed without cutting in; it is negative if they leave play. A positive overpull is possible
    only as far as the cables can cut in.
    """
    moments[:] = 0.0
    alphas[:] = 0.0
    bx, by, overpull = least_bend(contraction, cables)
    theta = math.hypot(bx, by)
    if theta <= STRAIGHT_RAD:
        status = OK if overpull <= OVERPULL_TOLERANCE_M else OVERPULLED
        if theta > 0.0:
            _guide(bx, by, section, cables, moments, alphas)
        return status, bx, by, overpull
    if math.isfinite(guess[0]) and math.isfinite(guess[1]):
        found, sx, sy = _newton(guess[0], guess[1], contraction, section, cables, moments, alphas)
        if found and math.hypot(sx, sy) <= MAX_BENDING_RAD:
            return OK, sx, sy, overpull
    # With cutting in, the section bends less than the bend found without it.
    start = min(1.0, 0.98 * MAX_BENDING_RAD / theta)
    found, sx, sy = _newton(start * bx, start * by, contraction, section, cables, moments, alphas)
    if not found and overpull > 0.0:
        found, sx, sy = _tighten(
            start * bx, start * by, contraction, overpull, section, cables, moments, alphas
        )
        if not found and overpull <= OVERPULL_TOLERANCE_M:
            found, sx, sy = _newton(
                start * bx, start * by, contraction - overpull, section, cables, moments, alphas
            )
    if not found and overpull <= OVERPULL_TOLERANCE_M and theta <= NEARLY_STRAIGHT_RAD:
        _guide(bx, by, section, cables, moments, alphas)
        return OK, bx, by, overpull
    if not found and overpull <= OVERPULL_TOLERANCE_M:
        found, sx, sy = _stiffen(
            start * bx, start * by, contraction, section, cables, moments, alphas
        )
    if not found:
        found, sx, sy = _scan(contraction, section, cables, moments, alphas)
    if found:
        status = OK if math.hypot(sx, sy) <= MAX_BENDING_RAD else TOO_BENT
        return status, sx, sy, overpull
    if theta > MAX_BENDING_RAD:
        return TOO_BENT, bx, by, overpull
    return (OVERPULLED if overpull > 0.0 else NOT_CONVERGED), bx, by, overpull


@kernel
def equilibrium_jacobian_into(
    bx: float, by: float, contraction: Array, section: Array, cables: Array, jacobian: Array
) -> bool:
    """
    Write d b / d contraction (2, m) at a solution, by implicit differentiation of r(b) = 0.

    A cable that is just taut counts as taut, so the derivative at its switch to slack is the one
    for pulling it in; slack cables have zero columns. Return False, with nothing written, for a
    straight section, which the cables guide exactly, and where `balance` is not possible.
    """
    m = cables.shape[0]
    if math.hypot(bx, by) <= STRAIGHT_RAD:
        return False
    moments, alphas = np.empty(m), np.empty(m)
    lifted = np.empty(m)
    for i in range(m):
        p = cables[i, 0] * bx + cables[i, 1] * by
        just_taut = abs(contraction[i] - p) <= JUST_TAUT_M
        lifted[i] = max(contraction[i], p) if just_taut else contraction[i]
    possible, _, _, jxx, jxy, jyx, jyy = balance(bx, by, lifted, section, cables, moments, alphas)
    if not possible:
        return False
    det = jxx * jyy - jxy * jyx
    length, cutting = section[0], section[3]
    x = 0.5 * math.hypot(bx, by)
    for i in range(m):
        ax, ay = cables[i, 0], cables[i, 1]
        p = ax * bx + ay * by
        jacobian[0, i] = 0.0
        jacobian[1, i] = 0.0
        if lifted[i] < p - rounding_of(lifted):
            continue
        _, m_alpha, _, _ = moment_terms(alphas[i], x, p, length, cutting)
        l_alpha, _, _ = length_slopes(alphas[i], x, p, length)
        pull = -length / section[2] * m_alpha / l_alpha  # (d m / d contraction) L / K_b
        jacobian[0, i] = -(jyy * ax - jxy * ay) / det * pull
        jacobian[1, i] = -(jxx * ay - jyx * ax) / det * pull
    return True
