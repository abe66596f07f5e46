"""Conversion of configured sections to the constant arrays of the dynamics kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import rotation_z
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.dynamics.config import DynamicSectionConfig, RigidBodyConfig
from softarm_ros.models.dynamics.layout import Body


def build_body(sections: Sequence[DynamicSectionConfig], payload: RigidBodyConfig) -> Body:
    """
    Return the constants of an arm; the payload is fixed behind the last section's connector.

    Raises
    ------
    ModelError
        If there is no section.

    """
    if not sections:
        raise ModelError('sections: an arm needs at least one')
    n = sum(section.segments for section in sections)
    body = empty_body(n)
    k = 0
    for section in sections:
        for _ in range(section.segments):
            _fill_piece(body, k, section)
            k += 1
        _add_body(body, k - 1, section.body, np.zeros(3), np.eye(3))
        connector = section.connector
        if connector.length_m > 0.0 or connector.rotation_deg != 0.0:
            body.has_connector[k - 1] = True
            body.connector[k - 1, 2] = connector.length_m
            body.turn[k - 1] = rotation_z(np.radians(connector.rotation_deg))
    _add_body(body, n - 1, payload, body.connector[-1], body.turn[-1])
    return body


def empty_body(n: int) -> Body:
    """Return the arrays of n segments, all zero but for the connectors' identity rotations."""
    return Body(
        length=np.zeros(n),
        stiffness=np.zeros((n, 4, 4)),
        damping=np.zeros((n, 4, 4)),
        rest=np.zeros((n, 4)),
        mass=np.zeros(n),
        weight=np.zeros(n),
        rotary=np.zeros((n, 3)),
        inner=np.zeros((n, 4)),
        drag=np.zeros((n, 2)),
        tip_mass=np.zeros(n),
        tip_weight=np.zeros(n),
        tip_centre=np.zeros((n, 3)),
        tip_inertia=np.zeros((n, 3, 3)),
        tip_drag=np.zeros((n, 2)),
        has_body=np.zeros(n, np.bool_),
        has_connector=np.zeros(n, np.bool_),
        connector=np.zeros((n, 3)),
        turn=np.tile(np.eye(3), (n, 1, 1)),
    )


def _fill_piece(body: Body, k: int, section: DynamicSectionConfig) -> None:
    length = section.length_m / section.segments
    body.length[k] = length
    body.stiffness[k] = section.stiffness
    body.damping[k] = section.damping
    body.rest[k] = section.rest_strain
    mass = section.mass_per_length_kg_m * length
    weight = mass - section.displaced_fluid_kg_m * length
    slices = np.array(section.slice_inertia_kg_m) * length
    drag = np.array([section.drag_N_s_m2, section.turning_drag_N_s]) * length
    if section.mass_at == 'top':
        body.has_body[k] = True
        body.tip_mass[k] = mass
        body.tip_weight[k] = weight
        body.tip_inertia[k] = np.diag(slices)
        body.tip_drag[k] = drag
        return
    body.mass[k] = mass
    body.weight[k] = weight
    body.drag[k] = drag
    # A straight piece has the inertia m l^2 / 12 about its centre. Doubling it is a correction:
    # piecewise constant curvature stiffens a mode of wave number k by (k l)^2 / 12 (Ritz), and the
    # doubled inertia makes the mode heavier by the same share, so frequencies converge with l^4
    # instead of l^2.
    own = (2.0 if section.matched_inertia else 1.0) * length * length / 12.0
    body.rotary[k] = slices + mass * own * np.array([1.0, 1.0, 0.0])
    # Motion inside a piece: stretching and twisting (doubled too); bending without turning.
    square = length * length
    body.inner[k, 0] = mass * own
    body.inner[k, 1] = mass * square * square / 720.0 + slices[0] * square / 12.0
    body.inner[k, 2] = mass * square * square / 720.0 + slices[1] * square / 12.0
    body.inner[k, 3] = slices[2] * own


def _add_body(body: Body, k: int, rigid: RigidBodyConfig, offset: Array, turn: Array) -> None:
    """Add a rigid body, given in a frame at `offset` and `turn` from distal frame k."""
    drag = np.array([rigid.drag_N_s_m, rigid.turning_drag_N_m_s])
    inertia = np.array(rigid.inertia_kg_m2)
    if not (rigid.mass_kg or rigid.displaced_fluid_kg or drag.any() or inertia.any()):
        return
    body.has_body[k] = True
    mass, new = body.tip_mass[k], rigid.mass_kg
    centre = offset + turn @ np.array(rigid.centre_m)
    weight, more = body.tip_weight[k], new - rigid.displaced_fluid_kg
    if mass + new > 0.0:
        common = (mass * body.tip_centre[k] + new * centre) / (mass + new)
    else:
        common = centre
    # Parallel-axis theorem, about the common centre of mass.
    for m, c in ((mass, body.tip_centre[k] - common), (new, centre - common)):
        body.tip_inertia[k] += m * (c @ c * np.eye(3) - np.outer(c, c))
    body.tip_inertia[k] += turn @ np.diag(inertia) @ turn.T
    body.tip_mass[k] = mass + new
    body.tip_weight[k] = weight + more
    body.tip_centre[k] = common
    body.tip_drag[k] += drag
