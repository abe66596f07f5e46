"""Figures of the hydraulic arm's experiments; each draws into an empty figure."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from softarm_reproduction.hydraulic_arm_study import MotionError, StaticPose, Workspace
from softarm_reproduction.hydraulic_motions import Record
from softarm_ros.cli.report_plotting import PALETTE, label_axes, legend_above


def draw_workspace(figure: Figure, found: Workspace) -> None:
    """Plot the tips of one section from the side and along z."""
    tips = 1e3 * found.tips
    for ax, (i, j), title in zip(figure.subplots(1, 2), ((0, 2), (0, 1)), ('side', 'along z')):
        ax.scatter(tips[:, i], tips[:, j], s=3.0, c=PALETTE[0], linewidths=0.0)
        ax.set_aspect('equal', adjustable='box')
        label_axes(ax, f'{"xyz"[i]} [mm]', f'{"xyz"[j]} [mm]', title)
        if j == 2:
            ax.plot(0.0, 0.0, 'k+')
            ax.invert_yaxis()  # the arm hangs


def draw_static(figure: Figure, poses: Sequence[StaticPose]) -> None:
    """Plot the centrelines of plant and model at rest, one panel per actuator."""
    actuators = sorted({pose.actuator for pose in poses})
    lines: list[Line2D] = []
    for ax, actuator in zip(
        figure.subplots(1, len(actuators), sharex=True, sharey=True), actuators
    ):
        mine = [pose for pose in poses if pose.actuator == actuator]
        lines = []
        for k, pose in enumerate(mine):
            plant, model = 1e3 * pose.plant, 1e3 * pose.model
            color = PALETTE[k]
            label = f'{pose.torque_N_m:g} N m'
            lines += ax.plot(plant[:, 0], plant[:, 2], color=color, linewidth=1.2, label=label)
            ax.plot(model[:, 0], model[:, 2], color=color, linewidth=1.0, linestyle='--')
        ax.set_aspect('equal', adjustable='box')
        label_axes(ax, 'x [mm]', 'z, down [mm]', f'actuator {actuator}')
    figure.axes[0].invert_yaxis()
    legend_above(figure, lines)


def draw_curvatures(figure: Figure, records: Sequence[tuple[str, Record]]) -> None:
    """Plot the mean curvatures of both sections over time, one panel per motion."""
    axes = figure.subplots(1, len(records), sharey=True)
    lines: list[Line2D] = []
    for ax, (name, record) in zip(axes, records):
        lines = []
        for k in (0, 1):
            lines += ax.plot(
                record.time,
                record.curvature[:, k],
                color=PALETTE[k],
                linewidth=1.0,
                label=f'section {k + 1}',
            )
        label_axes(ax, 'time [s]', 'curvature [1/m]' if ax is axes[0] else '', name)
    legend_above(figure, lines)


def draw_errors(figure: Figure, motions: Sequence[tuple[str, MotionError]]) -> None:
    """Plot the distances between model and plant (eq. 37) over time, one panel per motion."""
    axes = figure.subplots(1, len(motions), sharey=True)
    lines: list[Line2D] = []
    for ax, (name, found) in zip(axes, motions):
        lines = []
        errors = 1e3 * found.errors_m
        for k in (0, 1):
            lines += ax.plot(
                found.time_s,
                errors[:, k],
                color=PALETTE[k],
                linewidth=1.0,
                label=f'section {k + 1}',
            )
        lines += ax.plot(
            found.time_s,
            errors.sum(axis=1),
            color=PALETTE[2],
            linewidth=1.0,
            linestyle='--',
            label='sum',
        )
        label_axes(ax, 'time [s]', 'error [mm]' if ax is axes[0] else '', name)
    legend_above(figure, lines)
