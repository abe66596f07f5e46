"""URDF of sections with mass: each a chain of links with pairs of revolute joints."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros.models.config import SectionConfig
from softarm_ros.plant.config import PlantSectionConfig
from softarm_ros.rigs.outline import JointedSection
from softarm_ros.rigs.urdf_elements import (
    AXES,
    add_cylinder,
    add_fixed,
    add_joint,
    add_link,
    add_materials,
    check_links,
    document,
    number,
)

Array = NDArray[np.float64]

# The cross piece between the two joints of a pair has no volume; simulators want it to have mass.
CROSS_MASS_SHARE = 0.02


@dataclass(frozen=True)
class _Section:
    """A section in links."""

    config: SectionConfig
    body: PlantSectionConfig
    max_speed_m_s: float
    links: int

    @property
    def step_m(self) -> float:
        """Length of one link [m]."""
        return self.config.length_m / self.links


def build_urdf(name: str, sections: Sequence[JointedSection], links_per_section: int) -> str:
    """
    Return the URDF of an arm.

    The root link is `base`, in the arm's base frame; `<section>_tip` is the outer face of the
    section's distal endcap and `tip` that of the last one. Each of the n links of a section has
    a pair of revolute joints in its middle (`joint_names`), which at the values of
    `joint_positions` reproduce the constant-curvature shape with an error of order 1/n^2.
    """
    check_links(links_per_section)
    robot = ET.Element('robot', name=name)
    add_materials(robot)
    add_link(robot, 'base')
    parent = 'base'
    for s in sections:
        section = _Section(s.config, s.body, s.max_speed_m_s, links_per_section)
        parent = _add_section(robot, section, parent)
    add_link(robot, 'tip')
    add_fixed(robot, 'tip_frame', parent, 'tip', 0.0)
    return document(robot, name, links_per_section)


def joint_names(sections: Sequence[JointedSection], links_per_section: int) -> list[str]:
    """Return `<section>_<link>_about_<axis>` for all joints, from base to tip."""
    check_links(links_per_section)
    return [
        _joint_name(section.config.name, k, axis)
        for section in sections
        for k in range(1, links_per_section + 1)
        for axis in _axis_order(k)
    ]


def joint_positions(
    sections: Sequence[JointedSection],
    links_per_section: int,
    configuration: Sequence[float] | Array,
) -> tuple[list[str], Array]:
    """
    Return names and angles [rad] of all joints for a configuration.

    Parameters
    ----------
    sections : sequence of JointedSection
        The arm.
    links_per_section : int
        As given to `build_urdf`.
    configuration : (2 * sections,)
        Bending vector (b_x, b_y) of each section [rad].

    Raises
    ------
    ValueError
        If the configuration has the wrong size or is not finite.

    """
    bends = np.asarray(configuration, dtype=float)
    if bends.shape != (2 * len(sections),):
        raise ValueError(
            f'configuration has shape {bends.shape}; expected ({2 * len(sections)},): '
            'a bending vector for each section'
        )
    if not np.all(np.isfinite(bends)):
        raise ValueError(f'configuration {bends.tolist()}: expected finite angles in rad')
    names = joint_names(sections, links_per_section)
    values = []
    for bend_x, bend_y in bends.reshape(-1, 2):
        # Bending towards x turns about y, bending towards y turns about -x.
        angle = {'x': -bend_y / links_per_section, 'y': bend_x / links_per_section}
        for k in range(1, links_per_section + 1):
            values += [angle[axis] for axis in _axis_order(k)]
    return names, np.array(values)


def _axis_order(link: int) -> tuple[str, str]:
    # Two rotations in fixed order also twist, by half the product of their angles. Every second
    # pair has the other order, so the twist does not add up along the arm.
    return ('x', 'y') if link % 2 == 1 else ('y', 'x')


def _joint_name(section: str, link: int, axis: str) -> str:
    return f'{section}_{link:02d}_about_{axis}'


# -- one section ------------------------------------------------------------------------------


def _add_section(robot: ET.Element, section: _Section, parent: str) -> str:
    """Append the links and joints of a section to `parent`; return the name of its tip link."""
    name, n, step = section.config.name, section.links, section.step_m
    cap = section.config.endcap_length_m
    first = f'{name}_base'
    _rigid_link(robot, section, first, [('endcap', 0.0, cap), ('body', cap, cap + 0.5 * step)])
    add_fixed(robot, f'{name}_mount', parent, first, 0.0)
    previous, offset = first, cap + 0.5 * step
    for k in range(1, n + 1):
        link, cross = f'{name}_link_{k:02d}', f'{name}_cross_{k:02d}'
        inner, outer = _axis_order(k)
        _cross_link(robot, section, cross)
        _revolute(robot, section, _joint_name(name, k, inner), previous, cross, offset, inner)
        if k < n:
            pieces = [('body', 0.0, step)]
        else:
            pieces = [('body', 0.0, 0.5 * step), ('endcap', 0.5 * step, 0.5 * step + cap)]
        _rigid_link(robot, section, link, pieces)
        _revolute(robot, section, _joint_name(name, k, outer), cross, link, 0.0, outer)
        previous, offset = link, step
    tip = f'{name}_tip'
    add_link(robot, tip)
    add_fixed(robot, f'{name}_end', previous, tip, 0.5 * step + cap)
    return tip


def _rigid_link(
    robot: ET.Element, section: _Section, name: str, pieces: list[tuple[str, float, float]]
) -> None:
    """Append a link of cylinders (kind, start z, end z) [m], with their mass."""
    body_mass = section.body.body_mass_kg * (1.0 - CROSS_MASS_SHARE)
    masses = {
        'body': body_mass / section.config.length_m,
        'endcap': section.body.endcap_mass_kg / max(section.config.endcap_length_m, 1e-12),
    }
    pieces = [(kind, low, high) for kind, low, high in pieces if high > low]
    link = add_link(robot, name)
    parts = [(masses[kind] * (high - low), low, high) for kind, low, high in pieces]
    _inertial(link, parts, section.body.outer_radius_m)
    for kind, low, high in pieces:
        add_cylinder(link, 'visual', low, high, section.body.outer_radius_m, kind)
    for _, low, high in pieces:
        add_cylinder(link, 'collision', low, high, section.body.outer_radius_m, None)


def _cross_link(robot: ET.Element, section: _Section, name: str) -> None:
    mass = section.body.body_mass_kg * CROSS_MASS_SHARE / section.links
    half = 0.05 * section.step_m
    _inertial(add_link(robot, name), [(mass, -half, half)], section.body.outer_radius_m)


def _inertial(link: ET.Element, parts: list[tuple[float, float, float]], radius: float) -> None:
    """Append mass and inertia of coaxial solid cylinders (mass, start z, end z)."""
    mass = sum(m for m, _, _ in parts)
    center = sum(m * 0.5 * (low + high) for m, low, high in parts) / mass
    axial = 0.5 * mass * radius**2
    lateral = sum(
        m * ((3.0 * radius**2 + (high - low) ** 2) / 12.0 + (0.5 * (low + high) - center) ** 2)
        for m, low, high in parts
    )
    inertial = ET.SubElement(link, 'inertial')
    ET.SubElement(inertial, 'origin', xyz=f'0 0 {number(center)}', rpy='0 0 0')
    ET.SubElement(inertial, 'mass', value=number(mass))
    ET.SubElement(
        inertial,
        'inertia',
        ixx=number(lateral),
        iyy=number(lateral),
        izz=number(axial),
        ixy='0',
        ixz='0',
        iyz='0',
    )


def _revolute(
    robot: ET.Element,
    section: _Section,
    name: str,
    parent: str,
    child: str,
    offset: float,
    axis: str,
) -> None:
    """Append a joint; its limits follow from bending limit, stiffness and winding speed."""
    joint = add_joint(robot, 'revolute', name, parent, child, offset)
    ET.SubElement(joint, 'axis', xyz=AXES[axis])
    bend = math.radians(section.config.max_bending_angle_deg)
    moment = section.config.bending_stiffness_N_m2 * bend / section.config.length_m
    rate = section.max_speed_m_s / section.config.cable_radius_m
    ET.SubElement(
        joint,
        'limit',
        lower=number(-bend / section.links),
        upper=number(bend / section.links),
        effort=number(moment),
        velocity=number(rate / section.links),
    )
    ET.SubElement(
        joint,
        'dynamics',
        damping=number(
            section.body.damping_time_s * section.body.bending_stiffness_N_m2 / section.step_m
        ),
        friction='0',
    )
