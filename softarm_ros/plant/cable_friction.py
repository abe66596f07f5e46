"""Friction of cables at nodes along their path: parameters, state and working memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softarm_ros.geometry.arrays import Array


class CableFriction(NamedTuple):
    """
    Friction of m cables at up to n nodes each, counted from the end where the tension is set.

    Attributes
    ----------
    stiffness : (m, n)
        Stiffness of the bristle at each node [N/m]: the elastic give of the cable's surroundings
        before it slides.
    angle : (m, n)
        Coefficient of friction times the angle [rad] through which the cable turns there.
    arc : (m, n)
        Length of the cable from each node to the next [m].
    bristle : (m, n)
        State: deflection of the bristles [m], positive if they oppose winding in.
    beyond : (m, n)
        State: length of the cable from each node to its end [m].
    lost : (m, n)
        Tension lost by friction up to and including each node [N].

    """

    stiffness: Array
    angle: Array
    arc: Array
    bristle: Array
    beyond: Array
    lost: Array

    @classmethod
    def of_stiffness(cls, stiffness: Array) -> CableFriction:
        """Return nodes with undeflected bristles of a stiffness (m, n) [N/m]; lengths are zero."""
        return cls(stiffness, *(np.zeros_like(stiffness) for _ in cls._fields[1:]))

    def copy(self) -> CableFriction:
        """Return an independent copy."""
        return CableFriction(*(array.copy() for array in self))

    @property
    def stored(self) -> float:
        """Elastic energy of the bristles [J]."""
        return float(0.5 * np.sum(self.stiffness * self.bristle**2))
