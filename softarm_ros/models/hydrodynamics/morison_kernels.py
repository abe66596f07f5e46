"""
Compiled Morison loads on the nodes of a moving centreline.

Each node stands for a cylinder piece of length ds, diameter D and tangent t. With w the water's
velocity relative to the piece, and w_n and w_t its parts across and along the piece:

    drag       1/2 rho C_n D ds |w_n| w_n + 1/2 rho C_t pi D ds |w_t| w_t
    added mass -d/dt (A v_r), A = rho C_a S ds (1 - t t') + rho C_at S ds t t', v_r = -w
    inertia of the displaced water  rho S ds du/dt, buoyancy  -rho S ds g,  S = pi D^2 / 4

A rotates with the piece, so d/dt (A v_r) = A v_r' + spin x (A v_r) - A (spin x v_r), and
Kirchhoff's moment is -v_r x (A v_r). Without spin this is Morison's formula with the acceleration
across the piece.
"""

from __future__ import annotations

import math

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel

# Columns of the coefficient array.
DENSITY, DRAG_NORMAL, DRAG_ALONG, ADDED_NORMAL, ADDED_ALONG = 0, 1, 2, 3, 4
COEFFICIENTS = 5


@kernel(allocates=False)
def drag_into(
    coefficients: Array,
    length: Array,
    diameter: Array,
    tangent: Array,
    relative: Array,
    force: Array,
    slope: Array,
) -> float:
    """
    Write the drag (n, 3) [N] for the water's relative velocity (n, 3), and d drag / d relative.

    `slope` (n, 3, 3) is symmetric and positive semidefinite: the damping matrix of the piece.
    Return the power [W] that drag removes from the relative motion, sum of force . relative >= 0.
    """
    power = 0.0
    for k in range(length.shape[0]):
        t = tangent[k]
        w = relative[k]
        area = coefficients[DENSITY] * diameter[k] * length[k]
        across = 0.5 * coefficients[DRAG_NORMAL] * area
        along = 0.5 * math.pi * coefficients[DRAG_ALONG] * area
        wt = w[0] * t[0] + w[1] * t[1] + w[2] * t[2]
        n0, n1, n2 = w[0] - wt * t[0], w[1] - wt * t[1], w[2] - wt * t[2]
        speed = math.sqrt(n0 * n0 + n1 * n1 + n2 * n2)
        a, b = across * speed, along * abs(wt)
        force[k, 0] = a * n0 + b * wt * t[0]
        force[k, 1] = a * n1 + b * wt * t[1]
        force[k, 2] = a * n2 + b * wt * t[2]
        power += a * speed * speed + b * wt * wt
        c = across / speed if speed > 0.0 else 0.0
        normal = (n0, n1, n2)
        for i in range(3):
            for j in range(3):
                one = 1.0 if i == j else 0.0
                slope[k, i, j] = (
                    a * (one - t[i] * t[j]) + c * normal[i] * normal[j] + 2.0 * b * t[i] * t[j]
                )
    return power


@kernel(allocates=False)
def added_mass_into(
    coefficients: Array,
    length: Array,
    diameter: Array,
    tangent: Array,
    relative: Array,
    relative_rate: Array,
    spin: Array,
    wrench: Array,
) -> float:
    """
    Write the force and moment (n, 6) [N, N m] of the added mass; return its kinetic energy [J].

    `relative` and `relative_rate` (n, 3) are the water's relative velocity and its rate; `spin`
    (n, 3) is the angular velocity of the pieces.
    """
    energy = 0.0
    for k in range(length.shape[0]):
        t, s = tangent[k], spin[k]
        mass = coefficients[DENSITY] * 0.25 * math.pi * diameter[k] ** 2 * length[k]
        across, along = mass * coefficients[ADDED_NORMAL], mass * coefficients[ADDED_ALONG]
        # Velocity of the piece relative to the water, and its rate in the piece's rotating axes.
        v0, v1, v2 = -relative[k, 0], -relative[k, 1], -relative[k, 2]
        a0 = -relative_rate[k, 0] - (s[1] * v2 - s[2] * v1)
        a1 = -relative_rate[k, 1] - (s[2] * v0 - s[0] * v2)
        a2 = -relative_rate[k, 2] - (s[0] * v1 - s[1] * v0)
        vt = v0 * t[0] + v1 * t[1] + v2 * t[2]
        at = a0 * t[0] + a1 * t[1] + a2 * t[2]
        extra_v, extra_a = (along - across) * vt, (along - across) * at
        h0 = across * v0 + extra_v * t[0]
        h1 = across * v1 + extra_v * t[1]
        h2 = across * v2 + extra_v * t[2]
        wrench[k, 0] = -(across * a0 + extra_a * t[0] + s[1] * h2 - s[2] * h1)
        wrench[k, 1] = -(across * a1 + extra_a * t[1] + s[2] * h0 - s[0] * h2)
        wrench[k, 2] = -(across * a2 + extra_a * t[2] + s[0] * h1 - s[1] * h0)
        wrench[k, 3] = -(v1 * h2 - v2 * h1)
        wrench[k, 4] = -(v2 * h0 - v0 * h2)
        wrench[k, 5] = -(v0 * h1 - v1 * h0)
        energy += 0.5 * (v0 * h0 + v1 * h1 + v2 * h2)
    return energy
