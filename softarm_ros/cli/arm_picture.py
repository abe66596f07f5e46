"""Drawings of an arm in motion: a few moments in one picture, or one moment of an animation."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LightSource, to_rgba
from matplotlib.figure import Figure
from numpy.typing import NDArray

from softarm_ros.cli.motion import Motion
from softarm_ros.cli.report_plotting import PALETTE, REFERENCE_COLOUR, SMALL_SIZE
from softarm_ros.cli.viewer.standpoint import standpoint
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.section_points import sections_at_rest
from softarm_ros.rigs.drawing import carried_axes
from softarm_ros.rigs.schema import Rig

SNAPSHOTS = 5
_AROUND = 20
_TICK_SIZE = 7.0
_SECTION_COLOURS = ('#e8a15c', '#c9773d', '#d9b38c', '#b5653a')
_FAINTEST, _FAINT = 0.25, 0.6  # opacity of the moments before the last
_EARLIER_WIDTH = 5.0
_ZOOM = 0.86
_LIGHT_FROM = np.array([-0.5, 0.5, np.sqrt(0.5)])  # unit vector in the drawn axes
_LABELS_IN = np.array([1.75, 1.0])  # width and height for labels, which have a fixed size
_NARROWEST = 0.35  # of the largest extent: numbers along a shorter axis would overlap
_ELEVATION_DEG = 18.0


class Mounting:
    """
    Arrangement of the base frame's axes in a drawing: the axis nearest to the vertical is upright.

    Parameters
    ----------
    rig : Rig
        Rig whose gravity determines the mounting; without gravity, the arm stands.

    Attributes
    ----------
    names : str
        Names of the three drawn axes: two level ones, then the vertical one.
    signs : (3,)
        -1 for inverted axes. None or two are inverted, which is a half turn: a single inverted
        axis would mirror the arm.
    azimuth_deg : float
        Azimuth of the eye; z of an arm that lies runs across the picture.

    """

    def __init__(self, rig: Rig) -> None:
        up = standpoint(rig.gravity_m_s2, 1.0).up
        vertical = int(np.argmax(np.abs(up)))
        self._turns = -(vertical + 1)
        self.names = 'xyzxy'[vertical + 1 :][:2] + 'xyz'[vertical]
        along_first = self.names[1] == 'z'
        self.azimuth_deg = -30.0 if along_first else -60.0
        down = up[vertical] < 0.0
        self.signs = np.array([-1.0, 1.0, -1.0] if along_first else [1.0, -1.0, -1.0])
        self.signs = self.signs if down else np.ones(3)

    def drawn(self, points: Array) -> Array:
        """Return points (..., 3) of the base frame, reordered to the drawn axes."""
        return np.roll(points, self._turns, axis=-1)

    def light(self) -> LightSource:
        """Return a light source above the arm."""
        x, y, z = self.signs * _LIGHT_FROM
        azimuth, altitude = np.rad2deg([np.arctan2(y, x), np.arcsin(z)])
        return LightSource(azdeg=90.0 - azimuth, altdeg=altitude)


def draw_moments(figure: Figure, rig: Rig, motion: Motion) -> None:
    """Draw the body as it is mounted: the last moment as a tube, earlier ones faint."""
    ax = set_axes(figure, rig, motion)
    chosen = Mounting(rig).drawn(motion.bodies[motion.at(SNAPSHOTS)])
    opacity = np.linspace(_FAINTEST, _FAINT, len(chosen))
    section = sections_of(rig, motion)
    earlier: dict[str, Any] = {'linewidth': _EARLIER_WIDTH, 'clip_on': False}
    for body, alpha in zip(chosen[:-1], opacity):
        for k, part in enumerate(_parts(1e3 * body, section)):
            colour = _SECTION_COLOURS[k % len(_SECTION_COLOURS)]
            ax.plot(*part.T, color=colour, alpha=float(alpha), **earlier)
    draw_moment(ax, rig, motion, len(motion.times_s) - 1, section)
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc='upper right', fontsize=SMALL_SIZE, frameon=False)


def set_axes(figure: Figure, rig: Rig, motion: Motion) -> Axes:
    """Return axes that contain the whole motion, with the reference path drawn."""
    ax = figure.add_subplot(projection='3d', computed_zorder=False)
    mounting = Mounting(rig)
    path = 1e3 * mounting.drawn(motion.path)
    points = 1e3 * np.concatenate([motion.bodies.reshape(-1, 3), motion.tips, motion.path])
    points = mounting.drawn(points)
    margin = 1e3 * max(rig.body_radii_m())
    low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
    lacking = np.maximum(_NARROWEST * np.max(high - low) - (high - low), 0.0)
    low, high = low - 0.5 * lacking, high + 0.5 * lacking
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    span = high - low
    box = span / np.max(span)
    # Flat boxes are enlarged to use the figure; all must fit in it together with labels.
    size, azimuth = float(np.linalg.norm(box)), np.deg2rad(mounting.azimuth_deg)
    floor = box[:2] @ np.abs([np.cos(azimuth), np.sin(azimuth)])
    wide = box[:2] @ np.abs([np.sin(azimuth), np.cos(azimuth)]) / size
    elevation = np.deg2rad(_ELEVATION_DEG)
    tall = float(box[2] * np.cos(elevation) + floor * np.sin(elevation)) / size
    fills = float(np.sqrt(3.0)) / size
    inches = figure.get_size_inches()
    widest, tallest = (inches - _LABELS_IN) / inches[1]  # 1: fills the height
    ax.set_box_aspect(box, zoom=min(_ZOOM * fills, tallest / tall, widest / float(wide)))
    for axis, name, sign in zip('xyz', mounting.names, mounting.signs):
        getattr(ax, f'set_{axis}label')(f'{name} [mm]', fontsize=SMALL_SIZE)
        if sign < 0.0:
            getattr(ax, f'invert_{axis}axis')()
    ax.locator_params(nbins=4)
    ax.tick_params(labelsize=_TICK_SIZE)
    ax.view_init(elev=_ELEVATION_DEG, azim=mounting.azimuth_deg)
    figure.set_layout_engine('none')
    ax.set_position((0.0, 0.02, 0.92, 0.96))
    ax.plot(
        *path.T,
        color=REFERENCE_COLOUR,
        linestyle='--',
        clip_on=False,  # the axes are square, the figure is wider
        linewidth=1.1,
        zorder=4,
        label='reference',
    )
    return ax


def sections_of(rig: Rig, motion: Motion) -> NDArray[np.int64]:
    """Return the section index of each body point of a motion, by the arm at rest."""
    return sections_at_rest(rig.model(), motion.bodies.shape[1])


def draw_moment(
    ax: Axes, rig: Rig, motion: Motion, index: int, section: NDArray[np.int64]
) -> list[Artist]:
    """
    Draw the body at one moment and the path of its tip so far; return the artists.

    `section` is the section index of each body point (`sections_of`).
    """
    mounting = Mounting(rig)
    radii = 1e3 * np.array(rig.body_radii_m())
    tube = _tube(ax, 1e3 * motion.bodies[index], radii, section, mounting)
    (travelled,) = ax.plot(
        *(1e3 * mounting.drawn(motion.tips[: index + 1]).T),
        color=PALETTE[0],
        linewidth=1.1,
        clip_on=False,
        zorder=4,
        label=f'tip, {motion.loop}' if motion.loop else 'tip',
    )
    return [tube, travelled]


def _parts(points: Array, section: NDArray[np.int64]) -> list[Array]:
    """Return the points of each section; neighbouring sections share one point."""
    last = [int(np.flatnonzero(section == k)[-1]) for k in range(section[-1] + 1)]
    return [points[a : b + 1] for a, b in pairwise([0, *last])]


def _tube(
    ax: Axes, points: Array, radii: Array, section: NDArray[np.int64], mounting: Mounting
) -> Artist:
    """Draw a tube around a line (n, 3) [mm]; `radii` are by section, `section` (n,) by point."""
    angle = np.linspace(0.0, 2.0 * np.pi, _AROUND)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rings = [
        point + radii[k] * circle @ across
        for point, across, k in zip(points, carried_axes(points), section)
    ]
    colours = np.array([to_rgba(c) for c in _SECTION_COLOURS])[section % len(_SECTION_COLOURS)]
    surface: Artist = ax.plot_surface(  # type: ignore[attr-defined]
        *np.moveaxis(mounting.drawn(np.array(rings)), 2, 0),
        facecolors=np.repeat(colours[:, None], _AROUND, axis=1),
        linewidth=0.0,
        zorder=3,
        antialiased=False,
        clip_on=False,
        shade=True,
        lightsource=mounting.light(),
        rstride=1,
        cstride=1,
    )
    return surface
