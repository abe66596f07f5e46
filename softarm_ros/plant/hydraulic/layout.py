"""Arrays for the kernels of the water-hydraulic arm: m axes, one for each chamber."""

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
        Section of each chamber.
    area : (m,)
        Bore [m^2].
    place : (m, 2)
        Position in the cross-section [m].
    reach : (m,)
        Number of joints, from the base, that its pressure can load.
    moment : (sections, 3)
        Of the fabric on the rotation vectors of a section's joints [N m], constant in a step.

    """

    section: IntArray
    area: Array
    place: Array
    reach: IntArray
    moment: Array


class Stops(NamedTuple):
    """
    Stops of the fabric, k for each direction of bending of a section; empty without fabric.

    Attributes
    ----------
    threshold : (k,)
        Bend at which a stop yields [rad].
    weight : (sections, k)
        Its stiffness [N m/rad].
    bend : (sections, 2)
        Rotation vectors of the sections at the last update [rad].
    held : (sections, 2, k)
        Deflection of each stop [rad], at most its threshold.

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
        States of the axes, now and at the end of the step being solved.
    force : (m,)
        At the pistons [N], constant in a step.
    boiling : (m,)
        Whether an axis was below the vapour pressure at the end of the last step.
    boiled_s : (m,)
        Total time for which each was below it, if boiling is allowed.
    flow, slope, miss, pressure : (m,)
        Of the chambers: flow in [m^3/s], derivative of the pressure by it, residual volume [m^3],
        pressure [Pa].
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
    Servo motors with their pressure loop.

    Attributes
    ----------
    torque_per_pressure : (m,)
        [N m/Pa].
    wanted, error : (m,)
        Target pressure and filtered error of the pressure loop [Pa].
    target, torque, mean, rate : (m,)
        Target torque, present torque, mean over the last step [N m], and rate in it [N m/s].
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
        Offset of each sensor, its signal, and the reading after its converter [Pa].
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
