"""
Benchmark of the arm dynamics: one second of motion, against pyelastica if it is installed.

The arm is the released cantilever for which the speed bar is stated: two sections of ten segments,
0.2 m, r 10 mm, E 1 MPa, G = E/3, 1000 kg/m^3, weight sideways, drag of 3 /s per mass. `accuracy`
compares tips with converged solutions; `main` also prints the other figures of the documentation.
Run as `python -m softarm_reproduction.bench_dynamics`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from scipy.linalg import block_diag, eigh

from softarm_reproduction.bench_rows import BenchRow, median_us, require_equal
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.config import round_section
from softarm_ros.models.dynamics.simulation import ArmIntegrator
from softarm_ros.models.dynamics.tangents import equilibrium

LENGTH, RADIUS, YOUNG, DENSITY, DRAG = 0.2, 0.01, 1e6, 1000.0, 3.0
WEIGHT = (9.81, 0.0, 0.0)
SECONDS = 2.0
# Tips are compared at these times; the integrator chooses its own steps in between.
TIMES = np.linspace(0.0, SECONDS, 21)
TOLERANCE = 7e-6  # m a step
REAL_TIME_BAR = 100.0


@dataclass(frozen=True)
class Accuracy:
    """Result of one solver: speed, worst and last tip error [m], and the reference solution."""

    name: str
    times_real_time: float
    worst_error_m: float
    last_error_m: float
    against: str


def cantilever(segments: int) -> ArmDynamics:
    """Return the benchmark arm with `segments` segments in all."""
    section = round_section(
        length_m=LENGTH / 2.0,
        radius_m=RADIUS,
        youngs_modulus_Pa=YOUNG,
        density_kg_m3=DENSITY,
        segments=segments // 2,
        air_drag_1_s=DRAG,
    )
    return ArmDynamics([section, section])


def motion(segments: int, tolerance_m: float) -> Array:
    """Return the tips (t, 3) [m] at `TIMES` of the arm released from the straight shape."""
    arm = cantilever(segments)
    loads = arm.loads(WEIGHT)
    run = ArmIntegrator(arm, tolerance_m=tolerance_m)
    result = run.simulate(run.start(loads), loads, TIMES)
    if not result.converged:
        raise AssertionError(result.message)
    return result.tips[:, :3, 3]


def elastica_motion(elements: int, step: float) -> Array | None:
    """Return the tips (t, 3) [m] of the same arm in pyelastica, or None if not installed."""
    try:
        import elastica as ea
    except ImportError:
        return None

    class Simulator(ea.BaseSystemCollection, ea.Constraints, ea.Forcing, ea.Damping):
        pass

    simulator = Simulator()
    rod = ea.CosseratRod.straight_rod(
        elements,
        np.zeros(3),
        np.array([0.0, 0.0, 1.0]),
        np.array([1.0, 0.0, 0.0]),
        LENGTH,
        RADIUS,
        DENSITY,
        youngs_modulus=YOUNG,
        shear_modulus=YOUNG / 3.0,
    )
    simulator.append(rod)
    simulator.constrain(rod).using(
        ea.OneEndFixedBC, constrained_position_idx=(0,), constrained_director_idx=(0,)
    )
    simulator.add_forcing_to(rod).using(ea.GravityForces, acc_gravity=np.array(WEIGHT))
    simulator.dampen(rod).using(
        ea.AnalyticalLinearDamper, uniform_damping_constant=DRAG, time_step=step
    )
    simulator.finalize()
    stepper = ea.PositionVerlet()
    tips, now = [rod.position_collection[:, -1].copy()], 0.0
    for begin, end in pairwise(TIMES):
        for _ in range(round((end - begin) / step)):
            now = stepper.step(simulator, now, step)
        tips.append(rod.position_collection[:, -1].copy())
    return np.array(tips)


def accuracy(
    ours: Sequence[tuple[int, float]] = ((20, TOLERANCE), (20, 1e-6), (40, 1e-6), (10, TOLERANCE)),
    theirs: Sequence[tuple[int, float]] = ((20, 1e-4), (20, 2e-4), (40, 1e-4), (80, 5e-5)),
) -> list[Accuracy]:
    """
    Return the speed and tip errors of this package's solver and of pyelastica.

    `ours` lists segments and tolerance [m] per step; `theirs` lists elements and step [s].
    """
    exact = motion(160, 1e-8)
    table = []
    for segments, tolerance in ours:
        seconds, tips = _timed(partial(motion, segments, tolerance), 5)
        table.append(
            _row(
                f'{segments} segments, {tolerance:g} m a step',
                seconds,
                tips,
                exact,
                'its own solution, 160 segments, 1e-8 m',
            )
        )
    finest = elastica_motion(160, 2e-5)
    if finest is None:
        return table
    for elements, step in theirs:
        seconds, found = _timed(partial(_elastica, elements, step), 1)
        name = f'pyelastica, {elements} elements, {step:g} s'
        table.append(_row(name, seconds, found, finest, 'its own solution, 160 elements, 2e-5 s'))
    table.append(
        _row('pyelastica, 160 elements', np.nan, finest, exact, "this package's, without shear")
    )
    return table


def accuracy_lines(table: Sequence[Accuracy]) -> list[str]:
    """Return the table of `accuracy` as text."""
    lines = [f'released cantilever, {SECONDS:g} s of motion: tip errors at {len(TIMES)} times']
    for row in table:
        speed = '' if np.isnan(row.times_real_time) else f'{row.times_real_time:.1f} x real time'
        lines.append(
            f'  {row.name:<34} {speed:>17}  worst {1e3 * row.worst_error_m:7.3f} mm  '
            f'last {1e3 * row.last_error_m:7.3f} mm  against {row.against}'
        )
    return lines


def _timed(work: Callable[[], Array], repeats: int) -> tuple[float, Array]:
    """Return the median time [s] and the result, after one call to compile."""
    result, seconds = work(), []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - begin)
    return float(np.median(seconds)), result


def _row(name: str, seconds: float, tips: Array, exact: Array, against: str) -> Accuracy:
    error = np.linalg.norm(tips - exact, axis=1)
    return Accuracy(name, SECONDS / seconds, float(error.max()), float(error[-1]), against)


def frequency_errors(segments: int) -> Array:
    """Return the relative errors of the first three bending frequencies of a thin clamped rod."""
    radius = LENGTH / 400.0
    section = round_section(
        length_m=LENGTH,
        radius_m=radius,
        youngs_modulus_Pa=YOUNG,
        density_kg_m3=DENSITY,
        segments=segments,
    )
    arm = ArmDynamics([section])
    stiffness = block_diag(*(arm.body.length[:, None, None] * arm.body.stiffness))
    squares = eigh(stiffness, arm.mass_matrix(arm.straight), eigvals_only=True)
    unit = np.sqrt(YOUNG * radius**2 / 4.0 / DENSITY) / LENGTH**2
    exact = unit * np.array([1.8751040687, 4.6940911330, 7.8547574382]) ** 2
    return np.asarray(np.sqrt(squares[:6:2]) / exact - 1.0)


def energy_drift(tolerance_m: float, seconds: float = 10.0) -> tuple[float, float]:
    """Return the undamped arm's energy drift over its largest kinetic energy, and the speed."""
    section = round_section(
        length_m=LENGTH / 2.0,
        radius_m=RADIUS,
        youngs_modulus_Pa=YOUNG,
        density_kg_m3=DENSITY,
        segments=10,
    )
    arm = ArmDynamics([section, section])
    loads = arm.loads(WEIGHT)
    run = ArmIntegrator(arm, tolerance_m=tolerance_m, spectral_radius=1.0)
    state = run.start(loads)
    begin = arm.energy(state.strains, state.rates, loads).total
    drift, kinetic, clock = 0.0, 0.0, time.perf_counter()
    for _ in range(round(10.0 * seconds)):
        state = run.advance(state, loads, 0.1).state
        energy = arm.energy(state.strains, state.rates, loads)
        drift = max(drift, abs(energy.total - begin))
        kinetic = max(kinetic, energy.kinetic)
    return drift / kinetic, seconds / (time.perf_counter() - clock)


def growth(repeats: int) -> list[tuple[int, float, float]]:
    """Return segments and median times [us] of accelerations and one integrator iteration."""
    table = []
    for segments in (10, 20, 40, 80, 160, 320):
        arm = cantilever(segments)
        loads = arm.loads(WEIGHT)
        q = arm.straight
        call = median_us(partial(arm.forward_dynamics, q, q, loads), repeats)
        run = ArmIntegrator(arm, tolerance_m=TOLERANCE, max_step_s=5e-3)
        start = run.start(loads)
        result = run.advance(start, loads, 0.5)
        moving = median_us(partial(run.advance, start, loads, 0.5), 3) / result.iterations
        table.append((segments, call, moving))
    return table


def rows(repeats: int) -> list[BenchRow]:
    """Return the benchmark rows: times of one second of motion and of single calls."""
    return [
        _one_second(repeats),
        *[_forward_dynamics(repeats, segments) for segments in (20, 80)],
        _equilibrium(repeats),
    ]


def _one_second(repeats: int) -> BenchRow:
    ours = median_us(lambda: motion(20, TOLERANCE), repeats) / SECONDS
    reference, note = float('nan'), 'pyelastica is not installed here'
    if elastica_motion(20, 2e-4) is not None:  # this first call also compiles
        begin = time.perf_counter()
        elastica_motion(20, 2e-4)
        seconds = time.perf_counter() - begin
        reference, note = 1e6 * seconds / SECONDS, 'pyelastica, 20 elements, 0.2 ms'
    return BenchRow(
        'dynamics: 1 s of a falling arm, 20 segments', ours, reference, note, 1e6 / REAL_TIME_BAR
    )


def _elastica(elements: int, step: float) -> Array:
    tips = elastica_motion(elements, step)
    if tips is None:
        raise AssertionError('pyelastica is not installed')
    return tips


def _forward_dynamics(repeats: int, segments: int) -> BenchRow:
    arm = cantilever(segments)
    loads = arm.loads(WEIGHT)
    rng = np.random.default_rng(0)
    q = rng.normal(size=(segments, 4)) * [0.02, 3.0, 3.0, 3.0]
    v = rng.normal(size=(segments, 4))

    def dense() -> Array:
        bias = arm.inverse_dynamics(q, v, 0.0 * v, loads)
        return np.asarray(np.linalg.solve(arm.mass_matrix(q), -bias.ravel())).reshape(q.shape)

    fast = arm.forward_dynamics(q, v, loads)
    require_equal('forward dynamics', fast, dense(), 1e-5 * float(np.abs(fast).max()))
    return BenchRow(
        f'dynamics: accelerations, {segments} segments',
        median_us(lambda: arm.forward_dynamics(q, v, loads), repeats),
        median_us(dense, repeats),
        'mass matrix by columns, numpy solve',
    )


def _equilibrium(repeats: int) -> BenchRow:
    arm = cantilever(20)
    loads = arm.loads(WEIGHT)
    found = equilibrium(arm, loads)
    nearby = equilibrium(arm, arm.loads((9.0, 0.5, 0.0)))
    return BenchRow(
        'dynamics: equilibrium, 20 segments, warm',
        median_us(lambda: equilibrium(arm, loads, nearby.strains), repeats),
        median_us(lambda: equilibrium(arm, loads), repeats),
        f'from the straight arm, {found.iterations} iterations',
    )


def main() -> None:
    """Print accuracy, frequencies, energy drift, growth of the cost, and rows."""
    print('\n'.join(accuracy_lines(accuracy())))
    for segments in (10, 20, 40):
        errors = ', '.join(f'{100.0 * x:.4f}' for x in frequency_errors(segments))
        print(
            f'first three frequencies of a thin clamped rod, {segments} segments: {errors} % off'
        )
    for tolerance in (1e-6, 3e-7, 1e-7):
        drift, speed = energy_drift(tolerance)
        print(
            f'undamped, 10 s, {tolerance:g} m a step: energy drift {100.0 * drift:.3f} % of the '
            f'largest kinetic energy, {speed:.1f} x real time'
        )
    for segments, call, iteration in growth(9):
        print(
            f'{segments:4d} segments: accelerations {call:7.1f} us, one integrator iteration '
            f'{iteration:7.1f} us'
        )
    for bench in rows(9):
        bar = '' if bench.bar_us is None else f'bar {bench.bar_us:.0f} us: {bench.verdict}'
        print(
            f'  {bench.name:46s} {bench.compiled_us:10.1f} us, {bench.reference}: '
            f'{bench.reference_us:10.1f} us  {bar}'
        )


if __name__ == '__main__':
    main()
