"""
Compare estimators on simulated arms: `python -m softarm_reproduction.estimation_study`.

The sensor of every arm has 0.2 mm and 2 mrad of noise and 10 ms of delay. Estimators observe the
shipped loop, where each seed is another machine, or close the loop of the nominal machine. Errors
are relative to the current true tip.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from softarm_reproduction.estimation_bound import bound_lines
from softarm_reproduction.estimation_runs import (
    RIGS,
    OtherNoiseMocap,
    Run,
    SpoilingMocap,
    Track,
    rig_of,
    run,
    with_gain,
)
from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.config import MocapConfig
from softarm_ros.plant.mocap import Mocap

SPEEDS = (1.0, 4.0)
CAUSE_SPEED, GAINS = 4.0, (1.0, 2.0, 3.0)
SHARE, BY_M = 0.05, 0.05  # share of displaced frames, and their displacement
OUTLIERS = 'by outliers'
SENSORS: dict[str, Callable[[MocapConfig, int], Mocap]] = {
    OUTLIERS: lambda config, seed: SpoilingMocap(config, seed, SHARE, BY_M),
    'by the same frames missing': lambda config, seed: SpoilingMocap(config, seed, SHARE, None),
    'by other noise': OtherNoiseMocap,
}
BEGIN_S = 2.0  # start of a sensor gap, after the start of tracking


def rms_mm(values: Array) -> float:
    """Return the root mean square [mm] of distances [m]."""
    return 1e3 * float(np.sqrt(np.mean(np.square(values))))


@dataclass(frozen=True)
class Beside:
    """
    The statistics of an estimator that observed one run.

    Rms errors [m] of raw measurement and estimate, standard deviation [m], NEES (n,), and the
    innovations of each cycle: rows (n,) and squares (n,) normalised by their covariance.
    """

    raw_m: float
    error_m: float
    sd_m: float
    nees: Array
    rows: Array
    squares: Array

    @property
    def ratio(self) -> float:
        """Return the error of the estimate divided by that of the newest measurement."""
        return self.error_m / self.raw_m

    @staticmethod
    def of(result: Run, kind: str) -> Beside:
        """Return the statistics of one estimator in a run."""
        on, track = result.tracking(), result.tracks[kind]
        return Beside(
            1e-3 * rms_mm(result.raw_error_m()[on]),
            1e-3 * rms_mm(track.error_m()[on]),
            1e-3 * _sd_mm(track, on),
            track.nees()[on],
            *track.innovated(on),
        )


def beside_lines(
    name: str, kinds: Sequence[str], seconds: float, seeds: Sequence[int]
) -> list[str]:
    """Return the results of observing estimators at two speeds, over several machines."""
    lines = []
    for speed in SPEEDS:
        rig = rig_of(name, speed=speed, nominal=False, calibrated=True)
        runs = [run(rig, kinds, seed=seed, seconds=seconds) for seed in seeds]
        for kind in kinds:
            found = [Beside.of(one, kind) for one in runs]
            raw, error, sd = (
                1e3 * np.median([getattr(one, what) for one in found])
                for what in ('raw_m', 'error_m', 'sd_m')
            )
            middle, most = np.percentile([one.ratio for one in found], [50, 90])
            nees = [one.nees.mean() for one in found]
            lines.append(
                f'{name:17} x{speed:g} {kind:7} raw {raw:6.3f} mm, estimate {error:6.3f} mm, sd '
                f'{sd:.3f} mm; ratio median {middle:4.2f}, 90th percentile {most:4.2f} '
                f'{_verdict(middle <= 0.5)}; NEES of 3: median {np.median(nees):4.2f}, '
                f'{min(nees):4.2f} to {max(nees):4.2f}; inside the 95 % band: '
                f'{100 * _inside(found):4.1f} % of times (mean of {len(found)} runs); '
                + _innovations(found)
            )
    return lines


def _inside(found: Sequence[Beside]) -> float:
    """Return the share of times at which the mean NEES over all runs lies in its 95 % band."""
    count = min(len(one.nees) for one in found)
    mean = np.mean([one.nees[:count] for one in found], axis=0)
    low, high = chi2.ppf([0.025, 0.975], 3 * len(found)) / len(found)
    return float(np.mean((mean > low) & (mean < high)))


def _innovations(found: Sequence[Beside]) -> str:
    """Return the mean square of the innovations of all runs and their share in the 95 % band."""
    count = min(len(one.rows) for one in found)
    rows = np.sum([one.rows[:count] for one in found], axis=0)
    squares = np.sum([one.squares[:count] for one in found], axis=0)
    total, seen = int(rows.sum()), rows > 0
    low, high = (chi2.ppf(p, rows[seen]) for p in (0.025, 0.975))
    inside = float(np.mean((squares[seen] > low) & (squares[seen] < high)))
    band = np.array(chi2.ppf([0.025, 0.975], total)) / total
    return (
        f'innovations: mean square {squares.sum() / total:.3f} of 1 (95 % band {band[0]:.3f} to '
        f'{band[1]:.3f}), inside the 95 % band {100 * inside:4.1f} % of times'
    )


def closed_lines(name: str, kinds: Sequence[str], seconds: float, seed: int) -> list[str]:
    """Return the distance of the true tip from its reference with each estimator in the loop."""
    lines = []
    for speed in SPEEDS:
        parts = []
        for kind in kinds:
            result = run(rig_of(name, speed=speed, estimator=kind), seed=seed, seconds=seconds)
            error = result.tracking_error_m()[result.tracking()]
            parts.append(f'{kind} rms {rms_mm(error):6.3f} mm max {1e3 * error.max():6.2f} mm')
        lines.append(f'{name:17} x{speed:g} in the loop: ' + '; '.join(parts))
    return lines


def cause_lines(name: str, seconds: float, seed: int) -> list[str]:
    """
    Return tracking errors that show whether state or gain limits the loop.

    The same run is repeated at the shipped gain and multiples of it: with a sensor without noise
    and delay (`exact`), with raw measurements (`direct`), and with a filter (`filter`).
    """
    lines = []
    for factor in GAINS:
        rigs = {
            'exact': rig_of(name, speed=CAUSE_SPEED, noise_m=0.0, delay_s=0.0, dropouts=False),
            'direct': rig_of(name, speed=CAUSE_SPEED),
            'filter': rig_of(name, speed=CAUSE_SPEED, estimator='filter'),
        }
        parts = []
        for kind, rig in rigs.items():
            result = run(with_gain(rig, factor), seed=seed, seconds=seconds)
            error = result.tracking_error_m()[result.tracking()]
            parts.append(f'{kind} {rms_mm(error):6.3f} mm')
        lines.append(
            f'{name:17} x{CAUSE_SPEED:g}, gain x{factor:g}: true tip off its reference, rms: '
            + ', '.join(parts)
        )
    return lines


def gap_lines(name: str, kind: str, seed: int) -> list[str]:
    """Return the effects of sensor gaps of 300 ms and 1 s with an estimator in the loop."""
    lines = []
    for gap_s in (0.3, 1.0):
        end = BEGIN_S + gap_s
        clear, blind = (
            run(
                rig_of(name, estimator=kind, dropouts=False),
                seed=seed,
                seconds=end + 2.0,
                blind=when,
            )
            for when in (None, lambda t, end=end: BEGIN_S <= t < end)
        )
        at = _since_tracking(blind)
        inside = (at >= BEGIN_S) & (at < end + 0.02)
        after = at >= end
        error = blind.tracks['loop'].error_m()
        tracking, usual = blind.tracking_error_m(), clear.tracking_error_m()
        usual = usual[_since_tracking(clear) >= BEGIN_S]
        speed = _command_speed(blind)
        lines.append(
            f'{name:17} gap {gap_s:3.1f} s: estimate off by at most '
            f'{1e3 * error[inside].max():.2f} mm; true tip off its reference by '
            f'{1e3 * tracking[inside | after].max():.2f} mm '
            f'(without the gap {1e3 * usual.max():.2f}); pace down to '
            f'{min(np.array(blind.pace)[inside]):.2f}; fastest command after / before '
            f'{speed[after].max() / speed[(at > 0.5) & (at < BEGIN_S)].max():.2f}; '
            f'{rms_mm(error[at > end + 0.3]):.3f} mm rms from 0.3 s after it on'
        )
    return lines


def outlier_lines(
    name: str, kinds: Sequence[str], seconds: float, seeds: Sequence[int]
) -> list[str]:
    """
    Return how far the true tip moves if 5 % of the frames are displaced by 50 mm.

    For predicting estimators, also return the motion if the same frames are missing, and the
    motion under another noise sequence without outliers.
    """
    lines = []
    for kind in kinds:
        rig, moved = rig_of(name, estimator=kind), dict[str, list[Array]]()
        for seed in seeds:
            clean = run(rig, seed=seed, seconds=seconds)
            for what, sensor in SENSORS.items():
                if what != OUTLIERS and kind == 'direct':
                    continue
                other = run(rig, seed=seed, seconds=seconds, sensor=sensor)
                moved.setdefault(what, []).append(_apart(clean, other))
        parts = []
        for what, ways in moved.items():
            most, rms = [1e3 * way.max() for way in ways], [rms_mm(way) for way in ways]
            parts.append(
                f'{what} at most {np.median(most):.2f} mm, rms {np.median(rms):.3f} mm '
                f'(largest {max(most):.2f}, {max(rms):.3f})'
            )
        count = f'{len(seeds)} seeds, median'
        lines.append(f'{name:17} {kind:7} the tip moves ({count}): ' + '; '.join(parts))
    return lines


def _apart(one: Run, other: Run) -> Array:
    """Return the distances (n,) [m] of two runs' true tips, each from its start of tracking."""
    # Measurements change how long an arm takes to settle before tracking.
    first, second = (np.array(of.truth)[of.tracking()] for of in (one, other))
    n = min(len(first), len(second))
    return np.asarray(np.linalg.norm(first[:n] - second[:n], axis=1))


def _since_tracking(result: Run) -> Array:
    time_s, on = np.array(result.time_s), result.tracking()
    return np.where(on, time_s - time_s[on][0], -1.0)


def _command_speed(result: Run) -> Array:
    """Return per cycle the largest actuator step (n,), as a share of its largest in the run."""
    steps = np.abs(np.diff(np.array(result.command), axis=0, prepend=result.command[:1]))
    on = result.tracking()
    return np.asarray(np.max(steps / np.maximum(steps[on].max(axis=0), 1e-12), axis=1))


def _sd_mm(track: Track, on: Array) -> float:
    covariances = np.array(track.covariances)[on][:, :3, :3]
    return 1e3 * float(np.sqrt(np.mean(np.trace(covariances, axis1=1, axis2=2))))


def _verdict(met: bool) -> str:
    return '(bar 0.5: met)' if met else '(bar 0.5: missed)'


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the results of all parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('rigs', nargs='*', default=RIGS, help='default: all rigs')
    parser.add_argument('--seconds', type=float, default=12.0, help='tracking time of each run')
    parser.add_argument(
        '--seeds',
        type=lambda text: [int(one) for one in text.split(',')],
        default=[200, 201, 202],
        help='comma-separated; parts closed, cause and gaps use only the first seed',
    )
    parser.add_argument('--parts', default='beside,closed,cause,gaps,outliers,bound')
    parser.add_argument('--kinds', default='filter', help='estimators to compare with direct')
    given = parser.parse_args(arguments)
    kinds = given.kinds.split(',')
    both = ['direct', *kinds]
    seconds, seeds = given.seconds, given.seeds
    seed = seeds[0]
    parts: dict[str, Callable[[str], list[str]]] = {
        'beside': lambda name: beside_lines(name, kinds, seconds, seeds),
        'closed': lambda name: closed_lines(name, both, seconds, seed),
        'cause': lambda name: cause_lines(name, seconds, seed),
        'gaps': lambda name: gap_lines(name, kinds[0], seed),
        'bound': lambda name: bound_lines(name, seconds, seeds, SPEEDS),
        'outliers': lambda name: outlier_lines(name, both, min(seconds, 6.0), seeds),
    }
    for part in given.parts.split(','):
        for name in given.rigs:
            began = time.perf_counter()
            for line in parts[part](name):
                print(line, flush=True)
            print(f'{"":17} ({time.perf_counter() - began:.0f} s)', flush=True)


if __name__ == '__main__':
    main()
