"""Arrays that the kernels of the pneumatic arm work on: s sections of three chambers, m = 3 s."""

from __future__ import annotations

from typing import NamedTuple

from softarm_ros.geometry.arrays import Array, IntArray
from softarm_ros.plant.layout import ArmState, BodyParameters, Loads, Medium, Scratch
from softarm_ros.plant.point_kernels import Points
from softarm_ros.plant.water_kernels import Water


class Valves(NamedTuple):
    """
    Regulators and their state.

    Attributes
    ----------
    gain, offset : (m,)
        Of each [-, Pa].
    dead_zone, lag, fastest
        Width of the play [Pa], lag [s], largest rate [Pa/s].
    signal, seat : (m,)
        At the terminals, and what the valve holds behind its play [Pa].
    pressure, rate, measured : (m,)
        True gauge pressure [Pa] and its rate [Pa/s], what the sensor reads [Pa].

    """

    gain: Array
    offset: Array
    dead_zone: float
    lag: float
    fastest: float
    signal: Array
    seat: Array
    pressure: Array
    rate: Array
    measured: Array


class Chambers(NamedTuple):
    """
    What pressure makes of the chambers, and what they remember.

    Attributes
    ----------
    full : (s,)
        Pressure of the full extension [Pa].
    elastic, thresholds, weights : (s,), (s, k), (s, k)
        Of the hysteresis: `PrandtlIshlinskii`.
    scale : (s,)
        From what hysteresis and creep leave to the share of the full pressure.
    linear : (s,)
        Linear share of the curve.
    extension : (s, 3)
        At full pressure [m].
    bending : (s, 3, 2)
        Curvature about x and y per extension [1/m^2].
    stretching : (s,)
        Stretch per extension of one chamber [1/m].
    creep_share, creep_lag : (s, c)
        Of the elements of the creep [-, s].
    share : (s, 3)
        Extension behind the hysteresis, as a share of the full pressure.
    stops : (s, 3, k)
        Of the hysteresis.
    crept : (s, 3, c)
        Elements of the creep.
    output : (s, 3)
        Share of the full pressure that the curve sees.

    """

    full: Array
    elastic: Array
    thresholds: Array
    weights: Array
    scale: Array
    linear: Array
    extension: Array
    bending: Array
    stretching: Array
    creep_share: Array
    creep_lag: Array
    share: Array
    stops: Array
    crept: Array
    output: Array


class Arm(NamedTuple):
    """
    The body of n joints.

    Attributes
    ----------
    body, state, loads, scratch
        The chain of elastic joints; `damping_time` as `step_damping` has it.
    solver
        The same with the damping of the implicit part of a step.
    points
        What it displaces, and what the gripper holds.
    still, medium, water
        The water around it: added mass, working memory, drag; empty in air.
    drive : (n, 4)
        Moments on the rotation vectors [N m] and forces along the joints [N].
    lost : (n,)
        Share of the stiffness at rest that elongation has taken away.
    stiffness : (s, 4)
        Of the parts with chambers: bending about x and y, torsion [N m^2], extension [N].
    chambered : (s, 2)
        Their first joint, and the one after their last.
    c20_share : (s,)
        C20 / C10 of their silicone.

    """

    body: BodyParameters
    solver: BodyParameters
    state: ArmState
    loads: Loads
    scratch: Scratch
    points: Points
    still: Medium
    medium: Medium
    water: Water
    drive: Array
    lost: Array
    stiffness: Array
    chambered: IntArray
    c20_share: Array
