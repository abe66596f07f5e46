"""The shape of the chain as arrays for users."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.body_kernels import place_chain
from softarm_ros.plant.layout import ArmState, BodyParameters, Scratch
from softarm_ros.plant.shape_kernels import centerline_into, section_tips_into

_POINTS_PER_SEGMENT = 16


def centerline(
    body: BodyParameters,
    state: ArmState,
    scratch: Scratch,
    n: int,
    start: int = 0,
    end: int | None = None,
) -> Array:
    """
    Return n points (n, 3) [m] from base to tip, evenly spaced in arc length.

    With `start` or `end`: from the start of segment `start` (0: the base) to that of `end`.

    Raises
    ------
    ValueError
        If n is less than 2.

    """
    if n < 2:
        raise ValueError(f'centreline of {n} points; expected at least 2')
    _place(body, state, scratch)
    dense = np.empty((len(body.mass) * (_POINTS_PER_SEGMENT + 1) + 2, 3))
    arc = np.empty(len(dense))
    centerline_into(body, state, scratch, _POINTS_PER_SEGMENT, dense, arc)
    rows = slice(
        start and 1 + start * (_POINTS_PER_SEGMENT + 1),
        None if end is None else 2 + end * (_POINTS_PER_SEGMENT + 1),
    )
    dense, arc = dense[rows], arc[rows]
    at = np.linspace(arc[0], arc[-1], n)
    return np.stack([np.interp(at, arc, dense[:, k]) for k in range(3)], axis=1)


def section_tips(body: BodyParameters, state: ArmState, scratch: Scratch, endcaps: Array) -> Array:
    """
    Return the pose (sections, 4, 4) of every section's tip in the base frame.

    `endcaps` (sections,) [m] are the lengths from the last segment of each section to its tip.
    """
    _place(body, state, scratch)
    tips = np.empty((len(endcaps), 4, 4))
    section_tips_into(scratch.rotation, scratch.origin, endcaps, tips)
    return tips


def body_poses(body: BodyParameters, state: ArmState, scratch: Scratch) -> Array:
    """Return the poses (n + 1, 4, 4) of the bodies in the base frame, the mount first."""
    _place(body, state, scratch)
    poses = np.zeros((len(body.mass) + 1, 4, 4))
    poses[:, :3, :3], poses[:, :3, 3] = scratch.rotation, scratch.origin
    poses[:, 3, 3] = 1.0
    return poses


def _place(body: BodyParameters, state: ArmState, scratch: Scratch) -> None:
    place_chain(
        body.base_rotation,
        body.segment_length,
        body.offset,
        state.quaternion,
        state.extension,
        scratch.rotation,
        scratch.origin,
        scratch.joint_rotation,
        scratch.sliding,
        scratch.arc,
    )
