"""Measure the longest processor times of the goal planner."""

from __future__ import annotations

import argparse
import time

import numpy as np

from softarm_reproduction.goal_changes import RIGS
from softarm_ros import load_rig
from softarm_ros.control.goals.goal import (
    MAX_POINTS,
    Goal,
    configuration_goal,
    path_goal,
    point_goal,
)
from softarm_ros.control.goals.plan import Planner
from softarm_ros.control.nearest import allowed
from softarm_ros.geometry.arrays import Array
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import build_planner, build_tracker

_PLACES, _HOUR_S = 20, 3600.0


def _timed(planner: Planner, goal: Goal, start: Array) -> tuple[float, str]:
    """Return the processor time [s] of a plan, and its refusal text (empty if accepted)."""
    began = time.process_time()
    plan = planner.plan(goal, start)
    return time.process_time() - began, plan.refusal


def _leads(planner: Planner, rest: Array, place: Array) -> bool:
    """Return whether the actuators can hold all configurations between rest and a place."""
    return all(
        allowed(planner.model, planner.room, planner.limits, rest + share * (place - rest))
        for share in np.linspace(0.05, 1.0, 20)
    )


def longest_plans(
    rig: Rig, *, targets: int, points: int, lasts_s: float = _HOUR_S, seed: int = 0
) -> dict[str, tuple[float, str]]:
    """
    Return the processor times [s] of the longest plan to a target, of a path and a trajectory.

    Targets are random configurations that the arm can hold. Path and trajectory lead from rest to
    each of up to 20 configurations and back, the trajectory within `lasts_s` [s]. Each time comes
    with the plan's refusal text, empty if accepted.
    """
    planner = build_planner(rig, build_tracker(rig, rig.model()))
    model, rng = planner.model, np.random.default_rng(seed)
    places = rig.arm.sample_configurations(model, rng, targets + 1)
    tips = model.tips_of(places)
    _timed(planner, point_goal(1, tips[0]), places[1])  # compile the planner before timing
    singles = [
        _timed(planner, point_goal(1, tip), start)
        for tip, start in zip(tips[1:], places[:-1], strict=True)
    ]
    rest = model.rest_configuration
    legs = [place for place in places if _leads(planner, rest, place)][:_PLACES]
    along = len(legs) * (np.arange(points) + 0.3) / points  # out and back at distinct points
    there = np.sin(np.pi * along)[:, None] ** 2  # 0 at rest, 1 at the place of the leg
    way = rest + there * (np.array(legs)[along.astype(int)] - rest)
    path = _timed(planner, path_goal(2, model.tips_of(way)), way[0])
    names = model.configuration_names
    times = lasts_s * np.arange(1, points + 1) / points
    timetable = configuration_goal(3, names, times.tolist(), way, [], expected=names)
    trajectory = _timed(planner, timetable, way[0])
    return {'a target': max(singles), 'a path': path, 'a trajectory': trajectory}


def main() -> None:
    """Print the longest plans of each arm."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog='example: python -m softarm_reproduction.longest_plans pam_arm'
    )
    parser.add_argument('rigs', nargs='*', default=RIGS, help='default: all arms')
    parser.add_argument('--targets', type=int, default=100, help='number of random single targets')
    parser.add_argument(
        '--points', type=int, default=MAX_POINTS, help='points of path and trajectory'
    )
    given = parser.parse_args()
    print(
        f'processor time [s]; {given.targets} targets, path and trajectory of an hour with '
        f'{given.points} points'
    )
    for name in given.rigs:
        found = longest_plans(load_rig(name), targets=given.targets, points=given.points)
        said = ', '.join(
            f'{what} {duration:.2f}' + (f' (refused: {refusal})' if refusal else '')
            for what, (duration, refusal) in found.items()
        )
        print(f'{name}: {said}', flush=True)


if __name__ == '__main__':
    main()
