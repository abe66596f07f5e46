"""Workspace of an arm's tip, sampled by random configurations within the limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import build_pretension

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

_CHUNK = 100_000
_REPORTED = 2_000  # samples between two reports of the progress
_DRAWN = 60_000
_CELL_M = 0.004
_TRIED = 20
_REST_POINTS = 50  # of the arm at rest
_DOTS_AREA = 10_000.0  # of all dots of a picture together [pt^2]


@dataclass(frozen=True)
class Workspace:
    """
    Sampled tip positions (n, 3) [m], base frame.

    `use` (n,) is the largest share of a limit that each configuration uses; `duration_s` the
    computing time of the kinematics; `drawn` the number of configurations drawn, including those
    that the actuators cannot hold.
    """

    tips: Array
    use: Array
    duration_s: float
    drawn: int


def expected_s(rig: Rig, samples: int) -> float:
    """Return an estimate of the time [s] for a number of samples, from a few of them."""
    sample_workspace(rig, 1, 0)  # loads compiled code before the timing
    began = time.perf_counter()
    sample_workspace(rig, _TRIED, 0)
    return (time.perf_counter() - began) * samples / _TRIED


def sample_workspace(
    rig: Rig, samples: int, seed: int, progress: Callable[[float], None] | None = None
) -> Workspace:
    """
    Return tips of random configurations of a rig's default model within the arm's limits.

    `progress` is called with the share (0 to 1) of the samples that are finished.
    """
    model, limits = rig.model(), rig.configuration_limits()
    room = build_pretension(rig).room(rig.actuator_limits())
    rng = np.random.default_rng(seed)
    tips, use, duration, done = [], [], 0.0, 0
    model.tips_of(model.rest_configuration[None])  # loads compiled code before the timing
    for start in range(0, samples, _CHUNK):
        drawn = rig.arm.sample_configurations(model, rng, min(_CHUNK, samples - start))
        for few in np.split(drawn, range(_REPORTED, len(drawn), _REPORTED)):
            configurations = rig.arm.those_held(model, few, room)
            began = time.perf_counter()
            tips.append(model.tips_of(configurations))
            duration += time.perf_counter() - began
            use.append(limits.use(configurations))
            done += len(few)
            if progress is not None:
                progress(done / samples)
    return Workspace(np.concatenate(tips), np.concatenate(use), duration, samples)


def describe(rig: Rig, workspace: Workspace) -> Iterator[str]:
    """
    Yield the lines that `softarm workspace` prints.

    Raises
    ------
    UsageError
        If the actuators hold none of the configurations.

    """
    tips, drawn = workspace.tips, workspace.drawn
    if len(tips) == 0:
        raise UsageError(
            f'{rig.name}: actuators within their ranges hold none of {drawn} configurations; '
            'see `softarm check` for the ranges, or draw more (--samples)'
        )
    radius_mm = 1e3 * np.linalg.norm(tips[:, :2], axis=1)
    low_mm, high_mm = 1e3 * tips[:, 2].min(), 1e3 * tips[:, 2].max()
    count = f'{len(tips)}' if len(tips) == drawn else f'{len(tips)} of {drawn}'
    yield f'{rig.name}: {count} configurations within the limits of {rig.default_model}'
    yield f'distance from the axis  {radius_mm.min():.1f} to {radius_mm.max():.1f} mm'
    yield f'z along the arm         {low_mm:.1f} to {high_mm:.1f} mm'
    yield f'kinematics              {1e6 * workspace.duration_s / len(tips):.2f} us a pose'


def draw_workspace(rig: Rig, workspace: Workspace, path: Path) -> Path:
    """
    Draw tips from the side and along the arm, coloured by the share of the limits used.

    Raises
    ------
    UsageError
        If the file cannot be written.

    """
    from softarm_ros.cli.report_plotting import new_figure, save

    tips = 1e3 * workspace.tips[:_DRAWN]
    use = workspace.use[:_DRAWN]
    model = rig.model()
    length = 1e3 * model.rest_length_m
    try:
        rest = 1e3 * model.shape_of(model.rest_configuration).centerline(_REST_POINTS)
    except ModelError:  # an arm that falls aside has no rest
        rest = np.empty((0, 3))
    figure = new_figure(3.8)
    side, along = figure.subplots(1, 2)
    slab = np.abs(tips[:, 1]) < 0.25 * np.abs(tips[:, 0]) + 1e3 * _CELL_M
    _scatter(side, np.stack([tips[slab, 0], tips[slab, 2]]), use[slab], ('x', 'z'))
    shown = _scatter(along, tips[:, :2].T, use, ('x', 'y'))
    side.plot(rest[:, 0], rest[:, 2], color='black', linewidth=2.0)
    along.plot(rest[:, 0], rest[:, 1], color='black', linewidth=2.0)
    # Few tips span little: the axes contain the arm, bent to any side.
    wide = 1.05 * max(float(np.abs(tips[:, :2]).max()), 0.5 * length)
    side.set_xlim(-wide, wide)
    along.set(xlim=(-wide, wide), ylim=(-wide, wide))
    figure.colorbar(shown, ax=along, label='largest share of a limit used', shrink=0.8)
    shown_arm = '\nblack: the arm at rest' if len(rest) else ''
    side.set_title(f'side, tips near y = 0{shown_arm}', fontsize=8.0)
    along.set_title('along z', fontsize=8.0)
    return save(figure, path)


def _scatter(axes: Axes, points: Array, use: Array, names: tuple[str, str]) -> PathCollection:
    axes.set_aspect('equal')
    axes.set_xlabel(f'{names[0]} [mm]')
    axes.set_ylabel(f'{names[1]} [mm]')
    area = float(np.clip(_DOTS_AREA / max(len(use), 1), 1.0, 20.0))  # few dots must be visible
    return axes.scatter(
        points[0], points[1], c=use, s=area, cmap='viridis', vmin=0.0, vmax=1.0, linewidths=0.0
    )
