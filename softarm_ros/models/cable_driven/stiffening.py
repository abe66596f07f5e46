"""
Sections that bend less than their pairs ask for, the more they are to bend; many at once.

The linear map of the pairs holds for small bends. Hoses stiffen, and tendons that pass through a
section bend it as well when the sections behind resist. With a the bends that the pairs ask for,

    b_k = a_k - sum_m s_km |a_m|^2 a_m / (1 + |a_m|^2 / r^2),

at small bends the third order of any law that knows no preferred direction and no difference
between a bend and its opposite, but for turns about the arm. s (sections, sections) [1/rad^2] is
positive where a section stiffens. Beyond r, `ROUND_RAD`, what is held back grows in proportion: a
cube would turn bends round beyond what it was identified from, this does so only if s > 0.27.
"""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array

ROUND_RAD = 1.8
_MOST_ROUNDS = 60
_LARGEST_STEP_RAD = 0.5
_TOLERANCE_RAD = 1e-9  # of a step: the next would be its square
_LEAST_SLOPE = 1e-9


def stiffened(asked: Array, stiffening: Array) -> Array:
    """Return the bends (n, 2 sections) [rad] where pairs ask for `asked` (n, 2 sections)."""
    vectors = asked.reshape(len(asked), -1, 2)
    square = np.sum(vectors**2, axis=2, keepdims=True)
    held = square / (1.0 + square / ROUND_RAD**2) * vectors
    less = np.einsum('km,nmi->nki', stiffening, held)
    return np.asarray(asked - less.reshape(asked.shape))


def stiffened_slope(asked: Array, stiffening: Array) -> Array:
    """Return the derivative of `stiffened` by what is asked (n, 2 sections, 2 sections)."""
    count, dof = asked.shape
    vectors = asked.reshape(count, -1, 2)
    square = np.sum(vectors**2, axis=2)[:, :, None, None]
    bound = 1.0 + square / ROUND_RAD**2
    outer = vectors[:, :, :, None] * vectors[:, :, None, :]
    slope = square / bound * np.eye(2) + 2.0 / bound**2 * outer
    less = np.einsum('km,nmij->nkimj', stiffening, slope).reshape(count, dof, dof)
    return np.asarray(np.eye(dof) - less)


def asked_for(bend: Array, stiffening: Array) -> Array | None:
    """
    Return what pairs must ask for (2 sections,) [rad] for bends (2 sections,); Newton's method.

    None where sections do not bend so far, whatever is asked.
    """
    goal = bend[None]
    now = goal.copy()
    for _ in range(_MOST_ROUNDS):
        slope = stiffened_slope(now, stiffening)[0]
        if np.linalg.det(slope) < _LEAST_SLOPE:
            return None  # where bends turn round
        step = np.linalg.solve(slope, (stiffened(now, stiffening) - goal)[0])
        now = now - np.clip(step, -_LARGEST_STEP_RAD, _LARGEST_STEP_RAD)
        if np.abs(step).max() < _TOLERANCE_RAD:
            return np.asarray(now[0])
    return None
