"""Tables, loads and work space of the Cosserat rod kernels, and their integration scheme."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softarm_ros.geometry.arrays import Array, IntArray

STAGES = 7
# Butcher (1964), method of order 6; nodes 0, 1/3, 2/3, 1/3, 1/2, 1/2, 1.
NODES = (0.0, 1.0 / 3.0, 0.5, 2.0 / 3.0, 1.0)
_NODE_OF_STAGE = (0, 1, 3, 1, 2, 2, 4)
_A = (
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (1.0 / 3.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (0.0, 2.0 / 3.0, 0.0, 0.0, 0.0, 0.0),
    (1.0 / 12.0, 1.0 / 3.0, -1.0 / 12.0, 0.0, 0.0, 0.0),
    (-1.0 / 16.0, 9.0 / 8.0, -3.0 / 16.0, -3.0 / 8.0, 0.0, 0.0),
    (0.0, 9.0 / 8.0, -3.0 / 8.0, -3.0 / 4.0, 0.5, 0.0),
    (9.0 / 44.0, -9.0 / 11.0, 63.0 / 44.0, 18.0 / 11.0, 0.0, -16.0 / 11.0),
)
A = np.array(_A)
B = np.array([11.0 / 120.0, 0.0, 27.0 / 40.0, 27.0 / 40.0, -4.0 / 15.0, -4.0 / 15.0, 11.0 / 120.0])
NODE_OF_STAGE = np.array(_NODE_OF_STAGE)


class Grid(NamedTuple):
    """Tables of the arm at the nodes of the scheme, steps counted from the tip."""

    segment_of_step: IntArray  # (steps,)
    step_length: Array  # (steps,) [m]
    table: Array  # (steps, 5, 42 + 6 cables): rows of `local_strain`
    mass_beyond: Array  # (steps, 5) [kg], from the node to the distal end of the segment
    active: IntArray  # (segments, cables), indices of the cables present
    n_active: IntArray  # (segments,), number of cables present
    segment_mass: Array  # (segments,) [kg]
    connectors: Array  # (segments, 16): mass, length, rotation (9), inverse quaternion, centre
    n_strains: int
    curvature_scale: float


class Loads(NamedTuple):
    """Loads on the arm; forces and moments are in the base frame."""

    tensions: Array  # (cables,) [N]
    tip: Array  # (6,) force [N], moment [N m]
    gravity: Array  # (3,) [m/s^2]
    connectors: Array  # (segments, 6) force, moment at the distal face of each connector


class Trace(NamedTuple):
    """Results of a shot; poses are relative to the tip."""

    strains: Array  # (steps, 7, 6): start of the local law on entry, result on exit
    points: Array  # (steps + segments, 3), at both ends of every step, from tip to base
    quaternions: Array  # (steps + segments, 4)
    end_strains: Array  # (steps + segments, 6)
    moments: Array  # (steps + segments, 3), base frame
    forces: Array  # (steps + segments, 3), base frame
    cable_lengths: Array  # (cables,)
    base_rotation: Array  # (4,)
    base_point: Array  # (3,)
    variation: Array  # (9 + cables, columns): dtheta, dM, dp, dlength at the base
    turn_variation: Array  # (segments, 3, columns): dtheta at the distal face of each connector
    crossings: IntArray  # (1,) number of times Y became singular on the way


def new_trace(steps: int, segments: int, cables: int) -> Trace:
    """Return an empty trace with room for all columns: tip rotation, tip wrench, tensions."""
    ends = steps + segments
    return Trace(
        np.zeros((steps, STAGES, 6)),
        np.zeros((ends, 3)),
        np.zeros((ends, 4)),
        np.zeros((ends, 6)),
        np.zeros((ends, 3)),
        np.zeros((ends, 3)),
        np.zeros(cables),
        np.zeros(4),
        np.zeros(3),
        np.zeros((9 + cables, 9 + cables)),
        np.zeros((segments, 3, 9 + cables)),
        np.zeros(1, dtype=np.int64),
    )
