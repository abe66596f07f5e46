"""Change targets in mid-motion and check the motion of reference, command and plant."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from softarm_reproduction.derivatives import WINDOW_S, derivative
from softarm_reproduction.nominal import NOMINAL
from softarm_ros import load_rig
from softarm_ros.control.goals.goal import GoalState, point_goal
from softarm_ros.control.supervisor import SafetyState
from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.hydraulic.hydraulic_plant import HydraulicPlant
from softarm_ros.rigs.arguments import settings_of
from softarm_ros.rigs.arms.muscle import MuscleArm
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import build_goal_loop, goal_speed_m_s
from softarm_ros.runtime.goal_loop import GoalLoop
from softarm_ros.runtime.loop import Phase
from softarm_ros.runtime.supervised_run import SupervisedArm

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
_STARTED_S = 5.0  # until the swing of the start has decayed
_LATE_S = 120.0  # limit for the last goal to end and the reference to come to rest
_STREAM_S = 3.0
_SHORT_S, _LONG_S, _LONG_SHARE = 0.3, 3.0, 0.1  # longest waits between targets, share of long
_STILL_M = 1e-9
# The tracker limits actuator speed and acceleration by a first-order approximation.
_FIRST_ORDER = 0.01


@dataclass(frozen=True)
class Changes:
    """
    The largest motions of a run with changing targets, compared with their limits.

    Attributes
    ----------
    asked, reported : int
        Number of goals, and of goals with exactly one final report.
    states : dict
        Number of goals that ended in each state.
    speed, acceleration, jerk : (float, float)
        Largest value of the reference [m/s, m/s^2, m/s^3] and its limit.
    command_speed, command_acceleration : float
        Largest command change between cycles, as a share of the actuator's limit.
    plant_speed, plant_acceleration : float
        The same for the plant's actuators as their drivers report them, over `window_s`.
    window_s : float
        0.1 s; for valves that open in pulses, one valve cycle.
    left_m : float
        Largest distance of valve-driven actuators from their commands; None for others.
    tip_m_s, tip_m_s2, tip_m_s3 : float
        Largest speed, acceleration and jerk of the plant's true tip, over 0.1 s, later than
        `_STARTED_S` after the start.
    start_m_s2, start_m_s3 : float
        The same acceleration and jerk before that time, when the loop takes over the arm.
    tip_step_m : float
        Largest tip motion within one supervisor step of 10 ms.
    error_m : float
        Largest tracking error.
    fault : str
        Reason why the supervisor stopped the arm; empty if it did not.
    held_s, stands_s : float
        Times from the last target of a stream until the stream was held and until the reference
        stood still. If the first arm was stopped, they are those of a fresh arm.
    servo : (float, float) or None
        Largest shaft speed and torque of servo drives that press water into the chambers, as
        shares of their limits. Chamber pressures also change as the body swings (on the circle of
        hydraulic_arm by 1.5 times the command limit), so command limits do not apply to them.

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
    plant_acceleration: float
    window_s: float
    left_m: float | None
    tip_m_s: float
    tip_m_s2: float
    tip_m_s3: float
    start_m_s2: float
    start_m_s3: float
    tip_step_m: float
    error_m: float
    fault: str
    held_s: float
    stands_s: float
    servo: tuple[float, float] | None

    def problems(self) -> list[str]:
        """Return a description of each violated requirement."""
        found = []
        if self.reported != self.asked:
            found.append(
                f'{self.asked - self.reported} of {self.asked} goals without one final report'
            )
        for name, (value, limit) in (
            ('speed', self.speed),
            ('acceleration', self.acceleration),
            ('jerk', self.jerk),
        ):
            if value > limit:
                found.append(f'{name} of the reference {value:.4g}, limit {limit:.4g}')
        plant = (
            {'plant speed': self.plant_speed, 'plant acceleration': self.plant_acceleration}
            if self.servo is None
            else {'speed of a shaft': self.servo[0], 'torque of a drive': self.servo[1]}
        )
        commands = {
            'command speed': self.command_speed,
            'command acceleration': self.command_acceleration,
        }
        for name, share in {**commands, **plant}.items():
            if share > 1.0 + _FIRST_ORDER:
                found.append(f'{name} {share:.3f} of its limit')
        if self.fault:
            found.append(self.fault)
        if not self.held_s <= 0.2:
            found.append(f'stream held after {1e3 * self.held_s:.0f} ms, limit 200 ms')
        return found


@dataclass
class _Run:
    """An arm and the record of its cycles."""

    arm: SupervisedArm
    loop: GoalLoop
    led: list[bool] = field(default_factory=list)
    reference: list[Array] = field(default_factory=list)
    command: list[Array] = field(default_factory=list)
    position: list[Array] = field(default_factory=list)  # of actuators, every supervisor step
    tip: list[Array] = field(default_factory=list)  # of the plant, every supervisor step
    shaft_rad_s: list[Array] = field(default_factory=list)  # of drives, every supervisor step
    torque_N_m: list[Array] = field(default_factory=list)
    ended: dict[int, list[GoalState]] = field(default_factory=dict)
    fault: str = ''
    worst_m: float = 0.0
    begun: int = 0  # supervisor steps before the first goal

    def cycle(self) -> None:
        """Run one control period."""
        arm = self.arm
        output = arm.cycle()
        if self.fault:  # a held arm does not move towards a goal
            return
        for report in self.loop.take_reports():
            states = self.ended.setdefault(report.number, [])
            if report.state.final:
                states.append(report.state)
        led = output.phase is Phase.TRACK
        if led and np.isfinite(output.error_m):
            self.worst_m = max(self.worst_m, output.error_m)
        self.led.append(led)
        self.reference.append(output.reference_position.copy())
        self.command.append(output.actuation.copy())
        for _ in range(arm.looks):
            arm.advance()
            state = arm.plant.actuator_state()
            self.position.append(state.position.copy())
            if isinstance(arm.plant, HydraulicPlant):
                self.shaft_rad_s.append(arm.plant.drives.shaft_speeds())
                self.torque_N_m.append(state.effort.copy())
            self.tip.append(arm.plant.true_section_tips()[-1, :3, 3].copy())
        if not self.fault and arm.status.state is SafetyState.FAULT:
            self.fault = f'after {arm.now_s:.2f} s: {arm.status.reason}'

    def until(self, time_s: float, *, while_busy: bool = False) -> None:
        """Run to a simulated time [s], a fault, or with `while_busy` the end of the goal."""
        while self.arm.now_s < time_s and not self.fault:
            if while_busy and not self.loop.goal_state:
                return
            self.cycle()


def change_targets(rig: Rig, changes: int, seed: int) -> Changes:
    """Send random reachable targets, mostly in mid-motion, then a stream that stops abruptly."""
    rng = np.random.default_rng(seed)
    run = _started(rig, seed)
    loop = run.loop
    targets = loop.model.tips_of(rig.arm.sample_configurations(rig.model(), rng, changes))
    for number, target in enumerate(targets, 1):
        loop.submit(point_goal(number, target))
        longest = _LONG_S if rng.random() < _LONG_SHARE else _SHORT_S
        run.until(run.arm.now_s + rng.uniform(0.02, longest))
    run.until(run.arm.now_s + _LATE_S, while_busy=True)
    run.cycle()
    ends = [run.ended.get(number, []) for number in range(1, changes + 1)]
    states = Counter(state.value for end in ends for state in end)
    held, stands = (np.nan, np.nan) if run.fault else _cut_stream(run, changes + 1, rng)
    if not np.isfinite(stands):  # arm stopped: repeat the stream on a fresh arm
        fresh = _started(rig, seed)
        fresh.loop.submit(point_goal(1, targets[0]))
        fresh.until(fresh.arm.now_s + _LATE_S, while_busy=True)
        held, stands = _cut_stream(fresh, 2, rng)
    speed, acceleration, jerk = _derivatives(run, rig)
    command_speed, command_acceleration = _shares(run, rig)
    plant_speed, plant_acceleration = _plant_shares(run, rig)
    started = run.begun + round(_STARTED_S * run.arm.looks / loop.period_s)
    rates = [np.linalg.norm(_smooth(run, run.tip, order), axis=1) for order in (1, 2, 3)]
    tip_m_s, tip_m_s2, tip_m_s3 = (float(np.max(rate[started:], initial=0.0)) for rate in rates)
    _, start_m_s2, start_m_s3 = (float(np.max(rate[:started])) for rate in rates)
    return Changes(
        asked=changes,
        reported=sum(len(end) == 1 for end in ends),
        states=dict(states),
        speed=speed,
        acceleration=acceleration,
        jerk=jerk,
        command_speed=command_speed,
        command_acceleration=command_acceleration,
        plant_speed=plant_speed,
        plant_acceleration=plant_acceleration,
        window_s=_window_s(rig),
        left_m=_left(run) if isinstance(rig.arm, MuscleArm) else None,
        tip_m_s=tip_m_s,
        tip_m_s2=tip_m_s2,
        tip_m_s3=tip_m_s3,
        start_m_s2=start_m_s2,
        start_m_s3=start_m_s3,
        tip_step_m=float(np.max(np.linalg.norm(np.diff(np.array(run.tip), axis=0), axis=1))),
        error_m=run.worst_m,
        fault=run.fault,
        held_s=held,
        stands_s=stands,
        servo=_servo_shares(run, rig),
    )


def _started(rig: Rig, seed: int) -> _Run:
    """Return a run whose supervisor has reached the state RUNNING."""
    loop = build_goal_loop(rig)
    run = _Run(SupervisedArm(rig, seed=seed, loop=loop), loop)
    while run.arm.status.state is not SafetyState.RUNNING:
        run.cycle()
        if run.arm.now_s > _START_S:
            run.arm.start()
    run.begun = len(run.tip)
    return run


def _cut_stream(run: _Run, number: int, rng: np.random.Generator) -> tuple[float, float]:
    """Stream 30 targets per second, then stop; return the times until held and at rest [s]."""
    arm, loop = run.arm, run.loop
    at, way = run.reference[-1], rng.normal(size=3)
    way *= loop.speed_m_s / np.linalg.norm(way)
    began = sent = arm.now_s
    while arm.now_s < began + _STREAM_S and not run.fault:
        if arm.now_s >= sent + 1.0 / 30.0 - 1e-9:
            sent = arm.now_s
            target = at + (0.5 + sent - began) * way
            loop.submit(point_goal(number, target, stream=True))
            number += 1
        run.cycle()
    held = stands = np.nan
    # After a fault, `cycle` no longer advances the time, so a fault has to end the loop.
    while arm.now_s < sent + _LATE_S and not np.isfinite(stands) and not run.fault:
        run.cycle()
        if not loop.goal_state and not np.isfinite(held):
            held = arm.now_s - sent
        step = float(np.linalg.norm(run.reference[-1] - run.reference[-2]))
        if np.isfinite(held) and step < _STILL_M:
            stands = arm.now_s - sent
    return held, stands


def _derivatives(run: _Run, rig: Rig) -> list[tuple[float, float]]:
    """Return the reference's largest speed, acceleration and jerk, each with its limit."""
    place, led, period = np.array(run.reference), np.array(run.led), run.loop.period_s
    limits = (goal_speed_m_s(rig), rig.tracker.max_acceleration_m_s2, rig.tracker.max_jerk_m_s3)
    found = []
    for order, limit in enumerate(limits, 1):
        change = np.diff(place, order, axis=0) / period**order
        # Outside tracking, the reference is the model's tip, so those cycles do not count.
        both = np.all([led[k : len(led) - order + k] for k in range(order + 1)], axis=0)
        found.append((float(np.max(np.linalg.norm(change, axis=1)[both])), float(limit)))
    return found


def _shares(run: _Run, rig: Rig) -> tuple[float, float]:
    limits, period = rig.actuator_limits(), run.loop.period_s
    rate = np.diff(np.array(run.command), axis=0) / period
    change = np.diff(rate, axis=0) / period
    return (
        float(np.max(np.abs(rate) / limits.max_speed)),
        float(np.max(np.abs(change) / limits.max_acceleration)),
    )


def _plant_shares(run: _Run, rig: Rig) -> tuple[float, float]:
    limits = rig.actuator_limits()
    window = _window_s(rig)
    rate, change = (_smooth(run, run.position, order, window) for order in (1, 2))
    return (
        float(np.max(np.abs(rate) / limits.max_speed)),
        float(np.max(np.abs(change) / limits.max_acceleration)),
    )


def _servo_shares(run: _Run, rig: Rig) -> tuple[float, float] | None:
    if not run.shaft_rad_s or rig.devices is None:
        return None
    axes = rig.devices.servo.axes
    speed = np.array([axis.speed_limit_rad_s for axis in axes])
    torque = np.array([axis.torque_limit_N_m for axis in axes])
    return (
        float(np.max(np.abs(run.shaft_rad_s) / speed)),
        float(np.max(np.abs(run.torque_N_m) / torque)),
    )


def _window_s(rig: Rig) -> float:
    """Return the time window [s] over which actuator speeds are computed."""
    if not isinstance(rig.arm, MuscleArm):
        return WINDOW_S
    # While open, a valve moves its muscle faster than the command limit, which is its slowest
    # speed. The mean speed is that over a cycle: longest pulse, guard time, next command.
    valves = rig.arm.valves
    return valves.longest_pulse_s + valves.guard_s + 1.0 / rig.tracker.rate_hz


def _left(run: _Run) -> float:
    """Return the largest distance [m] of an actuator from its command."""
    at = np.array(run.position)[run.arm.looks - 1 :: run.arm.looks]
    return float(np.max(np.abs(at - np.array(run.command)[: len(at)])))


def _smooth(run: _Run, rows: list[Array], order: int, window_s: float = WINDOW_S) -> Array:
    """Return a derivative of rows recorded at every supervisor step, by cubics over a window."""
    return derivative(rows, order, run.loop.period_s / run.arm.looks, window_s)


def main(arguments: list[str] | None = None) -> int:
    """Print one line for each arm; return 1 if an arm violates a requirement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('rigs', nargs='*', default=list(RIGS))
    parser.add_argument('--changes', type=int, default=1000)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--set', action='append', default=[], metavar='FIELD=VALUE')
    options = parser.parse_args(arguments)
    settings = (*NOMINAL, *settings_of(options.set))
    failed = False
    for name in options.rigs:
        result = change_targets(load_rig(name, settings), options.changes, options.seed)
        left = '' if result.left_m is None else f', {1e3 * result.left_m:.2f} mm from commands'
        if result.servo is not None:
            left += ', speed of a shaft {:.2f}, torque of a drive {:.2f}'.format(*result.servo)
        print(
            f'{name}: {result.reported}/{result.asked} goals {result.states}; reference '
            f'{1e3 * result.speed[0]:.1f}/{1e3 * result.speed[1]:.1f} mm/s, '
            f'{result.acceleration[0]:.3f}/{result.acceleration[1]:.3f} m/s^2, '
            f'{result.jerk[0]:.3f}/{result.jerk[1]:.3f} m/s^3; of their limits: command speed '
            f'{result.command_speed:.2f}, acceleration {result.command_acceleration:.2f}, plant '
            f'speed {result.plant_speed:.2f}, acceleration {result.plant_acceleration:.2f} over '
            f'{result.window_s:.2f} s{left}; true '
            f'tip {1e3 * result.tip_m_s:.1f} mm/s, {result.tip_m_s2:.3f} m/s^2, '
            f'{result.tip_m_s3:.2f} m/s^3 (before, as it starts, {result.start_m_s2:.3f} and '
            f'{result.start_m_s3:.2f}), {1e3 * result.tip_step_m:.2f} mm in a look; error '
            f'{1e3 * result.error_m:.1f} mm; stream held {1e3 * result.held_s:.0f} ms after '
            f'the last target, at rest {1e3 * result.stands_s:.0f} ms',
            flush=True,
        )
        for problem in result.problems():
            failed = True
            print(f'  {problem}', flush=True)
    return int(failed)


if __name__ == '__main__':
    sys.exit(main())
