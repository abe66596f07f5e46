"""The arm in three dimensions: body, strands by effort, tip, reference, paths, other models."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softarm_ros.cli.viewer.standpoint import standpoint
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel, ModelError
from softarm_ros.rigs.drawing import (
    OUTSIDE,
    Centreline,
    centreline_of,
    strand_colours,
    strand_lines,
    tube,
)
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.view_state import ViewState, drawn_configuration

POINTS = 61  # number of points of the centreline
TRAIL = 600  # number of tip positions kept
_SECTION_COLOURS = ((222, 214, 202), (176, 168, 158))
_REFERENCE, _TIP, _ERROR, _PATH = (40, 90, 200), (30, 160, 80), (220, 40, 40), (120, 150, 220)
_DISK, _MARKER, _OBSTACLE = (70, 66, 62), (240, 160, 20), (150, 160, 172)
_GHOSTS = ((120, 90, 200), (60, 160, 170), (200, 90, 150))
_GAMMA = 2.2


class ArmScene:
    """
    Draws states of one arm on a viser server (or its `scene`).

    Parameters
    ----------
    scene : viser.SceneApi
        Scene to draw on.
    rig : Rig
        Rig of the arm.

    """

    def __init__(self, scene: Any, rig: Rig) -> None:
        self._scene, self._rig = scene, rig
        self._model = rig.model()
        self._radii = rig.body_radii_m()
        self._strands = rig.arm.strands()
        self._limits = rig.actuator_limits()
        self._trail: deque[Array] = deque(maxlen=TRAIL)
        self._others: dict[str, ArmModel] = {}
        self._ghosts: dict[str, Any] = {}
        length = self._model.rest_length_m
        self._mark = 0.012 * length
        where = standpoint(rig.gravity_m_s2, length)
        scene.set_up_direction(where.up)
        scene.add_grid(
            '/ground',
            2.0 * length,
            2.0 * length,
            cell_size=0.1 * length,
            section_size=length,
            cell_color=(232, 232, 232),
            section_color=(205, 205, 205),
            wxyz=where.floor_wxyz,
            position=where.floor,
        )
        scene.add_frame('/base', axes_length=0.12 * length, axes_radius=0.004 * length)
        for box in rig.obstacles:
            x, y, z, w = box.quaternion
            scene.add_box(
                f'/obstacles/{box.name}',
                _OBSTACLE,
                box.size_m,
                wxyz=(w, x, y, z),
                position=box.centre_m,
                opacity=0.5,
            )
        line = centreline_of(self._model.shape_of(self._model.rest_configuration), POINTS)
        self._bodies = self._body(line)
        self._lines = (
            scene.add_line_segments(
                '/arm/strands', *self._strand_segments(line, None), thickness=0.006 * length
            )
            if self._strands
            else None
        )
        ends = self._ends(line)
        self._disks = scene.add_line_segments(
            '/arm/disks', ends, np.array(_DISK, dtype=np.uint8), thickness=0.004 * length
        )
        self._measured = scene.add_point_cloud(
            '/sections',
            np.zeros((1, 3), dtype=np.float32),
            _MARKER,
            point_size=0.8 * self._mark,
            point_shape='circle',
            precision='float32',
            visible=False,
        )
        self._tip = scene.add_icosphere('/tip', self._mark, _TIP, visible=False)
        self._reference = scene.add_icosphere('/reference', self._mark, _REFERENCE, visible=False)
        self._path = self._line('/reference_path', _PATH)
        self._travelled = self._line('/travelled', _TIP)
        self._error = self._line('/error', _ERROR)

    def show(self, state: ViewState) -> None:
        """Draw the known parts of a state; the marks first, as they need no model."""
        self._marks(state)
        configuration = drawn_configuration(self._model, state)
        if configuration is not None:
            try:
                shape = self._model.shape_of(configuration)
            except ModelError:
                shape = None  # a measurement outside the model's domain
            if shape is not None:
                self._move(centreline_of(shape, POINTS), state)
        self._models(state)

    def show_path(self, points: Array | None) -> None:
        """Draw the reference path (n, 3) [m]."""
        self._set_line(self._path, points)

    def forget_trail(self) -> None:
        """Clear the travelled path."""
        self._trail.clear()

    def overlay(self, names: Sequence[str]) -> None:
        """Show, beside the measured arm, its shape in the named models at the actuators' state."""
        for name in [known for known in self._ghosts if known not in names]:
            self._ghosts.pop(name).remove()
        self._others = {name: self._others.get(name) or self._rig.model(name) for name in names}

    @property
    def length_m(self) -> float:
        """Length of the arm at rest [m]."""
        return float(self._model.rest_length_m)

    def _body(self, line: Centreline) -> list[Any]:
        return [
            self._scene.add_mesh_simple(
                f'/arm/section_{k}',
                vertices.astype(np.float32),
                triangles.astype(np.uint32),
                color=_SECTION_COLOURS[k % 2],
            )
            for k, (vertices, triangles) in enumerate(self._pieces(line))
        ]

    def _pieces(self, line: Centreline) -> list[tuple[Array, NDArray[np.int64]]]:
        """Return a tube for each section; neighbours share the ring between them."""
        pieces = []
        for k, radius in enumerate(self._radii):
            on = np.flatnonzero(line.section == k)
            on = np.unique(np.concatenate([[max(on[0] - 1, 0)], on]))
            own = Centreline(line.points[on], line.across[on], np.zeros(len(on), dtype=np.int64))
            pieces.append(tube(own, (radius,)))
        return pieces

    def _move(self, line: Centreline, state: ViewState) -> None:
        for mesh, (vertices, triangles) in zip(self._bodies, self._pieces(line)):
            mesh.vertices = vertices.astype(np.float32)
            if len(mesh.faces) != len(triangles):  # points have moved from one section to the next
                mesh.faces = triangles.astype(np.uint32)
        self._disks.points = self._ends(line)
        if self._lines is not None:
            segments, colours = self._strand_segments(line, state.command)
            self._lines.points, self._lines.colors = segments, colours

    def _ends(self, line: Centreline) -> NDArray[np.float32]:
        """Return rings, as segments (n, 2, 3), around the ends of the sections."""
        angle = np.linspace(0.0, 2.0 * np.pi, 25)
        around = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        segments = []
        for k, radius in enumerate(self._radii):
            at = np.flatnonzero(line.section == k)[-1]
            ring = line.points[at] + OUTSIDE * radius * (around @ line.across[at])
            segments.append(np.stack([ring[:-1], ring[1:]], axis=1))
        return np.concatenate(segments).astype(np.float32)

    def _strand_segments(
        self, line: Centreline, command: Array | None
    ) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        """Return segments (n, 2, 3), and colours by the command's share of the range."""
        segments, colours = [], []
        lines = strand_lines(line, self._strands, self._radii)
        for points, colour in zip(lines, strand_colours(self._strands, command, self._limits)):
            segments.append(np.stack([points[:-1], points[1:]], axis=1))
            colours.append(np.broadcast_to(colour, (len(points) - 1, 2, 3)))
        return (
            np.concatenate(segments).astype(np.float32),
            _as_light(np.concatenate(colours)),
        )

    def _marks(self, state: ViewState) -> None:
        for handle, position in ((self._tip, state.tip), (self._reference, state.reference)):
            handle.visible = position is not None
            if position is not None:
                handle.position = tuple(position)
        if state.tip is not None and (
            not self._trail or np.linalg.norm(state.tip - self._trail[-1]) > 2e-4
        ):
            self._trail.append(state.tip)
        self._set_line(self._travelled, np.array(self._trail))
        self._measured.visible = state.sections is not None
        if state.sections is not None:
            self._measured.points = state.sections.astype(np.float32)
        both = state.tip is not None and state.reference is not None
        self._set_line(self._error, np.array([state.tip, state.reference]) if both else None)

    def _models(self, state: ViewState) -> None:
        """Draw the centreline of each other model at the actuators' state."""
        if state.position is None:
            return
        for k, (name, model) in enumerate(self._others.items()):
            try:
                points = model.forward(state.position).centerline(POINTS)
            except ValueError:  # outside this model's domain
                points = None
            if name not in self._ghosts:
                self._ghosts[name] = self._line(f'/models/{name}', _GHOSTS[k % len(_GHOSTS)], 3.0)
            self._set_line(self._ghosts[name], points)

    def _line(self, name: str, colour: tuple[int, int, int], wide: float = 1.0) -> Any:
        return self._scene.add_line_segments(
            name,
            np.zeros((1, 2, 3), dtype=np.float32),
            np.array(colour, dtype=np.uint8),
            thickness=wide * 0.25 * self._mark,
            visible=False,
        )

    def _set_line(self, handle: Any, points: Array | None) -> None:
        handle.visible = points is not None and len(points) > 1
        if points is not None and len(points) > 1:
            handle.points = np.stack([points[:-1], points[1:]], axis=1).astype(np.float32)


def _as_light(colours: Array) -> NDArray[np.uint8]:
    """Return colours of points in linear light, as the browser expects them."""
    return np.asarray(np.round(255.0 * (colours / 255.0) ** _GAMMA), dtype=np.uint8)
