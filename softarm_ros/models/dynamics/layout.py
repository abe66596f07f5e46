"""
Arrays of the dynamics kernels: the arm's constants, its loads, scratch space.

Every array of a kernel is in one of these tuples, so that hot loops allocate nothing. The strains
of a segment are ordered (eps, kx, ky, kz): stretch, two curvatures, twist per rest length.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softarm_ros.geometry.arrays import Array


class Body(NamedTuple):
    """
    Constants of an arm of n segments.

    Attributes
    ----------
    length : (n,)
        Rest length [m].
    stiffness, damping : (n, 4, 4)
        Section resultants per strain [N, N m^2] and per strain rate [N s, N m^2 s].
    rest : (n, 4)
        Strains without elastic load.
    mass, weight : (n,)
        Mass of the rod piece, and the mass on which gravity acts: less displaced fluid [kg].
    rotary : (n, 3)
        Inertia of the piece about its middle frame's axes [kg m^2].
    inner : (n, 4)
        Inertia of the strain rates themselves (motion relative to the rigid piece).
    drag : (n, 2)
        Viscous force of the surroundings per velocity of the piece [N s/m] and moment per its
        rate of turning [N m s].
    tip_mass, tip_weight : (n,)
        The same two masses of the rigid body at the distal end of each segment [kg].
    tip_centre : (n, 3)
        Centre of mass of this body in the distal frame [m].
    tip_inertia : (n, 3, 3)
        Inertia of this body about its centre of mass, distal axes [kg m^2].
    tip_drag : (n, 2)
        Viscous force and moment coefficients at the distal frame [N s/m, N m s].
    has_body, has_connector : (n,)
        Whether there is a distal body or a connector; if not, the kernels skip their loops.
    connector : (n, 3)
        Offset from the distal frame to the next segment, distal axes [m].
    turn : (n, 3, 3)
        Rotation from the distal frame to the next segment.

    """

    length: Array
    stiffness: Array
    damping: Array
    rest: Array
    mass: Array
    weight: Array
    rotary: Array
    inner: Array
    drag: Array
    tip_mass: Array
    tip_weight: Array
    tip_centre: Array
    tip_inertia: Array
    tip_drag: Array
    has_body: Array
    has_connector: Array
    connector: Array
    turn: Array


class Loads(NamedTuple):
    """
    Loads on an arm of n segments, constant over a step.

    Attributes
    ----------
    gravity : (3,)
        Base frame [m/s^2].
    drive : (n, 4)
        Drive resultants of each segment: force along the tangent [N], moment in material axes
        [N m]; chambers and fixed generalised forces.
    wrench : (n, 6)
        Force [N] and moment [N m] at each node (beyond the connector), base axes.
    added_mass : (n, 6, 6) or (0, 6, 6)
        Fluid inertia at each node, linear rows first, node axes.
    node_damping : (n, 6, 6) or (0, 6, 6)
        Resisting wrench at each node per node twist, linear rows first, node axes.
    cable_offset : (n, m, 2)
        Positions of m cables in the cross-section of each segment [m].
    cable_tension : (n, m)
        Tension of each cable in each segment [N], zero in segments that it does not pass.

    """

    gravity: Array
    drive: Array
    wrench: Array
    added_mass: Array
    node_damping: Array
    cable_offset: Array
    cable_tension: Array


class Scratch(NamedTuple):
    """
    Results of the passes for each segment; local means the frame at its proximal end.

    Attributes
    ----------
    rotation, origin : (n + 1, 3, 3), (n + 1, 3)
        Poses in the base frame of each segment's proximal frame; the last is the tip.
    turned : (n, 3, 3)
        Local rotation of the distal frame.
    end, centre : (n, 3)
        Local positions of the distal frame and of the centre of mass [m].
    end_map, centre_map : (n, 3, 4)
        Derivatives of `end` and `centre` by the strains.
    end_turn, middle_turn : (n, 3, 3)
        Local angular velocity of distal and middle frame per curvature rate.
    inertia : (n, 3, 3)
        Inertia of the rod piece in local axes.
    force, moment : (n, 3)
        Force and moment that the rod piece needs at its centre of mass, local axes.
    tip_force, tip_moment : (n, 3)
        Force and moment needed at the distal frame (without the next segment), distal axes.
    gain : (n, 6, 4)
        Wrench per generalised load, F H^-1 of the articulated-body pass.
    inverse : (n, 4, 4)
        H^-1 of the articulated-body pass.
    load : (n, 4)
        Working column of the solves.

    """

    rotation: Array
    origin: Array
    turned: Array
    end: Array
    centre: Array
    end_map: Array
    centre_map: Array
    end_turn: Array
    middle_turn: Array
    inertia: Array
    force: Array
    moment: Array
    tip_force: Array
    tip_moment: Array
    gain: Array
    inverse: Array
    load: Array


def allocate_scratch(n: int, dtype: type = np.float64) -> Scratch:
    """Return scratch space for n segments; a complex dtype allows complex-step derivatives."""

    def zeros(*shape: int) -> Array:
        return np.zeros(shape, dtype)

    return Scratch(
        rotation=zeros(n + 1, 3, 3),
        origin=zeros(n + 1, 3),
        turned=zeros(n, 3, 3),
        end=zeros(n, 3),
        centre=zeros(n, 3),
        end_map=zeros(n, 3, 4),
        centre_map=zeros(n, 3, 4),
        end_turn=zeros(n, 3, 3),
        middle_turn=zeros(n, 3, 3),
        inertia=zeros(n, 3, 3),
        force=zeros(n, 3),
        moment=zeros(n, 3),
        tip_force=zeros(n, 3),
        tip_moment=zeros(n, 3),
        gain=zeros(n, 6, 4),
        inverse=zeros(n, 4, 4),
        load=zeros(n, 4),
    )
