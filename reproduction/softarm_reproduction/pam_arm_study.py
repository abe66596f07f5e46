"""The experiments of Chen et al. 2022 on the muscle arm: numbers, tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from softarm_reproduction.experiments import Experiment, Picture, Row, Table
from softarm_reproduction.minimum_energy_study import (
    CURVES,
    EXAMPLE,
    LOADS_N,
    POINTS,
    CurveRow,
    follow_curve,
)
from softarm_reproduction.nominal import NOMINAL
from softarm_reproduction.pam_arm_figures import (
    PAPER_ERROR_PERCENT,
    draw_errors,
    draw_points,
    draw_shapes,
    draw_table,
)
from softarm_reproduction.pam_arm_points import (
    DWELL_S,
    PointRun,
    ValveUse,
    drive_points,
    muscle_model,
    pull_share,
    valve_use,
    with_load,
)
from softarm_ros.cli.run_cases import RunCase, run_cases
from softarm_ros.rigs.arms.muscle import MuscleArm
from softarm_ros.rigs.loader import load_rig_of
from softarm_ros.rigs.schema import Rig

PAPER_VACUUM_PA, PAPER_PULL_N, BAG_SIDE_M = 100.9e3, 22.7, 0.015
_HEAVIEST_N = max(LOADS_N)


def experiments(progress: Callable[[str], None], seed: int = 0) -> list[Experiment]:
    """Run all experiments of the paper; `progress` receives the name of each step."""
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
        progress(f'{curve}, point by point, corrected commands')
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
        'The measured curve is lost. The rig file has tables of the simulated muscles, taken on a '
        'bench; beyond the full length they go on by the law of the gas.',
        (),
        None,
        (picture,),
    )


def _stiffness() -> Experiment:
    return Experiment(
        'Stiffness of a muscle held at one end under 0.2 N (figure 5)',
        'not reproduced',
        'No model here bends a single muscle, and the figure is lost. What it shows, that shorter '
        'muscles are softer, follows from gas beside a folded skeleton: 360 N/m when empty, 556 '
        'when full.',
    )


def _example(rig: Rig) -> Experiment:
    model = muscle_model(rig)
    lengths, rod = model.lengths_of_held_tip(EXAMPLE)
    rows = tuple(
        (str(t + 1), *(f'{1e3 * v:.2f}' for v in lengths[3 * t : 3 * t + 3]))
        for t in range(model.modules.modules)
    )
    commands, _ = model.commands_of_held_tip(EXAMPLE)
    miss = float(np.linalg.norm(model.forward(commands).tip[:3, 3] - EXAMPLE))
    corrected = model.inverse(EXAMPLE)
    return Experiment(
        'Muscle lengths for a tip at (0.25, 0.10, 0.85) m',
        'prediction',
        'The paper prints no example; this one is ours, checked against an independent solution '
        f'by shooting. Elastic energy {rod.elastic_energy_J:.4f} J. The backbone has ten times '
        '100 mm and an airbag has 100 mm, so that some muscles must be longer than the '
        f'paper says they can be: up to {1e3 * float(lengths.max()):.1f} mm here. Gas in '
        f'the muscles with the moments of the held tip misses the point by {1e3 * miss:.1f} mm; '
        f'the inverse model corrects it (residual {1e3 * corrected.residual:.1e} mm).',
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
        'Gas with the moments of the rod held at its tip, turned into valve times; '
        f'{DWELL_S:g} s of rest at each point. The paper turns the lengths of that rod into times '
        'of a table without load; gas springs would miss by 20 % of the length with these. It '
        'gives three means without saying whether they are of curves or of loads; figures 9 to 14 '
        'number the experiments by curve. One seed. A part of the error is in the commands (the '
        'model alone): three muscles a module have the moments of a held tip, not its force, and '
        'not beyond the range of commands. The rest is the plant.',
        tuple(rows),
        table,
        pictures,
    )


def _corrected(runs: Sequence[PointRun]) -> Experiment:
    return Experiment(
        'The same without load, commands corrected by the forward model',
        'simulation',
        'The gas with which the model is on the target; what remains is what the model does not '
        'know of the arm. The paper has no such command; its numbers are those of the held rod.',
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
        'at 100 % its bag would be empty.',
        tuple(rows),
        Table(
            ('curve', 'mean, mm', 'mean, % of L', 'max, % of L', 'pull, 0 N', 'pull, loaded'),
            tuple(table),
        ),
    )
