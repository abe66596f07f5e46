"""Builds dynamics and chambers from the sections with water chambers of a rig file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.config import (
    DynamicSectionConfig,
    RigidBodyConfig,
    diagonal4,
)
from softarm_ros.models.dynamics.drive import Chamber, ChamberDrive
from softarm_ros.models.hydraulics.section_config import (
    ChamberConfig,
    ChamberedSection,
    Damping,
    HydraulicSectionConfig,
    Surroundings,
)


def dynamic_section(
    section: ChamberedSection, segments: int, fluid_density_kg_m3: float, damping: Damping
) -> DynamicSectionConfig:
    """
    Return the dynamics of a section with `segments` segments.

    The mass of a segment is at its top, as in the paper, or spread along it if the section states
    the mass of its plate.
    """
    length, bending = section.length_m, section.bending_stiffness_N_m2
    plate = section.plate_mass_kg
    spread = section.mass_kg - (0.0 if plate is None else plate)
    disc = spread / length * section.outer_radius_m**2
    rest_strain = (0.0, 0.0, 0.0, 0.0)
    if isinstance(section, HydraulicSectionConfig):
        bend_x, bend_y = np.radians(section.rest_bend_deg) / length
        rest_strain = (0.0, -float(bend_y), float(bend_x), 0.0)
    return DynamicSectionConfig(
        length_m=length,
        segments=segments,
        mass_per_length_kg_m=spread / length,
        slice_inertia_kg_m=(disc / 4.0, disc / 4.0, disc / 2.0),
        stiffness=diagonal4(
            (section.axial_stiffness_N, bending, bending, section.torsion_stiffness_N_m2)
        ),
        damping=diagonal4((damping.axial_N_s_m * length, 0.0, 0.0, 0.0)),
        displaced_fluid_kg_m=fluid_density_kg_m3 * section.displaced_volume_m3 / length,
        drag_N_s_m2=damping.drag_N_s_m / length,
        turning_drag_N_s=damping.turning_N_m_s / length,
        rest_strain=rest_strain,
        mass_at='top' if plate is None else 'piece',
        body=_plate(section),
    )


def _plate(section: ChamberedSection) -> RigidBodyConfig:
    mass = section.plate_mass_kg or 0.0
    across = mass * section.outer_radius_m**2 / 4.0
    return RigidBodyConfig(mass_kg=mass, inertia_kg_m2=(across, across, 2.0 * across))


def chamber_drive(
    sections: Sequence[ChamberedSection],
    chambers: Sequence[ChamberConfig],
    segments: int,
    surroundings: Surroundings,
    damping: Sequence[Damping] | None = None,
) -> ChamberDrive:
    """
    Return the arm (`.arm`) with its chambers.

    Raises
    ------
    ModelError
        If a section does not have exactly three chambers.

    """
    losses = [Damping()] * len(sections) if damping is None else list(damping)
    parts = [
        dynamic_section(section, segments, surroundings.fluid_density_kg_m3, loss)
        for section, loss in zip(sections, losses)
    ]
    placed = [
        Chamber(
            chamber.section, sections[chamber.section].chamber_area_m2, lever, chamber.angle_deg
        )
        for chamber, lever in zip(chambers, chamber_levers(sections, chambers))
    ]
    return ChamberDrive(ArmDynamics(parts, surroundings.payload()), placed)


def chamber_levers(
    sections: Sequence[ChamberedSection], chambers: Sequence[ChamberConfig]
) -> Array:
    """
    Return the distance (m,) [m] of each chamber from the centreline.

    Raises
    ------
    ModelError
        If a section does not have exactly three chambers.

    """
    counts = [0] * len(sections)
    levers = []
    for chamber in chambers:
        if chamber.section >= len(sections):
            raise ModelError(
                f'chamber {chamber.name}: section {chamber.section} does not exist, '
                f'the arm has {len(sections)} sections'
            )
        body, j = sections[chamber.section], counts[chamber.section]
        counts[chamber.section] += 1
        levers.append(body.chamber_pitch_radius_m * body.lever_factors[min(j, 2)])
    for index, count in enumerate(counts):
        if count != 3:
            raise ModelError(f'section {index} has {count} chambers; exactly 3 hold its 3 strains')
    return np.array(levers)


def chamber_places(
    sections: Sequence[ChamberedSection], chambers: Sequence[ChamberConfig]
) -> Array:
    """Return the x and y (m, 2) [m] of each chamber in its section; errors as `chamber_levers`."""
    angles = np.radians([chamber.angle_deg for chamber in chambers])
    levers = chamber_levers(sections, chambers)
    return levers[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
