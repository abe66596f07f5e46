"""Arms for the tests of the dynamics."""

import numpy as np
from hypothesis import strategies as st

from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.config import (
    ConnectorConfig,
    RigidBodyConfig,
    round_section,
)

LENGTH, RADIUS, YOUNG, DENSITY = 0.2, 0.01, 1e6, 1000.0
SIDEWAYS = (9.81, 0.0, 0.0)


def cantilever(segments=20, sections=2, radius_m=RADIUS, **changes):
    """Return the arm of the benchmark, 0.2 m long with the stiffness of silicone."""
    section = round_section(
        length_m=LENGTH / sections,
        radius_m=radius_m,
        youngs_modulus_Pa=YOUNG,
        density_kg_m3=DENSITY,
        segments=segments // sections,
        **changes,
    )
    return ArmDynamics([section] * sections)


def full_arm(seed=0, segments=2, sections=2):
    """Return an arm with all features: rest shape, full matrices, bodies, connectors, payload."""
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(sections):
        base = round_section(
            length_m=rng.uniform(0.05, 0.2),
            radius_m=0.01,
            youngs_modulus_Pa=1e6,
            density_kg_m3=1000.0,
            segments=segments,
            air_drag_1_s=2.0,
            damping_time_s=0.01,
            body=RigidBodyConfig(
                mass_kg=rng.uniform(0.0, 0.05),
                displaced_fluid_kg=0.01,
                centre_m=tuple(rng.normal(scale=0.01, size=3)),
                inertia_kg_m2=(1e-6, 2e-6, 1.5e-6),
                drag_N_s_m=0.1,
                turning_drag_N_m_s=1e-4,
            ),
            connector=ConnectorConfig(length_m=0.02, rotation_deg=rng.uniform(-180.0, 180.0)),
        )
        stiffness = np.array(base.stiffness)
        scale = np.sqrt(np.diag(stiffness))
        mixing = rng.uniform(-0.2, 0.2, (4, 4))
        stiffness += np.outer(scale, scale) * (mixing + mixing.T)
        parts.append(
            base.model_copy(
                update={
                    'stiffness': tuple(map(tuple, stiffness)),
                    'damping': tuple(map(tuple, 0.01 * stiffness)),
                    'slice_inertia_kg_m': (1e-5, 2e-5, 3e-5),
                    'rest_strain': (0.0, *rng.normal(size=3)),
                    'displaced_fluid_kg_m': 0.1,
                }
            )
        )
    payload = RigidBodyConfig(mass_kg=0.02, centre_m=(0.0, 0.01, 0.02), inertia_kg_m2=(1e-5,) * 3)
    return ArmDynamics(parts, payload)


def random_state(arm, seed=0, size=1.0):
    """Return random strains and strain rates with large bends."""
    rng = np.random.default_rng(seed)
    q = size * rng.normal(size=(arm.segments, 4)) * [0.05, 8.0, 8.0, 5.0]
    v = size * rng.normal(size=(arm.segments, 4)) * [0.5, 30.0, 30.0, 30.0]
    return q, v


def random_loads(arm, seed=0):
    """Return random loads of every kind."""
    rng = np.random.default_rng(seed)
    n = arm.segments
    factor = rng.normal(size=(n, 6, 6)) * [0.1, 0.1, 0.1, 0.003, 0.003, 0.003]
    return arm.loads(
        rng.normal(scale=6.0, size=3),
        drive=rng.normal(size=(n, 4)) * [1.0, 0.01, 0.01, 0.01],
        tip_force=rng.normal(scale=0.1, size=3),
        tip_moment=rng.normal(scale=0.01, size=3),
        node_wrenches=rng.normal(size=(n, 6)) * [0.1, 0.1, 0.1, 0.01, 0.01, 0.01],
        added_mass=np.einsum('kij,kil->kjl', factor, factor),
        node_damping=np.einsum('kji,kli->kjl', factor, factor),
        cable_offset_m=np.tile([[0.01, 0.0], [-0.003, 0.008]], (n, 1, 1)),
        cable_tension_N=np.tile([1.0, 0.5], (n, 1)),
    )


seeds = st.integers(0, 2**31)
sizes = st.sampled_from([0.0, 1e-9, 1e-3, 0.3, 1.0])
