"""
Compiled statics of cables that cut into a bending section (Qi et al. 2024, eq. 1-30).

Body and cable are circular arcs over a common chord. The equations are written in a form regular
at theta = 0, with x = theta / 2, the signed offset d_i of the cable towards the bend,
p = d_i theta = a_i . b (the contraction without cutting in), s(x) = sin(x) / x, the incident angle
alpha and psi = x - alpha:

- chord         c = (L - p) s(x)
- cable         curvature 2 sin(psi) / c, length l = c / s(psi) (eq. 16, 17)
- cut-in depth  delta = (c / 2) sin(alpha / 2) / (cos(x / 2) cos(psi / 2)) (eq. 19)
- eq. 18        K_t delta = T curvature, with the moment per lever m = T cos(alpha) (eq. 15):
                K sin(alpha / 2) cos(alpha) = m sin(psi) cos(psi / 2), K = K_t c^2 / (4 cos(x / 2))

No term is divided by theta. For 0 <= x < pi / 2 and m > 0, eq. 18 has exactly one root alpha in
[0, x), because the ratio of its sides grows with alpha. The excess e = (L - p) - l [m] is the
shortening by cutting in; it is computed without cancellation, so contractions p + e keep their
digits.

Arrays: `section` (4,) = L, h [m], K_b, K_t [N m^2, N/m^2]; `cables` (m, 3) as in slack_kernels.
"""

from __future__ import annotations

import math

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.rotation_kernels import stumpff
from softarm_ros.models.cable_driven.slack_kernels import holding_shares

# Bending angle [rad] up to which eq. 18 is solved; its root exists below 180 degrees.
MAX_BENDING_RAD = math.radians(175.0)
OK, TOO_BENT, NO_CABLE, NOT_HOLDABLE, NOT_CONVERGED, OVERPULLED = 0, 1, 2, 3, 4, 5
# sin(x)/x as a polynomial in x^2: at (pi/2)^2 the first neglected term is below 1e-18.
_SINC_SERIES = tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in range(12))


@kernel
def sinc_slopes(u: float, v: float) -> tuple[float, float]:
    """
    Return (g, dg/dv), g = (s(v) - s(u)) / (v - u) with s(t) = sinc(sqrt(t)) and u, v <= 2.5.

    The divided difference comes from synthetic division, so it is exact to rounding even where v
    is close to u.
    """
    quotient = 0.0  # Horner value at v of s(t) divided by (t - u)
    slope = 0.0
    b = _SINC_SERIES[11]
    for k in range(10, -1, -1):
        slope = slope * v + quotient
        quotient = quotient * v + b
        b = b * u + _SINC_SERIES[k]
    return quotient, slope


@kernel
def excess_of(alpha: float, x: float, p: float, length: float) -> float:
    """Return the excess e [m] of a cable with incident angle alpha."""
    psi = x - alpha
    slope, _ = sinc_slopes(x * x, psi * psi)
    c1, _, _, _ = stumpff(psi * psi)
    return -(length - p) * slope * alpha * (x + psi) / c1


@kernel
def incident_angle_of_moment(m: float, x: float, p: float, length: float, cutting: float) -> float:
    """Return alpha [rad] of a cable with m = T cos(alpha) [N], from eq. 18 by bracketed Newton."""
    if m <= 0.0 or x <= 0.0:
        return 0.0
    c1, _, _, _ = stumpff(x * x)
    chord = (length - p) * c1
    cos_quarter, sin_quarter = math.cos(0.5 * x), math.sin(0.5 * x)
    stiffness = 0.25 * cutting * chord * chord / cos_quarter
    low, high = 0.0, x
    alpha = 0.0
    for _ in range(60):
        sin_a, cos_a = math.sin(0.5 * alpha), math.cos(0.5 * alpha)
        sin_p = sin_quarter * cos_a - cos_quarter * sin_a
        cos_p = cos_quarter * cos_a + sin_quarter * sin_a
        cos_alpha = 1.0 - 2.0 * sin_a * sin_a
        cos_psi = 1.0 - 2.0 * sin_p * sin_p
        value = stiffness * sin_a * cos_alpha - m * 2.0 * sin_p * cos_p * cos_p
        slope = stiffness * (0.5 * cos_a * cos_alpha - 2.0 * sin_a * sin_a * cos_a)
        slope += m * cos_p * (cos_psi - sin_p * sin_p)
        if value > 0.0:
            high = alpha
        else:
            low = alpha
        following = alpha - value / slope if slope > 0.0 else high
        if not low < following < high:
            if abs(following - alpha) <= 2e-16 * x:
                return alpha
            following = 0.5 * (low + high)
        if abs(following - alpha) <= 2e-16 * x:
            return following
        alpha = following
    return alpha


@kernel
def incident_angle_of_excess(excess: float, x: float, p: float, length: float) -> float:
    """
    Return alpha [rad] of a taut cable with excess e >= 0 [m]; -1 if it is shorter than its chord.

    Solves s(psi) = s(x) (L - p) / l for w = x^2 - psi^2 by Newton's method. As s is convex in its
    squared argument, the iterates approach the root from one side.
    """
    if excess <= 0.0:
        return 0.0
    taut = length - p - excess
    if taut <= 0.0 or x <= 0.0:
        return -1.0
    u = x * x
    c1, _, _, _ = stumpff(u)
    rise = c1 * excess / taut  # s(psi) - s(x)
    if c1 + rise >= 1.0:
        return -1.0
    w = 0.0
    for _ in range(40):
        v = u - w
        slope, curvature = sinc_slopes(u, v)
        # value = s(v) - s(u) - rise with s(v) - s(u) = -w slope; d value / d w = -(ds/dv)
        derivative = -slope + w * curvature
        change = (rise + w * slope) / derivative
        w = min(max(w + change, 0.0), u)
        if abs(change) <= 1e-15 * w:
            break
    return w / (x + math.sqrt(max(u - w, 0.0)))


@kernel
def moment_terms(
    alpha: float, x: float, p: float, length: float, cutting: float
) -> tuple[float, float, float, float]:
    """
    Return (m, m_alpha, m_x, m_p): m = T cos(alpha) [N] from eq. 18 and its derivatives, x > 0.

    Each derivative holds the other two of (alpha, x, p) fixed.
    """
    psi = x - alpha
    c1, c2, c3, _ = stumpff(x * x)
    sin_a, cos_a = math.sin(0.5 * alpha), math.cos(0.5 * alpha)
    sin_p, cos_p = math.sin(0.5 * psi), math.cos(0.5 * psi)
    cos_alpha, cos_psi = 1.0 - 2.0 * sin_a * sin_a, 1.0 - 2.0 * sin_p * sin_p
    chord = (length - p) * c1
    stiffness = 0.25 * cutting * chord * chord / math.cos(0.5 * x)
    below = 2.0 * sin_p * cos_p * cos_p
    ratio = sin_a * cos_alpha / below
    by_alpha = (0.5 * cos_a * cos_alpha - 2.0 * sin_a * sin_a * cos_a) / below
    by_psi = -ratio * cos_p * (cos_psi - sin_p * sin_p) / below
    grows = 2.0 * x * (c3 - c2) / c1 + 0.5 * math.tan(0.5 * x)  # (d stiffness / dx) / stiffness
    m = stiffness * ratio
    return (
        m,
        stiffness * (by_alpha - by_psi),
        m * grows + stiffness * by_psi,
        -2.0 * m / (length - p),
    )


@kernel
def length_slopes(alpha: float, x: float, p: float, length: float) -> tuple[float, float, float]:
    """Return (l_alpha, l_x, l_p): derivatives of the cable length l = (L - p) s(x) / s(psi)."""
    psi = x - alpha
    c1, c2, c3, _ = stumpff(x * x)
    k1, k2, k3, _ = stumpff(psi * psi)
    taut = (length - p) * c1 / k1
    by_psi = -taut * psi * (k3 - k2) / k1
    return -by_psi, taut * x * (c3 - c2) / c1 + by_psi, -c1 / k1


@kernel
def contraction_slopes(
    m: float, alpha: float, x: float, p: float, length: float, cutting: float
) -> tuple[float, float, float]:
    """
    Return (c_x, c_p, c_m): derivatives of the contraction L - l at given m, regular at x = 0.

    Computed by implicit differentiation of eq. 18 in its regular form, F(alpha, x, p, m) = 0.
    """
    psi = x - alpha
    c1, c2, c3, _ = stumpff(x * x)
    sin_a, cos_a = math.sin(0.5 * alpha), math.cos(0.5 * alpha)
    sin_p, cos_p = math.sin(0.5 * psi), math.cos(0.5 * psi)
    cos_alpha, cos_psi = 1.0 - 2.0 * sin_a * sin_a, 1.0 - 2.0 * sin_p * sin_p
    chord = (length - p) * c1
    stiffness = 0.25 * cutting * chord * chord / math.cos(0.5 * x)
    grows = 2.0 * x * (c3 - c2) / c1 + 0.5 * math.tan(0.5 * x)
    left = stiffness * sin_a * cos_alpha
    below_slope = cos_p * (cos_psi - sin_p * sin_p)
    f_alpha = stiffness * (0.5 * cos_a * cos_alpha - 2.0 * sin_a * sin_a * cos_a) + m * below_slope
    f_x = left * grows - m * below_slope
    f_p = -2.0 * left / (length - p)
    f_m = -2.0 * sin_p * cos_p * cos_p
    l_alpha, l_x, l_p = length_slopes(alpha, x, p, length)
    return (
        -l_x + l_alpha * f_x / f_alpha,
        -l_p + l_alpha * f_p / f_alpha,
        l_alpha * f_m / f_alpha,
    )


@kernel
def holding_contractions_into(
    bx: float,
    by: float,
    section: Array,
    cables: Array,
    contraction: Array,
    moments: Array,
    alphas: Array,
) -> int:
    """
    Solve the inverse statics of one section: the cables that hold b (eq. 30 with eq. 41).

    Writes contraction [m], m = T cos(alpha) [N] and alpha [rad] of every cable, (m,) each.
    Returns OK, or the status that says why the cables cannot hold b.
    """
    length, stiffness, cutting = section[0], section[2], section[3]
    theta = math.hypot(bx, by)
    for i in range(cables.shape[0]):
        contraction[i] = cables[i, 0] * bx + cables[i, 1] * by
        moments[i] = 0.0
        alphas[i] = 0.0
        if contraction[i] >= length:
            return NO_CABLE
    if not theta <= MAX_BENDING_RAD:
        return TOO_BENT
    if theta == 0.0:
        return OK
    i, j, share_i, share_j, holdable = holding_shares(bx, by, cables)
    if not holdable:
        return NOT_HOLDABLE
    moments[i] = stiffness / length * share_i
    if j != i:
        moments[j] = stiffness / length * share_j
    x = 0.5 * theta
    for side in range(2):
        n = i if side == 0 else j
        if side == 1 and j == i:
            break
        p = contraction[n]
        alphas[n] = incident_angle_of_moment(moments[n], x, p, length, cutting)
        contraction[n] = p + excess_of(alphas[n], x, p, length)
    return OK


@kernel
def holding_jacobian_into(
    bx: float,
    by: float,
    section: Array,
    cables: Array,
    moments: Array,
    alphas: Array,
    jacobian: Array,
) -> None:
    """
    Write d contraction / d b (m, 2) at a solution of `holding_contractions_into`.

    Where a cable lies in the bending direction, the derivative is the one towards a neighbour.
    """
    length, stiffness, cutting = section[0], section[2], section[3]
    for n in range(cables.shape[0]):
        jacobian[n, 0] = cables[n, 0]
        jacobian[n, 1] = cables[n, 1]
    theta = math.hypot(bx, by)
    if theta == 0.0:
        return
    ex, ey = bx / theta, by / theta
    i, j, _, _, _ = holding_shares(bx, by, cables)
    for side in range(2):
        n = i if side == 0 else j
        other = j if side == 0 else i
        ax, ay = cables[n, 0], cables[n, 1]
        if j == i:
            if side == 1:
                break
            square = ax * ax + ay * ay
            mx, my = ax / square, ay / square
        else:
            det = ax * cables[other, 1] - ay * cables[other, 0]
            mx, my = cables[other, 1] / det, -cables[other, 0] / det
        p = ax * bx + ay * by
        c_x, c_p, c_m = contraction_slopes(moments[n], alphas[n], 0.5 * theta, p, length, cutting)
        c_m *= stiffness / length
        jacobian[n, 0] = 0.5 * c_x * ex + c_p * ax + c_m * mx
        jacobian[n, 1] = 0.5 * c_x * ey + c_p * ay + c_m * my
