"""From the plant's parameters to the arrays of the dynamics kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from softarm_ros.geometry.rotations import exp_so3
from softarm_ros.models.arm_model import Array
from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.config import (
    ConnectorConfig,
    DynamicSectionConfig,
    Four4,
    RigidBodyConfig,
)
from softarm_ros.plant.tendon_rod.config import (
    PlantRodSegmentConfig,
    PlantTendon,
    TendonRodPlantConfig,
)

# Rows and columns of a Cosserat section law (kx, ky, kz, vx, vy, vz) in the order of the dynamics,
# which have no shear: eps, kx, ky, kz.
_STRAINS = [5, 0, 1, 2]


def rod_dynamics(config: TendonRodPlantConfig, tip_load_kg: float) -> ArmDynamics:
    """Return the dynamics of the simulated arm with a payload at its tip."""
    ball = 0.4 * tip_load_kg * config.payload_radius_m**2
    payload = RigidBodyConfig(mass_kg=tip_load_kg, inertia_kg_m2=(ball, ball, ball))
    arm = ArmDynamics([_section(config, segment) for segment in config.segments], payload)
    for k, segment in enumerate(config.segments):
        last = (k + 1) * config.pieces_per_segment - 1
        arm.body.turn[last] = exp_so3(np.radians(segment.connector.rotation_vector_deg))
    return arm


def _section(config: TendonRodPlantConfig, segment: PlantRodSegmentConfig) -> DynamicSectionConfig:
    stiffness = segment.profile.stiffness(0.5)[np.ix_(_STRAINS, _STRAINS)]
    bending, torsion = segment.sleeve_bending_stiffness_N_m2, segment.sleeve_torsion_stiffness_N_m2
    stiffness += np.diag([0.0, bending, bending, torsion])
    damping = segment.damping_time_s * stiffness
    # The stretch of a metal core is not damped by its sleeve.
    damping[0, :] = damping[:, 0] = 0.0
    mass = segment.sleeve_mass_kg / segment.length_m + segment.profile.mass_per_length(0.5)
    slice_ = 0.25 * mass * config.outer_radius_m**2
    connector = segment.connector
    centre = connector.centre_of_mass_m
    rx, ry, rz = segment.rest_curvature_1_m
    return DynamicSectionConfig(
        length_m=segment.length_m,
        segments=config.pieces_per_segment,
        mass_per_length_kg_m=mass,
        slice_inertia_kg_m=(slice_, slice_, 2.0 * slice_),
        stiffness=_rows(stiffness),
        damping=_rows(damping),
        rest_strain=(0.0, rx, ry, rz),
        body=RigidBodyConfig(
            mass_kg=connector.mass_kg,
            centre_m=(0.0, 0.0, 0.5 * connector.length_m if centre is None else centre),
            inertia_kg_m2=_cylinder(
                connector.mass_kg, config.connector_radius_m, connector.length_m
            ),
        ),
        connector=ConnectorConfig(length_m=connector.length_m),
    )


def _cylinder(mass: float, radius: float, length: float) -> tuple[float, float, float]:
    """Return the moments of inertia of a solid cylinder along z about its centre."""
    across = mass * (3.0 * radius**2 + length**2) / 12.0
    return across, across, 0.5 * mass * radius**2


def _rows(matrix: Array) -> Four4:
    a, b, c, d = ((float(w), float(x), float(y), float(z)) for w, x, y, z in matrix)
    return (a, b, c, d)


def cable_paths(
    config: TendonRodPlantConfig, tendons: Sequence[PlantTendon]
) -> tuple[Array, Array]:
    """
    Return where cables cross the pieces (n, m, 2) [m] and whether they run there (n, m), 0 or 1.

    Paths parallel to the rod; `rigs` refuses others.
    """
    per, n = config.pieces_per_segment, config.pieces_per_segment * len(config.segments)
    offset, runs = np.zeros((n, len(tendons), 2)), np.zeros((n, len(tendons)))
    for i, tendon in enumerate(tendons):
        own = dict(zip(tendon.segment_indices, tendon.routes))
        side = math.radians(tendon.routes[0].angle_deg)
        for k in range(max(own) + 1):
            if k in own:
                radius = own[k].radius_m + config.segments[k].cable_radius_error_m
                angle = math.radians(own[k].angle_deg)
            else:
                radius, angle = config.passage_radius_m, side
            here = slice(k * per, (k + 1) * per)
            offset[here, i] = radius * math.cos(angle), radius * math.sin(angle)
            runs[here, i] = 1.0
    return offset, runs
