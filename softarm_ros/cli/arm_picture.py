"""An arm in motion, drawn: a few moments in one picture, or one moment of an animation."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LightSource, to_rgba
from matplotlib.figure import Figure
from numpy.typing import NDArray

from softarm_ros.cli.motion import Motion
from softarm_ros.cli.report_plotting import PALETTE, REFERENCE_COLOUR, SMALL_SIZE
from softarm_ros.cli.viewer.tube import carried_axes
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.section_points import sections_at_rest
from softarm_ros.rigs.schema import Rig

SNAPSHOTS = 5
_AROUND = 20
_TICK_SIZE = 7.0
_SECTION_COLOURS = ('#e8a15c', '#c9773d', '#d9b38c', '#b5653a')
_FAINTEST, _FAINT = 0.25, 0.6  # of the moments before the last
_EARLIER_WIDTH = 5.0
_ZOOM = 0.86
_LONGEST = 0.7  # of a box's edges, as a share of what fills the figure


def draw_moments(figure: Figure, rig: Rig, motion: Motion) -> None:
    """Draw the body: the last moment as a tube, earlier ones faint; hanging arms hang."""
    ax = set_axes(figure, rig, motion)
    chosen = motion.bodies[motion.at(SNAPSHOTS)]
    opacity = np.linspace(_FAINTEST, _FAINT, len(chosen))
    section = sections_of(rig, motion)
    for body, alpha in zip(chosen[:-1], opacity):
        for k, part in enumerate(_parts(1e3 * body, section)):
            colour = _SECTION_COLOURS[k % len(_SECTION_COLOURS)]
            ax.plot(*part.T, color=colour, alpha=float(alpha), linewidth=_EARLIER_WIDTH)
    draw_moment(ax, rig, motion, len(motion.times_s) - 1, section)
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc='upper right', fontsize=SMALL_SIZE, frameon=False)


def set_axes(figure: Figure, rig: Rig, motion: Motion) -> Axes:
    """Return axes in which all of a motion fits, with the reference path drawn."""
    ax = figure.add_subplot(projection='3d', computed_zorder=False)
    points = 1e3 * np.concatenate([motion.bodies.reshape(-1, 3), motion.tips, motion.path])
    margin = 1e3 * max(rig.body_radii_m())
    low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    span = high - low
    box = span / np.max(span)
    # Flat boxes leave room that a cube would fill; of slender ones the ends have to stay inside.
    size = float(np.linalg.norm(box))
    ax.set_box_aspect(box, zoom=min(_ZOOM * float(np.sqrt(3.0)) / size, _LONGEST * size))
    if rig.gravity_m_s2[2] > 0.0:
        ax.invert_zaxis()  # z of the base frame points down: drawn as the arm hangs
    ax.set_xlabel('x [mm]', fontsize=SMALL_SIZE)
    ax.set_ylabel('y [mm]', fontsize=SMALL_SIZE)
    ax.set_zlabel('z [mm]', fontsize=SMALL_SIZE)
    ax.locator_params(nbins=4)
    ax.tick_params(labelsize=_TICK_SIZE)
    ax.view_init(elev=18.0, azim=-60.0)
    figure.set_layout_engine('none')
    ax.set_position((0.0, 0.02, 0.92, 0.96))
    ax.plot(
        *(1e3 * motion.path.T),
        color=REFERENCE_COLOUR,
        linestyle='--',
        linewidth=1.1,
        zorder=4,
        label='reference',
    )
    return ax


def sections_of(rig: Rig, motion: Motion) -> NDArray[np.int64]:
    """Return the section of each point of the bodies of a motion, by the arm at rest."""
    return sections_at_rest(rig.model(), motion.bodies.shape[1])


def draw_moment(
    ax: Axes, rig: Rig, motion: Motion, index: int, section: NDArray[np.int64]
) -> list[Artist]:
    """
    Draw the body at one moment and the path of its tip so far; return what was drawn.

    `section`: of each point of the body (`sections_of`).
    """
    from_above = -1.0 if rig.gravity_m_s2[2] > 0.0 else 1.0
    light = LightSource(azdeg=315.0, altdeg=45.0 * from_above)
    radii = 1e3 * np.array(rig.body_radii_m())
    tube = _tube(ax, 1e3 * motion.bodies[index], radii, section, light)
    (travelled,) = ax.plot(
        *(1e3 * motion.tips[: index + 1].T),
        color=PALETTE[0],
        linewidth=1.1,
        zorder=4,
        label=f'tip, {motion.loop}' if motion.loop else 'tip',
    )
    return [tube, travelled]


def _parts(points: Array, section: NDArray[np.int64]) -> list[Array]:
    """Return the points of each section, neighbours sharing one."""
    last = [int(np.flatnonzero(section == k)[-1]) for k in range(section[-1] + 1)]
    return [points[a : b + 1] for a, b in pairwise([0, *last])]


def _tube(
    ax: Axes, points: Array, radii: Array, section: NDArray[np.int64], light: LightSource
) -> Artist:
    """Draw a tube around a line (n, 3) [mm]; its points are of `section`s (n,) of these radii."""
    angle = np.linspace(0.0, 2.0 * np.pi, _AROUND)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rings = [
        point + radii[k] * circle @ across
        for point, across, k in zip(points, carried_axes(points), section)
    ]
    colours = np.array([to_rgba(c) for c in _SECTION_COLOURS])[section % len(_SECTION_COLOURS)]
    surface: Artist = ax.plot_surface(  # type: ignore[attr-defined]
        *np.moveaxis(np.array(rings), 2, 0),
        facecolors=np.repeat(colours[:, None], _AROUND, axis=1),
        linewidth=0.0,
        zorder=3,
        antialiased=False,
        shade=True,
        lightsource=light,
        rstride=1,
        cstride=1,
    )
    return surface
