"""Compiled kernels of rods on cables: section bends with derivatives, and cutting in."""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.arrays import Array, IntArray
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.rotation_kernels import log_so3_of
from softarm_ros.models.cable_driven.cable_statics_kernels import (
    contraction_slopes,
    excess_of,
    incident_angle_of_moment,
)

_SMALL_RAD = 1e-2  # below this angle, the factor c of the inverse tangent comes from its series


@kernel
def _log_slopes_into(w0: float, w1: float, w2: float, tangent: Array) -> None:
    """Write d log / d (rotation in its own frame) (3, 3): 1 + hat(w)/2 + c hat(w)^2."""
    square = w0 * w0 + w1 * w1 + w2 * w2
    angle = math.sqrt(square)
    if angle < _SMALL_RAD:
        c = 1.0 / 12.0 + square / 720.0
    else:
        c = 1.0 / square - 0.5 * (1.0 + math.cos(angle)) / (angle * math.sin(angle))
    tangent[0, 0] = 1.0 + c * (w0 * w0 - square)
    tangent[1, 1] = 1.0 + c * (w1 * w1 - square)
    tangent[2, 2] = 1.0 + c * (w2 * w2 - square)
    tangent[0, 1] = c * w0 * w1 - 0.5 * w2
    tangent[1, 0] = c * w0 * w1 + 0.5 * w2
    tangent[0, 2] = c * w0 * w2 + 0.5 * w1
    tangent[2, 0] = c * w0 * w2 - 0.5 * w1
    tangent[1, 2] = c * w1 * w2 - 0.5 * w0
    tangent[2, 1] = c * w1 * w2 + 0.5 * w0


@kernel
def bends_into(turns: Array, slopes: Array, values: Array, jacobian: Array) -> None:
    """
    Write the rotation error at the base (3) and the bends of the sections (2 each) [rad].

    `turns` (sections + 1, 3, 3) and `slopes` (sections + 1, 3, n) are those of a `Shot`. Writes
    `values` (3 + 2 sections,) and `jacobian` (3 + 2 sections, n).
    """
    relative, tangent = np.empty((3, 3)), np.empty((3, 3))
    count = slopes.shape[2]
    moved = np.empty(3)
    for k in range(turns.shape[0]):
        for i in range(3):
            for j in range(3):
                if k == 0:
                    relative[i, j] = turns[0, i, j]
                    continue
                value = 0.0
                for m in range(3):
                    value += turns[k - 1, m, i] * turns[k, m, j]
                relative[i, j] = value
        w0, w1, w2 = log_so3_of(relative)
        _log_slopes_into(w0, w1, w2, tangent)
        first = 0 if k == 0 else 1 + 2 * k
        if k == 0:
            values[0], values[1], values[2] = w0, w1, w2
        else:
            values[first], values[first + 1] = w1, -w0
        for c in range(count):
            for i in range(3):
                moved[i] = slopes[k, i, c]
                if k > 0:
                    for m in range(3):
                        moved[i] -= relative[m, i] * slopes[k - 1, m, c]
            for i in range(3):
                value = tangent[i, 0] * moved[0] + tangent[i, 1] * moved[1]
                value += tangent[i, 2] * moved[2]
                if k == 0:
                    jacobian[i, c] = value
                elif i == 0:
                    jacobian[first + 1, c] = -value
                elif i == 1:
                    jacobian[first, c] = value


@kernel
def cut_in_into(
    bends: Array,
    tensions: Array,
    own: IntArray,
    levers: Array,
    sections: Array,
    excess: Array,
    by_bend: Array,
    by_tension: Array,
) -> None:
    """
    Write the shortening of cables by cutting in (n,) [m], as on arcs with the sections' bends.

    Parameters
    ----------
    bends : (2 sections,)
        Bends of the sections [rad].
    tensions : (n,)
        T cos(alpha) [N], the component along the guides.
    own : (n,)
        Index of the section in which each cable ends.
    levers : (n, 2)
        Position of each cable in the cross-section [m].
    sections : (sections, 2)
        L [m] and K_t [N/m^2].
    excess, by_bend, by_tension
        Written: the shortening (n,) and its derivatives by the own section's bend (n, 2) and by
        tension (n,).

    """
    for i in range(tensions.shape[0]):
        k = own[i]
        bx, by = bends[2 * k], bends[2 * k + 1]
        ax, ay = levers[i, 0], levers[i, 1]
        length, cutting = sections[k, 0], sections[k, 1]
        theta = math.hypot(bx, by)
        x, p = 0.5 * theta, ax * bx + ay * by
        m = max(tensions[i], 0.0)
        alpha = incident_angle_of_moment(m, x, p, length, cutting)
        c_x, c_p, c_m = contraction_slopes(m, alpha, x, p, length, cutting)
        ex, ey = (bx / theta, by / theta) if theta > 0.0 else (0.0, 0.0)
        excess[i] = excess_of(alpha, x, p, length)
        if m == 0.0:
            c_x, c_p = 0.0, 1.0
        by_bend[i, 0] = 0.5 * c_x * ex + (c_p - 1.0) * ax
        by_bend[i, 1] = 0.5 * c_x * ey + (c_p - 1.0) * ay
        by_tension[i] = c_m
