"""A picture of an arm in motion: the simulated body at a few moments of a trajectory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LightSource, to_rgba
from matplotlib.figure import Figure
from numpy.typing import NDArray

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.report_plotting import PALETTE, REFERENCE_COLOUR, new_figure, save
from softarm_ros.cli.viewer.tube import carried_axes
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import build_plant
from softarm_ros.runtime.direct import run_direct
from softarm_ros.runtime.loop import CycleOutput, Phase

Array = NDArray[np.float64]
SNAPSHOTS = 5
_POINTS = 60
_AROUND = 20
_HEIGHT_IN = 5.0
_SECTION_COLOURS = ('#e8a15c', '#c9773d', '#d9b38c', '#b5653a')
_FAINTEST, _FAINT = 0.25, 0.6  # of the moments before the last
_EARLIER_WIDTH = 5.0
_ZOOM = 0.86


@dataclass(frozen=True)
class Motion:
    """
    An arm at a few moments, and where its tip went.

    Attributes
    ----------
    bodies : (k, n, 3)
        True centrelines [m], oldest first.
    tips : (m, 3)
        True path of the tip [m].
    path : (p, 3)
        Reference [m].
    joints : (k, sections, 3)
        True tips of the sections [m].

    """

    bodies: Array
    tips: Array
    path: Array
    joints: Array


def film(
    rig: Rig, trajectory: str | None, seed: int, should_stop: Callable[[], bool] = lambda: False
) -> Motion:
    """Drive a trajectory once in closed loop and keep the true shape of the body."""
    plant = build_plant(rig, seed)
    bodies, joints = [], []

    def keep(output: CycleOutput) -> None:
        if output.phase is Phase.TRACK:
            bodies.append(plant.true_centerline(_POINTS))
            joints.append(plant.true_section_tips()[:, :3, 3])

    record = run_direct(
        rig, trajectory, seed=seed, laps=1, plant=plant, progress=keep, should_stop=should_stop
    )
    if not bodies:
        raise UsageError(f'{rig.name}: the trajectory was not reached')
    chosen = np.linspace(0, len(bodies) - 1, SNAPSHOTS + 1).round().astype(int)[1:]
    tips = np.array([body[-1] for body in bodies])
    return Motion(
        np.array([bodies[i] for i in chosen]),
        tips,
        record.path,
        np.array([joints[i] for i in chosen]),
    )


def draw_motion(figure: Figure, rig: Rig, motion: Motion) -> None:
    """Draw the body: the last moment as a tube, earlier ones faint; hanging arms hang."""
    ax = figure.add_subplot(projection='3d', computed_zorder=False)
    radii = rig.body_radii_m()
    opacity = np.linspace(_FAINTEST, _FAINT, len(motion.bodies))
    for body, alpha in zip(motion.bodies[:-1], opacity):
        for k, part in enumerate(_parts(1e3 * body, len(radii))):
            colour = _SECTION_COLOURS[k % len(_SECTION_COLOURS)]
            ax.plot(*part.T, color=colour, alpha=float(alpha), linewidth=_EARLIER_WIDTH)
    _tube(ax, 1e3 * motion.bodies[-1], 1e3 * np.array(radii))
    for line, colour, style, label in (
        (motion.path, REFERENCE_COLOUR, '--', 'reference'),
        (motion.tips, PALETTE[0], '-', 'tip, closed loop'),
    ):
        ax.plot(
            *(1e3 * line.T), color=colour, linestyle=style, linewidth=1.1, zorder=4, label=label
        )
    points = 1e3 * np.concatenate([motion.bodies.reshape(-1, 3), motion.path])
    margin = 1e3 * max(radii)
    low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    span = high - low
    ax.set_box_aspect(span / np.max(span), zoom=_ZOOM)
    if rig.gravity_m_s2[2] > 0.0:
        ax.invert_zaxis()  # z of the base frame points down: drawn as the arm hangs
    ax.set_xlabel('x [mm]', fontsize=8.0)
    ax.set_ylabel('y [mm]', fontsize=8.0)
    ax.set_zlabel('z [mm]', fontsize=8.0)
    ax.locator_params(nbins=4)
    ax.tick_params(labelsize=7.0)
    ax.view_init(elev=18.0, azim=-60.0)
    figure.set_layout_engine('none')
    ax.set_position((0.0, 0.02, 0.92, 0.96))
    figure.legend(*ax.get_legend_handles_labels(), loc='upper right', fontsize=8.0, frameon=False)


def render(rig: Rig, trajectory: str | None, path: Path, seed: int = 0) -> Path:
    """
    Write a picture of a rig in motion.

    Raises
    ------
    UsageError
        If the file cannot be written or the trajectory is never reached.

    """
    motion = film(rig, trajectory, seed)
    figure = new_figure(_HEIGHT_IN)
    draw_motion(figure, rig, motion)
    try:
        return save(figure, path)
    except OSError as error:
        raise UsageError(f'{path}: cannot be written ({error.strerror})') from None


def _parts(points: Array, sections: int) -> list[Array]:
    """Return the points of each section, neighbours sharing one."""
    ends = np.linspace(0.0, len(points) - 1.0, sections + 1).round().astype(int)
    return [points[a : b + 1] for a, b in pairwise(ends)]


def _tube(ax: Axes, points: Array, radii: Array) -> None:
    """Draw a tube around a line (n, 3) [mm] whose sections, of equal share, have these radii."""
    section = np.minimum(
        (np.arange(len(points)) * len(radii) // (len(points) - 1)).astype(int), len(radii) - 1
    )
    angle = np.linspace(0.0, 2.0 * np.pi, _AROUND)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rings = [
        point + radii[k] * circle @ across
        for point, across, k in zip(points, carried_axes(points), section)
    ]
    colours = np.array([to_rgba(c) for c in _SECTION_COLOURS])[section % len(_SECTION_COLOURS)]
    ax.plot_surface(  # type: ignore[attr-defined]
        *np.moveaxis(np.array(rings), 2, 0),
        facecolors=np.repeat(colours[:, None], _AROUND, axis=1),
        linewidth=0.0,
        zorder=3,
        antialiased=False,
        shade=True,
        lightsource=LightSource(azdeg=315.0, altdeg=45.0),
        rstride=1,
        cstride=1,
    )
