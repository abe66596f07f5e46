"""Shortest duration of a change of the configuration on its way to a goal."""

from __future__ import annotations

import numpy as np

from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel, Posture

_MOTION = 0.65  # share of the reference's speed; the rest allows the Jacobian to change on the way
_ACTUATORS = 0.6  # share of the actuators' limits; feedback needs the rest
_STIFF = 0.2  # least tip motion assumed for a change by one scale, as a share of the arm's length
_GROWTH = 20.0  # factor by which a coordinate may come to move the tip more, on the way


def least_duration_s(
    way: Array,
    posture: Posture,
    model: ArmModel,
    room: ActuatorLimits,
    speed_m_s: float,
    window_s: float,
) -> float:
    """
    Return the shortest duration [s] of a change `way` of the configuration (dof,) from a posture.

    The tip keeps its speed [m/s] and every actuator its limits. `window_s` is a window of the
    smoothed motion, whose acceleration is at most twice its speed divided by the window.
    """
    tip_m_s, scale = _MOTION * speed_m_s, np.asarray(model.configuration_scale, dtype=float)
    moved = float(np.linalg.norm(posture.tip_jacobian @ way))
    # A scale that weights a coordinate, as that of an elongation of millimetres, says little about
    # the tip: its motion in this posture bounds what is assumed.
    assumed = _STIFF * model.rest_length_m * np.abs(way / scale)
    own = _GROWTH * np.linalg.norm(posture.tip_jacobian, axis=0) * np.abs(way)
    stiff = float(np.linalg.norm(np.minimum(assumed, own)))
    change = np.abs(posture.actuation_jacobian @ way)
    most = np.minimum(room.max_speed, 0.5 * window_s * room.max_acceleration)
    by_actuators = float(np.max(change / (_ACTUATORS * most)))
    return max(moved / tip_m_s, stiff / tip_m_s, by_actuators)
