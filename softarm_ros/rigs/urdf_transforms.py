"""Link transforms of an arm from its URDF, as robot_state_publisher would send them."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array

Linked = tuple[str, str, Array]


@dataclass(frozen=True)
class _Joint:
    name: str
    kind: str
    parent: str
    child: str
    origin: Array
    axis: Array

    def transform(self, value: float) -> Array:
        """Return the child's frame in the parent's (4, 4) at a position [rad or m]."""
        motion = np.eye(4)
        if self.kind == 'prismatic':
            motion[:3, 3] = value * self.axis
        elif self.kind != 'fixed':
            x, y, z = self.axis
            cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
            motion[:3, :3] += math.sin(value) * cross + (1.0 - math.cos(value)) * cross @ cross
        return self.origin @ motion


class LinkTransforms:
    """
    The frames of all links, each in its parent's frame, from a URDF of this package.

    The origin of a joint lies on the parent's z axis; a joint is fixed, prismatic or revolute.
    """

    def __init__(self, urdf: str) -> None:
        joints = [_read(element) for element in ET.fromstring(urdf).findall('joint')]
        self._fixed = [joint for joint in joints if joint.kind == 'fixed']
        self._movable = [joint for joint in joints if joint.kind != 'fixed']

    def fixed(self) -> list[Linked]:
        """Return parent, child and transform (4, 4) of the joints that never move."""
        return [(j.parent, j.child, j.transform(0.0)) for j in self._fixed]

    def moving(self, positions: Mapping[str, float]) -> list[Linked]:
        """Return the same for movable joints at positions [rad, m]; KeyError without one."""
        return [(j.parent, j.child, j.transform(positions[j.name])) for j in self._movable]


def _read(element: ET.Element) -> _Joint:
    def attribute(tag: str, name: str, default: str = '') -> str:
        found = element.find(tag)
        return default if found is None else found.get(name, default)

    if any(_numbers(attribute('origin', 'rpy', '0 0 0'))):
        raise ValueError(f'joint {element.get("name")}: origin rpy is not zero')
    origin = np.eye(4)
    origin[:3, 3] = _numbers(attribute('origin', 'xyz', '0 0 0'))
    return _Joint(
        name=element.get('name', ''),
        kind=element.get('type', ''),
        parent=attribute('parent', 'link'),
        child=attribute('child', 'link'),
        origin=origin,
        axis=_numbers(attribute('axis', 'xyz', '1 0 0')),
    )


def _numbers(text: str) -> Array:
    return np.array([float(word) for word in text.split()])
