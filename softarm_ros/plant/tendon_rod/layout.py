"""Arrays for the kernels of the tendon-driven rod: n joints, m cables."""

from __future__ import annotations

from typing import NamedTuple

from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.cable_friction import CableFriction
from softarm_ros.plant.layout import ArmState, BodyParameters, Loads, Scratch


class Rod(NamedTuple):
    """
    The rod with its cables.

    Attributes
    ----------
    body, state, loads, scratch
        The chain of elastic joints; bending and torsion stiffness of `body` are zero, as they are
        in `law`. `damping_time` as in `step_damping`.
    solver
        The same with the damping of the implicit part of a step.
    law : (n, 3, 3)
        Stiffness of the joints' rotation vectors [N m/rad], symmetric.
    rest : (n, 3)
        Rotation vectors without load [rad].
    place : (n, m, 2)
        Position of the cables in the joints' cross-sections [m].
    runs : (n, m)
        1 if the cable runs through the joint, else 0.
    tension : (n, m)
        Of each cable at each joint [N], overwritten in every step.
    nodes
        Friction of the cables at n + 1 nodes: in the guide before the arm, and where a cable
        enters each joint.

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
    nodes: CableFriction


class WinchParameters(NamedTuple):
    """
    Winches and cables.

    Attributes
    ----------
    gain, zero : (m,)
        Error of the load cells [-, N].
    numbers : (6,)
        time constant [s], tension rate [N/s], cable stiffness [N/m], resolution [N], loss in the
        guide, mu.

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

    """

    tension: Array
    rate: Array
    target: Array
