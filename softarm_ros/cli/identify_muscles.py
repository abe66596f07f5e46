"""
Simulated identification of muscles on a bench: valve times to lengths, and how they give.

As Chen et al. 2022 did (fig. 4b, and their test with a weight): the valve of a full muscle is
opened step by step, then that of an empty one; weights are hung on muscles of several lengths with
closed valves, and with the pump on until nothing moves. A ruler beside each muscle is all that is
read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.monotone_curve import MonotoneCurve
from softarm_ros.plant.pam_arm.config import PamPlantConfig
from softarm_ros.plant.pam_arm.muscle_bench import MuscleBench
from softarm_ros.rigs.arms.muscle import MuscleArm
from softarm_ros.rigs.schema import Rig

RULER_NOISE_M = 2.0e-5  # of a laser sensor
READINGS = 50
STANDS_S, LEAKS_S = 100.0, 300.0  # until leaks have taken up the play of the folds; then watched
STEP_S = 2.0  # of the time that a valve is open
STEPS = 12
PUMP_OUT_S = 120.0  # until a muscle counts as empty
PULLS_N = (0.0, 5.0, 10.0)
DRAWS = 1000


@dataclass(frozen=True)
class BenchReadings:
    """
    What the rulers show, of m muscles.

    Attributes
    ----------
    deflating_s, inflating_s : (k,)
        How long a valve was open since the muscle was full, empty [s].
    deflating_m, inflating_m : (k, m)
        Lengths then [m].
    pulled_m : (lengths, pulls, m)
        Lengths under `PULLS_N` with closed valves [m].
    pumped_m : (pulls, m)
        Lengths to which the pump brings a muscle under `PULLS_N` [m].
    leaking_m : (2, m)
        Lengths with closed valves and no weight [m], `LEAKS_S` apart.

    """

    deflating_s: Array
    deflating_m: Array
    inflating_s: Array
    inflating_m: Array
    pulled_m: Array
    pumped_m: Array
    leaking_m: Array


@dataclass(frozen=True)
class Found:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class MuscleIdentification:
    """
    What was found.

    Attributes
    ----------
    emptying_time_s, filling_time_s : Found
        Of the exponentials nearest to what was read.
    max_pull_N, supply_push_N : Found
        Of the pump at a full muscle, of the supply; by the skeleton's stiffness, from lengths.
    leak_time_s : Found
        With which a muscle with closed valves goes to its full length.
    stiffness_N_m : Found
        Axial, at `stiffness_at_m`, the length of a muscle in the straight arm.
    softening_1_m : Found
        By which share of that the stiffness falls for each metre that a muscle is shorter.

    """

    emptying_time_s: Found
    filling_time_s: Found
    max_pull_N: Found
    supply_push_N: Found
    leak_time_s: Found
    stiffness_N_m: Found
    softening_1_m: Found
    stiffness_at_m: float


def measure_muscles(rig: Rig, seed: int) -> BenchReadings:
    """Empty and fill all muscles of the simulated arm of a seed on a bench, and pull at them."""
    arm, plant = MuscleArm.of(rig), rig.plant_of(PamPlantConfig).of_machine(seed)

    def bench() -> MuscleBench:
        return MuscleBench(plant, arm.valves, len(arm.actuators), seed, RULER_NOISE_M)

    emptied = bench()
    falling = [emptied.read(READINGS)]
    pulled = []
    for step in range(STEPS):
        if step in (0, 1, 2):
            pulled.append(_pulled(emptied))
        emptied.open(inflate=False, duration_s=STEP_S)
        falling.append(emptied.read(READINGS))
    emptied.wait(STANDS_S)
    leaking = [emptied.read(READINGS)]
    emptied.wait(LEAKS_S)
    leaking.append(emptied.read(READINGS))
    pumped = [_pumped_out(bench(), force) for force in PULLS_N]
    filled = bench()
    filled.open(inflate=False, duration_s=PUMP_OUT_S)
    rising = [filled.read(READINGS)]
    # A full bag stops at its length: the last steps are read up to there.
    full = falling[0].mean()
    while rising[-1].mean() < full - 1e-3 and len(rising) <= STEPS:
        filled.open(inflate=True, duration_s=0.5 * STEP_S)
        rising.append(filled.read(READINGS))
    return BenchReadings(
        np.asarray(STEP_S * np.arange(len(falling)), dtype=np.float64),
        np.array(falling),
        np.asarray(0.5 * STEP_S * np.arange(len(rising)), dtype=np.float64),
        np.array(rising),
        np.array(pulled),
        np.array(pumped),
        np.array(leaking),
    )


def _pumped_out(bench: MuscleBench, force_N: float) -> Array:
    """Return the lengths (m,) [m] at which the pump lifts a weight no further."""
    bench.hang(force_N)
    bench.open(inflate=False, duration_s=PUMP_OUT_S)
    return bench.read(READINGS)


def _pulled(bench: MuscleBench) -> Array:
    """Return the lengths (pulls, m) [m] under each weight, the valves closed."""
    lengths = []
    for force in PULLS_N:
        bench.hang(force)
        lengths.append(bench.read(READINGS))
    bench.hang(0.0)
    return np.array(lengths)


def identify_muscles(rig: Rig, readings: BenchReadings, seed: int = 0) -> MuscleIdentification:
    """
    Fit exponentials and stiffness to what was read of all muscles together.

    Intervals draw muscles again with replacement: these differ, readings hardly err.
    """
    arm = MuscleArm.of(rig)
    home = arm.backbone.length_m / arm.modules.modules
    count = readings.deflating_m.shape[1]
    one_by_one = np.array([_of_muscle(readings, i, home) for i in range(count)])
    rng = np.random.default_rng(seed)
    drawn = one_by_one[rng.integers(0, count, (DRAWS, count))].mean(axis=1)
    values = one_by_one.mean(axis=0)
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    emptying, filling, pull, push, leak, stiffness, softening = (
        Found(*map(float, each)) for each in zip(values, low, high)
    )
    return MuscleIdentification(emptying, filling, pull, push, leak, stiffness, softening, home)


def _of_muscle(readings: BenchReadings, i: int, home: float) -> Array:
    """Return both times, pull, push, leak, stiffness and softening (7,) of one muscle."""
    fall, rise = readings.deflating_m[:, i], readings.inflating_m[:, i]

    def of_fall(unknown: Array) -> Array:
        time, end = unknown
        return np.asarray(end + (fall[0] - end) * np.exp(-readings.deflating_s / time) - fall)

    # A bag that is full takes no more.
    whole = rise < fall[0] - 5e-4

    def of_rise(unknown: Array) -> Array:
        time, end = unknown
        grown = end + (rise[0] - end) * np.exp(-readings.inflating_s / time)
        return np.asarray((grown - rise)[whole])

    emptying = least_squares(of_fall, [10.0, fall[-1]], x_scale=[1.0, 1e-3])
    filling = least_squares(of_rise, [10.0, 1.3 * fall[0]], x_scale=[1.0, 1e-3])
    pulls = np.array(PULLS_N)
    give = np.array([np.polyfit(pulls, of_length[:, i], 1)[0] for of_length in readings.pulled_m])
    slope, stiffness = np.polyfit(readings.pulled_m[:, 0, i] - home, 1.0 / give, 1)
    # The skeleton carries what hangs under the pump; what gives with closed valves gives as well.
    lengths = readings.pumped_m[:, i]

    def of_pump(unknown: Array) -> Array:
        empty, gives = unknown
        free = empty + gives * pulls
        return np.asarray(free + pulls / (stiffness + slope * (free - home)) - lengths)

    empty, gives = least_squares(of_pump, [lengths[0], 2e-3], x_scale=[1e-3, 1e-3]).x
    pull, push = (fall[0] - empty) / gives, (filling.x[1] - fall[0]) / gives
    first, last = readings.leaking_m[:, i]
    leak_s = LEAKS_S / np.log((fall[0] - first) / (fall[0] - last))
    return np.array(
        [emptying.x[0], filling.x[0], pull, push, leak_s, stiffness, slope / stiffness]
    )


def tables(
    readings: BenchReadings, points: tuple[int, int]
) -> tuple[MonotoneCurve, MonotoneCurve]:
    """
    Return time to length of the mean muscle in so many points: deflating, inflating.

    Bags of unlike throttles are full at unlike times. The mean muscle fills on, on its
    exponential, to the mean of the full lengths; the mean of lengths would slow down before.
    """
    fall, rise = readings.deflating_m.mean(axis=1), readings.inflating_m.mean(axis=1)
    falling = MonotoneCurve(readings.deflating_s, fall, 'times_s', 'lengths_m')
    # Nothing fills faster than at the start: whoever is not near the end was not full before.
    whole = (readings.inflating_m < readings.deflating_m[0] - 2e-3).all(axis=1)
    time_s, rise = readings.inflating_s[whole], rise[whole]
    ends = least_squares(
        lambda x: x[1] + (rise[0] - x[1]) * np.exp(-time_s / x[0]) - rise,
        [10.0, 1.3 * fall[0]],
        x_scale=[1.0, 1e-3],
    ).x
    full_s = ends[0] * np.log((ends[1] - rise[0]) / (ends[1] - fall[0]))
    rising = MonotoneCurve(
        np.append(time_s, full_s), np.append(rise, fall[0]), 'times_s', 'lengths_m'
    )
    grids = (np.linspace(0.0, curve.x[-1], n) for curve, n in zip((falling, rising), points))
    down, up = (
        MonotoneCurve(grid, curve(grid), 'times_s', 'lengths_m')
        for curve, grid in zip((falling, rising), grids)
    )
    return down, up


def describe_muscles(rig: Rig, readings: BenchReadings, found: MuscleIdentification) -> list[str]:
    """Return what `softarm identify` prints: fields of the rig file, and what lies behind them."""
    arm = MuscleArm.of(rig)
    lines = [
        f'{rig.name}: {readings.deflating_m.shape[1]} muscles on a bench, valves step by step'
    ]
    known = (arm.valves.deflating, arm.valves.inflating)
    points = len(known[0].times_s), len(known[1].times_s)
    for name, curve, was in zip(('deflating', 'inflating'), tables(readings, points), known):
        table = MonotoneCurve(was.times_s, was.lengths_m, 'times_s', 'lengths_m')
        inside = np.asarray(curve.x) <= was.times_s[-1]
        off = np.abs(table(np.asarray(curve.x)[inside]) - np.asarray(curve.y)[inside])
        lines += [
            f'{name}.times_s: {[round(float(t), 3) for t in curve.x]}',
            f'{name}.lengths_m: {[round(float(y), 5) for y in curve.y]}    '
            f'(rig file: up to {1e3 * off.max():.2f} mm off)',
        ]
    for text, one, unit in (
        ('emptying time', found.emptying_time_s, 's'),
        ('filling time', found.filling_time_s, 's'),
        ('max_pull_N', found.max_pull_N, f'N (rig file: {arm.valves.max_pull_N:g})'),
        ('supply_push_N', found.supply_push_N, f'N (rig file: {arm.valves.supply_push_N:g})'),
        ('leak_time_s', found.leak_time_s, f's (rig file: {arm.valves.leak_time_s})'),
        (
            f'muscle_stiffness_N_m at {1e3 * found.stiffness_at_m:g} mm', found.stiffness_N_m,
            f'N/m (rig file: {arm.modules.muscle_stiffness_N_m:g})',
        ),
        ('its share lost for each metre shorter', found.softening_1_m, '1/m'),
    ):  # fmt: skip
        lines.append(f'{text}: {one.value:.4g}, 95 % {one.low:.4g} to {one.high:.4g} {unit}')
    return lines
