"""
Benchmark of the Cosserat rod: 2 x 0.2 m, 3 + 3 cables, tip wrench.

The reference is an independent formulation of the same rod (`rod_reference`).
`python -m softarm_reproduction.bench_cosserat` prints speed, random cases, convergence and the
growth of the cost with the number of segments and cables.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from softarm_reproduction.bench_rows import BenchRow, median_us, require_equal
from softarm_reproduction.rod_reference import random_cases, reference_tip, two_segment_arm
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ZERO3, Vector3
from softarm_ros.models.cosserat.arm import CosseratArm
from softarm_ros.models.cosserat.config import (
    CosseratConfig,
)
from softarm_ros.models.cosserat.rod import CosseratRod

TENSIONS = np.array([3.0, 1.0, 0.0, 0.0, 2.0, 1.0])
TIP_FORCE = (0.05, 0.02, -0.02)
TIP_MOMENT = (0.001, 0.0, 0.002)


def _tip_at(rod: CosseratRod, warm: bool, case: tuple[Array, Vector3, Vector3]) -> Array:
    """Return the tip pose (4, 4) [m]; if `warm`, start from the last solution of the rod."""
    rod.load(*case)
    status, _, stable, _, _ = rod.equilibrate(rod.start if warm else None)
    if status or not stable:
        raise RuntimeError(f'no stable equilibrium for {case}')
    return rod.tip_pose()


def _once_us(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return 1e6 * (time.perf_counter() - start)


def rows(repeats: int) -> list[BenchRow]:
    """
    Return the rows of cold and warm statics with a tip wrench, derivatives and inverse.

    Each segment has 4 steps. Warm calls alternate between tensions 1 % apart, as in a control
    loop. Raises `AssertionError` if a tip is more than 1 um from the reference.
    """
    config = two_segment_arm(steps=4)
    rod = CosseratRod(config)
    wrench = (TIP_FORCE, TIP_MOMENT)
    near = TENSIONS * 1.01
    reactions: list[Array] = []

    def reference(tensions: Array, guess: Array | None) -> Array:
        tip, _, reaction = reference_tip(config, tensions, *wrench, 1e-7, guess)
        reactions.append(reaction)
        return tip

    tips = np.empty((2, 3))
    cold_reference = _once_us(lambda: tips.__setitem__(0, reference(TENSIONS, None)))
    warm_reference = _once_us(lambda: tips.__setitem__(1, reference(near, reactions[0])))
    cases = [(TENSIONS, *wrench), (near, *wrench)]
    for warm in (False, True):
        for case, tip in zip(cases, tips):
            require_equal('Cosserat tip', _tip_at(rod, warm, case)[:3, 3], tip, 1e-6)
    cold = median_us(lambda: _tip_at(rod, False, cases[0]), repeats)
    turn = [0]

    def warm_call() -> Array:
        turn[0] ^= 1
        return _tip_at(rod, True, cases[turn[0]])

    warm_time = median_us(warm_call, repeats)
    derivatives = median_us(rod.derivatives, repeats)

    def differences() -> None:
        for i in range(12):
            change = np.zeros(12)
            change[i] = 1e-5
            for sign in (1.0, -1.0):
                tensions = np.abs(TENSIONS + sign * change[:6])
                _tip_at(rod, True, (tensions, TIP_FORCE + sign * change[6:9], TIP_MOMENT))

    what = 'scipy solve_ivp + root'
    return [
        BenchRow('Cosserat statics, cold', cold, cold_reference, what, 250.0),
        BenchRow('Cosserat statics, warm', warm_time, warm_reference, what, 150.0),
        BenchRow(
            'Cosserat Jacobian + compliance',
            derivatives,
            median_us(differences, max(repeats // 4, 1)),
            'central differences, warm',
        ),
        _inverse_row(config, repeats),
    ]


def _inverse_row(config: CosseratConfig, repeats: int) -> BenchRow:
    """Return the row of the inverse for a target 1 mm away from the tip of the guess."""
    arm = CosseratArm(config)
    target = arm.forward(TENSIONS, TIP_FORCE).tip[:3, 3] + (0.001, 0.0, 0.0)
    found = arm.inverse(target, guess=TENSIONS, tip_force=TIP_FORCE)
    if not found.converged:
        raise AssertionError(f'inverse: {found.message}')

    def plain() -> Array:
        return least_squares(
            lambda t: _tip_at(arm.rod, True, (t, TIP_FORCE, ZERO3))[:3, 3] - target,
            np.maximum(TENSIONS, 1e-3),
            bounds=(0.0, 100.0),
            xtol=1e-12,
            ftol=1e-15,
            gtol=1e-12,
            diff_step=1e-4,
            x_scale=1.0,
        ).x

    require_equal('Cosserat inverse', arm.forward(plain(), TIP_FORCE).tip[:3, 3], target, 1e-6)
    return BenchRow(
        'Cosserat inverse, least norm',
        median_us(lambda: arm.inverse(target, guess=TENSIONS, tip_force=TIP_FORCE), repeats),
        median_us(plain, max(repeats // 4, 1)),
        'scipy least_squares, any norm',
    )


def growth(repeats: int) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
    """
    Return (segments, us) with 3 cables in all, and (cables a segment, us) for two segments.

    Each time is that of one cold solution without weight. The tip force decreases with the number
    of segments, so that rods of all lengths bend alike.
    """

    def measure(segments: int, cables: int, last_only: bool) -> float:
        config = two_segment_arm(4, True, segments, cables)
        config = config.model_copy(update={'gravity_m_s2': ZERO3})
        if last_only:
            config = config.model_copy(update={'cables': config.cables[-cables:]})
        rod = CosseratRod(config)
        tensions = np.zeros(len(config.cables))
        tensions[0] = 1.0
        case = (tensions, (0.05 / segments**2, 0.0, 0.0), ZERO3)
        return median_us(lambda: _tip_at(rod, False, case), repeats)

    by_segments = [(k, measure(k, 3, True)) for k in (1, 2, 4, 8, 16)]
    by_cables = [(k, measure(2, k, False)) for k in (1, 2, 4, 8, 16)]
    return by_segments, by_cables


def growth_figure(
    path: Path, by_segments: list[tuple[int, float]], by_cables: list[tuple[int, float]]
) -> None:
    """Plot the cost over the number of segments and of cables into a file."""
    from softarm_ros.cli.report_plotting import PALETTE, label_axes, new_figure, save

    figure = new_figure(3.0)
    axes = figure.subplots(1, 2)
    for axis, points, label in zip(
        axes, (by_segments, by_cables), ('segments of 0.2 m, 3 cables', 'cables a segment')
    ):
        x, y = np.array(points).T
        axis.plot(x, y, 'o', color=PALETTE[0])
        axis.plot(x, np.polyval(np.polyfit(x, y, 1), x), color=PALETTE[0], linewidth=0.8)
        label_axes(axis, label, 'cold solution [us]')
        axis.set_xlim(left=0.0)
        axis.set_ylim(bottom=0.0)
    save(figure, path)


def accuracy_report() -> str:
    """Return a table of 20 random cases and of the convergence with the number of steps."""
    coarse, fine = CosseratRod(two_segment_arm(5)), CosseratRod(two_segment_arm(80))
    lines = ['20 random cases, cold: tensions [N], force [N], tip [m], 10 against 160 steps [um]']
    solved = 0
    for tensions, force, moment in random_cases(20, seed=20):
        first, second = (rod.solve(tensions, force, moment) for rod in (coarse, fine))
        solved += first.converged and first.stable
        miss = 1e6 * np.linalg.norm(first.tip[:3, 3] - second.tip[:3, 3])
        lines.append(
            f'{np.array2string(tensions, precision=1):32}'
            f'{np.array2string(force, precision=2):22}'
            f'{np.array2string(first.tip[:3, 3], precision=4):28}{miss:9.5f}'
        )
    lines += [f'{solved} of 20 solved', 'steps in all, error of the tip [um], order']
    exact = CosseratRod(two_segment_arm(160)).solve(TENSIONS, TIP_FORCE, TIP_MOMENT).tip[:3, 3]
    before = 0.0
    for steps in (2, 4, 8, 16, 32):
        tip = CosseratRod(two_segment_arm(steps)).solve(TENSIONS, TIP_FORCE, TIP_MOMENT).tip
        error = 1e6 * float(np.linalg.norm(tip[:3, 3] - exact))
        order = f'{np.log2(before / error):.2f}' if before else ''
        lines.append(f'{2 * steps:5d} {error:14.3g}   {order}')
        before = error
    return '\n'.join(lines)


def main(arguments: Sequence[str]) -> int:
    """Print all results; with `--figure FILE`, also plot the growth of the cost."""
    parser = argparse.ArgumentParser(prog='python -m softarm_reproduction.bench_cosserat')
    parser.add_argument('--repeats', type=int, default=30)
    parser.add_argument('--figure', type=Path)
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    CosseratRod(two_segment_arm()).solve(TENSIONS)
    print(f'first solution, compiled or from the cache: {time.perf_counter() - start:.1f} s')
    for row in rows(options.repeats):
        bar = '' if row.bar_us is None else f'bar {row.bar_us:.0f} us, {row.verdict}'
        print(
            f'{row.name:32}{row.compiled_us:9.1f} us   {row.reference}: '
            f'{row.reference_us:.0f} us   {bar}'
        )
    print(accuracy_report())
    by_segments, by_cables = growth(options.repeats)
    print('cold solution [us] by segments:', [(k, round(t)) for k, t in by_segments])
    print('cold solution [us] by cables a segment:', [(k, round(t)) for k, t in by_cables])
    if options.figure:
        growth_figure(options.figure, by_segments, by_cables)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
