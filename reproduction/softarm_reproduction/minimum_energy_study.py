"""
Print the results of the minimum-energy models: accuracy, paper's curves, worked example.

`python -m softarm_reproduction.minimum_energy_study`
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.minimum_energy.arm import MinimumEnergyArm
from softarm_ros.models.minimum_energy.config import BackboneConfig, ParallelModulesConfig
from softarm_ros.models.minimum_energy.least_squares import solve_least_squares
from softarm_ros.models.minimum_energy.muscles import clamp_lengths, muscle_lengths
from softarm_ros.models.minimum_energy.rod import MinimumEnergyRod

EXAMPLE = np.array([0.25, 0.10, 0.85])  # m
LOADS_N = (0.0, 0.2, 0.5)
CURVES = ('circle', 'square', 'cardioid')
POINTS = 20
PAPER_PULL_N, PAPER_SHEAR_SHARE = 22.7, 2.4 / 6.2
MODULI_PA = (6.2e9, 20e9, 40e9, 62e9, 80e9, 124e9, 200e9)
_FINE = 1280


@dataclass(frozen=True)
class CurveRow:
    """One curve under one load: solved and stable points, muscle lengths, tip error."""

    curve: str
    load_N: float
    solved: int
    inverse_solved: int
    shortest_m: float
    longest_m: float
    mean_miss_m: float


def curve_points(name: str) -> Array:
    """
    Return the points (20, 3) [m] of a curve of the paper.

    The sizes in the paper are lost with its figures. Here the circle has a radius of 0.2 m at a
    height of 0.9 m, and the other curves are about as wide: there, muscles of 22.8 N can carry
    0.5 N at the tip, but hardly any lower.
    """
    t = np.linspace(0.0, 2.0 * math.pi, POINTS, endpoint=False)
    if name == 'circle':
        x, y = 0.2 * np.cos(t), 0.2 * np.sin(t)
    elif name == 'square':
        u = 4.0 * t / (2.0 * math.pi)
        x = 0.16 * np.interp(u, [0, 1, 2, 3, 4], [1, -1, -1, 1, 1])
        y = 0.16 * np.interp(u, [0, 1, 2, 3, 4], [1, 1, -1, -1, 1])
    elif name == 'cardioid':
        x = 0.1 * (2.0 * np.cos(t) - np.cos(2.0 * t))
        y = 0.1 * (2.0 * np.sin(t) - np.sin(2.0 * t))
    else:
        raise ValueError(f'unknown curve {name!r}; there are {", ".join(CURVES)}')
    return np.column_stack([x, y, np.full(POINTS, 0.9)])


def accuracy(intervals: int) -> tuple[float, float]:
    """Return the example's largest node errors [m] of minimum energy and of least squares."""
    fine = MinimumEnergyRod(BackboneConfig(), _FINE).reach(EXAMPLE).positions
    exact = fine[:: _FINE // intervals]
    rod = MinimumEnergyRod(BackboneConfig(), intervals)
    least = rod.reach(EXAMPLE)
    squares = solve_least_squares(rod, EXAMPLE, guess=least)
    errors = [
        float(np.linalg.norm(solution.positions - exact, axis=1).max())
        for solution in (least, squares)
    ]
    return errors[0], errors[1]


def follow_curve(name: str, load_N: float, intervals: int = 40) -> CurveRow:
    """Solve every point of a curve cold and warm, for a held tip and for muscles."""
    config = ParallelModulesConfig(muscle_stiffness_N_m=1e5)  # keeps lengths as commanded
    arm = MinimumEnergyArm(BackboneConfig(), config, intervals)
    force = (0.0, 0.0, load_N)
    solved = inverse_solved = 0
    shortest, longest, missed, guess = math.inf, 0.0, [], None
    for point in curve_points(name):
        cold = arm.rod.reach(point, tip_force=force)
        warm = arm.rod.reach(point, tip_force=force, guess=guess)
        same = np.allclose(cold.positions, warm.positions, atol=1e-8)
        lengths = muscle_lengths(warm, config)
        clamped, clamps = clamp_lengths(lengths, config)
        solved += bool(cold.stable and warm.stable and same and not clamps)
        shortest, longest = min(shortest, lengths.min()), max(longest, lengths.max())
        state = arm.equilibrium(clamped, force)
        missed.append(float(np.linalg.norm(state.positions[-1] - point)))
        inverse_solved += arm.inverse(point, tip_force=force).converged
        guess = warm
    mean = float(np.mean(missed))
    return CurveRow(name, load_N, solved, inverse_solved, float(shortest), float(longest), mean)


@dataclass(frozen=True)
class ModulusRow:
    """
    Gas springs with the paper's 22.7 N around a backbone, at points of all curves.

    Attributes
    ----------
    modulus_Pa
        Young's modulus of the backbone [Pa].
    reached
        Number of the `points` that vacuum and supply pressure can reach.
    pull_share
        Largest share of its maximum pull that a muscle needs at these points.
    mean_miss_m
        Mean tip error of the paper's command, which treats held-tip lengths as unloaded lengths.

    """

    modulus_Pa: float
    reached: int
    points: int
    pull_share: float
    mean_miss_m: float


def gas_springs_on(modulus_Pa: float, every: int = 4) -> ModulusRow:
    """Solve some points of the curves without load; the shear modulus scales with Young's."""
    backbone = BackboneConfig(
        youngs_modulus_Pa=modulus_Pa, shear_modulus_Pa=modulus_Pa * PAPER_SHEAR_SHARE
    )
    arm = MinimumEnergyArm(backbone, ParallelModulesConfig(max_pull_N=PAPER_PULL_N))
    low, high = arm.modules.min_length_m, arm.modules.max_length_m
    points = np.concatenate([curve_points(name)[::every] for name in CURVES])
    reached, share, missed = 0, 0.0, []
    for point in points:
        lengths, _ = arm.lengths_of_held_tip(point)
        missed.append(float(np.linalg.norm(arm.equilibrium(lengths).positions[-1] - point)))
        solution = arm.inverse(point)
        reached += solution.converged
        state = arm.equilibrium(solution.actuation)
        most = PAPER_PULL_N * (state.lengths - low) / (high - low)
        share = max(share, float(np.max(state.tensions / most)))
    return ModulusRow(modulus_Pa, reached, len(points), share, float(np.mean(missed)))


def main() -> None:
    """Print all tables."""
    print('largest node error in the worked example [mm]')
    for intervals in (20, 40, 80, 160):
        energy, squares = accuracy(intervals)
        print(
            f'{intervals:4d} nodes: energy {1e3 * energy:.4f}, least squares {1e3 * squares:.4f}'
        )
    print('\ncurve     load  rod   inverse  muscles [mm]      paper command misses by')
    for name in CURVES:
        for load in LOADS_N:
            row = follow_curve(name, load)
            print(
                f'{row.curve:9s} {row.load_N:.1f} N {row.solved}/{POINTS} {row.inverse_solved}/'
                f'{POINTS}  {1e3 * row.shortest_m:6.2f} to {1e3 * row.longest_m:6.2f}  '
                f'{1e3 * row.mean_miss_m:.1f} mm'
            )
    print('\nexample: lengths of the held tip played on muscles of a stiffness')
    for stiffness in (1e3, 1e4, 1e5, 1e6, 1e7):
        arm = MinimumEnergyArm(
            BackboneConfig(), ParallelModulesConfig(muscle_stiffness_N_m=stiffness)
        )
        tip = arm.equilibrium(arm.lengths_of_held_tip(EXAMPLE)[0]).positions[-1]
        print(f'{stiffness:8.0e} N/m: tip {1e3 * np.linalg.norm(tip - EXAMPLE):6.1f} mm off')
    print('\ngas springs of 22.7 N by modulus: points reached, share of the pull; paper command')
    for modulus_Pa in MODULI_PA:
        on = gas_springs_on(modulus_Pa)
        print(
            f'{1e-9 * modulus_Pa:6.1f} GPa: {on.reached}/{on.points}, '
            f'{100.0 * on.pull_share:3.0f} %; misses by {1e3 * on.mean_miss_m:.0f} mm'
        )


if __name__ == '__main__':
    main()
