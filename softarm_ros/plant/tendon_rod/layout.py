"""Arrays that the kernels of the tendon-driven rod work on: n joints, m cables."""

from __future__ import annotations

from typing import NamedTuple

from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.layout import ArmState, BodyParameters, Loads, Scratch


class Rod(NamedTuple):
    """
    The rod with its cables.

    Attributes
    ----------
    body, state, loads, scratch
        The chain of elastic joints; the bending and torsion of `body` are zero, `law` has them.
        `damping_time` as `step_damping` has it.
    solver
        The same with the damping of the implicit part of a step.
    law : (n, 3, 3)
        Stiffness of the joints' rotation vectors [N m/rad], symmetric.
    rest : (n, 3)
        Rotation vectors without load [rad].
    place : (n, m, 2)
        Where cables cross the joints' cross-sections [m].
    runs : (n, m)
        1 where a cable runs.
    tension : (n, m)
        Of each cable at each joint [N], written by every step.

    """

    body: BodyParameters
    solver: BodyParameters
    state: ArmState
    loads: Loads
    scratch: Scratch
    law: Array
    rest: Array
    place: Array
    runs: Array
    tension: Array


class WinchParameters(NamedTuple):
    """
    Winches and cables.

    Attributes
    ----------
    gain, zero : (m,)
        Error of the load cells [-, N].
    numbers : (7,)
        time constant [s], tension rate [N/s], cable stiffness [N/m], resolution [N], loss in the
        guide, mu, presliding [m].

    """

    gain: Array
    zero: Array
    numbers: Array


class WinchState(NamedTuple):
    """
    State of the winches.

    Attributes
    ----------
    tension : (m,)
        At the winch [N].
    rate : (m,)
        Its rate of change [N/s].
    target : (m,)
        [N].
    sliding : (m,)
        Which way friction acts, -1..1; 1 when the cable is pulled in.

    """

    tension: Array
    rate: Array
    target: Array
    sliding: Array
