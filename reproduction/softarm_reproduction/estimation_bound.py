"""
The smallest error that a linear estimator of the tip can reach, computed in hindsight.

The true motion of tip and section ends relative to the lagged command is recorded at every
exposure of the sensor, and the true tip at every cycle. The tip is regressed on the last exposures
that have arrived. The variance of the sensor noise is added to the second moments of the inputs,
not noise to the inputs themselves. The result is a causal Wiener filter of finite length, fitted
to the same motion that it then estimates. No linear estimator with fixed coefficients and these
inputs has a smaller error on these runs, averaged over the noise. A filter fitted to the other
runs has a larger error, which an estimator could reach if it knew the spectra beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_reproduction.estimation_runs import (
    RememberingMocap,
    Run,
    rig_of,
    run,
)
from softarm_ros.control.estimation.chain_kernels import places_into, strains_of
from softarm_ros.control.estimation.commanded import CommandedStrains
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import displacement
from softarm_ros.plant.config import MocapConfig
from softarm_ros.plant.mocap import Mocap
from softarm_ros.rigs.schema import Rig

FRAMES, FRAMES_OF_OTHERS, CYCLES = 20, 6, 6  # exposures of tip, section ends; actuator cycles
_LIKE = 4  # last exposures; one filter serves cycles where their ages agree
_SCALE = 1e-3  # of the actuators, like that of the tip's motion [m]: for conditioning only
_ROUNDING = 1e-6  # noise variance of measured actuators, as a share of their scale squared
_LEAST = 100  # fewest samples to fit one filter

POSITION, POSES, ALL = "tip's position", 'all measured poses', 'and actuators'


@dataclass(frozen=True)
class Motion:
    """
    The motion of one run, relative to the lagged command.

    Attributes
    ----------
    at_s, tip : (n,), (n, 3)
        Times of the tracking cycles [s], and the tip at those times [m].
    exposed_s, bodies : (frames,), (frames, sections, 6)
        Times of exposure [s]; positions [m] and rotation vectors of section ends and tip (last).
    actuations : (n, CYCLES, m)
        Actuations of the last cycles.
    raw_m, filter_m : (n,)
        Distances of the newest measurement and of the filter's estimate from the true tip.

    """

    at_s: Array
    tip: Array
    exposed_s: Array
    bodies: Array
    actuations: Array
    raw_m: Array
    filter_m: Array


@dataclass(frozen=True)
class Rows:
    """
    The data of a regression.

    Attributes
    ----------
    inputs, outputs : (n, p), (n, 3)
        Noise-free inputs and outputs.
    noise : (p,)
        Noise variances of the inputs.
    group : (n,)
        Number of the group of times with equal exposure ages; -1 if exposures are too few.

    """

    inputs: Array
    outputs: Array
    noise: Array
    group: NDArray[np.int64]


@dataclass(frozen=True)
class Bound:
    """
    The least error of a linear filter.

    Attributes
    ----------
    of : str
        Name of the filter's inputs.
    least_m, of_others_m : float
        Error [m] of a filter fitted to the runs that it estimates, and to the other runs.
    raw_m, filter_m : float
        Errors [m] of the newest measurement and of the estimator `filter` at the same times.

    """

    of: str
    least_m: float
    of_others_m: float
    raw_m: float
    filter_m: float


def motion(rig: Rig, seed: int, seconds: float) -> Motion:
    """Run a rig without an estimator in the loop while a `filter` observes; return the motion."""
    sensors: list[RememberingMocap] = []

    def sensor(config: MocapConfig, number: int) -> Mocap:
        sensors.append(RememberingMocap(config, number))
        return sensors[0]

    result = run(rig, ['filter'], seed=seed, seconds=seconds, sensor=sensor)
    seen = [one for one in sensors[0].seen if one[0] >= result.time_s[0]]
    at, on = np.array(result.time_s), np.flatnonzero(result.tracking())
    on = on[on >= CYCLES]
    count = len(seen[0][1])
    exposed = np.array([stamp for stamp, _ in seen])
    commanded = _commanded(result, rig, count, np.concatenate([exposed, at[on]]))
    bodies = [
        [displacement(foreseen, pose) for foreseen, pose in zip(wanted, poses)]
        for wanted, (_, poses) in zip(commanded, seen)
    ]
    truth = np.array(result.truth)[on]
    before = np.arange(1 - CYCLES, 1)
    return Motion(
        at[on],
        truth - commanded[len(seen) :, -1, :3, 3],
        exposed,
        np.array(bodies),
        np.array(result.actuations)[on[:, None] + before],
        result.raw_error_m()[on],
        result.tracks['filter'].error_m()[on],
    )


def _commanded(result: Run, rig: Rig, count: int, times: Array) -> Array:
    """Return the poses (times, count, 4, 4) at the lagged commands: section ends, then tip."""
    lagged = CommandedStrains(rig.supervisor.feedback_watch.response_s, np.inf)
    for now, posture in zip(result.time_s, result.postures):
        lagged.take(now, strains_of(np.ascontiguousarray(posture)))
    sections = len(result.postures[0])
    at = np.array([*range(count - 1), sections - 1])
    poses, slopes = np.empty((count, 4, 4)), np.empty((count, 6, 6 * sections))
    out = np.empty((len(times), count, 4, 4))
    for k, now in enumerate(times):
        strains = lagged.strains_at(now)
        places_into(strains, at, np.ones(count), np.tile(np.eye(4), (count, 1, 1)), poses, slopes)
        out[k] = poses
    return out


def rows(runs: Sequence[Motion], inputs: str, delay_s: float, noise: Array) -> list[Rows]:
    """
    Return the regression data, one set of rows for each run.

    Parameters
    ----------
    runs : sequence of Motion
        Runs of one arm.
    inputs : str
        POSITION (of the tip), POSES (of all bodies), or ALL (poses and actuators).
    delay_s : float
        Delay of the sensor [s].
    noise : (6,)
        Standard deviations of measured poses [m], [rad].

    """
    numbers: dict[tuple[int, ...], int] = {}
    spread = np.mean([one.actuations.std(axis=(0, 1)) for one in runs], axis=0)
    found = []
    for one in runs:
        taken, ages, others = [], [], one.bodies[:, :-1]
        for k, now in enumerate(one.at_s):
            end = int(np.searchsorted(one.exposed_s, now - delay_s + 1e-9, side='right'))
            enough = end >= FRAMES
            key = tuple(np.rint(1e4 * (now - one.exposed_s[end - _LIKE : end])).astype(int))
            ages.append(numbers.setdefault(key, len(numbers)) if enough else -1)
            last = slice(end - FRAMES, end) if enough else slice(0, FRAMES)
            if inputs == POSITION:
                taken.append(one.bodies[last, -1, :3].ravel())
                continue
            few = slice(last.stop - FRAMES_OF_OTHERS, last.stop)
            parts = [one.bodies[last, -1].ravel(), others[few].ravel()]
            if inputs == ALL:
                # Changes of the actuations over the last cycles, and the current actuations.
                now_at = one.actuations[k] / np.maximum(spread, 1e-12)
                parts.append(_SCALE * np.vstack([np.diff(now_at, axis=0), now_at[-1:]]).ravel())
            taken.append(np.concatenate(parts))
        bodies = FRAMES + FRAMES_OF_OTHERS * others.shape[1]
        variances = np.tile(np.square(noise), bodies)
        if inputs == POSITION:
            variances = np.tile(np.square(noise[:3]), FRAMES)
        left = len(taken[0]) - len(variances)
        variances = np.concatenate([variances, np.full(left, _ROUNDING * _SCALE**2)])
        found.append(Rows(np.array(taken), one.tip, variances, np.array(ages)))
    return found


def least_errors(
    fitted: Sequence[Rows], tried: Sequence[Rows], each: bool = False
) -> tuple[Array, NDArray[np.bool_]]:
    """
    Fit the best filters to some runs and return their mean squared errors (n, 3) [m2] on others.

    Parameters
    ----------
    fitted : sequence of Rows
        Rows of the runs to whose second moments the filters are fitted.
    tried : sequence of Rows
        Rows of the runs that the filters estimate.
    each : bool
        Estimate each coordinate from itself alone; the inputs must be the tip's position.

    Returns
    -------
    errors, known
        Errors (n, 3), and the times (n,) of all tried runs for which a filter exists.

    """
    X, Y, of = (
        np.concatenate([getattr(one, what) for one in fitted])
        for what in ('inputs', 'outputs', 'group')
    )
    A, B, at = (
        np.concatenate([getattr(one, what) for one in tried])
        for what in ('inputs', 'outputs', 'group')
    )
    noise, errors = fitted[0].noise, np.zeros_like(B)
    known = np.zeros(len(B), dtype=bool)
    for number in np.unique(of[of >= 0]):
        use, on = of == number, at == number
        if use.sum() < _LEAST:
            continue
        known |= on
        for coordinates in np.arange(3)[:, None] if each else np.arange(3)[None]:
            take = np.isin(np.arange(len(noise)) % 3, coordinates) if each else noise > 0.0
            x, a, r = X[use][:, take], A[on][:, take], noise[take]
            y, b = Y[use][:, coordinates], B[on][:, coordinates]
            weights = np.linalg.solve(x.T @ x / len(x) + np.diag(r), x.T @ y / len(x))
            errors[np.ix_(on, coordinates)] = (b - a @ weights) ** 2 + r @ weights**2
    return errors, known


def bounds(runs: Sequence[Motion], delay_s: float, noise: Array) -> list[Bound]:
    """Return the bound for each choice of inputs, from single coordinates to all inputs."""
    out = []
    for name, inputs in (
        ('each coordinate by itself', POSITION),
        (POSITION, POSITION),
        (POSES, POSES),
        (ALL, ALL),
    ):
        of, each = rows(runs, inputs, delay_s, noise), name != inputs
        hindsight, known = least_errors(of, of, each)
        blind = []
        for k in range(len(of)):
            errors, there = least_errors([*of[:k], *of[k + 1 :]], of[k : k + 1], each)
            blind.append(errors[there])
        raw, filtered = (
            float(
                np.sqrt(np.mean(np.concatenate([getattr(one, what) for one in runs])[known] ** 2))
            )
            for what in ('raw_m', 'filter_m')
        )
        of_others = _rms(np.concatenate(blind))
        out.append(Bound(name, _rms(hindsight[known]), of_others, raw, filtered))
    return out


def bound_lines(
    name: str, seconds: float, seeds: Sequence[int], speeds: Sequence[float]
) -> list[str]:
    """Return the least errors of an arm, one line for each speed and choice of inputs."""
    lines = []
    for speed in speeds:
        rig = rig_of(name, speed=speed)
        sensor = rig.plant_for('sim').mocap
        noise = np.repeat([sensor.position_noise_m, sensor.orientation_noise_rad], 3)
        found = bounds([motion(rig, seed, seconds) for seed in seeds], sensor.delay_s, noise)
        first = found[0]
        lines.append(
            f'{name:17} x{speed:g} newest measurement {1e3 * first.raw_m:.3f} mm, filter '
            f'{1e3 * first.filter_m:.3f} mm: ratio {first.filter_m / first.raw_m:.2f}; '
            f'best linear filter, by hindsight (fitted to the other runs):'
        )
        lines.extend(
            f'{"":20} {one.of}: {1e3 * one.least_m:.3f} ({1e3 * one.of_others_m:.3f}) mm, ratio '
            f'{one.least_m / one.raw_m:.2f} ({one.of_others_m / one.raw_m:.2f})'
            for one in found
        )
    return lines


def _rms(squares: Array) -> float:
    return float(np.sqrt(np.mean(squares.sum(axis=1))))
