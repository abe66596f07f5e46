"""
URDF of any arm: a chain of rigid links along its centreline, with the arm's mass.

Every link runs from one point of the centreline to the next: two revolute joints turn it and a
prismatic joint sets its length, so the chain can stretch with the arm. Three joints at the end
of each section turn its tip frame. So the tip frame of every section has the position and
orientation of the model's, whatever the number of links.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from softarm_ros.geometry.arrays import Array, finite_array
from softarm_ros.rigs.outline import SpreadMass
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.urdf_elements import (
    Part,
    add_cylinder,
    add_fixed,
    add_inertial,
    add_limited_joint,
    add_link,
    add_materials,
    body_material,
    check_links,
    document,
)
from softarm_ros.rigs.urdf_positions import chain_positions, rest_lengths

JointMap = Callable[[Sequence[float] | Array], tuple[list[str], Array]]
DEFAULT_LINKS_PER_SECTION = 8
_TURN_RAD = 0.5 * math.pi
_STRETCH = 0.5  # of a link's length at rest
# Links between coincident joints have no volume, but simulators require a mass.
_JOINT_SHARE = 0.01


def build_urdf(rig: Rig, links_per_section: int = DEFAULT_LINKS_PER_SECTION) -> str:
    """
    Return the URDF text of an arm, with links `base`, `<section>_tip` and `tip`.

    Links have mass and inertia if the rig file states the arm's masses: the controller's, or the
    plant's if the controller's model includes no weight. Gripper and payload belong to the link
    `tip`.

    Raises
    ------
    ValueError
        If `links_per_section` is not 1 to 99.

    """
    check_links(links_per_section)
    robot = ET.Element('robot', name=rig.name)
    add_materials(robot)
    add_link(robot, 'base')
    parent = 'base'
    lengths, radii, masses = rest_lengths(rig), rig.body_radii_m(), rig.outline().masses
    for k, (name, length) in enumerate(zip(rig.section_names, lengths)):
        section = _Section(
            name,
            links_per_section,
            float(length) / links_per_section,
            radii[k],
            body_material(k),
            masses[k] if masses else (),
        )
        parent = _add_section(robot, section, parent)
    tip = add_link(robot, 'tip')
    add_fixed(robot, 'tip_frame', parent, 'tip', 0.0)
    if masses:
        add_inertial(tip, _carried(rig, radii[-1]), radii[-1])
    return document(robot, rig.name, links_per_section)


def joint_names(rig: Rig, links_per_section: int = DEFAULT_LINKS_PER_SECTION) -> list[str]:
    """
    Return the names of all movable joints, from base to tip.

    Order: about x, about y, along z for each link, then about x, y, z at the end of the section.
    """
    check_links(links_per_section)
    names = []
    for name in rig.section_names:
        for k in range(1, links_per_section + 1):
            names += [f'{name}_{k:02d}_{joint}' for joint in ('about_x', 'about_y', 'along_z')]
        names += [f'{name}_end_about_{axis}' for axis in 'xyz']
    return names


def joint_map(rig: Rig, links_per_section: int = DEFAULT_LINKS_PER_SECTION) -> JointMap:
    """
    Return a function from a configuration (dof,) to the names and positions [rad, m] of joints.

    The function raises ValueError if the configuration has the wrong size or is not finite.
    """
    names = joint_names(rig, links_per_section)
    model, lengths = rig.model(), rest_lengths(rig)

    def positions(configuration: Sequence[float] | Array) -> tuple[list[str], Array]:
        values = finite_array(configuration, (len(model.configuration_names),), 'configuration')
        return names, chain_positions(model.shape_of(values), lengths, links_per_section)

    return positions


def joint_positions(
    rig: Rig,
    configuration: Sequence[float] | Array,
    links_per_section: int = DEFAULT_LINKS_PER_SECTION,
) -> tuple[list[str], Array]:
    """Return the names and positions [rad, m] of all joints once; see `joint_map`."""
    return joint_map(rig, links_per_section)(configuration)


def _carried(rig: Rig, radius_m: float) -> list[Part]:
    """Return gripper and payload, each as a cylinder as long as it is wide."""
    parts = []
    if rig.gripper is not None and rig.gripper.mass_kg > 0.0:
        centre = rig.gripper.centre_m
        parts.append((rig.gripper.mass_kg, centre - radius_m, centre + radius_m))
    if rig.tip_load_kg > 0.0:
        parts.append((rig.tip_load_kg, -radius_m, radius_m))
    return parts


@dataclass(frozen=True)
class _Section:
    """A section of links of `step_m` [m] at rest; `masses` is empty if they are not known."""

    name: str
    links: int
    step_m: float
    radius_m: float
    material: str
    masses: tuple[SpreadMass, ...]

    def parts(self, link: int) -> list[Part]:
        """Return mass [kg], start and end [m] along z of the masses in a link (0, 1, ...)."""
        within = [m.between(link / self.links, (link + 1) / self.links) for m in self.masses]
        length = self.links * self.step_m
        return [(m.mass_kg, m.start * length, m.end * length) for m in within if m.mass_kg > 0.0]


def _add_section(robot: ET.Element, section: _Section, parent: str) -> str:
    """Append the links and joints of a section to `parent`; return the link at its tip."""
    name, step, last = section.name, section.step_m, section.links - 1
    offset = 0.0
    for k in range(section.links):
        piece = f'{name}_{k + 1:02d}'
        parts = section.parts(k)
        in_joints = _JOINT_SHARE * sum(mass for mass, _, _ in parts)
        for joint, kind, axis, child, limit in (
            ('about_x', 'revolute', 'x', f'{piece}_cross', _TURN_RAD),
            ('about_y', 'revolute', 'y', f'{piece}_slide', _TURN_RAD),
            ('along_z', 'prismatic', 'z', piece, _STRETCH * step),
        ):
            link = add_link(robot, child)
            if child != piece:
                _weigh_joint(link, in_joints, section.radius_m)
            add_limited_joint(robot, kind, f'{piece}_{joint}', parent, child, offset, axis, limit)
            parent, offset = child, 0.0
        left = 1.0 - _JOINT_SHARE * (5.0 if k == last else 2.0)
        add_inertial(
            link, [(left * mass, low, high) for mass, low, high in parts], section.radius_m
        )
        add_cylinder(link, 'visual', 0.0, step, section.radius_m, section.material)
        add_cylinder(link, 'collision', 0.0, step, section.radius_m, None)
        offset = step
    for axis, child, limit in (
        ('x', f'{name}_end_cross', _TURN_RAD),
        ('y', f'{name}_end_turn', _TURN_RAD),
        ('z', f'{name}_tip', math.pi),
    ):
        _weigh_joint(add_link(robot, child), in_joints, section.radius_m)
        joint = f'{name}_end_about_{axis}'
        add_limited_joint(robot, 'revolute', joint, parent, child, offset, axis, limit)
        parent, offset = child, 0.0
    return parent


def _weigh_joint(link: ET.Element, mass_kg: float, radius_m: float) -> None:
    """Give a link between coincident joints its share of the mass, as a small cylinder."""
    small = 0.5 * radius_m
    add_inertial(link, [(mass_kg, -small, small)] if mass_kg > 0.0 else [], small)
