"""The experiments of Zhou et al. 2023 on the fishbone arm, prepared for the report page."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from softarm_reproduction.experiments import Experiment, Picture, Row, Table
from softarm_reproduction.fishbone_arm_figures import draw_ball, draw_loop, draw_module, draw_unit
from softarm_reproduction.fishbone_arm_study import (
    BALL_RADIUS_M,
    BallRun,
    around_ball,
    as_printed,
    bending_loop,
    module_grid,
    unit_under_load,
    variants,
)
from softarm_reproduction.nominal import NOMINAL
from softarm_ros.geometry.arrays import Array
from softarm_ros.rigs.arms.tendon_rod import TendonRodArm
from softarm_ros.rigs.loader import load_rig_of
from softarm_ros.rigs.schema import Rig

PAPER_UNIT_ERROR_MM = 1.07
PAPER_UNIT_ERROR_PERCENT = 2.13
PAPER_MODULE_ERROR_MM = 1.5
PAPER_MODULE_ERROR_PERCENT = 1.2
BALL_SEEDS = 2


def experiments(progress: Callable[[str], None], seed: int = 0) -> list[Experiment]:
    """Run all experiments of the paper; `progress` receives the name of each step."""
    rig = load_rig_of(TendonRodArm, 'fishbone_arm', NOMINAL)
    printed = as_printed(rig)
    progress('unit under load')
    result = [_unit(printed)]
    progress('bending against tension')
    result.append(_bending(printed, seed))
    progress('module under two cables')
    result += _module(printed, seed)
    progress('around a ball')
    result.append(_ball(rig, seed))
    progress('drive, friction, model')
    result.append(_variants(rig, seed))
    result.append(
        Experiment(
            'Measured curves (figures 7 and 8)',
            'not reproduced',
            'The paper prints its measured points in figures only, not in numbers, and describes '
            'neither the control of the robot nor the path around the ball. So the largest errors '
            'it states are set beside those of a simulated arm; point by point there is nothing '
            'to compare with.',
        )
    )
    return result


def _unit(rig: Rig) -> Experiment:
    rows = unit_under_load(rig)
    worst = max(rows, key=lambda row: row.error_m)
    length = TendonRodArm.of(rig).segments[1].length_m
    table = Table(
        (
            'load, g',
            'linear beam, mm',
            'elastica, mm',
            'Cosserat rod, mm',
            'with weight, mm',
            'simulated arm, mm',
            'tip error, mm',
        ),
        tuple(
            (
                f'{1e3 * row.mass_kg:.0f} + 15.46',
                f'{1e3 * row.linear_m:.3f}',
                f'{1e3 * row.elastica_m:.3f}',
                f'{1e3 * row.rod_m:.3f}',
                f'{1e3 * row.heavy_rod_m:.3f}',
                f'{-1e3 * float(row.simulated_tip[0]):.3f}',
                f'{1e3 * row.error_m:.3f}',
            )
            for row in rows
        ),
    )
    return Experiment(
        'One unit with a load at its tip (figure 7)',
        'simulation',
        'Drop of the tip of a lying unit whose disk and load hang where the strip ends. Elastica '
        '(elliptic integrals) and Cosserat rod are predictions and agree; the error is that of '
        'the rod with the weight of the strip against the simulated unit: sleeve, thickness, '
        'length and straightness as the rig file assumes them. As in the paper it grows with the '
        'load.',
        (
            Row('largest tip error', 'mm', PAPER_UNIT_ERROR_MM, 1e3 * worst.error_m),
            Row(
                'largest tip error, of the unit',
                '%',
                PAPER_UNIT_ERROR_PERCENT,
                100.0 * worst.error_m / length,
            ),
            Row('load of the largest error', 'g', 565.46, 1e3 * (worst.mass_kg + 0.01546)),
        ),
        table,
        (
            Picture(
                'unit_under_load',
                'One unit under 50 to 550 g: model and simulated arm; error of the tip.',
                lambda figure: draw_unit(figure, rows),
            ),
        ),
    )


def _bending(rig: Rig, seed: int) -> Experiment:
    loop = bending_loop(rig, seed)
    law = TendonRodArm.of(rig).segments[0].profile.stiffness(0.5)
    radius, length = (
        TendonRodArm.of(rig).actuators[0].routes[0].radius_m,
        TendonRodArm.of(rig).segments[0].length_m,
    )
    printed = np.degrees(10.0 * radius * length / max(law[0, 0], law[1, 1]))
    table = Table(
        (
            'tension, N',
            'T r L / (E I), deg',
            'Cosserat rod, deg',
            'simulated, pulled, deg',
            'let go, deg',
        ),
        tuple(
            (f'{t:g}', *(f'{np.degrees(a):.2f}' for a in angles))
            for t, *angles in zip(
                loop.tension_N,
                loop.closed_form_rad,
                loop.rod_rad,
                loop.loading_rad,
                loop.unloading_rad,
            )
        ),
    )
    return Experiment(
        'Bending of a unit by its cable',
        'simulation',
        f'The cable lies {1e3 * radius:g} mm from the strip (assumed, the paper does not say). '
        'Closed form and rod are predictions; the simulated unit has a stiffer strip, a sleeve, '
        'and friction of the cable, which makes the loop. With the axes as the paper prints them '
        f'(I_11 = 304.175 mm4) 10 N would bend the unit by {printed:.4f} deg.',
        (),
        table,
        (
            Picture(
                'bending_loop',
                'Bending of one unit, its cable pulled to 12 N and let go.',
                lambda figure: draw_loop(figure, loop),
            ),
        ),
    )


def _module(rig: Rig, seed: int) -> list[Experiment]:
    rows = module_grid(rig, seed)
    first = max(row.errors_m[0] for row in rows)
    second = max(row.errors_m[1] for row in rows)
    length = sum(s.length_m + s.connector.length_m for s in TendonRodArm.of(rig).segments[:2])

    def place(point: Array) -> str:
        x, y, z = (1e3 * float(value) for value in point)
        return f'({z:.2f}, {y:.2f}, {x:.2f})'

    predicted = Table(
        ('T1, N', 'T2, N', 'O2 (along, up, aside), mm', 'O4, mm'),
        tuple(
            (f'{t1:g}', f'{t2:g}', place(row.predicted[0]), place(row.predicted[1]))
            for row in rows
            for t1, t2 in (row.tensions_N,)
        ),
    )
    simulated = Table(
        ('T1, N', 'T2, N', 'O4 of the simulated arm, mm', 'error O2, mm', 'error O4, mm'),
        tuple(
            (
                *(f'{t:g}' for t in row.tensions_N),
                place(row.simulated[1]),
                *(f'{1e3 * e:.2f}' for e in row.errors_m),
            )
            for row in rows
        ),
    )
    return [
        Experiment(
            'Module under two cables: prediction (figure 8)',
            'prediction',
            'Ends O2 and O4 of the two connectors of a module, in the order of axes of the paper. '
            'Corrected equations; two connectors of 15.46 g and 12.5 mm each, their weight where '
            'the strips end, weight of the strips, cables at 10 mm.',
            (),
            predicted,
        ),
        Experiment(
            'Module under two cables: model against arm (figure 8)',
            'simulation',
            'The simulated module is pulled slowly from rest and read when it is still. Its '
            'errors are larger than those the paper states: its cables lose tension by friction, '
            'its load cells are out by 1 %, its sleeve weighs 6 g a unit; what the paper did '
            'about these it does not say. As in the paper they grow with the tensions, and are '
            'larger for the second unit than for the first.',
            (
                Row('largest error of the module', 'mm', PAPER_MODULE_ERROR_MM, 1e3 * second),
                Row(
                    'largest error, of the module',
                    '%',
                    PAPER_MODULE_ERROR_PERCENT,
                    100.0 * second / length,
                ),
                Row('largest error at the end of the first unit', 'mm', None, 1e3 * first),
            ),
            simulated,
            (
                Picture(
                    'module',
                    'Centrelines of the module under 5 and 10 N with 3, 6 and 9 N.',
                    lambda figure: draw_module(figure, rows),
                ),
            ),
        ),
    ]


def _ball(rig: Rig, seed: int) -> Experiment:
    closed = around_ball(rig, range(seed, seed + BALL_SEEDS), open_loop=False)
    opened = around_ball(rig, (seed,), open_loop=True)

    def line(run: BallRun) -> tuple[str, ...]:
        return (
            run.label,
            f'{1e3 * run.mean_m:.2f}',
            f'{1e3 * run.max_m:.2f}',
            f'{1e3 * run.clearance_m:.1f}',
            f'{1e3 * run.approach_clearance_m:.1f}',
        )

    return Experiment(
        'Around a ball (figure 5d)',
        'simulation',
        'The paper shows its robot going around a ball and gives no numbers. Here the tip goes '
        f'once around a ball of {2e3 * BALL_RADIUS_M:g} mm in front of the arm; the clearance is '
        'the least room between ball and sleeve along the whole true centreline (negative: they '
        'would touch; the simulation has no contact).',
        (),
        Table(
            ('run', 'mean error, mm', 'max, mm', 'clearance, mm', 'on the way there, mm'),
            tuple(line(run) for run in (*closed, *opened)),
        ),
        (
            Picture(
                'around_ball',
                'Around the ball: centrelines in closed loop, tips in open and closed loop.',
                lambda figure: draw_ball(figure, closed[0], opened[0]),
            ),
        ),
    )


def _variants(rig: Rig, seed: int) -> Experiment:
    found = variants(rig, seed)
    return Experiment(
        'What the drive, friction and the model matter',
        'simulation',
        'The circle with one thing changed at a time, one seed.',
        (),
        Table(
            ('changed', 'open mean, mm', 'open max, mm', 'closed mean, mm', 'closed max, mm'),
            tuple((v.label, *(f'{1e3 * e:.2f}' for e in (*v.open_m, *v.closed_m))) for v in found),
        ),
    )
