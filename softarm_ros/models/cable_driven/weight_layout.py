"""
Arrays the kernels of weighted sections work on: the rod, its loads, its cables, scratch space.

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
        Mean of each polynomial over a piece, over N.
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
        On the ends of elements [N].
    moment : (3,)
        On the tip [N m].

    """

    forces: Array
    moment: Array


class Cables(NamedTuple):
    """
    Where cables run.

    Attributes
    ----------
    paths : (m, 3)
        As in `slack_kernels`.
    first : (S + 1,)
        Those of section k are from `first[k]` to `first[k + 1]`.

    """

    paths: Array
    first: IntArray


class Frames(NamedTuple):
    """
    Where the elements are; written.

    Attributes
    ----------
    rotation : (E + 1, 3, 3), place : (E + 1, 3)
        Of their ends [m].
    phi : (E, 3)
        Rotation vector over each [rad], zero for endcaps.
    tangent : (E, 3)
        Of its chord.

    """

    rotation: Array
    place: Array
    phi: Array
    tangent: Array
