"""Parameters of the dynamics of an arm: sections, rigid bodies between them, loads."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, field_validator

from softarm_ros.geometry.configs import (
    ConfigBlock,
    Finite,
    Length,
    Mass,
    NonNegative,
    NonNegativeLength,
    NonNegativeMass,
)

Vector3Field = tuple[Finite, Finite, Finite]
Four = tuple[Finite, Finite, Finite, Finite]
Four4 = tuple[Four, Four, Four, Four]
NonNegative3 = tuple[NonNegative, NonNegative, NonNegative]


class RigidBodyConfig(ConfigBlock):
    """
    A rigid body on a distal frame: endcap, sensor, payload.

    `inertia_kg_m2` are the moments about axes through the centre of mass, parallel to the frame.
    """

    mass_kg: NonNegativeMass = 0.0
    displaced_fluid_kg: NonNegativeMass = 0.0
    centre_m: Vector3Field = (0.0, 0.0, 0.0)
    inertia_kg_m2: NonNegative3 = (0.0, 0.0, 0.0)
    drag_N_s_m: NonNegative = Field(default=0.0, description='viscous force per velocity, d_v')
    turning_drag_N_m_s: NonNegative = Field(
        default=0.0, description='viscous moment per rate, d_w'
    )


class ConnectorConfig(ConfigBlock):
    """Rigid connector between two sections: length along the tangent and rotation about it."""

    length_m: NonNegativeLength = 0.0
    rotation_deg: Finite = 0.0


class DynamicSectionConfig(ConfigBlock):
    """
    One soft section: a rod of `segments` pieces of constant strain (eps, kx, ky, kz).

    `stiffness` and `damping` give resultants (N, Mx, My, Mz) per strain and per strain rate, in
    N and N m^2 (N s and N m^2 s). `slice_inertia_kg_m` is the rotary inertia of the cross-section
    per length about its x, y and z axes.
    """

    length_m: Length
    segments: Annotated[int, Field(ge=1, le=10_000)] = 10
    mass_per_length_kg_m: Mass
    slice_inertia_kg_m: NonNegative3
    stiffness: Four4
    damping: Four4 = ((0.0,) * 4,) * 4
    rest_strain: Four = (0.0, 0.0, 0.0, 0.0)
    displaced_fluid_kg_m: NonNegativeMass = 0.0
    drag_N_s_m2: NonNegative = Field(
        default=0.0, description='viscous force per length and velocity'
    )
    turning_drag_N_s: NonNegative = Field(
        default=0.0, description='viscous moment per length and rate'
    )
    mass_at: Literal['piece', 'top'] = Field(
        default='piece',
        description='mass along each segment, or lumped at its top as in Chen et al.',
    )
    matched_inertia: bool = Field(
        default=True,
        description="count each piece's own inertia twice: frequencies converge with length^4",
    )
    body: RigidBodyConfig = RigidBodyConfig()
    connector: ConnectorConfig = ConnectorConfig()

    @field_validator('stiffness', 'damping')
    @classmethod
    def _symmetric(cls, value: Four4) -> Four4:
        matrix = np.array(value)
        if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=0.0):
            raise ValueError(f'{matrix.tolist()} is not symmetric')
        return value

    @field_validator('stiffness')
    @classmethod
    def _positive(cls, value: Four4) -> Four4:
        lowest = float(np.linalg.eigvalsh(np.array(value)).min())
        if lowest <= 0.0:
            raise ValueError(f'smallest eigenvalue {lowest:.3g} must be above 0')
        return value

    @field_validator('damping')
    @classmethod
    def _not_negative(cls, value: Four4) -> Four4:
        matrix = np.array(value)
        lowest = float(np.linalg.eigvalsh(matrix).min())
        if lowest < -1e-12 * float(np.abs(matrix).max()):
            raise ValueError(f'smallest eigenvalue {lowest:.3g} must not be below 0')
        return value


def diagonal4(values: tuple[float, float, float, float]) -> Four4:
    """Return a diagonal 4 x 4 matrix in the form of a configuration block."""
    a, b, c, d = values
    return ((a, 0.0, 0.0, 0.0), (0.0, b, 0.0, 0.0), (0.0, 0.0, c, 0.0), (0.0, 0.0, 0.0, d))


def round_section(
    *,
    length_m: float,
    radius_m: float,
    youngs_modulus_Pa: float,
    density_kg_m3: float,
    segments: int = 10,
    shear_modulus_Pa: float | None = None,
    inner_radius_m: float = 0.0,
    damping_time_s: float = 0.0,
    air_drag_1_s: float = 0.0,
    body: RigidBodyConfig | None = None,
    connector: ConnectorConfig | None = None,
) -> DynamicSectionConfig:
    """
    Return a round (or tubular) section of a homogeneous material.

    Parameters
    ----------
    length_m, radius_m, inner_radius_m : float
        Rest length, outer radius, radius of a concentric bore.
    youngs_modulus_Pa, shear_modulus_Pa : float
        E and G; G = E/3 (incompressible) if not given.
    density_kg_m3 : float
        Density of the material.
    segments : int
        Number of pieces of constant strain.
    damping_time_s : float
        Kelvin-Voigt time: damping = time * stiffness.
    air_drag_1_s : float
        Viscous drag per mass: every slice feels -rate * mass * velocity, -rate * inertia * spin.
    body, connector : optional
        Rigid body at the section's end and connector behind it.

    """
    shear = youngs_modulus_Pa / 3.0 if shear_modulus_Pa is None else shear_modulus_Pa
    area = math.pi * (radius_m**2 - inner_radius_m**2)
    second = math.pi * (radius_m**4 - inner_radius_m**4) / 4.0
    axial, bending = youngs_modulus_Pa * area, youngs_modulus_Pa * second
    twisting = 2.0 * shear * second
    time = damping_time_s
    slice_ = density_kg_m3 * second
    return DynamicSectionConfig(
        length_m=length_m,
        segments=segments,
        mass_per_length_kg_m=density_kg_m3 * area,
        slice_inertia_kg_m=(slice_, slice_, 2.0 * slice_),
        stiffness=diagonal4((axial, bending, bending, twisting)),
        damping=diagonal4((time * axial, time * bending, time * bending, time * twisting)),
        drag_N_s_m2=air_drag_1_s * density_kg_m3 * area,
        turning_drag_N_s=air_drag_1_s * slice_,
        body=body or RigidBodyConfig(),
        connector=connector or ConnectorConfig(),
    )
