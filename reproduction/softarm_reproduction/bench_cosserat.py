"""
Benchmark of the Cosserat rod: 2 x 0.2 m, 3 + 3 cables, tip wrench.

The reference is an independent formulation of the same rod: Rucker & Webster's (2011)
distributed cable loads with all six base reactions unknown, by scipy's `solve_ivp` and `root`.
`python -m softarm_reproduction.bench_cosserat` prints speed, random cases, convergence, growth.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares, root

from softarm_reproduction.bench_rows import BenchRow, median_us, require_equal
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import hat
from softarm_ros.models.arm_model import ZERO3, Vector3
from softarm_ros.models.cosserat.arm import CosseratArm
from softarm_ros.models.cosserat.config import (
    CableRoute,
    CosseratConfig,
    RodCableConfig,
    RodSegmentConfig,
    RoundProfile,
)
from softarm_ros.models.cosserat.rod import CosseratRod

TENSIONS = np.array([3.0, 1.0, 0.0, 0.0, 2.0, 1.0])
TIP_FORCE = (0.05, 0.02, -0.02)
TIP_MOMENT = (0.001, 0.0, 0.002)


def two_segment_arm(
    steps: int = 5, extensible: bool = True, segments: int = 2, cables_each: int = 3
) -> CosseratConfig:
    """
    Return segments of 0.2 m, r 10 mm, E 1 MPa, G = E/3, 1000 kg/m3, hanging, with cables.

    Each segment has its own cables at 8 mm from the centre; those of distal segments run through
    the proximal ones too.
    """
    profile = RoundProfile(
        young_modulus_Pa=1e6, poisson_ratio=0.5, density_kg_m3=1000.0, radius_m=0.01
    )
    names = [f's{k}' for k in range(segments)]
    cables = [
        RodCableConfig(
            name=f'c{k}_{i}',
            routes=tuple(
                CableRoute(
                    segment=name, radius_m=0.008, angle_deg=360.0 * i / cables_each + 60.0 * k
                )
                for name in names[: k + 1]
            ),
        )
        for k in range(segments)
        for i in range(cables_each)
    ]
    return CosseratConfig(
        segments=tuple(RodSegmentConfig(name=n, length_m=0.2, profile=profile) for n in names),
        cables=tuple(cables),
        gravity_m_s2=(0.0, 0.0, 9.81),
        extensible=extensible,
        steps=steps,
    )


def random_cases(count: int, seed: int) -> list[tuple[Array, Array, Array]]:
    """Return tensions 0-5 N (a third slack), tip forces to 0.2 N and moments to 0.01 N m."""
    rng = np.random.default_rng(seed)
    return [
        (
            rng.uniform(0.0, 5.0, 6) * (rng.random(6) > 1.0 / 3.0),
            rng.uniform(-0.2, 0.2, 3),
            rng.uniform(-0.01, 0.01, 3),
        )
        for _ in range(count)
    ]


def reference_tip(
    config: CosseratConfig,
    tensions: Array,
    tip_force: Vector3 = ZERO3,
    tip_moment: Vector3 = ZERO3,
    tolerance: float = 1e-10,
    guess: Array | None = None,
) -> tuple[Array, Array, Array]:
    """
    Return tip position (3,) [m], rotation (3, 3) and base reactions (6,) by plain scipy.

    Connectors must have no length, mass or rotation, as nothing here knows of them.

    Raises
    ------
    RuntimeError
        If the shooting does not converge.

    """
    gravity = np.array(config.gravity_m_s2)
    routes = [{route.segment: route for route in cable.routes} for cable in config.cables]
    wrench = np.concatenate([tip_force, tip_moment])

    def cables_at(k: int, fraction: float) -> tuple[Array, Array, Array]:
        """Return tensions (c,), offsets and slopes (c, 3) in a segment."""
        segment = config.segments[k]
        present = [i for i, of_segment in enumerate(routes) if segment.name in of_segment]
        paths = [routes[i][segment.name].offset(fraction, segment.length_m) for i in present]
        table = np.reshape(paths, (len(present), 6))
        return tensions[present], table[:, :3], table[:, 3:]

    def slope(s: float, y: Array, k: int) -> Array:
        segment = config.segments[k]
        length = segment.length_m
        fraction = s / length
        rotation, n, m = y[3:12].reshape(3, 3), y[12:15], y[15:18]
        stiffness = segment.profile.stiffness(fraction)
        low, high = max(fraction - 1e-5, 0.0), min(fraction + 1e-5, 1.0)
        d_stiffness = segment.profile.stiffness(high) - segment.profile.stiffness(low)
        d_stiffness /= (high - low) * length
        wrench_local = np.concatenate([rotation.T @ m, rotation.T @ n])
        stretch = np.linalg.solve(stiffness, wrench_local)
        u = stretch[:3] + segment.rest_curvature_1_m
        v = stretch[3:] + np.array([0.0, 0.0, 1.0])
        hat_u, hat_v = hat(u), hat(v)
        # Linear in (u', v'): derivative of the law, then balance with the cable loads.
        weight = rotation.T @ gravity * segment.profile.mass_per_length(fraction)
        turned = np.concatenate(
            [hat_u @ wrench_local[:3] + hat_v @ wrench_local[3:], hat_u @ wrench_local[3:]]
        )
        change = d_stiffness @ stretch
        right = -change - turned
        right[3:] -= weight
        matrix = stiffness.copy()
        pull, r, dr = cables_at(k, fraction)
        ddr = (cables_at(k, high)[2] - cables_at(k, low)[2]) / ((high - low) * length)
        first = v + r @ hat_u.T + dr
        for t, offset, p, known in zip(pull, r, first, (first + dr) @ hat_u.T + ddr):
            lever, across = hat(offset), hat(p)
            project = -t * across @ across / (p @ p) ** 1.5
            matrix[3:, :3] -= project @ lever
            matrix[3:, 3:] += project
            matrix[:3, :3] -= lever @ project @ lever
            matrix[:3, 3:] += lever @ project
            force = project @ known
            right[3:] -= force
            right[:3] -= lever @ force
        local = stiffness @ np.linalg.solve(matrix, right) + change + turned
        out = np.empty(18)
        out[:3] = rotation @ v
        out[3:12] = (rotation @ hat_u).ravel()
        out[12:15] = rotation @ local[3:]
        out[15:] = rotation @ (local[:3] - hat_v @ wrench_local[3:])
        return out

    def pulls(k: int, fraction: float, rotation: Array, n: Array, m: Array) -> Array:
        """Return force and moment (6,) of the cables over a cut, base frame."""
        segment = config.segments[k]
        stretch = np.linalg.solve(
            segment.profile.stiffness(fraction), np.concatenate([rotation.T @ m, rotation.T @ n])
        )
        u = stretch[:3] + segment.rest_curvature_1_m
        pull, r, dr = cables_at(k, fraction)
        along = stretch[3:] + (0.0, 0.0, 1.0) + r @ hat(u).T + dr
        force = pull[:, None] * along / np.linalg.norm(along, axis=1)[:, None]
        total = np.concatenate([force.sum(0), np.cross(r, force).sum(0)])
        return np.concatenate([rotation @ total[:3], rotation @ total[3:]])

    def integrate(reaction: Array) -> tuple[Array, Array]:
        y = np.concatenate([np.zeros(3), np.eye(3).ravel(), reaction])
        last = len(config.segments) - 1
        for k, segment in enumerate(config.segments):
            y = solve_ivp(
                slope,
                (0.0, segment.length_m),
                y,
                args=(k,),
                rtol=tolerance,
                atol=tolerance * 1e-2,
                method='DOP853',
            ).y[:, -1]
            rotation = y[3:12].reshape(3, 3)
            # Over the join rod and cables together carry the same; the strain of the rod jumps,
            # and with it the direction of cables that go on.
            total = y[12:] + pulls(k, 1.0, rotation, y[12:15], y[15:])
            carried = total.copy()
            for _ in range(60 if k < last else 0):
                carried = total - pulls(k + 1, 0.0, rotation, carried[:3], carried[3:])
            y = np.concatenate([y[:12], carried])
        return y, y[12:] - wrench

    if guess is None:
        guess = np.concatenate([wrench[:3], wrench[3:]])
    scale = np.array([1.0, 1.0, 1.0, 0.1, 0.1, 0.1])
    found = root(lambda x: integrate(x * scale)[1] / scale, guess / scale, tol=1e-12)
    y, miss = integrate(found.x * scale)
    if np.abs(miss / scale).max() > 1e-7:
        raise RuntimeError(f'reference: no convergence, misses by {np.abs(miss / scale).max()}')
    return y[:3], y[3:12].reshape(3, 3), found.x * scale


def _tip_at(rod: CosseratRod, warm: bool, case: tuple[Array, Vector3, Vector3]) -> Array:
    """Return the tip (4, 4) [m], `warm` from what the rod solved last."""
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
    Return the rows: statics cold and warm with a tip wrench, derivatives; 4 steps a segment.

    Warm calls alternate between tensions 1 % apart, as in a loop. Raises `AssertionError` where
    a tip is more than 1 um from the reference.
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
    """Return the row of the inverse for a tip 1 mm beside that of the guess."""
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

    One cold solution each, without weight; the loads fall with the length, so that all bend.
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
    """Draw the cost against segments and cables to a file."""
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
    """Return the table of 20 random cases and the convergence with the number of steps."""
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
    """Print everything; with `--figure FILE` also draw the growth of the cost."""
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
