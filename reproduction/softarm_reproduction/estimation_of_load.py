"""
Estimate a tip load in motion: `python -m softarm_reproduction.estimation_of_load`.

A simulated arm follows its default path, observed by a `filter`. Some seconds later a load of a
tenth of the arm's mass is attached to the tip; the controller is not informed. The study measures
how long the estimate takes to stay within 20 %, its error, and whether its covariance agrees.
Every seed is another machine. Cable-driven arms are excluded: their default models have no loads.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from softarm_reproduction.estimation_runs import rig_of
from softarm_ros.control.estimation.predicting import PredictingEstimator
from softarm_ros.control.estimator import Estimate
from softarm_ros.geometry.arrays import Array
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.arm_assembly import build_plant
from softarm_ros.runtime.assembly import build_control_loop, build_pose_intake
from softarm_ros.runtime.loop import Phase
from softarm_ros.runtime.pose_intake import measure

# A tenth of the mass of each arm [kg] in its rig file, rounded.
LOADS_KG = {
    'pneumatic_arm': 0.025,
    'fishbone_arm': 0.010,
    'hydraulic_arm': 0.070,
    'pam_arm': 0.040,
}
WATER_KG_M3 = 1000.0
HUNG_S, WATCHED_S = 5.0, 5.0  # from start of tracking to the load; from the load to the end
WITHIN_S, BAR = 1.0, 0.2
MACHINES = tuple(range(210, 216))  # seeds on which no setting was tuned


@dataclass(frozen=True)
class Found:
    """
    The estimates of a load in one run.

    Attributes
    ----------
    since_s : (n,)
        Time since the load was attached [s].
    along, sd : (n,)
        Estimated force along gravity and its standard deviation [N].
    truth : float
        True force along gravity [N].
    told : (n,)
        Whether the estimate was reported without a problem.
    look_s : float
        Median processor time of one update of the load estimate [s].

    """

    since_s: Array
    along: Array
    sd: Array
    truth: float
    told: Array
    look_s: float

    def at(self, since_s: float) -> tuple[float, float]:
        """Return force and standard deviation [N] at a time [s] after the load was attached."""
        k = int(np.searchsorted(self.since_s, since_s))
        return float(self.along[k]), float(self.sd[k])

    def within_s(self) -> float:
        """Return the time [s] after which the error stays within the bar, or inf if never."""
        off = np.abs(self.along - self.truth) > BAR * self.truth
        after = np.where(self.since_s >= 0.0, off, False)
        last = np.flatnonzero(after)
        if not len(last):
            return 0.0
        return float('inf') if last[-1] + 1 == len(off) else float(self.since_s[last[-1] + 1])

    def nees(self) -> float:
        """Return the mean squared error over its variance, from `WITHIN_S` after the load on."""
        on = self.since_s >= WITHIN_S
        return float(np.mean(((self.along[on] - self.truth) / self.sd[on]) ** 2))


def loaded_rig(name: str, kind: str) -> Rig:
    """Return a rig whose filter estimates a tip load with the arm's weight as prior spread."""
    gravity = float(np.linalg.norm(rig_of(name).gravity_m_s2))
    fields = {'tip_load': kind, 'tip_load_spread_N': 10.0 * LOADS_KG[name] * gravity}
    return rig_of(name, estimator='filter', fields=fields, nominal=False)


def found(name: str, seed: int, kind: str = 'weight', share: float = 1.0) -> Found:
    """Return the estimates of a run with a share of the load attached (0: no load)."""
    rig = loaded_rig(name, kind)
    loop, plant = build_control_loop(rig, None, laps=1), build_plant(rig, seed)
    intake = build_pose_intake(rig, loop.model)
    gravity = np.array(rig.gravity_m_s2)
    wet = WATER_KG_M3 / rig.arm.payload_density_kg_m3 if rig.medium == 'water' else 0.0
    mass = share * LOADS_KG[name]
    down, truth = gravity / np.linalg.norm(gravity), mass * (1.0 - wet) * gravity
    rows: list[tuple[float, float, float, bool]] = []
    began, hung = None, False
    weighing, look_s = cast(PredictingEstimator, intake.estimator)._weighing, list[float]()
    loop.start(plant.time_s)
    while loop.phase is not Phase.DONE:
        now = plant.time_s
        if loop.phase is Phase.TRACK and began is None:
            began = now
        if began is not None and now - began >= HUNG_S and not hung:
            plant.inject(f'tip load {mass}')
            hung = True
        if began is not None and now - began > HUNG_S + WATCHED_S:
            break
        measure(plant, intake, now)
        taken = intake.take(now)
        loop.pace = intake.estimator.pace(now)
        output = loop.cycle(now, None if taken is None else taken[0])
        intake.estimator.command(now, loop.tracker.posture)
        actuators = loop.tracker.measured(plant.actuator_state().position)
        looks = began is not None and weighing is not None and weighing.due(now)
        before_s = time.process_time()
        intake.on_actuators(now, actuators)
        if looks:
            look_s.append(time.process_time() - before_s)
        if began is not None:
            rows.append((now - began - HUNG_S, *_along(intake.newest, down)))
        plant.step(loop.limits.check(output.actuation), loop.period_s)
    since, along, sd, told = (np.array(column) for column in zip(*rows))
    return Found(since, along, sd, float(truth @ down), told, float(np.median(look_s)))


def _along(estimate: Estimate | None, down: Array) -> tuple[float, float, bool]:
    if estimate is None or estimate.tip_load is None:
        return float('nan'), float('nan'), False
    load = estimate.tip_load
    return (
        float(load.force @ down),
        float(np.sqrt(down @ load.covariance @ down)),
        not load.problem,
    )


def line(name: str, kind: str, runs: Sequence[Found]) -> str:
    """Return the results of several runs of an arm in one line."""
    truth = runs[0].truth
    at_once = [one.at(WITHIN_S)[0] for one in runs]
    off = float(np.median([abs(value - truth) for value in at_once])) / truth
    sd = float(np.median([one.at(WITHIN_S)[1] for one in runs]))
    before = max(float(np.nanmax(np.abs(one.along[one.since_s < 0.0]))) for one in runs)
    within = ', '.join(f'{one.within_s():.1f}' for one in runs)
    told = sum(bool(one.told[-1]) for one in runs)
    verdict = 'met' if off <= BAR else 'missed'
    return (
        f'{name:14} {kind:6} load {truth:.3f} N; after {WITHIN_S:g} s '
        f'{", ".join(f"{value:.3f}" for value in at_once)} N, sd {sd:.3f} N: off by '
        f'{100 * off:.0f} % in the median (bar {100 * BAR:.0f} %: {verdict}); within it for good '
        f'after {within} s; before it came at most {before:.3f} N; told in {told} of {len(runs)}; '
        f'NEES of 1: {np.mean([one.nees() for one in runs]):.2f}; '
        f'a look takes {1e3 * np.median([one.look_s for one in runs]):.1f} ms'
    )


def loads_parser(description: str | None, machines: Sequence[int]) -> argparse.ArgumentParser:
    """Return a parser for the names of loaded rigs and the seeds of their machines."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument('rigs', nargs='*', default=list(LOADS_KG), help='default: all rigs')
    parser.add_argument(
        '--seeds',
        type=lambda text: [int(one) for one in text.split(',')],
        default=list(machines),
        help='seeds of the machines, separated by commas',
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the estimates of each arm's load."""
    parser = loads_parser(__doc__, MACHINES)
    parser.add_argument('--kinds', default='weight,force')
    given = parser.parse_args(arguments)
    for name in given.rigs:
        for kind in given.kinds.split(','):
            runs = [found(name, seed, kind) for seed in given.seeds]
            print(line(name, kind, runs), flush=True)


if __name__ == '__main__':
    main()
