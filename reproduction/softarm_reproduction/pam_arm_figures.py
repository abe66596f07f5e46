"""Figures of the muscle arm: valve tables, shapes, points and errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from softarm_reproduction.minimum_energy_study import (
    CURVES,
    POINTS,
    curve_points,
)
from softarm_reproduction.pam_arm_points import PointRun, muscle_model
from softarm_ros.cli.report_plotting import PALETTE, label_axes, legend_above
from softarm_ros.rigs.arms.muscle import MuscleArm
from softarm_ros.rigs.schema import Rig

# Experiments 1 to 3 of the paper are circle, square and cardioid (figures 9 to 14) [% of L].
PAPER_ERROR_PERCENT = {'circle': 2.457, 'square': 2.477, 'cardioid': 2.514}


def draw_table(figure: Figure, rig: Rig) -> None:
    """Plot the inflating and deflating tables of the valves."""
    ax = figure.subplots()
    table = MuscleArm.of(rig).valves.table()
    lines = []
    for curve, name, color in (
        (table.deflating, 'deflating', PALETTE[0]),
        (table.inflating, 'inflating', PALETTE[1]),
    ):
        t = np.linspace(curve.x[0], curve.x[-1], 200)
        lines += ax.plot(t, 1e3 * curve(t), color=color, label=name)
        ax.plot(curve.x, 1e3 * curve.y, 'o', color=color, markersize=3.0)
    label_axes(ax, 'valve open [s]', 'length [mm]')
    legend_above(figure, lines)


def draw_shapes(figure: Figure, rig: Rig) -> None:
    """Plot the backbones at the points of the three curves, without load, from the side."""
    axes = figure.subplots(1, len(CURVES), sharey=True)
    model = muscle_model(rig)
    for ax, curve in zip(axes, CURVES):
        held = None
        points = curve_points(curve)
        for point in points:
            held = model.rod.reach(point, guess=held)
            ax.plot(1e3 * held.positions[:, 0], 1e3 * held.positions[:, 2], color=PALETTE[5],
                    linewidth=0.8)  # fmt: skip
        ax.plot(1e3 * points[:, 0], 1e3 * points[:, 2], 'o', color=PALETTE[1], markersize=3.0)
        ax.set_aspect('equal', adjustable='box')
        label_axes(ax, 'x [mm]', 'z, down [mm]' if ax is axes[0] else '', curve)
    axes[0].invert_yaxis()


def draw_points(figure: Figure, runs: Sequence[PointRun]) -> None:
    """Plot targets and tips of every curve and load, seen along the axis of the arm."""
    axes = figure.subplots(1, len(CURVES), sharey=True)
    lines: list[Line2D] = []
    for ax, curve in zip(axes, CURVES):
        mine = [r for r in runs if r.curve == curve]
        closed = np.vstack([mine[0].targets, mine[0].targets[:1]])
        lines = ax.plot(1e3 * closed[:, 0], 1e3 * closed[:, 1], 'k.--', linewidth=0.7,
                        markersize=4.0, label='target')  # fmt: skip
        for color, run in zip(PALETTE, mine):
            lines += ax.plot(1e3 * run.tips[:, 0], 1e3 * run.tips[:, 1], 'o', color=color,
                             markersize=3.0, label=f'{run.load_N:g} N')  # fmt: skip
        ax.set_aspect('equal', adjustable='box')
        label_axes(ax, 'x [mm]', 'y [mm]' if ax is axes[0] else '', curve)
    legend_above(figure, lines)


def draw_errors(figure: Figure, runs: Sequence[PointRun]) -> None:
    """Plot point errors and the paper's mean: one panel per curve, one line per load."""
    axes = figure.subplots(1, len(CURVES), sharey=True)
    lines: list[Line2D] = []
    for ax, curve in zip(axes, CURVES):
        lines = []
        for color, run in zip(PALETTE, [r for r in runs if r.curve == curve]):
            lines += ax.plot(np.arange(1, POINTS + 1), run.errors_percent, 'o-', color=color,
                             markersize=2.5, linewidth=0.9, label=f'{run.load_N:g} N')  # fmt: skip
        mean = ax.axhline(PAPER_ERROR_PERCENT[curve], color='black', linestyle='--', linewidth=0.8)
        mean.set_label("the paper's mean")
        lines.append(mean)
        label_axes(ax, 'point', 'error [% of L]' if ax is axes[0] else '', curve)
    axes[0].set_ylim(bottom=0.0)
    legend_above(figure, lines)
