"""Friction of cables at nodes of their way: parameters, memory and working memory of one law."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softarm_ros.geometry.arrays import Array


class CableFriction(NamedTuple):
    """
    Friction of m cables at up to n nodes each, counted from where the tension is held.

    Attributes
    ----------
    stiffness : (m, n)
        Of the bristle at each node [N/m]: what the surroundings of a cable give way by before it
        slides.
    angle : (m, n)
        Coefficient of friction times the angle [rad] by which the cable turns there.
    arc : (m, n)
        Length of the cable from each node to the next [m].
    bristle : (m, n)
        Memory: deflection of the bristles [m], positive where they hold back what is pulled in.
    beyond : (m, n)
        Memory: length of the cable from each node to its end [m].
    lost : (m, n)
        Tension that the nodes up to and with this one have taken from the cable [N].

    """

    stiffness: Array
    angle: Array
    arc: Array
    bristle: Array
    beyond: Array
    lost: Array

    @classmethod
    def of_stiffness(cls, stiffness: Array) -> CableFriction:
        """Return nodes with bristles (m, n) [N/m] at ease; all lengths are zero."""
        return cls(stiffness, *(np.zeros_like(stiffness) for _ in cls._fields[1:]))

    def copy(self) -> CableFriction:
        """Return an independent copy."""
        return CableFriction(*(array.copy() for array in self))

    @property
    def stored(self) -> float:
        """Elastic energy of the bristles [J]."""
        return float(0.5 * np.sum(self.stiffness * self.bristle**2))
