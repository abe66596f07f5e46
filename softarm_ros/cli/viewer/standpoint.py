"""Camera and floor for an arm that stands, hangs or lies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import quaternion_from_matrix

# Eye of the camera and the point it looks at, in lengths of the arm: along the axes of the base
# frame if the arm stands or hangs; across, along and above the arm if it lies.
UPRIGHT_EYE, UPRIGHT_SIGHT = (1.4, -1.0, 0.2), (0.0, 0.0, 0.45)
LYING_EYE, LYING_SIGHT = (1.3, 0.3, 0.7), (0.0, 0.45, 0.0)
_UPRIGHT = 0.7  # vertical part of the arm's axis; with less, the arm lies
_FLOOR = 0.15  # lengths below an arm that lies


@dataclass(frozen=True)
class Standpoint:
    """
    The vertical, the eye and the floor, in the base frame.

    Attributes
    ----------
    up, eye, looks_at : (3,)
        A unit vector, and two points [m].
    floor : (3,)
        Middle of the grid [m].
    floor_wxyz : (4,)
        Attitude of the grid, whose normal is up or down.

    """

    up: Array
    eye: Array
    looks_at: Array
    floor: Array
    floor_wxyz: Array


def standpoint(gravity_m_s2: ArrayLike, length_m: float, nearness: float = 1.0) -> Standpoint:
    """
    Return the standpoint to look at an arm from.

    Parameters
    ----------
    gravity_m_s2 : (3,)
        Gravity in the base frame; if it is zero, the arm stands.
    length_m : float
        Length of the arm [m].
    nearness : float
        Factor by which the distance of the eye is divided.

    """
    gravity = np.asarray(gravity_m_s2, dtype=np.float64)
    strength = float(np.linalg.norm(gravity))
    axis = np.array([0.0, 0.0, 1.0])
    up = -gravity / strength if strength > 0.0 else axis
    if abs(up @ axis) >= _UPRIGHT:
        axes, eye, sight, floor = np.eye(3), UPRIGHT_EYE, UPRIGHT_SIGHT, 0.0
        attitude = np.eye(3)
    else:
        across = np.cross(axis, up)
        across /= np.linalg.norm(across)
        axes, eye, sight, floor = (
            np.stack([across, axis, up], axis=1),
            LYING_EYE,
            LYING_SIGHT,
            _FLOOR,
        )
        attitude = np.stack([across, np.cross(up, across), up], axis=1)
    x, y, z, w = quaternion_from_matrix(attitude)
    looks_at = length_m * axes @ np.array(sight)
    return Standpoint(
        up,
        looks_at + (length_m * axes @ np.array(eye) - looks_at) / nearness,
        looks_at,
        -floor * length_m * up,
        np.array([w, x, y, z]),
    )
