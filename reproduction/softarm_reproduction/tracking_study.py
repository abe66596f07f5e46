"""Track an arm's trajectories in open and in closed loop, over several seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from softarm_reproduction.experiments import Experiment, Picture, Row, Table
from softarm_ros.cli.report_plotting import PALETTE, REFERENCE_COLOUR, label_axes, legend_above
from softarm_ros.cli.run_cases import RunCase, run_cases
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.run_record import ErrorStatistics, RunRecord

BAR_PERCENT = 0.5


@dataclass(frozen=True)
class TrackedPath:
    """Runs of a trajectory in open loop (one seed) and in closed loop (several seeds)."""

    name: str
    opened: RunRecord
    closed: tuple[RunRecord, ...]

    @property
    def length_m(self) -> float:
        """Return the length of the arm [m]."""
        return self.opened.info.arm_length_m

    @property
    def mean_m(self) -> float:
        """Return the mean closed-loop error [m] over all seeds and laps."""
        return float(np.mean([_error(r).mean for r in self.closed]))

    @property
    def max_m(self) -> float:
        """Return the largest closed-loop error [m] over all seeds and laps."""
        return max(_error(r).max for r in self.closed)


def track(
    rig: Rig,
    trajectories: Sequence[str],
    seeds: Sequence[int],
    laps: int = 1,
    progress: Callable[[int], None] | None = None,
) -> list[TrackedPath]:
    """Run each trajectory once in open loop and once per seed in closed loop."""
    model = rig.default_model
    cases = [
        case
        for name in trajectories
        for case in (
            RunCase(rig, name, model, True, laps, seeds[0]),
            *(RunCase(rig, name, model, False, laps, seed) for seed in seeds),
        )
    ]
    records = run_cases(cases, progress)
    each = 1 + len(seeds)
    return [
        TrackedPath(name, records[k * each], tuple(records[k * each + 1 : (k + 1) * each]))
        for k, name in enumerate(trajectories)
    ]


def tracking_experiment(
    paths: Sequence[TrackedPath], rows: Sequence[Row], text: str
) -> Experiment:
    """Return the tracking experiment; `rows` compare the paper's numbers with these paths."""
    seeds = len(paths[0].closed)
    first = paths[0].closed[0].info
    note = (
        f'Simulated plant with sensor noise and parameter error, model {first.model}; closed loop '
        f'over {seeds} seeds (they vary noise only), whole path, in % of the arm, '
        f'{1e3 * first.arm_length_m:.0f} mm. Bar: mean below {BAR_PERCENT:g} %.'
    )
    headings = (
        *('path', 'open loop mean, mm', 'mean, mm', 'max, mm', 'mean, %', 'max, %', 'bar'),
    )
    table = tuple(
        (
            p.name,
            f'{1e3 * _error(p.opened).mean:.2f}',
            f'{1e3 * p.mean_m:.2f}',
            f'{1e3 * p.max_m:.2f}',
            f'{100.0 * p.mean_m / p.length_m:.2f}',
            f'{100.0 * p.max_m / p.length_m:.2f}',
            'met' if 100.0 * p.mean_m / p.length_m < BAR_PERCENT else 'MISSED',
        )
        for p in paths
    )
    picture = Picture(
        'tracking',
        'Tip paths seen along the axis with the least extent: reference (black), open loop and '
        'closed loop, first seed.',
        lambda figure: draw_paths(figure, paths),
    )
    return Experiment(
        'Tracking in open and closed loop',
        'simulation',
        f'{text} {note}'.strip(),
        tuple(rows),
        Table(headings, table),
        (picture,),
    )


def draw_paths(figure: Figure, paths: Sequence[TrackedPath]) -> None:
    """Plot reference and measured tips of each path in the plane of its largest extent."""
    rows = 1 if len(paths) <= 3 else 2
    axes = figure.subplots(rows, -(-len(paths) // rows), squeeze=False).ravel()
    lines: list[Line2D] = []
    for ax, path in zip(axes, paths):
        lines = []
        reference = 1e3 * path.opened.path
        extent = np.ptp(reference, axis=0)
        i, j = sorted(np.argsort(extent)[-2:].tolist())
        for record, color, label in (
            (path.opened, PALETTE[1], 'open loop'),
            (path.closed[0], PALETTE[0], 'closed loop'),
        ):
            tips = 1e3 * record.samples.tip[record.samples.tracking]
            lines += ax.plot(tips[:, i], tips[:, j], color=color, linewidth=0.9, label=label)
        lines += ax.plot(
            reference[:, i],
            reference[:, j],
            color=REFERENCE_COLOUR,
            linewidth=0.7,
            linestyle='--',
            label='reference',
        )
        ax.set_aspect('equal', adjustable='box')
        label_axes(ax, f'{"xyz"[i]} [mm]', f'{"xyz"[j]} [mm]', path.name)
    for ax in axes[len(paths) :]:
        ax.set_axis_off()
    legend_above(figure, lines)


def _error(record: RunRecord) -> ErrorStatistics:
    error = record.error()
    if error is None:
        raise RuntimeError(f'{record.info.motion}: the run has no tracking samples')
    return error
