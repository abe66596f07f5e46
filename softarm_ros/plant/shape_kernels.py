"""Compiled read-out of the arm's shape."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.pose_kernels import matrix_of_quaternion
from softarm_ros.plant.joint_kernels import (
    arc_shape,
    log_of_quaternion,
    turn,
)
from softarm_ros.plant.layout import ArmState, BodyParameters, Scratch


@kernel(allocates=False)
def section_tips_into(rotation: Array, origin: Array, endcaps: Array, tips: Array) -> None:
    """
    Write the pose of each section's tip into `tips` (sections, 4, 4).

    `rotation` (n + 1, 3, 3) and `origin` (n + 1, 3) [m] are those of the bodies, `endcaps`
    (sections,) [m] the lengths from the last segment of each section to its tip.
    """
    sections = endcaps.shape[0]
    segments = (rotation.shape[0] - 1) // sections
    for k in range(sections):
        body = (k + 1) * segments
        for i in range(3):
            for j in range(3):
                tips[k, i, j] = rotation[body, i, j]
            tips[k, i, 3] = origin[body, i] + endcaps[k] * rotation[body, i, 2]
            tips[k, 3, i] = 0.0
        tips[k, 3, 3] = 1.0


@kernel
def centerline_into(
    body: BodyParameters, state: ArmState, scratch: Scratch, pieces: int, points: Array, arc: Array
) -> None:
    """
    Write a dense centreline and its arc length.

    Every segment is an arc, sampled at its start and at `pieces` further points: `points`
    (n (pieces + 1) + 2, 3) [m] in the base frame, `arc` with the arc length up to each [m].
    `place_bodies` must have been called for this state.
    """
    n = body.mass.shape[0]
    R = np.empty((3, 3))
    part = np.empty(4)
    points[0, :] = scratch.origin[0]
    arc[0] = 0.0
    row = 1
    for g in range(n):
        parent, start = scratch.rotation[g], scratch.origin[g]
        length = body.segment_length[g] + state.extension[g]
        arc_start = arc[row - 1] + body.offset[g]
        x, y, z, _ = log_of_quaternion(state.quaternion[g])
        for piece in range(pieces + 1):
            share = piece / pieces
            part[:3] = 0.0
            part[3] = 1.0
            turn(part, share * x, share * y, share * z)
            matrix_of_quaternion(part, R)
            f = arc_shape(2.0 * (part[0] * part[0] + part[1] * part[1]))[0]
            half = 0.5 * share * length * f
            px, py = half * R[0, 2], half * R[1, 2]
            pz = body.offset[g] + half * (1.0 + R[2, 2])
            for i in range(3):
                points[row, i] = (
                    start[i] + parent[i, 0] * px + parent[i, 1] * py + parent[i, 2] * pz
                )
            arc[row] = arc_start + share * length
            row += 1
    for i in range(3):
        points[row, i] = scratch.origin[n, i] + body.tip_offset[0] * scratch.rotation[n, i, 2]
    arc[row] = arc[row - 1] + body.tip_offset[0]
