"""Figures of the fishbone arm's experiments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle

from softarm_reproduction.fishbone_arm_study import (
    BALL_CENTRE_M,
    BALL_RADIUS_M,
    BallRun,
    BendingLoop,
    ModuleRow,
    UnitRow,
)
from softarm_ros.cli.report_plotting import PALETTE, REFERENCE_COLOUR, label_axes, legend_above

_SHAPES = 12  # number of centrelines to draw along the path around the ball
_MODEL = Line2D([], [], color=REFERENCE_COLOUR, linestyle='--', linewidth=1.0, label='model')
_PLANT = Line2D([], [], color=PALETTE[0], linewidth=1.2, label='simulated arm')


def draw_unit(figure: Figure, rows: Sequence[UnitRow]) -> None:
    """Plot the unit's centrelines under its loads, and the tip error."""
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    for row in rows:
        for shape, line in ((row.rod_shape, _MODEL), (row.simulated_shape, _PLANT)):
            left.plot(
                1e3 * shape[:, 2],
                1e3 * shape[:, 1],
                color=line.get_color(),
                linestyle=line.get_linestyle(),
                linewidth=line.get_linewidth(),
            )
        z, y = 1e3 * row.rod_shape[-1, 2], 1e3 * row.rod_shape[-1, 1]
        left.annotate(
            f'{1e3 * row.mass_kg:.0f} g', (z, y), (4, -2), textcoords='offset points', fontsize=7
        )
    left.set_aspect('equal', adjustable='box')
    left.set_xlim(-2.0, 58.0)
    label_axes(left, 'z [mm]', 'y [mm]', 'curves of the unit')
    load = [1e3 * (row.mass_kg) for row in rows]
    right.plot(load, [1e3 * row.error_m for row in rows], 'o-', color=PALETTE[0])
    right.axhline(1.07, color=PALETTE[1], linewidth=1.0)
    right.text(load[0], 1.02, 'paper, largest', color=PALETTE[1], fontsize=8, va='top')
    right.set_ylim(0.0, 1.2)
    label_axes(right, 'load beside the disk [g]', 'tip error [mm]', 'model against arm')
    legend_above(figure, [_MODEL, _PLANT])


def draw_module(figure: Figure, rows: Sequence[ModuleRow]) -> None:
    """Plot the module's centrelines from above and from the side."""
    axes = figure.subplots(1, 2)
    for ax, axis, view in zip(axes, (0, 1), ('from above', 'from the side')):
        for row in rows:
            for shape, line in ((row.predicted_shape, _MODEL), (row.simulated_shape, _PLANT)):
                ax.plot(
                    1e3 * shape[:, 2],
                    1e3 * shape[:, axis],
                    color=line.get_color(),
                    linestyle=line.get_linestyle(),
                    linewidth=0.9,
                )
        label_axes(ax, 'z [mm]', f'{"xy"[axis]} [mm]', view)
    legend_above(figure, [_MODEL, _PLANT])


def draw_loop(figure: Figure, loop: BendingLoop) -> None:
    """Plot bending over tension."""
    ax = figure.subplots()
    line = [0.0, float(loop.tension_N[-1])]
    slope = float(np.degrees(loop.closed_form_rad[-1] / loop.tension_N[-1]))
    (model,) = ax.plot(
        line,
        [0.0, slope * line[1]],
        '--',
        color=REFERENCE_COLOUR,
        linewidth=1.0,
        label='T r L / (E I), and the rod',
    )
    handles = [model]
    for angles, label, marker, color in (
        (loop.loading_rad, 'simulated arm, pulled', '^', PALETTE[0]),
        (loop.unloading_rad, 'simulated arm, let go', 'v', PALETTE[1]),
    ):
        handles += ax.plot(
            loop.tension_N, np.degrees(angles), marker + '-', color=color, label=label
        )
    ax.set_xlim(0.0, None)
    ax.set_ylim(0.0, None)
    label_axes(ax, 'tension [N]', 'bending of the unit [deg]')
    legend_above(figure, handles)


def draw_ball(figure: Figure, closed: BallRun, opened: BallRun) -> None:
    """Plot the path around the ball from the front and from the side."""
    front, side = figure.subplots(1, 2)
    handles = []
    step = max(len(closed.shapes) // _SHAPES, 1)
    for ax, (i, j) in ((front, (0, 1)), (side, (2, 1))):
        for shape in closed.shapes[::step]:
            ax.plot(1e3 * shape[:, i], 1e3 * shape[:, j], color='#999999', linewidth=0.7)
        handles = [
            ax.plot(
                1e3 * run.tips[:, i], 1e3 * run.tips[:, j], color=color, linewidth=1.2, label=label
            )[0]
            for run, color, label in (
                (opened, PALETTE[1], 'tip, open loop'),
                (closed, PALETTE[0], 'tip, closed loop'),
            )
        ]
        centre = (1e3 * BALL_CENTRE_M[i], 1e3 * BALL_CENTRE_M[j])
        ax.add_patch(Circle(centre, 1e3 * BALL_RADIUS_M, color=PALETTE[2], alpha=0.5))
        ax.set_aspect('equal', adjustable='datalim')
        label_axes(ax, f'{"xyz"[i]} [mm]', f'{"xyz"[j]} [mm]')
    front.set_title('from the front', fontsize=9, loc='left')
    side.set_title('from the side', fontsize=9, loc='left')
    arm = Line2D([], [], color='#999999', linewidth=0.7, label='centreline, closed loop')
    ball = Line2D([], [], color=PALETTE[2], alpha=0.5, linewidth=6.0, label='ball')
    legend_above(figure, [*handles, arm, ball], columns=4)
