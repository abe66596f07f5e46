"""Time the models of muscles on a backbone and the paper's least squares in one run."""

from __future__ import annotations

import numpy as np

from softarm_reproduction.bench_rows import BenchRow, median_us, require_equal
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.minimum_energy.arm import MinimumEnergyArm
from softarm_ros.models.minimum_energy.config import BackboneConfig, ParallelModulesConfig
from softarm_ros.models.minimum_energy.least_squares import solve_least_squares
from softarm_ros.models.minimum_energy.rod import MinimumEnergyRod
from softarm_ros.models.minimum_energy.rod_arm import RodOfMuscles

START = np.array([0.25, 0.10, 0.85])  # m
TARGET = START + np.array([0.01, 0.005, 0.0])  # the next point of a curve
INTERVALS, FINE = 40, 160
STEPS = 3
BAR_US = 3000.0


def rows(repeats: int = 15) -> list[BenchRow]:
    """
    Return the measured rows.

    Raises
    ------
    AssertionError
        If two methods find shapes more than a millimetre apart.

    """
    rod = MinimumEnergyRod(BackboneConfig(), INTERVALS)
    near, least = rod.reach(START), rod.reach(TARGET)
    reference = solve_least_squares(rod, TARGET, guess=near)
    require_equal('minimum energy', least.positions, reference.positions, 1e-3)
    reference_us = median_us(lambda: solve_least_squares(rod, TARGET, guess=near), repeats)
    cold_us = median_us(lambda: solve_least_squares(rod, TARGET), repeats)
    arm = MinimumEnergyArm(
        BackboneConfig(), ParallelModulesConfig(muscle_stiffness_N_m=1e5), INTERVALS
    )
    lengths, _ = arm.lengths_of_held_tip(START)
    state = arm.equilibrium(lengths)
    moved, _ = arm.lengths_of_held_tip(TARGET)
    what = "scipy Levenberg-Marquardt on the paper's equations"
    return [
        BenchRow(
            f'minimum energy, {INTERVALS} nodes, warm',
            median_us(lambda: rod.reach(TARGET, guess=near), repeats),
            reference_us,
            what,
            BAR_US,
        ),
        BenchRow(
            f'minimum energy, {INTERVALS} nodes, from the start',
            median_us(lambda: rod.reach(TARGET), repeats),
            cold_us,
            f'{what}, from the straight arm',
        ),
        BenchRow(
            'minimum energy, lengths of 30 muscles -> shape, warm',
            median_us(lambda: arm.equilibrium(moved, guess=state), repeats),
            reference_us,
            f'{what} (tip held)',
        ),
        _rod_row(moved, repeats),
    ]


def _rod_row(lengths: Array, repeats: int) -> BenchRow:
    """Return the row of the Cosserat rod; the reference is a backbone of similar accuracy."""
    backbone, modules = BackboneConfig(), ParallelModulesConfig()
    rod = RodOfMuscles(backbone, modules, STEPS, INTERVALS)
    fine = MinimumEnergyArm(backbone, modules, FINE)
    tip = rod.equilibrium(lengths).positions[-1]
    require_equal('muscles', tip, fine.equilibrium(lengths).positions[-1], 1e-3)
    return BenchRow(
        'Cosserat rod, lengths of 30 muscles -> shape, from the start',
        median_us(lambda: rod.equilibrium(lengths), repeats),
        median_us(lambda: fine.equilibrium(lengths), repeats),
        f'minimum energy, {FINE} nodes',
    )
