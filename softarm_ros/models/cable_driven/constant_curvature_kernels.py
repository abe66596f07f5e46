"""
Compiled kinematics of sections that bend in circular arcs (Qi et al. 2024, eq. 31-35).

A section is a rigid endcap (h), an arc (L) and a rigid endcap (h). Its bending vector
b = theta (cos phi, sin phi) [rad] gives the rotation exp(hat(-b_y, b_x, 0)) and the end of the
arc at L (b_x c2, b_y c2, c1). Here c1, c2 are the entire functions `stumpff` of u = |b|^2, so all
expressions are smooth through the straight pose.

Arrays: `bend` (2 sections,) [rad]; `lengths` (sections, 2), columns L and h [m].
"""

from __future__ import annotations

import math

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.rotation_kernels import stumpff


@kernel
def section_tips_into(bend: Array, lengths: Array, tips: Array) -> None:
    """Write the base -> section tip transforms into `tips` (sections, 4, 4)."""
    for k in range(lengths.shape[0]):
        tip = tips[k]
        arc_pose_into(bend[2 * k], bend[2 * k + 1], lengths[k, 0], lengths[k, 1], tip)
        for i in range(3):
            tip[i, 3] += lengths[k, 1] * tip[i, 2]
        if k > 0:
            _left_multiply(tips[k - 1], tip)


@kernel
def arc_pose_into(bx: float, by: float, length: float, offset: float, transform: Array) -> None:
    """Write Tz(offset) times an arc of `length` [m] bent by (bx, by) to `transform` (4, 4)."""
    c1, c2, _, _ = stumpff(bx * bx + by * by)
    transform[0, 0] = 1.0 - c2 * bx * bx
    transform[0, 1] = -c2 * bx * by
    transform[0, 2] = c1 * bx
    transform[0, 3] = length * c2 * bx
    transform[1, 0] = -c2 * bx * by
    transform[1, 1] = 1.0 - c2 * by * by
    transform[1, 2] = c1 * by
    transform[1, 3] = length * c2 * by
    transform[2, 0] = -c1 * bx
    transform[2, 1] = -c1 * by
    transform[2, 2] = 1.0 - c2 * (bx * bx + by * by)
    transform[2, 3] = length * c1 + offset
    transform[3, 0] = 0.0
    transform[3, 1] = 0.0
    transform[3, 2] = 0.0
    transform[3, 3] = 1.0


@kernel
def _left_multiply(left: Array, transform: Array) -> None:
    """Replace `transform` by left @ transform (both homogeneous)."""
    for j in range(4):
        x, y, z = transform[0, j], transform[1, j], transform[2, j]
        for i in range(3):
            transform[i, j] = left[i, 0] * x + left[i, 1] * y + left[i, 2] * z
    for i in range(3):
        transform[i, 3] += left[i, 3]


@kernel
def tip_jacobian_into(bend: Array, lengths: Array, rows: int, tip: Array, jacobian: Array) -> None:
    """
    Write the tip position into `tip` (3,) and its derivative by `bend` into `jacobian`.

    `rows` is 3 (linear part only) or 6 (twist in the base frame, linear first); `jacobian` is
    (rows, 2 sections). The loop runs from the last section to the first and carries the vector
    from the section's start to the tip, so that no frames need to be stored.
    """
    dof = bend.shape[0]
    qx, qy, qz = 0.0, 0.0, 0.0
    for k in range(lengths.shape[0] - 1, -1, -1):
        bx, by = bend[2 * k], bend[2 * k + 1]
        length, endcap = lengths[k, 0], lengths[k, 1]
        u = bx * bx + by * by
        c1, c2, c3, c4 = stumpff(u)
        d1 = c3 - c2  # (d c1 / d theta) / theta
        d2 = 2.0 * c4 - c3  # (d c2 / d theta) / theta
        r00, r01, r02 = 1.0 - c2 * bx * bx, -c2 * bx * by, c1 * bx
        r11, r12, r22 = 1.0 - c2 * by * by, c1 * by, 1.0 - c2 * u
        # Vector from the end of the arc to the tip, turned into the frame of the section's start.
        qz += endcap
        wx = r00 * qx + r01 * qy + r02 * qz
        wy = r01 * qx + r11 * qy + r12 * qz
        wz = -r02 * qx - r12 * qy + r22 * qz
        for j in range(2 * k + 2, dof):
            for row in range(0, rows, 3):
                x, y, z = jacobian[row, j], jacobian[row + 1, j], jacobian[row + 2, j]
                jacobian[row, j] = r00 * x + r01 * y + r02 * z
                jacobian[row + 1, j] = r01 * x + r11 * y + r12 * z
                jacobian[row + 2, j] = -r02 * x - r12 * y + r22 * z
        # Angular velocity per bending rate: left Jacobian of SO(3) at (-by, bx, 0).
        xx, xy, xz = -c3 * bx * by, 1.0 - c3 * by * by, -c2 * by
        yx, yy, yz = c3 * bx * bx - 1.0, c3 * bx * by, c2 * bx
        j = 2 * k
        jacobian[0, j] = length * (c2 + bx * bx * d2) + xy * wz - xz * wy
        jacobian[1, j] = length * bx * by * d2 + xz * wx - xx * wz
        jacobian[2, j] = length * bx * d1 + xx * wy - xy * wx
        jacobian[0, j + 1] = length * bx * by * d2 + yy * wz - yz * wy
        jacobian[1, j + 1] = length * (c2 + by * by * d2) + yz * wx - yx * wz
        jacobian[2, j + 1] = length * by * d1 + yx * wy - yy * wx
        if rows == 6:
            jacobian[3, j], jacobian[4, j], jacobian[5, j] = xx, xy, xz
            jacobian[3, j + 1], jacobian[4, j + 1], jacobian[5, j + 1] = yx, yy, yz
        qx = length * bx * c2 + wx
        qy = length * by * c2 + wy
        qz = length * c1 + endcap + wz
    tip[0], tip[1], tip[2] = qx, qy, qz


@kernel
def tips_into(bends: Array, lengths: Array, tips: Array) -> None:
    """Write the tip positions (n, 3) [m] of many configurations `bends` (n, 2 sections)."""
    for i in range(bends.shape[0]):
        x, y, z = 0.0, 0.0, 0.0
        for k in range(lengths.shape[0] - 1, -1, -1):
            bx, by = bends[i, 2 * k], bends[i, 2 * k + 1]
            length, endcap = lengths[k, 0], lengths[k, 1]
            u = bx * bx + by * by
            c1, c2, _, _ = stumpff(u)
            z += endcap
            along = bx * x + by * y
            ahead = c1 * z + length * c2 - c2 * along
            z = (1.0 - c2 * u) * z - c1 * along + length * c1 + endcap
            x += bx * ahead
            y += by * ahead
        tips[i, 0], tips[i, 1], tips[i, 2] = x, y, z


@kernel
def damped_step_into(
    bend: Array,
    lengths: Array,
    target: Array,
    damping: float,
    tip: Array,
    jacobian: Array,
    step: Array,
) -> None:
    """
    Compute one step of damped inverse kinematics (eq. 34-35) in a single kernel.

    Writes the tip (3,), the Jacobian (3, dof) and step = J^T (J J^T + damping I)^-1 (target - tip)
    (dof,) [rad]; `damping` in m^2.
    """
    tip_jacobian_into(bend, lengths, 3, tip, jacobian)
    dof = bend.shape[0]
    a00, a10, a11, a20, a21, a22 = damping, 0.0, damping, 0.0, 0.0, damping
    for j in range(dof):
        x, y, z = jacobian[0, j], jacobian[1, j], jacobian[2, j]
        a00 += x * x
        a10 += y * x
        a11 += y * y
        a20 += z * x
        a21 += z * y
        a22 += z * z
    # Cholesky factor of the 3 x 3 matrix, forward and back substitution.
    l00 = math.sqrt(a00)
    l10, l20 = a10 / l00, a20 / l00
    l11 = math.sqrt(a11 - l10 * l10)
    l21 = (a21 - l20 * l10) / l11
    l22 = math.sqrt(a22 - l20 * l20 - l21 * l21)
    x = (target[0] - tip[0]) / l00
    y = (target[1] - tip[1] - l10 * x) / l11
    z = (target[2] - tip[2] - l20 * x - l21 * y) / l22 / l22
    y = (y - l21 * z) / l11
    x = (x - l10 * y - l20 * z) / l00
    for j in range(dof):
        step[j] = jacobian[0, j] * x + jacobian[1, j] * y + jacobian[2, j] * z


@kernel
def centerline_into(bend: Array, lengths: Array, section_tips: Array, points: Array) -> None:
    """Write points (n, 3) [m] from base to tip, evenly spaced in arc length, endcaps included."""
    n = points.shape[0]
    total = 0.0
    for k in range(lengths.shape[0]):
        total += lengths[k, 0] + 2.0 * lengths[k, 1]
    k = 0
    start = 0.0
    span = lengths[0, 0] + 2.0 * lengths[0, 1]
    for i in range(n):
        s = total * i / (n - 1)
        while s > start + span and k < lengths.shape[0] - 1:
            start += span
            k += 1
            span = lengths[k, 0] + 2.0 * lengths[k, 1]
        x, y, z = _point_in_section(bend[2 * k], bend[2 * k + 1], lengths[k], s - start)
        if k == 0:
            points[i, 0], points[i, 1], points[i, 2] = x, y, z
        else:
            frame = section_tips[k - 1]
            for row in range(3):
                points[i, row] = (
                    frame[row, 0] * x + frame[row, 1] * y + frame[row, 2] * z + frame[row, 3]
                )


@kernel
def _point_in_section(bx: float, by: float, length: Array, s: float) -> tuple[float, float, float]:
    """Return the point [m] at arc length s from the section's start, in its start frame."""
    arc, endcap = length[0], length[1]
    if s <= endcap:
        return 0.0, 0.0, s
    bent = min(s - endcap, arc)
    ratio = bent / arc
    bx, by = bx * ratio, by * ratio
    c1, c2, _, _ = stumpff(bx * bx + by * by)
    beyond = max(s - endcap - arc, 0.0)
    theta_squared = bx * bx + by * by
    return (
        bent * c2 * bx + beyond * c1 * bx,
        bent * c2 * by + beyond * c1 * by,
        endcap + bent * c1 + beyond * (1.0 - c2 * theta_squared),
    )
