"""Load of a moving arm on its base, from the equations of motion of all its parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.layout import Loads
from softarm_ros.models.dynamics.recursion_kernels import place_arm, residual
from softarm_ros.models.dynamics.simulation import DynamicState

Array = NDArray[np.float64]


def load_on_base(
    arm: ArmDynamics, loads: Loads, state: DynamicState, accelerations: Array
) -> Array:
    """
    Return force and moment (6,) [N, N m] of the arm on what holds it, about the arm's start.

    Minus what every piece and body needs beyond the loads for its motion: weight, buoyancy, drag
    and inertia of arm and water. Stresses inside the arm cancel. `accelerations` (n, 4) of the
    strains: the mean over a step, for drives that jump between steps kick the arm there.
    """
    body, scratch = arm.body, arm.scratch
    q, v, a = state.strains, state.rates, accelerations
    place_arm(body, q, scratch)
    residual(body, loads, q, v, a, scratch, np.empty_like(q))
    turn, origin = scratch.rotation[:-1], scratch.origin[:-1]
    centre = origin + np.einsum('kij,kj->ki', turn, scratch.centre)
    force = np.einsum('kij,kj->ki', turn, scratch.force)
    moment = np.einsum('kij,kj->ki', turn, scratch.moment) + np.cross(centre, force)
    distal = turn @ scratch.turned
    end = origin + np.einsum('kij,kj->ki', turn, scratch.end)
    tip_force = np.einsum('kij,kj->ki', distal, scratch.tip_force)
    moment += np.einsum('kij,kj->ki', distal, scratch.tip_moment) + np.cross(end, tip_force)
    needed = np.concatenate([(force + tip_force).sum(axis=0), moment.sum(axis=0)])
    return np.asarray(-needed)
