"""
URDF of any continuum arm: a chain of links that follows its centreline.

Every link points from one point of the centreline to the next: two revolute joints turn it there
and a prismatic one gives it its length, so that extensible arms are drawn as long as they are. The
tip link stands where the model has the tip, whatever the number of links. The links carry no
inertia: this description is for viewing.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import finite_array
from softarm_ros.rigs.schema import Rig
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
_TURN_RAD = 0.5 * math.pi
_STRETCH = 0.5  # of a link's length at rest
_SAMPLES = 400


def build_urdf(rig: Rig, links_per_section: int) -> str:
    """Return the URDF text of an arm, root link `base`, with a link `<section>_tip` a section."""
    check_links(links_per_section)
    robot = ET.Element('robot', name=rig.name)
    add_materials(robot)
    add_link(robot, 'base')
    parent, offset = 'base', 0.0
    lengths = _rest_lengths(rig)
    for name, length, radius in zip(rig.section_names, lengths, rig.body_radii_m()):
        step = length / links_per_section
        for k in range(1, links_per_section + 1):
            parent = _add_piece(robot, f'{name}_{k:02d}', parent, offset, step, radius)
            offset = step
        add_link(robot, f'{name}_tip')
        add_fixed(robot, f'{name}_end', parent, f'{name}_tip', step)
    add_link(robot, 'tip')
    add_fixed(robot, 'tip_frame', parent, 'tip', offset)
    return document(robot, rig.name, links_per_section)


def joint_names(rig: Rig, links_per_section: int) -> list[str]:
    """Return the names of all joints, from base to tip: about x, about y, along z of each link."""
    check_links(links_per_section)
    return [
        f'{name}_{k:02d}_{joint}'
        for name in rig.section_names
        for k in range(1, links_per_section + 1)
        for joint in ('about_x', 'about_y', 'along_z')
    ]


class CentrelineJoints:
    """Positions of the joints for any configuration of an arm."""

    def __init__(self, rig: Rig, links_per_section: int) -> None:
        self.names = joint_names(rig, links_per_section)
        self._model = rig.model()
        self._links = links_per_section
        self._lengths = _rest_lengths(rig)

    def positions(self, configuration: Sequence[float] | Array) -> tuple[list[str], Array]:
        """
        Return names and positions [rad, m] of all joints for a configuration (dof,).

        Raises
        ------
        ValueError
            If the configuration has the wrong size or is not finite.

        """
        values = finite_array(
            configuration, (len(self._model.configuration_names),), 'configuration'
        )
        points = _points(
            self._model.shape_of(values).centerline(_SAMPLES), self._lengths, self._links
        )
        rest = np.repeat(self._lengths / self._links, self._links)
        positions = []
        frame = np.eye(3)
        for start, end, rest_length in zip(points, points[1:], rest):
            step = end - start
            length = float(np.linalg.norm(step))
            x, y, z = frame.T @ (step / length)
            about_x, about_y = math.atan2(-y, z), math.asin(min(max(x, -1.0), 1.0))
            positions += [about_x, about_y, length - rest_length]
            frame = frame @ _turn_x(about_x) @ _turn_y(about_y)
        return self.names, np.array(positions)


def _rest_lengths(rig: Rig) -> Array:
    """Return the length of every section [m], shares of the arm's length at rest."""
    model = rig.model()
    tips = model.shape_of(model.rest_configuration).section_tips[:, :3, 3]
    chords = np.linalg.norm(np.diff(np.vstack([np.zeros(3), tips]), axis=0), axis=1)
    if len(chords) != len(rig.section_names):
        chords = np.ones(len(rig.section_names))
    return np.asarray(model.rest_length_m * chords / np.sum(chords))


def _points(centerline: Array, lengths: Array, links: int) -> Array:
    """Return the ends of all links (sections * links + 1, 3) [m] on a centreline (n, 3)."""
    ends = np.concatenate([[0.0], np.cumsum(np.repeat(lengths, links) / links)]) / np.sum(lengths)
    at = np.linspace(0.0, 1.0, len(centerline))
    return np.stack([np.interp(ends, at, axis) for axis in centerline.T], axis=1)


def _turn_x(angle: float) -> Array:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def _turn_y(angle: float) -> Array:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def _add_piece(
    robot: ET.Element, name: str, parent: str, offset: float, step: float, radius: float
) -> str:
    """Append a link with its three joints at `offset` [m] of the parent; return its name."""
    for joint, kind, axis, child, at, limit in (
        ('about_x', 'revolute', 'x', f'{name}_cross', offset, _TURN_RAD),
        ('about_y', 'revolute', 'y', f'{name}_slide', 0.0, _TURN_RAD),
        ('along_z', 'prismatic', 'z', name, 0.0, _STRETCH * step),
    ):
        link = add_link(robot, child)
        element = add_joint(robot, kind, f'{name}_{joint}', parent, child, at)
        ET.SubElement(element, 'axis', xyz=AXES[axis])
        ET.SubElement(
            element,
            'limit',
            lower=number(-limit),
            upper=number(limit),
            effort='0',
            velocity=number(limit),
        )
        parent = child
    add_cylinder(link, 'visual', 0.0, step, radius, 'body')
    add_cylinder(link, 'collision', 0.0, step, radius, None)
    return name
