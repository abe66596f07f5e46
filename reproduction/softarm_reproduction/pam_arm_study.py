"""The experiments of Chen et al. 2022 on the muscle arm: numbers, tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from softarm_reproduction.experiments import Experiment, Picture, Row, Table
from softarm_reproduction.minimum_energy_study import (
    CURVES,
    EXAMPLE,
    LOADS_N,
    POINTS,
    CurveRow,
    curve_points,
    follow_curve,
)
from softarm_reproduction.nominal import NOMINAL
from softarm_ros.cli.report_plotting import PALETTE, label_axes, legend_above
from softarm_ros.cli.run_cases import RunCase, run_cases
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.minimum_energy.arm import MinimumEnergyArm
from softarm_ros.models.minimum_energy.muscles import clamp_lengths
from softarm_ros.plant.pam_arm.muscle_arm_plant import MuscleArmPlant
from softarm_ros.plant.pam_arm.valves import Pulse
from softarm_ros.rigs.arms.muscle import MuscleArm
from softarm_ros.rigs.loader import load_rig_of
from softarm_ros.rigs.schema import Rig

# Experiments 1 to 3 of the paper are circle, square and cardioid (figures 9 to 14) [% of L].
PAPER_ERROR_PERCENT = {'circle': 2.457, 'square': 2.477, 'cardioid': 2.514}
PAPER_VACUUM_PA, PAPER_PULL_N, BAG_SIDE_M = 100.9e3, 22.7, 0.015
GRAVITY_M_S2 = 9.81
DWELL_S = 2.0
_SEEN_S = 0.5  # of the end of a dwell, over which the tip is averaged
_SPEED_SHARE = 0.7
_HEAVIEST_N = max(LOADS_N)


@dataclass(frozen=True)
class PointRun:
    """
    A curve driven point by point in open loop, with the lengths of the paper.

    Attributes
    ----------
    targets, tips : (20, 3)
        Points and measured tips [m].
    model_miss_m : (20,)
        Distance by which these lengths miss, by the controller's own model.
    pulses
        Of all valves.

    """

    curve: str
    load_N: float
    length_m: float
    targets: Array
    tips: Array
    model_miss_m: Array
    pulses: tuple[Pulse, ...]

    @property
    def errors_percent(self) -> Array:
        """Normalised errors (20,) of eq. 55."""
        return 100.0 * np.linalg.norm(self.tips - self.targets, axis=1) / self.length_m


@dataclass(frozen=True)
class ValveUse:
    """How valves were switched over some runs; times in s."""

    pulses: int
    shortest_on_s: float
    shortest_gap_s: float
    smallest_delay_s: float
    largest_delay_s: float
    open_together: int


def with_load(rig: Rig, load_N: float) -> Rig:
    """Return the rig with a weight at the tip, known to the controller."""
    return rig.model_copy(update={'tip_load_kg': load_N / GRAVITY_M_S2})


def _muscle_model(rig: Rig) -> MinimumEnergyArm:
    return MuscleArm.of(rig).muscle_model(rig.around)


def drive_points(
    rig: Rig, curve: str, load_N: float, seed: int, corrected: bool = False
) -> PointRun:
    """
    Drive the 20 points of a curve one after the other, each with a dwell; no feedback.

    With the lengths of the rod held at its tip, as the paper, or `corrected` for what the muscles
    give way.
    """
    loaded = with_load(rig, load_N)
    model = _muscle_model(loaded)
    limits, period = loaded.actuator_limits(), 1.0 / loaded.tracker.rate_hz
    plant = loaded.simulated_arm(seed)
    if not isinstance(plant, MuscleArmPlant):
        raise TypeError(f'{type(plant).__name__}: expected the plant of the muscle arm')
    present, held = model.rest_configuration, None
    tips, miss = np.empty((POINTS, 3)), np.empty(POINTS)
    targets = curve_points(curve)
    for k, point in enumerate(targets):
        if corrected:
            lengths = model.inverse(point).actuation
        else:
            lengths, held = model.lengths_of_held_tip(point, guess=held)
            lengths, _ = clamp_lengths(lengths, model.modules)
        lengths = np.clip(lengths, limits.position_min, limits.position_max)
        miss[k] = np.linalg.norm(model.forward(lengths).tip[:3, 3] - point)
        way = float(np.max(np.abs(lengths - present) / limits.max_speed))
        steps = max(int(np.ceil(way / _SPEED_SHARE / period)), 1)
        for i in range(steps):
            plant.step(present + (i + 1) / steps * (lengths - present), period)
        for _ in range(round(DWELL_S / period)):
            plant.step(lengths, period)
        frames = [f for f in plant.poll_poses() if f.stamp_s > plant.time_s - _SEEN_S]
        tips[k] = np.mean([f.section_tips[-1, :3, 3] for f in frames], axis=0)
        present = lengths
    return PointRun(
        curve, load_N, model.rest_length_m, targets, tips, miss, tuple(plant.drives.board.log)
    )


def valve_use(runs: Sequence[PointRun]) -> ValveUse:
    """Return the use of the valves from their logs: pulses, gaps, delays, both valves open."""
    gaps, together, pulses = [], 0, [p for run in runs for p in run.pulses]
    for run in runs:
        last: dict[int, Pulse] = {}
        for pulse in run.pulses:
            before = last.get(pulse.muscle)
            if before is not None:
                gaps.append(pulse.on_s - before.off_s)
                unlike = pulse.inflate != before.inflate
                together += bool(unlike and pulse.open_s < before.close_s)
            last[pulse.muscle] = pulse
    delays = [p.open_s - p.on_s for p in pulses] + [p.close_s - p.off_s for p in pulses]
    return ValveUse(
        len(pulses),
        min(p.off_s - p.on_s for p in pulses),
        min(gaps),
        min(delays),
        max(delays),
        together,
    )


def pull_share(rig: Rig, curve: str, load_N: float) -> float:
    """
    Return the largest share of its pull that a muscle needs at the points of a curve.

    A folded skeleton takes a part of what the vacuum can do: all of it in an empty muscle.
    """
    model, valves = _muscle_model(with_load(rig, load_N)), MuscleArm.of(rig).valves
    low, high = valves.range_m[0], valves.range_m[1]
    largest = 0.0
    for point in curve_points(curve):
        lengths = model.inverse(point).actuation
        possible = valves.max_pull_N * (lengths - low) / (high - low)
        largest = max(largest, float(np.max(model.equilibrium(lengths).tensions / possible)))
    return largest


def experiments(progress: Callable[[str], None], seed: int = 0) -> list[Experiment]:
    """Run all experiments of the paper; `progress` is told what is being done."""
    rig = load_rig_of(MuscleArm, 'pam_arm', NOMINAL)
    found = [_force(), _valve_table(rig), _stiffness(), _example(rig)]
    progress('curves of the model')
    found.append(_curves(rig))
    runs = []
    for curve in CURVES:
        for load in LOADS_N:
            progress(f'{curve} under {load:g} N, point by point')
            runs.append(drive_points(rig, curve, load, seed))
    better = []
    for curve in CURVES:
        progress(f'{curve}, point by point, corrected lengths')
        better.append(drive_points(rig, curve, 0.0, seed, corrected=True))
    found.append(_open_loop(runs))
    found.append(_corrected(better))
    found.append(_valves(rig, valve_use(runs)))
    progress(f'closed loop under {_HEAVIEST_N:g} N')
    found.append(_closed_loop(rig, seed))
    return found


def _force() -> Experiment:
    ours = PAPER_VACUUM_PA * BAG_SIDE_M**2
    row = Row(f'pull at {1e-3 * PAPER_VACUUM_PA:g} kPa below outside', 'N', PAPER_PULL_N, ours)
    return Experiment(
        'Pull of a muscle (figure 4a)',
        'prediction',
        'Pressure difference by the cross-section of the airbag, 15 mm square.',
        (row,),
    )


def _valve_table(rig: Rig) -> Experiment:
    picture = Picture(
        'valve_table',
        "Length of an unloaded muscle against the time a valve is open: the driver's tables.",
        lambda figure: draw_table(figure, rig),
    )
    return Experiment(
        'Length against inflation and deflation time (figure 4b)',
        'not reproduced',
        'The measured curve is lost. The rig file carries first-order stand-ins with a time '
        'constant of 10 s, to be replaced by a calibration.',
        (),
        None,
        (picture,),
    )


def _stiffness() -> Experiment:
    return Experiment(
        'Stiffness of a muscle held at one end under 0.2 N (figure 5)',
        'not reproduced',
        'No model here bends a single muscle, and the figure is lost. What it shows, that shorter '
        'muscles are softer, is in the plant as an assumed loss of half of the axial stiffness '
        'from full to empty.',
    )


def _example(rig: Rig) -> Experiment:
    model = _muscle_model(rig)
    lengths, rod = model.lengths_of_held_tip(EXAMPLE)
    rows = tuple(
        (str(t + 1), *(f'{1e3 * v:.2f}' for v in lengths[3 * t : 3 * t + 3]))
        for t in range(model.modules.modules)
    )
    miss = float(np.linalg.norm(model.forward(lengths).tip[:3, 3] - EXAMPLE))
    corrected = model.inverse(EXAMPLE)
    return Experiment(
        'Muscle lengths for a tip at (0.25, 0.10, 0.85) m',
        'prediction',
        'The paper prints no example; this one is ours, checked against an independent solution '
        f'by shooting. Elastic energy {rod.elastic_energy_J:.4f} J. The backbone has ten times '
        '100 mm and an airbag has 100 mm, so that some muscles must be longer than the '
        f'paper says they can be: up to {1e3 * float(lengths.max()):.1f} mm here. With muscles of '
        f'finite stiffness these lengths miss the point by {1e3 * miss:.1f} mm; the inverse model '
        f'corrects them (residual {1e3 * corrected.residual:.1e} mm).',
        (),
        Table(('module', 'muscle 1, mm', 'muscle 2, mm', 'muscle 3, mm'), rows),
    )


def _curves(rig: Rig) -> Experiment:
    solved: list[CurveRow] = [follow_curve(c, load) for c in CURVES for load in LOADS_N]
    table = Table(
        ('curve', 'load, N', 'rod', 'muscles', 'lengths, mm', 'paper lengths miss, mm'),
        tuple(
            (
                r.curve,
                f'{r.load_N:g}',
                f'{r.solved}/{POINTS}',
                f'{r.inverse_solved}/{POINTS}',
                f'{1e3 * r.shortest_m:.1f} to {1e3 * r.longest_m:.1f}',
                f'{1e3 * r.mean_miss_m:.1f}',
            )
            for r in solved
        ),
    )
    picture = Picture(
        'shapes',
        'Shapes of the backbone at the points of each curve, no load (figures 9, 11, 13, a).',
        lambda figure: draw_shapes(figure, rig),
    )
    return Experiment(
        'Curves under load (figures 9, 11, 13): solutions of the model',
        'prediction',
        'Points for which the rod with its tip held, and the muscles, have a stable solution. '
        'The sizes of the curves stood in figures that are lost; ours are 0.2 m about the axis '
        'at a height of 0.9 m. The last column is the error, by the model itself, of the lengths '
        'that the paper commands: three muscles a module cannot exert the wrench of a held tip.',
        (),
        table,
        (picture,),
    )


def _open_loop(runs: Sequence[PointRun]) -> Experiment:
    rows = []
    for curve in CURVES:
        mine = np.concatenate([r.errors_percent for r in runs if r.curve == curve])
        rows.append(
            Row(f'{curve}: mean error', '% of L', PAPER_ERROR_PERCENT[curve], float(mine.mean()))
        )
    table = Table(
        ('curve', 'load, N', 'mean, % of L', 'max, % of L', 'the model alone, % of L', 'pulses'),
        tuple(
            (
                r.curve,
                f'{r.load_N:g}',
                f'{r.errors_percent.mean():.2f}',
                f'{r.errors_percent.max():.2f}',
                f'{100.0 * r.model_miss_m.mean() / r.length_m:.2f}',
                str(len(r.pulses)),
            )
            for r in runs
        ),
    )
    pictures = (
        Picture(
            'points',
            'Targets and measured tips from above, open loop.',
            lambda figure: draw_points(figure, runs),
        ),
        Picture(
            'point_errors',
            'Normalised error of each point (figures 10, 12 and 14).',
            lambda figure: draw_errors(figure, runs),
        ),
    )
    return Experiment(
        'Twenty points a curve in open loop (figures 9 to 14)',
        'simulation',
        'The lengths of the rod held at its tip, as in the paper, turned into valve times; '
        f'{DWELL_S:g} s of rest at each point. The paper gives three means without saying whether '
        'they are of curves or of loads; figures 9 to 14 number the experiments by curve. One '
        'seed. A part of the error is in these lengths (the model alone): muscles are not '
        'infinitely stiff, and how stiff the model takes them was chosen for an error of about '
        "the paper's. The rest is the plant: tips lie inward of their targets, as valves move "
        'loaded muscles less than the table says.',
        tuple(rows),
        table,
        pictures,
    )


def _corrected(runs: Sequence[PointRun]) -> Experiment:
    return Experiment(
        'The same without load, lengths corrected by the forward model',
        'simulation',
        'The lengths for which the model with muscles of finite stiffness is on the target; what '
        'remains is what the model does not know of the arm. The paper has no such command; its '
        'numbers are those of the held rod.',
        tuple(
            Row(
                f'{r.curve}: mean error',
                '% of L',
                PAPER_ERROR_PERCENT[r.curve],
                float(r.errors_percent.mean()),
            )
            for r in runs
        ),
    )


def _valves(rig: Rig, use: ValveUse) -> Experiment:
    return Experiment(
        'Relays and valves over the runs above',
        'simulation',
        'From the log of every pulse of the simulated valve board. The two valves of a muscle '
        'must never be open together.',
        (),
        Table(
            ('quantity', 'seen', 'asked'),
            (
                ('pulses', str(use.pulses), ''),
                (
                    'shortest pulse, ms',
                    f'{1e3 * use.shortest_on_s:.0f}',
                    f'at least {1e3 * MuscleArm.of(rig).valves.shortest_pulse_s:.0f}',
                ),
                (
                    'shortest gap between pulses of a muscle, ms',
                    f'{1e3 * use.shortest_gap_s:.0f}',
                    f'at least {1e3 * MuscleArm.of(rig).valves.guard_s:.0f}',
                ),
                (
                    'delay of relay and valve, ms',
                    f'{1e3 * use.smallest_delay_s:.1f} to {1e3 * use.largest_delay_s:.1f}',
                    '',
                ),
                ('times both valves of a muscle were open', str(use.open_together), '0'),
            ),
        ),
    )


def _closed_loop(rig: Rig, seed: int) -> Experiment:
    loaded = with_load(rig, _HEAVIEST_N)
    records = run_cases(
        [RunCase(loaded, curve, rig.default_model, False, 1, seed) for curve in CURVES]
    )
    rows, table = [], []
    for curve, record in zip(CURVES, records):
        error = record.error()
        if error is None:
            raise RuntimeError(f'{curve}: the run has no tracking samples')
        length = record.info.arm_length_m
        mean, largest = 100.0 * error.mean / length, 100.0 * error.max / length
        rows.append(Row(f'{curve}: mean error', '% of L', PAPER_ERROR_PERCENT[curve], mean))
        shares = (f'{100.0 * pull_share(rig, curve, load):.0f} %' for load in (0.0, _HEAVIEST_N))
        table.append((curve, f'{1e3 * error.mean:.2f}', f'{mean:.2f}', f'{largest:.2f}', *shares))
    return Experiment(
        f'The curves under {_HEAVIEST_N:g} N with feedback',
        'simulation',
        'The paper has a sensor at the tip but no feedback from it; its open-loop numbers stand '
        'beside ours in closed loop. The load is known to the controller. Last columns: the '
        'largest share of its pull that a muscle needs by the model, without load and with it: '
        'above 100 % the vacuum is too weak for these lengths, and other lengths, with the tip in '
        'the same place, may or may not be found.',
        tuple(rows),
        Table(
            ('curve', 'mean, mm', 'mean, % of L', 'max, % of L', 'pull, 0 N', 'pull, loaded'),
            tuple(table),
        ),
    )


def draw_table(figure: Figure, rig: Rig) -> None:
    """Draw both tables of the drive."""
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
    """Draw the backbones of the three curves, without load, from the side."""
    axes = figure.subplots(1, len(CURVES), sharey=True)
    model = _muscle_model(rig)
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
    """Draw targets and tips of every curve and load, seen along the axis of the arm."""
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
    """Draw the error of each point, a panel a curve, a line a load, with the paper's mean."""
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
