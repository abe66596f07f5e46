"""Compiled point masses with buoyancy, fixed to bodies of the chain, also off their axes."""

from __future__ import annotations

from typing import NamedTuple

from softarm_ros.geometry.arrays import Array, IntArray
from softarm_ros.geometry.kernels import kernel
from softarm_ros.plant.layout import BodyParameters, Scratch


class Points(NamedTuple):
    """
    Points that move with bodies.

    Attributes
    ----------
    joint : (p,)
        Joint whose child body carries the point.
    place : (p, 3)
        Position in that body's frame [m].
    mass, displaced : (p,)
        Mass, and that of the fluid displaced [kg].

    """

    joint: IntArray
    place: Array
    mass: Array
    displaced: Array


@kernel(allocates=False)
def carry_points(body: BodyParameters, points: Points, scratch: Scratch) -> None:
    """
    Add inertia, weight and buoyancy of the points to `inertia` and `bias`.

    Call after `load_bodies` and before `factorise`.
    """
    for i in range(points.joint.shape[0]):
        g = points.joint[i]
        R, r, V, a = (
            scratch.rotation[g + 1], scratch.origin[g + 1], scratch.twist[g], scratch.drift[g]
        )  # fmt: skip
        p, m = points.place[i], points.mass[i]
        x = r[0] + R[0, 0] * p[0] + R[0, 1] * p[1] + R[0, 2] * p[2]
        y = r[1] + R[1, 0] * p[0] + R[1, 1] * p[1] + R[1, 2] * p[2]
        z = r[2] + R[2, 0] * p[0] + R[2, 1] * p[1] + R[2, 2] * p[2]
        J = scratch.inertia[g]
        J[0] += m * (y * y + z * z)
        J[1] += m * (x * x + z * z)
        J[2] += m * (x * x + y * y)
        J[3] -= m * x * y
        J[4] -= m * x * z
        J[5] -= m * y * z
        J[6] += m * x
        J[7] += m * y
        J[8] += m * z
        J[9] += m
        # Velocity and acceleration of the point; `drift` includes gravity as upward acceleration.
        u = V[3] + V[1] * z - V[2] * y
        v = V[4] + V[2] * x - V[0] * z
        w = V[5] + V[0] * y - V[1] * x
        f0 = m * (a[3] + a[1] * z - a[2] * y + V[1] * w - V[2] * v)
        f1 = m * (a[4] + a[2] * x - a[0] * z + V[2] * u - V[0] * w)
        f2 = m * (a[5] + a[0] * y - a[1] * x + V[0] * v - V[1] * u)
        f0 += points.displaced[i] * body.gravity[0]
        f1 += points.displaced[i] * body.gravity[1]
        f2 += points.displaced[i] * body.gravity[2]
        bias = scratch.bias[g]
        bias[0] += y * f2 - z * f1
        bias[1] += z * f0 - x * f2
        bias[2] += x * f1 - y * f0
        bias[3] += f0
        bias[4] += f1
        bias[5] += f2
