"""Consistency checks between the fields of every rig, of any kind of arm."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import ValidationError

from softarm_ros.control.swing_filter import SwingConfig, largest_gain
from softarm_ros.perception.config import BASE, PoseSensorConfig
from softarm_ros.plant.machine import patterns, wrong_spread
from softarm_ros.rigs.checks import check, checks_in, duplicates
from softarm_ros.rigs.errors import FieldPath, Problem, did_you_mean, listed
from softarm_ros.rigs.hysteresis_config import groups
from softarm_ros.rigs.recording import names_of_sections, recording_problems

# Rates of the nodes' heartbeats, and of the supervisor's permission to move.
HEARTBEAT_RATE_HZ = 10.0
PERMIT_RATE_HZ = 50.0
# A delayed integrator e' = -K e(t - tau) is stable for K tau < pi/2.
STABLE_GAIN_TIMES_DELAY = math.pi / 2.0


@check('actuators')
def _unique_actuators(rig: Any) -> Iterator[Problem]:
    yield from duplicates(rig.actuators, 'actuators')


@check('obstacles')
def _unique_obstacles(rig: Any) -> Iterator[Problem]:
    yield from duplicates(rig.obstacles, 'obstacles', under=())


@check('gravity_m_s2')
def _gravity(rig: Any) -> Iterator[Problem]:
    size = math.sqrt(sum(g * g for g in rig.gravity_m_s2))
    if size != 0.0 and not 0.1 <= size <= 30.0:
        yield Problem(
            ('gravity_m_s2',),
            f'magnitude {size:g} m/s^2; expected 0, or 0.1 to 30 (9.81 on Earth)',
            _vector(rig.gravity_m_s2),
        )


@check('hysteresis', 'actuators')
def _hysteresis_rows(rig: Any) -> Iterator[Problem]:
    count = len(set(groups(rig)))
    if len(rig.hysteresis.weights) != count:
        yield Problem(
            ('hysteresis', 'weights'),
            f'expected one row per section that actuators name, at least one: {count}',
            f'{len(rig.hysteresis.weights)} rows',
        )


def _vector(values: Iterable[float]) -> str:
    return '[' + ', '.join(f'{v:g}' for v in values) + ']'


# -- plant ------------------------------------------------------------------------------------


@check('plant')
def _machine_spreads(rig: Any) -> Iterator[Problem]:
    """Report a spread that names no field, or exceeds the range of its field."""
    spreads = {} if rig.plant.machine is None else rig.plant.machine.spreads
    nominal = rig.plant.nominal()
    for pattern, spread in spreads.items():
        why = wrong_spread(nominal, pattern, spread)
        if why is not None:
            hint = did_you_mean(pattern, patterns(nominal))
            hint = '' if f"'{pattern}'" in hint else hint
            yield Problem(('plant', 'machine', 'spreads', pattern), f'{why}{hint}')


@check('plant', 'tracker')
def _plant_time_step(rig: Any) -> Iterator[Problem]:
    period = 1.0 / rig.tracker.rate_hz
    if rig.plant.time_step_s > period * (1.0 + 1e-9):
        yield Problem(
            ('plant', 'time_step_s'),
            f'expected at most the control period {period:g} s (controller.rate_hz = '
            f'{rig.tracker.rate_hz:g})',
            f'{rig.plant.time_step_s:g}',
        )


# -- timing -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stated:
    """A value and the field that states it."""

    field: str
    value: float


def pose_sensors(rig: Any) -> list[tuple[str, Any]]:
    """Return the pose sensor of the controller, and the simulated one if there is a plant."""
    plant = getattr(rig, 'plant', None)
    sensors = [('sensors.pose_topic', rig.feedback)]
    return sensors if plant is None else [*sensors, ('plant.pose_sensor', plant.mocap)]


def latest_poses(rig: Any) -> Stated:
    """Return the longest delay of measured poses [s]."""
    return _largest(rig, 'delay_s')


def _largest(rig: Any, field: str) -> Stated:
    stated = [Stated(f'{name}.{field}', getattr(s, field)) for name, s in pose_sensors(rig)]
    return max(stated, key=lambda one: one.value)  # of equal values the first, the controller's


@check('feedback', 'tracker')
def _feedback_rate(rig: Any) -> Iterator[Problem]:
    feedback, tracker = rig.feedback.rate_hz, rig.tracker.rate_hz
    if not tracker / 5.0 <= feedback <= tracker * 10.0:
        yield Problem(
            ('sensors', 'pose_topic', 'rate_hz'),
            f'expected {tracker / 5.0:g} to {tracker * 10.0:g}: a fifth of, up to ten times '
            f'controller.rate_hz = {tracker:g}',
            f'{feedback:g}',
        )


@check('tracker')
def _controller(rig: Any) -> Iterator[Problem]:
    yield from _choice('controller', rig.tracker)


@check('estimator')
def _estimator(rig: Any) -> Iterator[Problem]:
    yield from _choice('estimator', rig.estimator)


@check('arm', 'chosen_model')
def _model(rig: Any) -> Iterator[Problem]:
    from softarm_ros.rigs.model_choice import why_no_model

    name = rig.chosen_model.kind
    wrong = why_no_model(name, rig.arm.mechanics_name)
    if wrong is None:
        yield from _choice('model', rig.chosen_model)
    else:
        yield Problem(('model', 'kind'), wrong, repr(name))


@check('plant')
def _medium_of_the_plant(rig: Any) -> Iterator[Problem]:
    medium = rig.plant.medium
    yield from _choice('medium', medium, ('plant',))
    if medium.kind != 'air' and not rig.plant.IMMERSIBLE:
        message = f"expected 'air': the body {rig.plant.kind!r} has no loads of a fluid"
        yield Problem(('plant', 'medium'), message, repr(medium.kind))


def _choice(family: str, block: Any, within: FieldPath = ()) -> Iterator[Problem]:
    from softarm_ros.rigs.part_choice import choice_problems

    yield from choice_problems(family, block, within)


@check('feedback', 'tracker')
def _loop_gain(rig: Any) -> Iterator[Problem]:
    delay = pose_to_command_s(rig)
    yield from too_large_gain(
        rig,
        STABLE_GAIN_TIMES_DELAY / delay,
        f'with {1e3 * delay:.3g} ms from pose to command (both periods and '
        f'{latest_poses(rig).field}) the loop oscillates',
    )


@check('feedback', 'tracker')
def _gain_with_swing(rig: Any) -> Iterator[Problem]:
    stated = rig.tracker.of_part.get('swing')
    if stated is None:
        return
    try:
        swing = SwingConfig.model_validate(stated)
    except ValidationError:  # reported by the check of the part's fields
        return
    delay = pose_to_command_s(rig)
    yield from too_large_gain(
        rig,
        largest_gain(swing, delay),
        f'an arm whose swing differs from controller.swing by 20 % in frequency or twice in '
        f'damping, seen {1e3 * delay:.3g} ms late, oscillates',
    )


@check('feedback', 'tracker')
def _integral_gain(rig: Any) -> Iterator[Problem]:
    integral = _gain(rig.tracker, 'integral_gain_1_s2')
    gain, delay = feedback_gain_1_s(rig.tracker), pose_to_command_s(rig)
    # At the limit e'' = -K e'(t - tau) - I e(t - tau) swings with an angle a = w tau, where
    # K tau = a sin a and I tau^2 = a^2 cos a.
    angle = np.linspace(0.0, math.pi / 2.0, 1001)
    limit = np.interp(gain * delay, angle * np.sin(angle), angle**2 * np.cos(angle)) / delay**2
    if gain * delay < STABLE_GAIN_TIMES_DELAY and integral > limit:
        yield Problem(
            ('controller', 'integral_gain_1_s2'),
            f'expected at most {limit:.3g}: with feedback_gain_1_s = {gain:g} and '
            f'{1e3 * delay:.3g} ms from pose to command the loop oscillates',
            f'{integral:g}',
        )


@check('tracker')
def _straightening_gain(rig: Any) -> Iterator[Problem]:
    gain, rate = _gain(rig.tracker, 'straightening_gain_1_s'), rig.tracker.rate_hz
    if gain > rate:
        yield Problem(
            ('controller', 'straightening_gain_1_s'),
            f'expected at most controller.rate_hz = {rate:g}, or each cycle overshoots',
            f'{gain:g}',
        )


def pose_to_command_s(rig: Any) -> float:
    """Return the time [s] from a pose to a command: both periods and the delay of the poses."""
    return float(1.0 / rig.feedback.rate_hz + 1.0 / rig.tracker.rate_hz + latest_poses(rig).value)


def too_large_gain(rig: Any, limit: float, why: str) -> Iterator[Problem]:
    """Yield a problem if the feedback gain [1/s] is not below a limit."""
    gain = feedback_gain_1_s(rig.tracker)
    if gain >= limit:
        yield Problem(
            ('controller', 'feedback_gain_1_s'),
            f'expected less than {limit:.3g}: {why}',
            f'{gain:g}',
        )


def feedback_gain_1_s(tracker: Any) -> float:
    """Return the controller's feedback gain [1/s]; 0 if it has none or it is no number."""
    return _gain(tracker, 'feedback_gain_1_s')


def _gain(tracker: Any, field: str) -> float:
    gain = tracker.of_part.get(field, 0.0)
    return float(gain) if isinstance(gain, int | float) else 0.0


def _timeout(field: str, value: float, shortest: float, why: str) -> Iterator[Problem]:
    if value <= shortest:
        yield Problem(
            ('supervisor', *field.split('.')),
            f'expected more than {shortest:.4g}: {why}',
            f'{value:g}',
        )


@check('supervisor', 'feedback')
def _feedback_timeout(rig: Any) -> Iterator[Problem]:
    timeout, rate = rig.supervisor.feedback_timeout_s, rig.feedback.rate_hz
    if timeout <= 2.0 / rate:
        why = (
            f'two periods of sensors.pose_topic.rate_hz = {rate:g}, else one lost pose stops the '
            'arm'
        )
        yield from _timeout('feedback_timeout_s', timeout, 2.0 / rate, why)
        return
    for source, sensor in pose_sensors(rig):
        why = f'{source}.delay_s and two periods of {source}.rate_hz'
        shortest = sensor.delay_s + 2.0 / sensor.rate_hz
        if timeout <= shortest:
            yield from _timeout('feedback_timeout_s', timeout, shortest, why)
            return


@check('supervisor', 'sensors')
def _frames_of_sensors(rig: Any) -> Iterator[Problem]:
    """Check the driver's own rate as well: poses of a slower device arrive only as often."""
    timeout, poses = rig.supervisor.feedback_timeout_s, 2.0 / rig.feedback.rate_hz
    for kind, sensor in _pose_sensors(rig).items():
        shortest = 2.0 / sensor.rate_hz
        if shortest > poses:  # otherwise `_feedback_timeout` reports it
            why = f'two periods of sensors.{kind}.rate_hz = {sensor.rate_hz:g}, else one lost '
            yield from _timeout(
                'feedback_timeout_s', timeout, shortest, f'{why}pose stops the arm'
            )


@check('supervisor', 'plant')
def _drop_outs(rig: Any) -> Iterator[Problem]:
    timeout, mocap = rig.supervisor.feedback_timeout_s, rig.plant.mocap
    if mocap.dropout_probability > 0.0 and timeout > mocap.delay_s + 2.0 / mocap.rate_hz:
        why = (
            'five times plant.pose_sensor.dropout_duration_s, else ordinary drop-outs stop the arm'
        )
        yield from _timeout('feedback_timeout_s', timeout, 5.0 * mocap.dropout_duration_s, why)


@check('supervisor', 'feedback')
def _feedback_age(rig: Any) -> Iterator[Problem]:
    latest, rate = latest_poses(rig), rig.feedback.rate_hz
    why = (
        f'{latest.field} = {latest.value:g} and two periods of sensors.pose_topic.rate_hz = '
        f'{rate:g}'
    )
    age, shortest = rig.supervisor.feedback_watch.max_age_s, latest.value + 2.0 / rate
    if rig.supervisor.feedback_timeout_s > shortest:  # otherwise that timeout is the mistake
        yield from _timeout('feedback_watch.max_age_s', age, shortest, why)


@check('supervisor', 'feedback')
def _frozen_resolution(rig: Any) -> Iterator[Problem]:
    resolution = rig.supervisor.feedback_watch.frozen_resolution_m
    for source, sensor in pose_sensors(rig):
        noise = sensor.position_noise_m
        if noise > 0.0 and resolution >= 0.1 * noise:
            yield Problem(
                ('supervisor', 'feedback_watch', 'frozen_resolution_m'),
                f'expected less than {0.1 * noise:g}: a tenth of {source}.position_noise_m, '
                'else a sound sensor seems frozen',
                f'{resolution:g}',
            )
            return


@check('supervisor', 'actuators')
def _pressure_watch(rig: Any) -> Iterator[Problem]:
    if rig.supervisor.pressure_watch is None:
        return
    if not all(hasattr(actuator, 'pressure_max_Pa') for actuator in rig.actuators):
        yield Problem(
            ('supervisor', 'pressure_watch'), 'belongs to arms whose actuators are set by pressure'
        )
        return
    error = rig.supervisor.pressure_watch.max_error_Pa
    largest = max(actuator.pressure_max_Pa for actuator in rig.actuators)
    if error >= largest:
        yield Problem(
            ('supervisor', 'pressure_watch', 'max_error_Pa'),
            f'expected less than {largest:g}, the largest pressure_max_Pa of arm.actuators: an '
            'empty chamber would not be noticed',
            f'{error:g}',
        )


@check('supervisor', 'tracker')
def _command_timeout(rig: Any) -> Iterator[Problem]:
    rate = rig.tracker.rate_hz
    why = f'two periods of controller.rate_hz = {rate:g}, else one late cycle stops the arm'
    yield from _timeout('command_timeout_s', rig.supervisor.command_timeout_s, 2.0 / rate, why)


@check('supervisor')
def _heartbeat_timeout(rig: Any) -> Iterator[Problem]:
    why = f'two heartbeats, which nodes send at {HEARTBEAT_RATE_HZ:g} Hz'
    timeout = rig.supervisor.heartbeat_timeout_s
    yield from _timeout('heartbeat_timeout_s', timeout, 2.0 / HEARTBEAT_RATE_HZ, why)
    why = f'two permissions, which the supervisor sends at {PERMIT_RATE_HZ:g} Hz'
    timeout = rig.supervisor.permit_timeout_s
    yield from _timeout('permit_timeout_s', timeout, 2.0 / PERMIT_RATE_HZ, why)


@check('supervisor', 'tracker')
def _state_timeout(rig: Any) -> Iterator[Problem]:
    rate = rig.tracker.rate_hz
    why = f'two periods of controller.rate_hz = {rate:g}, at which simulated actuators report'
    yield from _timeout('state_timeout_s', rig.supervisor.state_timeout_s, 2.0 / rate, why)


@check('supervisor', 'feedback')
def _pose_jump(rig: Any) -> Iterator[Problem]:
    noisiest = _largest(rig, 'position_noise_m')
    why = f'ten times {noisiest.field} = {noisiest.value:g}, else noise stops the arm'
    jump = rig.supervisor.max_pose_jump_m
    yield from _timeout('max_pose_jump_m', jump, 10.0 * noisiest.value, why)


# -- trajectories -----------------------------------------------------------------------------


@check('trajectories', 'default_trajectory')
def _default_trajectory(rig: Any) -> Iterator[Problem]:
    named = rig.default_trajectory  # empty: the first trajectory
    if named and named not in rig.trajectories:
        hint = did_you_mean(named, rig.trajectories)
        yield Problem(
            ('default_trajectory',),
            f'no such trajectory{hint}; known: {listed(rig.trajectories)}',
            repr(named),
        )


@check('trajectories', 'supervisor', 'feedback')
def _trajectory_speed(rig: Any) -> Iterator[Problem]:
    limit = rig.supervisor.max_pose_jump_m * rig.feedback.rate_hz
    for name, trajectory in rig.trajectories.items():
        if trajectory.speed >= limit:
            yield Problem(
                ('trajectories', name, 'speed'),
                f'expected less than {limit:g}: supervisor.max_pose_jump_m times '
                'sensors.pose_topic.rate_hz, else the motion itself is taken for a jump',
                f'{trajectory.speed:g}',
            )


def _pose_sensors(rig: Any) -> dict[str, PoseSensorConfig]:
    devices = rig.sensors.devices()
    return {kind: s for kind, s in devices.items() if isinstance(s, PoseSensorConfig)}


@check('sensors', 'arm')
def _sensed_sections(rig: Any) -> Iterator[Problem]:
    known = list(dict.fromkeys((BASE, *rig.arm.section_names)))  # a section may be named base
    for kind, sensor in _pose_sensors(rig).items():
        for field in ('bodies', 'points'):
            for k, seen in enumerate(getattr(sensor, field)):
                if seen.section not in known:
                    yield Problem(
                        ('sensors', kind, field, k, 'section'),
                        f'no such section{did_you_mean(seen.section, known)}; '
                        f'known: {listed(known)}',
                        repr(seen.section),
                    )


@check('sensors', 'arm')
def _one_sensor_of_the_tip(rig: Any) -> Iterator[Problem]:
    """Require exactly one sensor, which sees the tip: poses of two sensors would be mixed up."""
    sensors = list(_pose_sensors(rig).items())
    if not sensors:
        return
    kind, sensor = sensors[0]
    for other, _ in sensors[1:]:
        yield Problem(
            ('sensors', other),
            f'expected one sensor: {kind} publishes {rig.feedback.pose_topic} already',
        )
    known = {BASE, *rig.arm.section_names}
    if sensor.sees_tip(rig.arm.section_names):
        return
    if known.issuperset(seen.section for seen in (*sensor.bodies, *sensor.points)):
        yield Problem(
            ('sensors', kind),
            'nothing that it sees is the tip: expected a body with section: '
            f'{rig.arm.section_names[-1]} and fraction: 1, or such a point without an offset',
        )


@check('devices', 'sensors')
def _ports(rig: Any) -> Iterator[Problem]:
    taken: dict[str, str] = {}
    blocks = {'drives': rig.devices.blocks(), 'sensors': rig.sensors.devices()}
    for family, devices in blocks.items():
        for kind, device in devices.items():
            port = getattr(device, 'port', None)
            if not isinstance(port, str):  # a number is the network port of a host
                continue
            if port in taken:
                yield Problem(
                    (family, kind, 'port'), f'is used by {taken[port]} already', repr(port)
                )
            taken.setdefault(port, f'{family}.{kind}')


# For every rig, with any kind of arm.
@check('recording', 'actuators')
def _recording(rig: Any) -> Iterator[Problem]:
    sections = names_of_sections(rig)
    if sections is not None:
        names = [actuator.name for actuator in rig.actuators]
        yield from recording_problems(rig.recording, names, sections)


CHECKS = checks_in(globals())
