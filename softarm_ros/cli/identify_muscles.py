"""
Simulated identification of muscles on a bench: lengths by valve times, and compliance.

As Chen et al. 2022 did (fig. 4b, and their test with a weight): a full muscle is emptied by
opening its valve step by step, and an empty one is filled likewise. Weights are hung on muscles of
several lengths with closed valves, and on muscles that the pump empties until nothing moves. Only
muscle lengths are measured. With the law of gas springs (`GasSprings`), the lengths under the pump
give the stiffness of the skeleton, and the valve times give the throttles. The lengths under
weights with closed valves are kept to validate the law.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.minimum_energy.gas_springs import GasSprings
from softarm_ros.models.monotone_curve import MonotoneCurve
from softarm_ros.plant.pam_arm.config import PamPlantConfig
from softarm_ros.plant.pam_arm.muscle_bench import MuscleBench
from softarm_ros.rigs.arms.muscle import MuscleArm
from softarm_ros.rigs.schema import Rig

RULER_NOISE_M = 2.0e-5  # standard deviation of a laser sensor
READINGS = 50
STANDS_S, LEAKS_S = 100.0, 300.0  # wait until leaks have taken up the folds' play; then watch
STEP_S = 1.5  # time that a valve is open in a step
STEPS = 12
PUMP_OUT_S = 120.0  # pumping time after which a muscle counts as empty
PULLS_N = (0.0, 5.0, 10.0)
PULLED = (3, 4, 5)  # steps after which no film is taut under these weights
DRAWS = 1000


@dataclass(frozen=True)
class BenchReadings:
    """
    Measured lengths of m muscles.

    Attributes
    ----------
    deflating_s, inflating_s : (k,)
        Total time that a valve was open since the muscle was full, or empty [s].
    deflating_m, inflating_m : (k, m)
        Lengths after these times [m].
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
    Identified values.

    Attributes
    ----------
    emptying_time_s, filling_time_s : Found
        Time in which a full muscle would shorten completely at its initial rate; likewise for the
        throttle that fills, at the same pressure.
    max_pull_N, supply_push_N : Found
        Pull of the pump on a full muscle, and push of the supply; computed from lengths with the
        stiffness of the skeleton.
    leak_time_s : Found
        Time constant of a closed, nearly full muscle that leaks to its full length.
    skeleton_N_m : Found
        Stiffness of the folds.
    full_m : Found
        Length of a vented muscle.
    law_misses_m : float
        Largest error of the lengths by the law, under weights with closed valves.

    """

    emptying_time_s: Found
    filling_time_s: Found
    max_pull_N: Found
    supply_push_N: Found
    leak_time_s: Found
    skeleton_N_m: Found
    full_m: Found
    law_misses_m: float

    @property
    def law(self) -> GasSprings:
        """Law of the mean muscle."""
        pull, full = self.max_pull_N.value, self.full_m.value
        empty = full - pull / self.skeleton_N_m.value
        return GasSprings(empty, full, pull, self.supply_push_N.value)


def measure_muscles(rig: Rig, seed: int) -> BenchReadings:
    """Empty, fill and load all muscles of a seed's simulated arm on a bench."""
    arm, plant = MuscleArm.of(rig), rig.plant_of(PamPlantConfig).of_machine(seed)

    def bench() -> MuscleBench:
        return MuscleBench(plant, arm.valves, len(arm.actuators), seed, RULER_NOISE_M)

    emptied = bench()
    falling = [emptied.read(READINGS)]
    pulled = []
    for step in range(STEPS):
        if step in PULLED:
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
    # A full bag stops at its length: fill until there.
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
    """Return the lengths (m,) [m] at which the pump cannot lift a weight further."""
    bench.hang(force_N)
    bench.open(inflate=False, duration_s=PUMP_OUT_S)
    return bench.read(READINGS)


def _pulled(bench: MuscleBench) -> Array:
    """Return the lengths (pulls, m) [m] under each weight, with closed valves."""
    lengths = []
    for force in PULLS_N:
        bench.hang(force)
        lengths.append(bench.read(READINGS))
    bench.hang(0.0)
    return np.array(lengths)


def identify_muscles(rig: Rig, readings: BenchReadings, seed: int = 0) -> MuscleIdentification:
    """
    Fit the law to the readings of each muscle.

    Intervals are found by resampling muscles, which differ more than readings err.
    """
    count = readings.deflating_m.shape[1]
    one_by_one = np.array([_of_muscle(readings, i) for i in range(count)])
    rng = np.random.default_rng(seed)
    drawn = one_by_one[rng.integers(0, count, (DRAWS, count))].mean(axis=1)
    values = one_by_one.mean(axis=0)
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    emptying, filling, pull, push, leak, skeleton, full = (
        Found(*map(float, each)) for each in zip(values, low, high)
    )
    misses = max(_misses(readings, i, one_by_one[i]) for i in range(count))
    return MuscleIdentification(
        emptying, filling, pull, push, leak, skeleton, full, law_misses_m=misses
    )


def _of_muscle(readings: BenchReadings, i: int) -> Array:
    """Return the fields of `MuscleIdentification` with intervals (7,), for one muscle."""
    fall, rise = readings.deflating_m[:, i], readings.inflating_m[:, i]
    full = fall[0]
    # While the pump runs, the skeleton alone carries the weight.
    gives, empty = np.polyfit(np.array(PULLS_N), readings.pumped_m[:, i], 1)
    way = 2.0 * full - empty

    def of_fall(unknown: Array) -> Array:
        lag = readings.deflating_s - unknown[0] / way * _emptying_way(fall, full, empty)
        return np.asarray(lag * (fall - empty) / (2.0 * fall - empty) * way / unknown[0])

    # Leave out full bags, which take no more gas.
    whole = rise < full - 5e-4
    grown, times_s = rise[whole], readings.inflating_s[whole]

    def of_rise(unknown: Array) -> Array:
        time_s, end = unknown
        lag = times_s - time_s / way * _filling_way(grown, grown[0], empty, end)
        return np.asarray(lag * (end - grown) / (2.0 * grown - empty) * way / time_s)

    emptying = least_squares(of_fall, [10.0]).x[0]
    span = full - empty
    filling, end = least_squares(
        of_rise,
        [10.0, full + 0.6 * span],
        bounds=([0.1, full + 0.01 * span], [1e3, full + 5.0 * span]),
        x_scale=[1.0, 1e-2],
    ).x
    first, last = readings.leaking_m[:, i]
    leak_s = LEAKS_S * way / float(_filling_way(last, first, empty, full))
    pull, push = span / gives, (end - full) / gives
    return np.array([emptying, filling, pull, push, leak_s, 1.0 / gives, full])


def _emptying_way(lengths: Array | float, start: float, empty: float) -> Array:
    """
    Return c t [m] of the time t in which the pump moves an unloaded muscle from start to lengths.

    The solution of (2 g - empty) g' = -c (g - empty), for an amount of gas k g (g - empty) at the
    pressure k (g - empty).
    """
    log = np.log((start - empty) / (lengths - empty))
    return np.asarray(2.0 * (start - lengths) + empty * log)


def _filling_way(lengths: Array | float, start: float, empty: float, end: float) -> Array:
    """Return c t [m] of (2 g - empty) g' = c (end - g): filling to pressure k (end - empty)."""
    log = np.log((end - start) / (end - lengths))
    return np.asarray(2.0 * (start - lengths) + (2.0 * end - empty) * log)


def _misses(readings: BenchReadings, i: int, found: Array) -> float:
    """Return the largest error [m] of the law's lengths under weights with closed valves."""
    pull, push, skeleton, full = found[2], found[3], found[5], found[6]
    law = GasSprings(full - pull / skeleton, full, pull, push)
    lengths = readings.pulled_m[:, :, i]
    said = law.length(np.array(PULLS_N), lengths[:, :1])
    return float(np.abs(said - lengths).max())


def tables(
    readings: BenchReadings, found: MuscleIdentification, points: tuple[int, int]
) -> tuple[MonotoneCurve, MonotoneCurve]:
    """
    Return length by time of the mean muscle, deflating and inflating, in `points` points each.

    Up to the full length, the curves follow the readings. Beyond, where the film holds an unloaded
    bag, they follow the law, up to the gas that the supply presses into a full bag. Bags with
    different throttles are full at different times: once the first bag is full, the law describes
    how the mean muscle fills.
    """
    law = found.law
    empty, full, most = law.shortest_m, law.longest_m, law.most_m
    way, end = 2.0 * full - empty, full + law.supply_push_N / law.skeleton_N_m
    over = np.linspace(most, full, 9)[:-1]
    emptied = found.emptying_time_s.value / way * _emptying_way(over, most, empty)
    begins = found.emptying_time_s.value / way * float(_emptying_way(full, most, empty))
    falling = MonotoneCurve(
        np.append(emptied, begins + readings.deflating_s),
        np.append(over, readings.deflating_m.mean(axis=1)),
        'times_s',
        'lengths_m',
    )
    # Readings with every muscle clearly below its full length: none was full before.
    whole = (readings.inflating_m < readings.deflating_m[0] - 2e-3).all(axis=1)
    time_s, rise = readings.inflating_s[whole], readings.inflating_m.mean(axis=1)[whole]
    on = np.linspace(rise[-1], most, 12)[1:]
    filled = found.filling_time_s.value / way * _filling_way(on, rise[-1], empty, end)
    rising = MonotoneCurve(
        np.append(time_s, time_s[-1] + filled), np.append(rise, on), 'times_s', 'lengths_m'
    )
    grids = (np.linspace(0.0, curve.x[-1], n) for curve, n in zip((falling, rising), points))
    down, up = (
        MonotoneCurve(grid, curve(grid), 'times_s', 'lengths_m')
        for curve, grid in zip((falling, rising), grids)
    )
    return down, up


def describe_muscles(rig: Rig, readings: BenchReadings, found: MuscleIdentification) -> list[str]:
    """Return the lines that `softarm identify` prints: fields of the rig file, and their basis."""
    arm = MuscleArm.of(rig)
    lines = [
        f'{rig.name}: {readings.deflating_m.shape[1]} muscles on a bench, valves step by step'
    ]
    known = (arm.valves.deflating, arm.valves.inflating)
    points = len(known[0].times_s), len(known[1].times_s)
    for name, curve, was in zip(
        ('deflating', 'inflating'), tables(readings, found, points), known
    ):
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
        ('stiffness of the skeleton', found.skeleton_N_m, 'N/m'),
        ('full_length_m', found.full_m, f'm (rig file: {arm.valves.full_length_m:g})'),
    ):  # fmt: skip
        lines.append(f'{text}: {one.value:.4g}, 95 % {one.low:.4g} to {one.high:.4g} {unit}')
    law, misses = found.law, found.law_misses_m
    lines.append(
        f'empty_length_m: {law.shortest_m:.5g} m (rig file: {arm.valves.empty_length_m:g}); '
        f'most gas: as of {law.most_m:.5g} m'
    )
    lines.append(
        f'law under {PULLS_N[-1]:g} N with closed valves: up to {1e3 * misses:.2f} mm off'
    )
    return lines
