"""Cable-driven sections as a Cosserat rod: segments, connectors, and cable routes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.config import CableConfig, SectionConfig
from softarm_ros.models.cosserat.config import (
    CableRoute,
    CosseratConfig,
    MatrixProfile,
    RigidConnector,
    RodCableConfig,
    RodSegmentConfig,
)

# For a round, incompressible body: G = E / 3.
_TORSION_SHARE, _SHEAR_SHARE = 2.0 / 3.0, 1.0 / 3.0
_STIFF = 1e4  # axial stiffness, in K_b / d^2, of a section that states none
# Least stretch of every cable, m/N: without it, the tensions of cables that pull against each
# other on a backbone of constant length would not be determined.
LEAST_STRETCH_M_N = 1e-8


@dataclass(frozen=True)
class CablesOfRod:
    """
    The individual cables; a motor winds one cable, or the two cables of a pair.

    Attributes
    ----------
    motor : (n,)
        Index of the actuator.
    sign : (n,)
        1, or -1 where the motor pays the cable out.
    own : (n,)
        Index of the section in which the cable ends.
    levers : (n, 2)
        Position in that section's cross-section [m].
    stretch : (n,)
        Stretch per tension [m/N].

    """

    motor: NDArray[np.int64]
    sign: Array
    own: NDArray[np.int64]
    levers: Array
    stretch: Array


def cables_of(sections: Sequence[SectionConfig], cables: Sequence[CableConfig]) -> CablesOfRod:
    """Return the cables in the order of their motors; in a pair, the pulled one comes first."""
    index = {section.name: k for k, section in enumerate(sections)}
    found = [
        (j, sign, index[cable.section], math.radians(cable.angle_deg), cable.stretch_m_N)
        for j, cable in enumerate(cables)
        for sign in ((1.0, -1.0) if cable.pair else (1.0,))
    ]
    motor, sign, own, angle, stretch = map(np.array, zip(*found))
    radius = np.array([sections[k].cable_radius_m for k in own]) * sign
    levers = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return CablesOfRod(
        motor.astype(np.int64), sign, own.astype(np.int64), levers,
        np.maximum(stretch, LEAST_STRETCH_M_N),
    )  # fmt: skip


def rod_of(
    sections: Sequence[SectionConfig],
    cables: Sequence[CableConfig],
    gravity_m_s2: Sequence[float] | Array,
    steps: int,
) -> CosseratConfig:
    """
    Return the rod; its base is the start of the first section's bending part.

    The rod is extensible if any section states an axial stiffness.
    """
    extensible = any(s.axial_stiffness_N is not None for s in sections)
    segments = []
    for section, following in zip(sections, [*sections[1:], None]):
        bending, length = section.bending_stiffness_N_m2, section.length_m
        axial = section.axial_stiffness_N
        if axial is None:
            axial = _STIFF * bending / section.cable_radius_m**2
        shear = _SHEAR_SHARE * axial
        stiffness = np.diag([bending, bending, _TORSION_SHARE * bending, shear, shear, axial])
        bx, by = np.radians(section.rest_bend_deg)
        caps = [section, *([] if following is None else [following])]
        mass = sum(cap.endcap_mass_kg for cap in caps)
        rigid = sum(cap.endcap_length_m for cap in caps)
        moment, start = 0.0, 0.0
        for cap in caps:
            moment += cap.endcap_mass_kg * (start + 0.5 * cap.endcap_length_m)
            start += cap.endcap_length_m
        segments.append(
            RodSegmentConfig(
                name=section.name,
                length_m=length,
                profile=MatrixProfile(
                    stiffness_matrix=tuple(map(tuple, stiffness)),
                    mass_per_length_kg_m=section.body_mass_kg / length,
                ),
                rest_curvature_1_m=(-by / length, bx / length, 0.0),
                connector=RigidConnector(
                    length_m=rigid,
                    mass_kg=mass,
                    centre_of_mass_m=moment / mass if mass > 0.0 and rigid > 0.0 else None,
                ),
            )
        )
    names = [section.name for section in sections]
    routed = []
    for cable in cables:
        own = names.index(cable.section)
        for side, turn in (('', 0.0), ('_back', 180.0)) if cable.pair else (('', 0.0),):
            routes = [
                CableRoute(
                    segment=s.name,
                    radius_m=s.cable_radius_m if k == own else s.passing_radius_m,
                    angle_deg=cable.angle_deg + turn,
                )
                for k, s in enumerate(sections[: own + 1])
            ]
            routed.append(RodCableConfig(name=f'{cable.name}{side}', routes=tuple(routes)))
    x, y, z = (float(g) for g in gravity_m_s2)
    return CosseratConfig(
        segments=tuple(segments), cables=tuple(routed), gravity_m_s2=(x, y, z),
        extensible=extensible, steps=steps,
    )  # fmt: skip
