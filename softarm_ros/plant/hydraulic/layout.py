"""Arrays that the kernels of the water-hydraulic arm work on: m axes, one for each chamber."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array, IntArray


class Chambers(NamedTuple):
    """
    The chambers and the fabric around them.

    Attributes
    ----------
    section : (m,)
        Of each chamber.
    area : (m,)
        Bore [m^2].
    place : (m, 2)
        In the cross-section [m].
    reach : (m,)
        How many joints, from the base, its pressure can load.
    moment : (sections, 3)
        Of the fabric on the rotation vectors of a section's joints [N m], held over a step.

    """

    section: IntArray
    area: Array
    place: Array
    reach: IntArray
    moment: Array


class Stops(NamedTuple):
    """
    Stops of the fabric, k for each direction of bending of a section; empty without any.

    Attributes
    ----------
    threshold : (k,)
        Bend at which a stop yields [rad].
    weight : (sections, k)
        Its stiffness [N m/rad].
    bend : (sections, 2)
        Rotation vectors of the sections they have followed so far [rad].
    held : (sections, 2, k)
        Bend of each stop since it yielded last [rad].

    """

    threshold: Array
    weight: Array
    bend: Array
    held: Array


class Axes(NamedTuple):
    """
    The axes and the working memory of their common step with the arm.

    Attributes
    ----------
    parameters : (m, columns)
        See `axes_kernels`.
    state, moved : (m, width)
        Of the axes, now and at the end of the step being solved.
    force : (m,)
        At the pistons [N], held over a step.
    boiling : (m,)
        Which axes were below the vapour pressure at the end of the last step.
    boiled_s : (m,)
        For how long each has been, if that is to be noted.
    flow, slope, miss, pressure : (m,)
        Of the chambers: flow in [m^3/s], pressure by it, volume missed [m^3], pressure [Pa].
    matrix : (m, m)
        Of Newton's method.
    chain : (width, 6)
        See `axes_kernels.stage_into`.

    """

    parameters: Array
    state: Array
    moved: Array
    force: Array
    boiling: NDArray[np.bool_]
    boiled_s: Array
    flow: Array
    slope: Array
    miss: Array
    pressure: Array
    matrix: Array
    chain: Array


class Motors(NamedTuple):
    """
    Servo motors with the loop around their pressures.

    Attributes
    ----------
    torque_per_pressure : (m,)
        [N m/Pa].
    wanted, error : (m,)
        Of the pressure loop [Pa].
    target, torque, mean, rate : (m,)
        Torque headed for, of now, mean over the last step [N m], and its rate over it [N m/s].
    force_per_torque : (m,)
        At the pistons [1/m].
    gain, filter_s
        Of the pressure loop.
    torque_step, max_torque
        Resolution and limit of a drive [N m].
    lag_s
        Time constant of the torque.

    """

    torque_per_pressure: Array
    wanted: Array
    error: Array
    target: Array
    torque: Array
    mean: Array
    rate: Array
    force_per_torque: Array
    gain: float
    filter_s: float
    torque_step: float
    max_torque: float
    lag_s: float


class Gauges(NamedTuple):
    """
    Pressure sensors.

    Attributes
    ----------
    offset, signal, reading : (m,)
        Error of each, what it gives, and that as its converter has it [Pa].
    noise, step
        Standard deviation of a reading, resolution of the converter [Pa].

    """

    offset: Array
    signal: Array
    reading: Array
    noise: float
    step: float


def new_axes(parameters: Array, width: int) -> Axes:
    """Return axes at rest without pressure, pistons at zero."""
    m = len(parameters)
    return Axes(
        parameters=parameters,
        state=np.zeros((m, width)),
        moved=np.zeros((m, width)),
        force=np.zeros(m),
        boiling=np.zeros(m, dtype=np.bool_),
        boiled_s=np.zeros(m),
        flow=np.zeros(m),
        slope=np.zeros(m),
        miss=np.zeros(m),
        pressure=np.zeros(m),
        matrix=np.zeros((m, m)),
        chain=np.zeros((width, 6)),
    )
