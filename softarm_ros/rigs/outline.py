"""What is drawn of an arm: each kind gives its outline, so that nothing asks which kind it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softarm_ros.models.cable_driven.mechanics import CableMechanics
    from softarm_ros.models.config import SectionConfig
    from softarm_ros.plant.config import PlantSectionConfig


@dataclass(frozen=True)
class JointedSection:
    """
    A section as links with mass: geometry as the controller knows it, mass as built.

    `max_speed_m_s` is that of its slowest cable.
    """

    config: SectionConfig
    body: PlantSectionConfig
    max_speed_m_s: float


@dataclass(frozen=True)
class Strand:
    """
    What an actuator pulls or blows up in one section, as a line to draw.

    Attributes
    ----------
    actuator, section : int
        Indices.
    angle_rad : float
        Around the centreline, from the x axis that is carried along it without twist.
    radius_m, end_radius_m : float
        From the centreline, where the section begins and ends; negative on the other side.

    """

    actuator: int
    section: int
    angle_rad: float
    radius_m: float
    end_radius_m: float


@dataclass(frozen=True)
class Outline:
    """
    The body of an arm, from base to tip.

    Attributes
    ----------
    radii_m : tuple of float
        Outer radius of each section.
    arcs : CableMechanics, optional
        Where the sections are arcs between endcaps, bent by cables that can be drawn.
    jointed : tuple of JointedSection
        What is known for a URDF with masses; empty where nobody knows them.

    """

    radii_m: tuple[float, ...]
    arcs: CableMechanics | None = None
    jointed: tuple[JointedSection, ...] = ()


def strand(actuator: int, section: int, angle_deg: float, radius_m: float) -> Strand:
    """Return a strand at the same distance from the centreline all along its section."""
    return Strand(actuator, section, math.radians(angle_deg), radius_m, radius_m)
