"""Damping of the chain in time steps of second order."""

from __future__ import annotations

from softarm_ros.geometry.arrays import Array

# Of h^2 K in the matrix of a step. From 1/4 on, no stiffness makes steps unstable; more takes out
# faster what ringing the stiffest, overdamped joints would keep up.
_BETA = 0.5


def split_damping(damping_time: Array, h: float, explicit: Array, implicit: Array) -> None:
    """
    Write the damping times [s] with which the kernels' step of h [s] is of second order.

    The kernels solve (M + h (t_i + h) K) a = f - (t_e + h) K v, with t_e the times of the body
    that `load_bodies` has and t_i those that `factorise` has. The velocities v of such steps
    belong to their middles, so that with D = t K
        (M + h/2 D + beta h^2 K) a = f - D v
    has the damping force of the mean velocity over two steps (trapezoidal rule), and the motion
    of the leapfrog rule but for a term of h^2. With t_e = t_i = t it is an implicit Euler step,
    which damps on its own like a Kelvin-Voigt time of h.

    Parameters
    ----------
    damping_time
        Kelvin-Voigt times t [s], of any shape.
    h
        Length of the step [s].
    explicit, implicit
        Of the same shape, written.

    """
    explicit[:] = damping_time - h
    implicit[:] = 0.5 * damping_time + (_BETA - 1.0) * h
