"""
Arrays of the kernels of weighted sections: the rod, its loads, its cables, scratch space.

For S sections of N pieces, E = S (N + 2) elements (endcap, pieces, endcap).
"""

from __future__ import annotations

from typing import NamedTuple

from softarm_ros.geometry.arrays import Array, IntArray


class Rod(NamedTuple):
    """
    Constants of the sections.

    Attributes
    ----------
    sections : (S, 4)
        L, h [m], K_b, K_tau [N m^2].
    basis : (N, max(bends, twists))
        Mean of each polynomial over a piece, divided by N.
    bends, twists : int
        Number of polynomials of curvature and of twist in each section.

    """

    sections: Array
    basis: Array
    bends: int
    twists: int


class Loads(NamedTuple):
    """
    Dead loads, base frame.

    Attributes
    ----------
    forces : (E + 1, 3)
        Forces on the ends of the elements [N].
    moment : (3,)
        Moment on the tip [N m].

    """

    forces: Array
    moment: Array


class Cables(NamedTuple):
    """
    Paths of the cables.

    Attributes
    ----------
    paths : (m, 3)
        As `cables` in `slack_kernels`.
    first : (S + 1,)
        The cables of section k are `paths[first[k]:first[k + 1]]`.

    """

    paths: Array
    first: IntArray


class Frames(NamedTuple):
    """
    Frames of the elements, written by the kernels.

    Attributes
    ----------
    rotation : (E + 1, 3, 3), place : (E + 1, 3)
        Rotations and positions [m] of the elements' ends.
    phi : (E, 3)
        Rotation vector over each element [rad], zero for endcaps.
    tangent : (E, 3)
        Direction of each element's chord.

    """

    rotation: Array
    place: Array
    phi: Array
    tangent: Array
