"""Arrays for the kernels of the pneumatic arm: s sections of three chambers, m = 3 s."""

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
        Of each regulator [-, Pa].
    dead_zone, lag, fastest
        Width of the play [Pa], lag [s], largest rate [Pa/s].
    signal, seat : (m,)
        Signal at the terminals, and set pressure of the valve after its play [Pa].
    pressure, rate, measured : (m,)
        True gauge pressure [Pa] and its rate [Pa/s], and reading of the sensor [Pa].

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
    Response of the chambers to pressure, and its state.

    Attributes
    ----------
    full : (s,)
        Pressure of the full extension [Pa].
    elastic, thresholds, weights : (s,), (s, k), (s, k)
        Of the hysteresis: `PrandtlIshlinskii`.
    scale : (s,)
        Factor from the output of hysteresis and creep to the share of the full pressure.
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
        Extension after the hysteresis, as a share of the full pressure.
    stops : (s, 3, k)
        Deflections of the stops of the hysteresis.
    crept : (s, 3, c)
        State of the elements of the creep.
    output : (s, 3)
        Share of the full pressure that enters the curve.

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
        The chain of elastic joints; `damping_time` as in `step_damping`.
    solver
        The same with the damping of the implicit part of a step.
    points
        Displaced fluid, and the object in the gripper.
    still, medium, water
        The water around it: added mass, working memory, drag; empty in air.
    drive : (n, 4)
        Moments on the rotation vectors [N m] and forces along the joints [N].
    lost : (n,)
        Share of the stiffness at rest lost by elongation.
    stiffness : (s, 4)
        Of the parts with chambers: bending about x and y, torsion [N m^2], extension [N].
    chambered : (s, 2)
        First joint of each such part, and the joint after its last.
    c20_share : (s,)
        C20 / C10 of its silicone.

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
