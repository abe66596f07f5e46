"""Damping of the chain for time steps of second order."""

from __future__ import annotations

from softarm_ros.geometry.arrays import Array

# Factor on h^2 K in the matrix of a step. From 1/4 on, steps are stable for any stiffness; larger
# factors damp the ringing of the stiffest, overdamped joints faster.
_BETA = 0.5


def split_damping(damping_time: Array, h: float, explicit: Array, implicit: Array) -> None:
    """
    Write the damping times [s] with which the kernels' step of h [s] is of second order.

    The kernels solve (M + h (t_i + h) K) a = f - (t_e + h) K v, where `load_bodies` uses the times
    t_e of the body and `factorise` the times t_i. The velocities v of such steps belong to the
    middles of the steps, so with D = t K
        (M + h/2 D + beta h^2 K) a = f - D v
    has the damping force of the mean velocity over two steps (trapezoidal rule), and the motion
    of the leapfrog rule up to a term of h^2. With t_e = t_i = t it is an implicit Euler step,
    whose numerical damping equals a Kelvin-Voigt time of h.

    Parameters
    ----------
    damping_time
        Kelvin-Voigt times t [s], of any shape.
    h
        Length of the step [s].
    explicit, implicit
        Written; same shape.

    """
    explicit[:] = damping_time - h
    implicit[:] = 0.5 * damping_time + (_BETA - 1.0) * h
