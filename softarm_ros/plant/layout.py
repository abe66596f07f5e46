"""
Arrays that the compiled kernels of the plant work on.

n joints (one elastic joint per segment, all sections in a row), m cables, N segments per section.
Joint g leads from body g to body g + 1; body 0 is the mount. Everything is in the base frame
unless it says 'local', which is the frame of the joint's child body.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array, IntArray


class BodyParameters(NamedTuple):
    """
    The chain of elastic joints and rigid bodies.

    Attributes
    ----------
    segment_length : (n,)
        Unstretched length ds that the joint spans [m].
    offset : (n,)
        Rigid length from the parent body's origin to the start of the segment [m].
    stiffness : (n, 3)
        Bending EI/ds [N m/rad], torsion GJ/ds [N m/rad], extension EA/ds [N/m].
    damping_time : (n, 2)
        Kelvin-Voigt times of rotation and of extension [s]: damping = damping_time * stiffness.
    mass, centre : (n,)
        Of body g + 1 [kg], and the height of its centre of mass above its origin [m].
    inertia : (n, 2)
        Of body g + 1 about its centre of mass, across and along its axis [kg m^2].
    base_rotation : (3, 3)
        Rotation of the mount.
    gravity : (3,)
        [m/s^2].
    tip_offset : (1,)
        From the last body's origin to the tip [m].

    """

    segment_length: Array
    offset: Array
    stiffness: Array
    damping_time: Array
    mass: Array
    centre: Array
    inertia: Array
    base_rotation: Array
    gravity: Array
    tip_offset: Array


class CableParameters(NamedTuple):
    """
    Cables, their foundation, and their threads to the pulleys.

    Attributes
    ----------
    first : (m,)
        First joint of the section that the cable bends.
    anchor : (m, 2)
        Position of the cable's holes in the cross-section [m].
    foundation : (m,)
        Stiffness of the foundation at one path point, K_t ds [N/m].
    relaxation : (m,)
        Viscous time of the foundation [s].
    stiffness : (m,)
        Of the whole thread, EA / length [N/m].
    damping_time : (m,)
        Of the thread [s].
    passing : (m, n)
        Where the cable passes the joints before its section, as a share of `anchor`; 0: centre.
    reach : (m,)
        Number of joints, from the base, that it loads.

    """

    first: IntArray
    anchor: Array
    foundation: Array
    relaxation: Array
    stiffness: Array
    damping_time: Array
    passing: Array
    reach: IntArray


class Wiring(NamedTuple):
    """
    Assignment of cables to motors.

    Attributes
    ----------
    motor : (m,)
        Index of the motor.
    sign : (m,)
        1 if the motor winds the cable in, -1 if it pays it out.
    offset : (m,)
        Contraction of the cable when its motor is at zero [m].

    """

    motor: IntArray
    sign: Array
    offset: Array


class ArmState(NamedTuple):
    """
    State of the simulated body.

    Attributes
    ----------
    quaternion : (n, 4)
        Rotation of each joint, x, y, z, w with w >= 0.
    extension : (n,)
        Of each segment [m].
    velocity : (n, 4)
        Local angular velocity of each joint [rad/s], rate of extension [m/s].
    cut_in : (m, N + 1, 2)
        Displacement of each path point from its place in the body [m]; zero at both ends.
    contraction : (m,)
        Length wound in at the pulley [m].
    tension : (m,)
        [N].

    """

    quaternion: Array
    extension: Array
    velocity: Array
    cut_in: Array
    contraction: Array
    tension: Array

    def copy(self) -> ArmState:
        """Return an independent copy."""
        return ArmState(*(array.copy() for array in self))


class Loads(NamedTuple):
    """Dead loads on the tip, base frame: force (3,) [N] and moment (3,) [N m]."""

    tip_force: Array
    tip_moment: Array


class Medium(NamedTuple):
    """
    Loads and added masses of a medium on each body, at its origin, base frame; constant in a step.

    Attributes
    ----------
    force : (n, 3)
        Buoyancy, and the constant part of a linearised drag [N].
    drag : (n, 3, 3)
        Force opposing the velocity, per velocity [N s/m], symmetric.
    turning : (n,)
        Moment opposing the angular velocity, per angular velocity [N m s].
    added : (n, 3)
        Added mass across and along the axis [kg], added inertia about the cross-axes [kg m^2].
    current : (3,)
        Velocity of the medium far from the arm [m/s], steady. The momentum of the added mass uses
        the velocity relative to it; `drag` uses the absolute velocity.

    """

    force: Array
    drag: Array
    turning: Array
    added: Array
    current: Array


class Links(NamedTuple):
    """
    Straight springs between two bodies of the chain.

    Attributes
    ----------
    first, last : (m,)
        Indices of the two bodies, 0 is the mount; first < last.
    anchor : (m, 2)
        Position of both ends in the cross-sections [m].

    """

    first: IntArray
    last: IntArray
    anchor: Array


class Scratch(NamedTuple):
    """
    Working memory of one step, overwritten by each.

    Attributes
    ----------
    rotation, origin : (n + 1, 3, 3), (n + 1, 3)
        Orientations and origins of the bodies [-, m].
    joint_rotation : (n, 3, 3)
        From parent to child.
    sliding : (n, 3, 4)
        Local velocity of the child's origin per joint velocity [m, -].
    arc : (n, 6)
        Shape factors of the bent segment (`joint_kernels.arc_shape`) and lambda/2 [m].
    motion : (n, 6, 4)
        Spatial motion subspace (angular first, at the base origin).
    tangent : (n, 3, 3)
        Stiffness J^-T K J^-1 of the joint rotation [N m/rad].
    logarithm : (n, 4)
        Of the joint rotation, and its factor c (`joint_kernels.log_of_quaternion`).
    load : (n, 4)
        Generalised force of the joint without cables [N m, N].
    inertia : (n, 10)
        Spatial inertia of the bodies at the base origin: xx yy zz xy xz yz, m c (3), m.
    twist, drift : (n, 6)
        Spatial velocity of the bodies, and their acceleration for zero joint acceleration; drift
        includes gravity as an upward acceleration.
    bias : (n, 6)
        Wrench required by the bodies for zero joint acceleration.
    medium : (n, 6, 6) or (0, 6, 6)
        Inertia that the medium adds to the bodies for one step; empty without a medium.
    articulated : (6, 6)
        Articulated inertia of the current body, upper triangle.
    gain, inverse : (n, 6, 4), (n, 4, 4)
        U D^-1 and D^-1 of the articulated-body factorisation.
    carried : (m + 1, 6)
        Wrench passed down the chain, one row per right-hand side; the last is the free motion.
    response : (n, m + 1, 4)
        Reduced joint forces for unit tensions, and for the free motion in the last row.
    gradient : (m, n, 4)
        Derivative of the cable length by the joint coordinates [m/rad, -].
    length : (m,)
        Of the cable along the bending parts [m].
    slope : (m, N + 1, 2)
        Derivative of the cable length by cut_in.
    edge : (m, N)
        Second derivative of the arc between two path points by their distance across it [1/m].
    relaxed, unit : (m, N + 1, 2)
        Change of cut_in within the step without tension, and per newton of it.
    inverse_pivots : (N + 1,)
        Of the foundation's equations.
    compliance : (m, m)
        Shortening of cable i per newton in cable j within one step [m/N].
    gap : (m,)
        Stretch of the threads that the tensions must balance [m].
    taut : (m,)
        Whether a cable is in the active set.
    factor, solution : (m, m), (m,)
        Of the active set's equations.

    """

    rotation: Array
    origin: Array
    joint_rotation: Array
    sliding: Array
    arc: Array
    motion: Array
    tangent: Array
    logarithm: Array
    load: Array
    inertia: Array
    twist: Array
    drift: Array
    bias: Array
    medium: Array
    articulated: Array
    gain: Array
    inverse: Array
    carried: Array
    response: Array
    gradient: Array
    length: Array
    slope: Array
    edge: Array
    relaxed: Array
    unit: Array
    inverse_pivots: Array
    compliance: Array
    gap: Array
    taut: NDArray[np.bool_]
    factor: Array
    solution: Array


def rest_state(joints: int, cables: int, segments: int) -> ArmState:
    """Return the straight, unstressed arm with all contractions zero."""
    quaternion = np.zeros((joints, 4))
    quaternion[:, 3] = 1.0
    return ArmState(
        quaternion,
        np.zeros(joints),
        np.zeros((joints, 4)),
        np.zeros((cables, segments + 1, 2)),
        np.zeros(cables),
        np.zeros(cables),
    )


def new_scratch(joints: int, cables: int, segments: int, immersed: bool = False) -> Scratch:
    """Return working memory for an arm of this size, immersed in a medium or not."""
    n, m, points = joints, cables, segments + 1
    return Scratch(
        rotation=np.zeros((n + 1, 3, 3)),
        origin=np.zeros((n + 1, 3)),
        joint_rotation=np.zeros((n, 3, 3)),
        sliding=np.zeros((n, 3, 4)),
        arc=np.zeros((n, 6)),
        motion=np.zeros((n, 6, 4)),
        tangent=np.zeros((n, 3, 3)),
        logarithm=np.zeros((n, 4)),
        load=np.zeros((n, 4)),
        inertia=np.zeros((n, 10)),
        twist=np.zeros((n, 6)),
        drift=np.zeros((n, 6)),
        bias=np.zeros((n, 6)),
        medium=np.zeros((n if immersed else 0, 6, 6)),
        articulated=np.zeros((6, 6)),
        gain=np.zeros((n, 6, 4)),
        inverse=np.zeros((n, 4, 4)),
        carried=np.zeros((m + 1, 6)),
        response=np.zeros((n, m + 1, 4)),
        gradient=np.zeros((m, n, 4)),
        length=np.zeros(m),
        slope=np.zeros((m, points, 2)),
        edge=np.zeros((m, segments)),
        relaxed=np.zeros((m, points, 2)),
        unit=np.zeros((m, points, 2)),
        inverse_pivots=np.zeros(points),
        compliance=np.zeros((m, m)),
        gap=np.zeros(m),
        taut=np.zeros(m, dtype=np.bool_),
        factor=np.zeros((m, m)),
        solution=np.zeros(m),
    )
