"""Drawing of an arm for rviz: cylinders along its body, and strands by effort."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from softarm_ros.geometry.arrays import Array
from softarm_ros.rigs.drawing import centreline_of, strand_colours, strand_lines

if TYPE_CHECKING:
    from softarm_ros.rigs.schema import Rig


@dataclass(frozen=True)
class Cylinder:
    """A cylinder of `radius` [m] from start to end (3,) [m], a piece of one section."""

    start: Array
    end: Array
    radius: float
    section: int


@dataclass(frozen=True)
class Drawing:
    """
    An arm in one configuration, in the base frame.

    Attributes
    ----------
    body : list of Cylinder
        Pieces of the body; always the same number, from base to tip.
    strands : list of (n, 3)
        Lines of cables, chambers or muscles [m].
    colours : (len(strands), 3)
        Red, green and blue of each strand, from 0 to 255.

    """

    body: list[Cylinder]
    strands: list[Array]
    colours: Array


class ArmDrawing:
    """Draws an arm as the viewer does: its body along the model's centreline, and its strands."""

    def __init__(self, rig: Rig, pieces_per_section: int = 10) -> None:
        self._model, self._strands = rig.model(), rig.arm.strands()
        self._radii, self._limits = rig.body_radii_m(), rig.actuator_limits()
        self._points = pieces_per_section * len(self._radii) + 1

    def at(self, configuration: Array, command: Array | None) -> Drawing:
        """Return the drawing of a configuration, with strands coloured by a command."""
        line = centreline_of(self._model.shape_of(configuration), self._points)
        pieces = zip(line.points, line.points[1:], line.section[1:].tolist())
        return Drawing(
            [Cylinder(start, end, self._radii[k], k) for start, end, k in pieces],
            strand_lines(line, self._strands, self._radii),
            strand_colours(self._strands, command, self._limits),
        )
