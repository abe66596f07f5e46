"""Where the tip of an arm can be: many random configurations within its bending limits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from softarm_ros.rigs.schema import Rig
from softarm_ros.tools.cli_errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

Array = NDArray[np.float64]
_CHUNK = 100_000
_DRAWN = 60_000
_CELL_M = 0.004


@dataclass(frozen=True)
class Workspace:
    """
    Sampled tip positions (n, 3) [m], base frame.

    `bending` (n, sections) [rad] of every sample; `duration_s` is the time the kinematics took.
    """

    tips: Array
    bending: Array
    duration_s: float


def sample_workspace(rig: Rig, samples: int, seed: int) -> Workspace:
    """Return tips of configurations drawn evenly over every section's disc of bending vectors."""
    model = rig.model('constant_curvature')
    limit = np.deg2rad([section.max_bending_angle_deg for section in rig.sections])
    rng = np.random.default_rng(seed)
    tips, bending, duration = [], [], 0.0
    model.tips_of(np.zeros((1, 2 * len(limit))))  # compiled code is loaded before time is taken
    for start in range(0, samples, _CHUNK):
        n = min(_CHUNK, samples - start)
        theta = limit * np.sqrt(rng.random((n, len(limit))))
        phi = rng.uniform(0.0, 2.0 * np.pi, theta.shape)
        bends = np.stack([theta * np.cos(phi), theta * np.sin(phi)], axis=2).reshape(n, -1)
        began = time.perf_counter()
        tips.append(model.tips_of(bends))
        duration += time.perf_counter() - began
        bending.append(theta)
    return Workspace(np.concatenate(tips), np.concatenate(bending), duration)


def describe(rig: Rig, workspace: Workspace) -> Iterator[str]:
    """Yield what `softarm workspace` prints."""
    tips = workspace.tips
    reach_mm = 1e3 * np.linalg.norm(tips[:, :2], axis=1).max()
    low_mm, high_mm = 1e3 * tips[:, 2].min(), 1e3 * tips[:, 2].max()
    limits = ', '.join(f'{section.max_bending_angle_deg:g}' for section in rig.sections)
    yield f'{rig.name}: {len(tips)} configurations, sections bending up to {limits} deg'
    yield f'distance from the axis  0.0 to {reach_mm:.1f} mm'
    yield f'height z                {low_mm:.1f} to {high_mm:.1f} mm'
    yield f'kinematics              {len(tips) / workspace.duration_s / 1e6:.1f} million poses/s'


def draw_workspace(rig: Rig, workspace: Workspace, path: Path) -> Path:
    """
    Write a picture: tips seen from the side and from above, coloured by the largest bending.

    Raises
    ------
    UsageError
        If the file cannot be written.

    """
    from softarm_ros.tools.report_plotting import new_figure, save

    tips = 1e3 * workspace.tips[:_DRAWN]
    bending = np.degrees(workspace.bending[:_DRAWN].max(axis=1))
    figure = new_figure(3.8)
    side, above = figure.subplots(1, 2)
    slab = np.abs(tips[:, 1]) < 0.25 * np.abs(tips[:, 0]) + 1e3 * _CELL_M
    _scatter(side, np.stack([tips[slab, 0], tips[slab, 2]]), bending[slab], ('x', 'z'))
    shown = _scatter(above, tips[:, :2].T, bending, ('x', 'y'))
    side.plot([0.0, 0.0], [0.0, 1e3 * rig.model().rest_length_m], color='black', linewidth=2.0)
    figure.colorbar(shown, ax=above, label='largest bending of a section [deg]', shrink=0.8)
    side.set_title('side, tips near the plane y = 0; black: the arm at rest', fontsize=8.0)
    above.set_title('from above', fontsize=8.0)
    try:
        return save(figure, path)
    except OSError as error:
        raise UsageError(f'--image {path}: cannot be written ({error.strerror})') from None


def _scatter(axes: Axes, points: Array, bending: Array, names: tuple[str, str]) -> PathCollection:
    axes.set_aspect('equal')
    axes.set_xlabel(f'{names[0]} [mm]')
    axes.set_ylabel(f'{names[1]} [mm]')
    return axes.scatter(points[0], points[1], c=bending, s=1.0, cmap='viridis', linewidths=0.0)
