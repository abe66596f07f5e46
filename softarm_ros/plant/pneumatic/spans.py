"""Conversion of the arm's config to the parts of the chain: end parts, chambers, gripper."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.layout import BodyParameters
from softarm_ros.plant.lumps import Lump, Span, lumps_along, rises
from softarm_ros.plant.pneumatic.config import (
    PlantGripperConfig,
    PneumaticPlantConfig,
    PneumaticPlantSectionConfig,
)

GRIPPER_SEGMENTS = 2
_GRIPPER_MODULUS_PA = 2e7  # stiff compared with the arm: the gripper hardly bends


class Part(NamedTuple):
    """
    A part with constant properties.

    Attributes
    ----------
    span
        Its length, segments, mass, and the rigid piece after it.
    stiffness : (3,)
        Bending, torsion [N m^2], extension [N].
    damping_time_s
        Kelvin-Voigt time of all three.
    displaced_kg, rigid_displaced_kg
        Fluid displaced by the flexible part and by the rigid piece.

    """

    span: Span
    stiffness: tuple[float, float, float]
    damping_time_s: float
    displaced_kg: float
    rigid_displaced_kg: float = 0.0


def end_part_segments(config: PneumaticPlantConfig) -> int:
    """Return the number of segments of an end part: half of that of a part with chambers."""
    return max(1, config.segments_per_section // 2)


def parts_of(config: PneumaticPlantConfig, density_kg_m3: float) -> list[Part]:
    """
    Return the parts from the frame down, in a fluid with a density (0: air).

    For each section a soft end part, then the part with chambers; a rigid piece after the last;
    the gripper, if any. The first end part is inside the frame, outside of the fluid.
    """
    parts = []
    for k, section in enumerate(config.sections):
        parts.append(_end_part(config, section, density_kg_m3 if k > 0 else 0.0))
        last = k == len(config.sections) - 1
        parts.append(_with_chambers(config, section, density_kg_m3, last))
    if config.gripper is not None:
        parts.append(_gripper(config, config.gripper, density_kg_m3))
    return parts


def body_of(parts: list[Part], tip_load_kg: float, gravity: Array, loaded: int) -> BodyParameters:
    """Return the chain; the tip load is a point at the end of body `loaded` (0: the mount)."""
    spans = [part.span for part in parts]
    lumps, rigid_m = lumps_along(spans), spans[-1].rigid_m
    lumps[loaded].join(Lump(tip_load_kg, rigid_m))
    counts = [span.segments for span in spans]
    lengths = np.array([span.length_m / span.segments for span in spans])
    moved = lumps[1:]
    return BodyParameters(
        segment_length=np.repeat(lengths, counts),
        offset=np.array(rises(spans)),
        stiffness=np.repeat(
            np.array([part.stiffness for part in parts]) / lengths[:, None], counts, axis=0
        ),
        damping_time=np.repeat([[part.damping_time_s] * 2 for part in parts], counts, axis=0),
        mass=np.array([lump.mass for lump in moved]),
        centre=np.array([lump.centre for lump in moved]),
        inertia=np.array([[lump.across, lump.along] for lump in moved]),
        base_rotation=np.eye(3),
        gravity=gravity,
        tip_offset=np.array([rigid_m]),
    )


def displaced_lumps(parts: list[Part]) -> list[Lump]:
    """Return the fluid displaced by mount and bodies, as lumps."""
    return lumps_along(
        [
            Span(
                part.span.length_m,
                part.span.segments,
                part.displaced_kg,
                part.span.radius_m,
                part.span.rigid_m,
                Lump(part.rigid_displaced_kg, 0.5 * part.span.rigid_m),
            )
            for part in parts
        ]
    )


def _disc(radius_m: float) -> float:
    return math.pi * radius_m**2


def _end_part(
    config: PneumaticPlantConfig, section: PneumaticPlantSectionConfig, density_kg_m3: float
) -> Part:
    radius, length = section.outer_radius_m, section.deforming_length_m
    bending = section.youngs_modulus_Pa * math.pi * radius**4 / 4.0
    return Part(
        Span(length, end_part_segments(config), section.mass_per_length_kg_m * length, radius),
        # Incompressible: G = E/3.
        (bending, bending / 1.5, section.youngs_modulus_Pa * _disc(radius)),
        section.damping_time_s,
        density_kg_m3 * _disc(radius) * length,
    )


def _with_chambers(
    config: PneumaticPlantConfig,
    section: PneumaticPlantSectionConfig,
    density_kg_m3: float,
    last: bool,
) -> Part:
    radius, length = section.outer_radius_m, section.bending_length_m
    rigid_m = config.tip_length_m if last else 0.0
    mass = config.tip_part_mass_kg if last else 0.0
    rigid = Lump(mass, 0.5 * rigid_m, mass * rigid_m**2 / 12.0)
    span = Span(
        length,
        config.segments_per_section,
        section.mass_per_length_kg_m * length,
        radius,
        rigid_m,
        rigid,
    )
    bending = section.bending_stiffness_N_m2
    return Part(
        span,
        (bending, bending / 1.5, section.axial_stiffness_N),
        section.damping_time_s,
        density_kg_m3 * _disc(radius) * length,
        density_kg_m3 * _disc(radius) * rigid_m,
    )


def _gripper(
    config: PneumaticPlantConfig, gripper: PlantGripperConfig, density_kg_m3: float
) -> Part:
    radius, length = gripper.outer_radius_m, gripper.length_m
    bending = _GRIPPER_MODULUS_PA * math.pi * radius**4 / 4.0
    return Part(
        Span(length, GRIPPER_SEGMENTS, max(gripper.mass_kg, 1e-4), radius),
        (bending, bending / 1.5, _GRIPPER_MODULUS_PA * _disc(radius)),
        config.sections[-1].damping_time_s,
        density_kg_m3 * _disc(radius) * length,
    )
