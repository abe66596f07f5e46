"""Targets that change in mid-motion: what the reference, the command and the plant do."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros import load_rig
from softarm_ros.control.goals.goal import GoalKind, GoalState, point_goal
from softarm_ros.control.supervisor import SafetyState
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import build_goal_loop, goal_speed_m_s
from softarm_ros.runtime.goal_loop import STALE_S
from softarm_ros.runtime.supervised_run import SupervisedArm

Array = NDArray[np.float64]
RIGS = (
    'cable_arm_single',
    'cable_arm',
    'hydraulic_arm',
    'pneumatic_arm',
    'fishbone_arm',
    'trunk',
    'pam_arm',
)
_START_S = 0.5
_LATE_S = 60.0  # within which the last goal comes to its end


@dataclass(frozen=True)
class Changes:
    """
    What a run with changing targets did; limits beside each, plant's side last.

    Attributes
    ----------
    asked, reported : int
        Goals, and those of them with exactly one final report.
    states : dict
        How many goals ended in each state.
    speed, acceleration, jerk : (float, float)
        Largest of the reference [m/s, m/s^2, m/s^3] and the limit.
    command_speed, command_acceleration, plant_speed : float
        Largest share of any actuator's limit, from cycle to cycle.
    command_step : float
        Largest change of a command in one period, as a share of its largest speed.
    error_m : float
        Largest tracking error.
    fault : str
        Why the supervisor stopped the arm; empty if it did not.
    stopping_s, going_s : float
        After a stream was cut: when it was held, and when the reference stood still [s].

    """

    asked: int
    reported: int
    states: dict[str, int]
    speed: tuple[float, float]
    acceleration: tuple[float, float]
    jerk: tuple[float, float]
    command_speed: float
    command_acceleration: float
    plant_speed: float
    error_m: float
    fault: str
    held_s: float
    stands_s: float

    def problems(self) -> list[str]:
        """Return what is not as it has to be."""
        found = []
        if self.reported != self.asked:
            found.append(f'{self.asked - self.reported} of {self.asked} goals without one end')
        for name, (value, limit) in (
            ('speed', self.speed),
            ('acceleration', self.acceleration),
            ('jerk', self.jerk),
        ):
            if value > limit:
                found.append(f'{name} of the reference {value:.4g}, limit {limit:.4g}')
        for name, share in (
            ('command speed', self.command_speed),
            ('command acceleration', self.command_acceleration),
            ('plant speed', self.plant_speed),
        ):
            if share > 1.0 + 1e-6:
                found.append(f'{name} {share:.3f} of its limit')
        if self.fault:
            found.append(self.fault)
        if not self.held_s <= 0.2:
            found.append(f'stream held after {1e3 * self.held_s:.0f} ms, limit 200 ms')
        return found


def change_targets(rig: Rig, changes: int, seed: int) -> Changes:
    """Give an arm random targets within reach, mostly in mid-motion, then a stream that is cut."""
    rng = np.random.default_rng(seed)
    loop = build_goal_loop(rig)
    arm = SupervisedArm(rig, seed=seed, loop=loop)
    targets = loop.model.tips_of(rig.sample_configurations(rng, changes))
    speed = goal_speed_m_s(rig)
    period = loop.period_s
    rows: list[tuple[float, bool, Array, Array, Array]] = []
    ended: dict[int, list[GoalState]] = {}
    fault, worst = '', 0.0

    def cycle() -> None:
        nonlocal fault, worst
        output = arm.cycle()
        for report in loop.take_reports():
            ended.setdefault(report.number, [])
            if report.state.final:
                ended[report.number].append(report.state)
        if np.isfinite(output.error_m) and output.phase.value == 'track':
            worst = max(worst, output.error_m)
        rows.append(
            (
                arm.now_s,
                output.phase.value == 'track',
                output.reference_position.copy(),
                output.actuation.copy(),
                arm.plant.actuator_state().velocity.copy(),
            )
        )
        for _ in range(arm.looks):
            arm.advance()
        if not fault and arm.status.state is SafetyState.FAULT:
            fault = f'after {arm.now_s:.2f} s: {arm.status.reason}'

    while arm.status.state is not SafetyState.RUNNING:
        cycle()
        if arm.now_s > _START_S:
            arm.start()
    for number, target in enumerate(targets, 1):
        loop.submit(point_goal(number, target))
        until = arm.now_s + rng.uniform(0.02, 1.5)
        while arm.now_s < until and not fault:
            cycle()
    until = arm.now_s + _LATE_S
    while loop.goal_state and arm.now_s < until and not fault:
        cycle()
    numbered = range(1, changes + 1)
    reported = sum(len(ended.get(number, [])) == 1 for number in numbered)
    states: dict[str, int] = {}
    for number in numbered:
        for state in ended.get(number, []):
            states[state.value] = states.get(state.value, 0) + 1
    held, stands = _cut_stream(arm, loop, cycle, changes + 1, rng) if not fault else (np.nan,) * 2
    return Changes(
        changes,
        reported,
        states,
        *_derivatives(rows, period, rig, speed),
        *_shares(rows, period, rig),
        worst,
        fault,
        held,
        stands,
    )


def _cut_stream(arm, loop, cycle, number, rng) -> tuple[float, float]:
    """Lead the tip by 30 targets a second, stop sending; return when it is held and stands [s]."""
    at = loop.cycle(arm.now_s, None).reference_position
    way = rng.normal(size=3)
    way *= loop.speed_m_s / np.linalg.norm(way)
    began = sent = arm.now_s
    while arm.now_s < began + 3.0:
        if arm.now_s >= sent + 1.0 / 30.0:
            sent = arm.now_s
            target = at + (0.5 + sent - began) * way
            loop.submit(point_goal(number, target, stream=True))
            number += 1
        cycle()
    held = stands = np.nan
    while arm.now_s < sent + 5.0 and not np.isfinite(stands):
        before = arm.output.reference_position
        cycle()
        if not loop.goal_state and not np.isfinite(held):
            held = arm.now_s - sent
        step = float(np.linalg.norm(arm.output.reference_position - before))
        if np.isfinite(held) and step < 1e-9:
            stands = arm.now_s - sent
    return held, stands


def _derivatives(rows, period, rig, speed) -> tuple[tuple[float, float], ...]:
    place = np.array([row[2] for row in rows])
    led = np.array([row[1] for row in rows])
    found = []
    limits = (speed, rig.tracker.max_acceleration_m_s2, rig.tracker.max_jerk_m_s3)
    for order, limit in enumerate(limits, 1):
        change = np.diff(place, order, axis=0) / period**order
        size = np.linalg.norm(change, axis=1)
        # Before feedback has set in the reference is where the model has the tip.
        both = np.all([led[k : len(led) - order + k] for k in range(order + 1)], axis=0)
        found.append((float(np.max(size[both])), float(limit)))
    return tuple(found)


def _shares(rows, period, rig) -> tuple[float, float, float]:
    limits = rig.actuator_limits()
    command = np.array([row[3] for row in rows])
    rate = np.diff(command, axis=0) / period
    change = np.diff(rate, axis=0) / period
    plant = np.array([row[4] for row in rows])
    return (
        float(np.max(np.abs(rate) / limits.max_speed)),
        float(np.max(np.abs(change) / limits.max_acceleration)),
        float(np.max(np.abs(plant) / limits.max_speed)),
    )


def main(arguments: list[str] | None = None) -> int:
    """Print a line an arm; status 1 if one is not as it has to be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('rigs', nargs='*', default=list(RIGS))
    parser.add_argument('--changes', type=int, default=1000)
    parser.add_argument('--seed', type=int, default=0)
    options = parser.parse_args(arguments)
    failed = False
    for name in options.rigs:
        result = change_targets(load_rig(name), options.changes, options.seed)
        print(
            f'{name}: {result.reported}/{result.asked} goals {result.states}; reference '
            f'{1e3 * result.speed[0]:.1f}/{1e3 * result.speed[1]:.1f} mm/s, '
            f'{result.acceleration[0]:.3f}/{result.acceleration[1]:.3f} m/s^2, '
            f'{result.jerk[0]:.3f}/{result.jerk[1]:.3f} m/s^3; of their limits: command speed '
            f'{result.command_speed:.2f}, acceleration {result.command_acceleration:.2f}, plant '
            f'speed {result.plant_speed:.2f}; error {1e3 * result.error_m:.1f} mm; stream held '
            f'{1e3 * result.held_s:.0f} ms after the last target, at rest '
            f'{1e3 * result.stands_s:.0f} ms',
            flush=True,
        )
        for problem in result.problems():
            failed = True
            print(f'  {problem}', flush=True)
    return int(failed)


if __name__ == '__main__':
    sys.exit(main())
