"""Drawing of an arm as arrays: cylinders along its body and lines along its cables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.cable_driven.constant_curvature_kernels import arc_pose_into
from softarm_ros.models.section_points import sections_at_rest

if TYPE_CHECKING:
    from softarm_ros.models.cable_driven.mechanics import CableMechanics
    from softarm_ros.rigs.schema import Rig


@dataclass(frozen=True)
class Cylinder:
    """A cylinder of `radius` [m] from start to end (3,) [m]."""

    start: Array
    end: Array
    radius: float
    rigid: bool


class ArmDrawing(Protocol):
    """Draws an arm for any configuration."""

    def cylinders(self, configuration: Array) -> list[Cylinder]:
        """Return the body piece by piece; always the same number, in the same order."""
        ...

    def cables(self, configuration: Array) -> list[Array]:
        """Return lines (n, 3) [m] of the cables that can be drawn."""
        ...


def drawing_of(rig: Rig) -> ArmDrawing:
    """Return the drawing of a rig's arm: with cables if its sections are circular arcs."""
    outline = rig.outline()
    if outline.arcs is None:
        return CentrelineDrawing(rig)
    return CableArmDrawing(outline.arcs, outline.radii_m)


class CentrelineDrawing:
    """Draws an arm from its centreline and the radii of its sections, without cables."""

    def __init__(self, rig: Rig, pieces_per_section: int = 10) -> None:
        self._model = rig.model()
        radii = np.array(rig.body_radii_m())
        points = pieces_per_section * len(radii) + 1
        self._radii = radii[sections_at_rest(self._model, points)[1:]]

    def cylinders(self, configuration: Array) -> list[Cylinder]:
        """Return the body piece by piece; always the same number, in the same order."""
        points = self._model.shape_of(configuration).centerline(len(self._radii) + 1)
        return [
            Cylinder(start, end, float(radius), rigid=False)
            for start, end, radius in zip(points, points[1:], self._radii)
        ]

    def cables(self, configuration: Array) -> list[Array]:
        """Return no lines."""
        return []


class CableArmDrawing:
    """Cylinders of the body and lines of the cables of a cable-driven arm."""

    def __init__(
        self, arm: CableMechanics, radii_m: Sequence[float], pieces_per_section: int = 10
    ) -> None:
        self._sections, self._radii = arm.sections, tuple(radii_m)
        self._pieces = pieces_per_section
        names = [section.name for section in arm.sections]
        self._cables = [
            (names.index(cable.section), np.deg2rad(cable.angle_deg)) for cable in arm.cables
        ]

    def frames(self, configuration: Array) -> list[Array]:
        """
        Return, for each section, the frames (pieces + 3, 4, 4) along it in the base frame.

        They lie at the outer face of the first endcap, at both ends of every piece of the arc, and
        at the outer face of the second endcap.
        """
        start = np.eye(4)
        sections = []
        for k, section in enumerate(self._sections):
            bx, by = (float(b) for b in configuration[2 * k : 2 * k + 2])
            local = np.empty((self._pieces + 3, 4, 4))
            local[0] = np.eye(4)
            for i in range(self._pieces + 1):
                u = i / self._pieces
                arc = np.eye(4)
                arc_pose_into(u * bx, u * by, u * section.length_m, section.endcap_length_m, arc)
                local[i + 1] = arc
            cap = np.eye(4)
            cap[2, 3] = section.endcap_length_m
            local[-1] = local[-2] @ cap
            frames = start @ local
            sections.append(frames)
            start = frames[-1]
        return sections

    def cylinders(self, configuration: Array) -> list[Cylinder]:
        """Return the body piece by piece; always the same number, in the same order."""
        parts = []
        for radius, frames in zip(self._radii, self.frames(configuration)):
            points = frames[:, :3, 3]
            last = len(points) - 2
            for i in range(last + 1):
                parts.append(Cylinder(points[i], points[i + 1], radius, i in (0, last)))
        return parts

    def cables(self, configuration: Array) -> list[Array]:
        """Return a line (n, 3) [m] per cable: along the centre, then offset in its own section."""
        sections = self.frames(configuration)
        lines = []
        for section, angle in self._cables:
            through = [frames[:, :3, 3] for frames in sections[:section]]
            radius = self._sections[section].cable_radius_m
            offset = radius * np.array([np.cos(angle), np.sin(angle), 0.0])
            frames = sections[section][1:-1]
            along = frames[:, :3, 3] + frames[:, :3, :3] @ offset
            lines.append(np.vstack([*through, along]))
        return lines
