"""Solution of a rod on cables at rest."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.cosserat.shots import DeadLoad, Shot


@dataclass(frozen=True)
class Lengths:
    """Cable contractions (n,) [m] at a shot, and their derivatives (n, 3 + n) by its columns."""

    contraction: Array
    slope: Array


@dataclass(frozen=True)
class RodRest:
    """
    A rod at rest.

    Attributes
    ----------
    bend : (dof,)
        Bending vectors from one section tip to the next [rad].
    load : DeadLoad
    shot : Shot
        The shot that meets the base.
    lengths : Lengths
    unknowns : (dof,) or (n,)
        Moments of single cables or tensions of pairs, see `HeldRod`; empty if lengths were given.
    by_bend : (3 + n, dof)
        Derivative of tip rotation and tensions by the bends; empty if lengths were given.
    unknowns_by_bend : (dof, dof) or (n, dof)

    """

    bend: Array
    load: DeadLoad
    shot: Shot
    lengths: Lengths
    unknowns: Array
    by_bend: Array
    unknowns_by_bend: Array

    @property
    def tension(self) -> Array:
        """Tensions of the cables (n,) [N]."""
        return self.shot.tensions


def turned(quaternion: Array, turn: Array) -> Array:
    """Return a quaternion (4,) turned in its own frame by a rotation vector (3,)."""
    angle = float(np.linalg.norm(turn))
    k = 0.5 - angle * angle / 48.0 if angle < 1e-4 else math.sin(0.5 * angle) / angle
    x, y, z, w = quaternion
    a, b, c, d = k * turn[0], k * turn[1], k * turn[2], math.cos(0.5 * angle)
    product = np.array(
        [
            w * a + d * x + y * c - z * b,
            w * b + d * y + z * a - x * c,
            w * c + d * z + x * b - y * a,
            w * d - x * a - y * b - z * c,
        ]
    )
    return np.asarray(product / np.linalg.norm(product))
