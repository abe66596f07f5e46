"""
Arcs that give under a load at the tip, for many configurations at once.

A load bends a section by its give C [rad/(N m)] times the load's moment about the middle of the
arc. Only the component of the moment across the arm counts; the component along the arm has no
effect. The weight of the sections is part of the parameters identified without a load.
"""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError

_MAX_ROUNDS = 100
_TOLERANCE_RAD = 1e-10
_SMALL = 1e-4  # rad^2, below which series replace the quotients


def section_tips(bends: Array, lengths: Array) -> Array:
    """
    Return the section tips (n, sections, 4, 4) of bends (n, 2 sections) [rad].

    `lengths` (sections, 2) are the lengths of the arc and of one endcap [m].
    """
    frames = np.empty((len(bends), len(lengths), 4, 4))
    frame = np.broadcast_to(np.eye(4), (len(bends), 4, 4))
    for k, (length, endcap) in enumerate(lengths):
        frame = frame @ _arcs(bends[:, 2 * k : 2 * k + 2], length, endcap, endcap)
        frames[:, k] = frame
    return frames


def give_of_load(bends: Array, lengths: Array, gives: Array, force: Array, moment: Array) -> Array:
    """
    Return the additional bends (n, 2 sections) [rad] that a load causes at given bends.

    `gives` (sections,) [rad/(N m)]; `force` (n, 3) [N], `moment` (n, 3) [N m], base frame.
    """
    tips = section_tips(bends, lengths)
    tip = tips[:, -1, :3, 3]
    more = np.empty_like(bends)
    start = np.broadcast_to(np.eye(4), (len(bends), 4, 4))
    for k, (length, endcap) in enumerate(lengths):
        two = slice(2 * k, 2 * k + 2)
        middle = start @ _arcs(0.5 * bends[:, two], 0.5 * length, endcap, 0.0)
        about = np.cross(tip - middle[:, :3, 3], force) + moment
        across = np.einsum('nji,nj->ni', middle[:, :3, :3], about)
        # A bend (b_x, b_y) is a turn by (-b_y, b_x, 0).
        more[:, two] = gives[k] * np.stack([across[:, 1], -across[:, 0]], axis=1)
        start = tips[:, k]
    return more


def bends_under_load(
    unloaded: Array, lengths: Array, gives: Array, force: Array, moment: Array
) -> Array:
    """
    Return the bends (n, 2 sections) [rad] at which the sections are in balance with a load.

    Raises
    ------
    ModelError
        If the arm gives way so much that no balance is found.

    """
    bends = unloaded + give_of_load(unloaded, lengths, gives, force, moment)
    for _ in range(_MAX_ROUNDS):
        following = unloaded + give_of_load(bends, lengths, gives, force, moment)
        change = float(np.abs(following - bends).max(initial=0.0))
        bends = following
        if change < _TOLERANCE_RAD:
            return bends
    raise ModelError(
        f'the arm finds no balance with a load of {np.linalg.norm(force, axis=1).max():.3g} N at '
        f'its tip, with gives of up to {gives.max():.3g} rad/(N m)'
    )


def _arcs(bend: Array, length: float, before: float, behind: float) -> Array:
    """Return the transforms (n, 4, 4) of arcs of bends (n, 2) between two straight pieces."""
    bx, by = bend.T
    square = bx * bx + by * by
    angle = np.sqrt(square)
    with np.errstate(invalid='ignore', divide='ignore'):
        c1 = np.where(square < _SMALL, 1.0 - square / 6.0, np.sin(angle) / angle)
        c2 = np.where(square < _SMALL, 0.5 - square / 24.0, (1.0 - np.cos(angle)) / square)
    out = np.zeros((len(bend), 4, 4))
    out[:, 0, 0], out[:, 0, 1], out[:, 0, 2] = 1.0 - c2 * bx * bx, -c2 * bx * by, c1 * bx
    out[:, 1, 0], out[:, 1, 1], out[:, 1, 2] = -c2 * bx * by, 1.0 - c2 * by * by, c1 * by
    out[:, 2, 0], out[:, 2, 1], out[:, 2, 2] = -c1 * bx, -c1 * by, 1.0 - c2 * square
    out[:, 0, 3] = length * c2 * bx + behind * out[:, 0, 2]
    out[:, 1, 3] = length * c2 * by + behind * out[:, 1, 2]
    out[:, 2, 3] = length * c1 + before + behind * out[:, 2, 2]
    out[:, 3, 3] = 1.0
    return out
