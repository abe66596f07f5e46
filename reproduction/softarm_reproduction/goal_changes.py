"""
Targets that change in mid-motion: what the reference, the command and the plant do.

With `--one-step`: what a single step of a motor does to the tip of an arm that stands.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from scipy.signal import savgol_filter

from softarm_reproduction.nominal import NOMINAL
from softarm_ros import load_rig
from softarm_ros.control.goals.goal import GoalState, point_goal
from softarm_ros.control.supervisor import SafetyState
from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.config import PlantConfig
from softarm_ros.plant.hydraulic.hydraulic_plant import HydraulicPlant
from softarm_ros.rigs.arguments import settings_of
from softarm_ros.rigs.arms.cable_driven import CableArm
from softarm_ros.rigs.arms.muscle import MuscleArm
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.arm_assembly import build_plant
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
_STARTED_S = 5.0  # by when the swing that a start sets off has died away
_LATE_S = 120.0  # within which the last goal comes to its end, and the reference to rest
_STREAM_S = 3.0
_SHORT_S, _LONG_S, _LONG_SHARE = 0.3, 3.0, 0.1  # until the next target comes
_STILL_M = 1e-9
# The tracker bounds speed and acceleration of actuators to first order of their mechanics.
_FIRST_ORDER = 0.01
# What the plant did is differentiated by cubics over so long: a step of 0.01 N of a load cell
# within 10 ms is already more than the acceleration that fishbone_arm may have.
_WINDOW_S = 0.1
_LOOK_S, _SETTLED_S, _ANSWER_S = 0.01, 5.0, 1.0  # of an arm that makes one step


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
    command_speed, command_acceleration : float
        Largest share of any actuator's limit, of the commands from cycle to cycle.
    plant_speed, plant_acceleration : float
        Likewise of the plant's actuators as their drivers report them, over `window_s`.
    window_s : float
        0.1 s, of valves that open for pulses a cycle of theirs.
    left_m : float
        How far actuators on valves were from their commands; none of others.
    tip_m_s, tip_m_s2, tip_m_s3 : float
        Largest speed, acceleration and jerk of the plant's true tip, over 0.1 s, from
        `_STARTED_S` after the start on.
    start_m_s2, start_m_s3 : float
        Acceleration and jerk likewise until then: of a loop that takes over, whatever the goals.
    tip_step_m : float
        Furthest that tip went in one look of the supervisor, 10 ms.
    error_m : float
        Largest tracking error.
    fault : str
        Why the supervisor stopped the arm; empty if it did not.
    held_s, stands_s : float
        After the last target of a stream: when it was held, and when the reference stood still;
        of a fresh arm, where the first was stopped.
    servo : (float, float) or None
        Largest share of the limits of servo drives, which press water into the chambers: speed of
        a shaft and torque. Their pressures also move with a body that swings (on the circle of
        hydraulic_arm by 1.5 of the limit of the commands), so none of those limits is theirs.

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
    """An arm, and what it did in each cycle."""

    arm: SupervisedArm
    loop: GoalLoop
    led: list[bool] = field(default_factory=list)
    reference: list[Array] = field(default_factory=list)
    command: list[Array] = field(default_factory=list)
    position: list[Array] = field(default_factory=list)  # of the actuators, at every look
    tip: list[Array] = field(default_factory=list)  # of the plant, at every look
    shaft_rad_s: list[Array] = field(default_factory=list)  # of servo drives, at every look
    torque_N_m: list[Array] = field(default_factory=list)
    ended: dict[int, list[GoalState]] = field(default_factory=dict)
    fault: str = ''
    worst_m: float = 0.0
    begun: int = 0  # looks before the first goal

    def cycle(self) -> None:
        """Run one control period."""
        arm = self.arm
        output = arm.cycle()
        if self.fault:  # what a held arm does is no motion towards a goal
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
        """Run to a simulated time [s], a fault, or the end of the goal under way."""
        while self.arm.now_s < time_s and not self.fault:
            if while_busy and not self.loop.goal_state:
                return
            self.cycle()


def change_targets(rig: Rig, changes: int, seed: int) -> Changes:
    """Give an arm random targets within reach, mostly in mid-motion, then a stream that is cut."""
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
    if not np.isfinite(stands):  # the arm was stopped: the stream once more, from one goal
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


@dataclass(frozen=True)
class OneStep:
    """
    What one step of the motor that moves the tip most does, of an arm that stands.

    Attributes
    ----------
    way_m : float
        From rest to rest.
    tip_m_s2, tip_m_s3 : float
        Largest acceleration and jerk of the true tip, over 0.1 s as those of `Changes`.
    limits : (float, float)
        Of the reference [m/s^2, m/s^3].

    """

    way_m: float
    tip_m_s2: float
    tip_m_s3: float
    limits: tuple[float, float]


def one_step(rig: Rig) -> OneStep:
    """
    Let each motor make a single step, its backlash taken up before, and return the largest answer.

    Nothing is measured and nothing controlled: no controller can do with less than one step.

    Raises
    ------
    ValueError
        If the arm has no stepper motors.

    """
    config = rig.plant_for('sim')
    if not isinstance(config, PlantConfig) or not isinstance(rig.arm, CableArm):
        raise ValueError(f'{rig.name}: has no stepper motors')
    step, backlash = config.stepper.step_m, config.stepper.backlash_m
    ways, answers = [], []
    for motor in range(len(rig.actuator_names)):
        plant, tips = build_plant(rig, 0), []
        wound = np.zeros(len(rig.actuator_names))
        wound[motor] = step * np.ceil(backlash / step + 1.0)
        for _ in range(round(_SETTLED_S / _LOOK_S)):
            plant.step(wound, _LOOK_S)
        before = plant.true_section_tips()[-1, :3, 3]
        further = wound.copy()
        further[motor] += step
        for k in range(round(2.0 * _ANSWER_S / _LOOK_S)):
            plant.step(wound if k < round(_ANSWER_S / _LOOK_S) else further, _LOOK_S)
            tips.append(plant.true_section_tips()[-1, :3, 3].copy())
        ways.append(float(np.linalg.norm(tips[-1] - before)))
        answers.append(
            [
                float(np.max(np.linalg.norm(_smoothed(tips, order, _LOOK_S), axis=1)))
                for order in (2, 3)
            ]
        )
    acceleration, jerk = np.max(answers, axis=0)
    tracker = rig.tracker
    limits = float(tracker.max_acceleration_m_s2), float(tracker.max_jerk_m_s3)
    return OneStep(max(ways), float(acceleration), float(jerk), limits)


def _started(rig: Rig, seed: int) -> _Run:
    """Return a run whose supervisor lets the arm move."""
    loop = build_goal_loop(rig)
    run = _Run(SupervisedArm(rig, seed=seed, loop=loop), loop)
    while run.arm.status.state is not SafetyState.RUNNING:
        run.cycle()
        if run.arm.now_s > _START_S:
            run.arm.start()
    run.begun = len(run.tip)
    return run


def _cut_stream(run: _Run, number: int, rng: np.random.Generator) -> tuple[float, float]:
    """Lead the tip by 30 targets a second, stop sending; return when it is held and stands [s]."""
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
    # A held arm lets no time pass here, so a fault has to end it.
    while arm.now_s < sent + _LATE_S and not np.isfinite(stands) and not run.fault:
        run.cycle()
        if not loop.goal_state and not np.isfinite(held):
            held = arm.now_s - sent
        step = float(np.linalg.norm(run.reference[-1] - run.reference[-2]))
        if np.isfinite(held) and step < _STILL_M:
            stands = arm.now_s - sent
    return held, stands


def _derivatives(run: _Run, rig: Rig) -> list[tuple[float, float]]:
    """Return the largest speed, acceleration and jerk of the reference, each with its limit."""
    place, led, period = np.array(run.reference), np.array(run.led), run.loop.period_s
    limits = (goal_speed_m_s(rig), rig.tracker.max_acceleration_m_s2, rig.tracker.max_jerk_m_s3)
    found = []
    for order, limit in enumerate(limits, 1):
        change = np.diff(place, order, axis=0) / period**order
        # Before feedback has set in, the reference is where the model has the tip.
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
    """Return over which time [s] the actuators have a speed."""
    if not isinstance(rig.arm, MuscleArm):
        return _WINDOW_S
    # An open valve lets through more than the limit of the commands, which is what it moves where
    # it is slowest. It has a speed over a cycle: longest pulse, guard time, then the next command.
    valves = rig.arm.valves
    return valves.longest_pulse_s + valves.guard_s + 1.0 / rig.tracker.rate_hz


def _left(run: _Run) -> float:
    """Return the largest distance [m] of an actuator from the command it has."""
    at = np.array(run.position)[run.arm.looks - 1 :: run.arm.looks]
    return float(np.max(np.abs(at - np.array(run.command)[: len(at)])))


def _smooth(run: _Run, rows: list[Array], order: int, window_s: float = _WINDOW_S) -> Array:
    """Return a derivative of what was noted at every look, of cubics over a window."""
    return _smoothed(rows, order, run.loop.period_s / run.arm.looks, window_s)


def _smoothed(rows: list[Array], order: int, step: float, window_s: float = _WINDOW_S) -> Array:
    points = max(round(window_s / step) // 2 * 2 + 1, 5)
    return np.asarray(
        savgol_filter(np.array(rows), points, 3, deriv=order, delta=step, axis=0, mode='interp')
    )


def _line(name: str, step: OneStep) -> str:
    return (
        f'{name}: one motor step moves the tip by {1e3 * step.way_m:.2f} mm; over 0.1 s '
        f'{step.tip_m_s2:.3f} m/s^2, {step.tip_m_s3:.2f} m/s^3 (limits of the reference: '
        f'{step.limits[0]:.3f}, {step.limits[1]:.2f})'
    )


def main(arguments: list[str] | None = None) -> int:
    """Print a line an arm; status 1 if one is not as it has to be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('rigs', nargs='*', default=list(RIGS))
    parser.add_argument('--changes', type=int, default=1000)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--set', action='append', default=[], metavar='FIELD=VALUE')
    parser.add_argument(
        '--one-step', action='store_true', help='of a motor alone, of an arm at rest'
    )
    options = parser.parse_args(arguments)
    settings = (*NOMINAL, *settings_of(options.set))
    failed = False
    for name in options.rigs:
        if options.one_step:
            try:
                print(_line(name, one_step(load_rig(name, settings))), flush=True)
            except ValueError as error:
                print(error, flush=True)
            continue
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
