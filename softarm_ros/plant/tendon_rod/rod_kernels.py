"""Compiled joints with any bending stiffness matrix, and cables that pull on them."""

from __future__ import annotations

import math

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.plant.joint_kernels import conjugate_moment
from softarm_ros.plant.tendon_rod.layout import Rod


@kernel(allocates=False)
def _moments(K: Array, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return K times a vector."""
    return (
        K[0, 0] * x + K[0, 1] * y + K[0, 2] * z,
        K[1, 0] * x + K[1, 1] * y + K[1, 2] * z,
        K[2, 0] * x + K[2, 1] * y + K[2, 2] * z,
    )


@kernel(allocates=False)
def rate_of_logarithm(
    logarithm: Array, wx: float, wy: float, wz: float
) -> tuple[float, float, float]:
    """Return phi' = J^-1 w of a joint with angular velocity w [rad/s]: `log_of_quaternion`."""
    x, y, z, c = logarithm[0], logarithm[1], logarithm[2], logarithm[3]
    dot = c * (x * wx + y * wy + z * wz)
    less = 1.0 - c * (x * x + y * y + z * z)
    # J^-1 = 1 + hat/2 + c hat^2, and hat^2 = phi phi' - |phi|^2
    return (
        less * wx + dot * x + 0.5 * (y * wz - z * wy),
        less * wy + dot * y + 0.5 * (z * wx - x * wz),
        less * wz + dot * z + 0.5 * (x * wy - y * wx),
    )


@kernel(allocates=False)
def bend_joints(rod: Rod, h: float) -> None:
    """
    Write the joints' moments and tangents from `law` into `scratch`.

    As in `elastic_load` for round joints: -J^-T K (phi - rest + lead phi'), J^-T K J^-1. Call it
    after `load_bodies`, with the same h [s].
    """
    scratch = rod.scratch
    for g in range(rod.law.shape[0]):
        phi, K, rest = scratch.logarithm[g], rod.law[g], rod.rest[g]
        w, lead = rod.state.velocity[g], rod.body.damping_time[g, 0] + h
        x, y, z = rate_of_logarithm(phi, w[0], w[1], w[2])
        mx, my, mz = _moments(
            K,
            phi[0] - rest[0] + lead * x,
            phi[1] - rest[1] + lead * y,
            phi[2] - rest[2] + lead * z,
        )
        mx, my, mz = conjugate_moment(phi, mx, my, mz)
        scratch.load[g, 0], scratch.load[g, 1], scratch.load[g, 2] = -mx, -my, -mz
        tangent = scratch.tangent[g]
        for j in range(3):
            x, y, z = rate_of_logarithm(
                phi, 1.0 if j == 0 else 0.0, 1.0 if j == 1 else 0.0, 1.0 if j == 2 else 0.0
            )
            mx, my, mz = _moments(K, x, y, z)
            tangent[0, j], tangent[1, j], tangent[2, j] = conjugate_moment(phi, mx, my, mz)


@kernel(allocates=False)
def _along(rod: Rod, g: int, i: int) -> float:
    """Return the length of cable i along the axis of joint g [m]; see `length_of`."""
    phi = rod.scratch.logarithm[g]
    length = rod.body.segment_length[g] + rod.state.extension[g]
    return length + phi[0] * rod.place[g, i, 1] - phi[1] * rod.place[g, i, 0]


@kernel(allocates=False)
def length_of(rod: Rod, g: int, i: int) -> float:
    """Return |(l + e) z + phi x place| [m] of cable i along joint g, l + e being its length."""
    along, twist = _along(rod, g, i), rod.scratch.logarithm[g, 2]
    x, y = rod.place[g, i, 0], rod.place[g, i, 1]
    return math.sqrt(along * along + twist * twist * (x * x + y * y))


@kernel(allocates=False)
def pull_cables(rod: Rod) -> None:
    """Add the pull of the cables, `tension` along `length_of`, to the joints' loads."""
    scratch = rod.scratch
    n, m = rod.runs.shape
    for g in range(n):
        phi = scratch.logarithm[g]
        mx, my, mz, axial = 0.0, 0.0, 0.0, 0.0
        for i in range(m):
            if rod.tension[g, i] == 0.0:
                continue
            x, y = rod.place[g, i, 0], rod.place[g, i, 1]
            along = _along(rod, g, i)
            pull = rod.tension[g, i] / length_of(rod, g, i)
            mx -= pull * along * y
            my += pull * along * x
            mz -= pull * phi[2] * (x * x + y * y)
            axial -= pull * along
        x, y, z = conjugate_moment(phi, mx, my, mz)
        scratch.load[g, 0] += x
        scratch.load[g, 1] += y
        scratch.load[g, 2] += z
        scratch.load[g, 3] += axial
