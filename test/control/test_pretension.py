"""Pretension counts within the actuator limits: no command is clipped or beyond a limit."""

from dataclasses import replace

import numpy as np
import pytest

from softarm_ros.control.pretension import Pretension
from softarm_ros.control.winding import Winding
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.assembly import build_control_loop, build_tracker
from softarm_ros.runtime.loop import Phase, PoseSample

RIG = load_rig('cable_arm')
LIMITS = RIG.actuator_limits()
PERIOD = 1.0 / RIG.tracker.rate_hz


def test_winding_stays_within_its_share_of_speed_and_acceleration_limits():
    """From rest to rest, and from rest again after each of two stops on the way."""
    winding = Winding(Pretension.of_length(2.0e-3, LIMITS))
    step = 1e-3
    for stops in ((), (0.3, 0.75)):
        winding.stand_at(0.0)
        wound = [winding.wound]
        while not winding.done:
            if any(abs(len(wound) * step - stop) < 0.5 * step for stop in stops):
                winding.stop()
                wound.append(winding.wound)
                assert wound[-1] == wound[-2] > 0.0
            winding.advance(step)
            wound.append(winding.wound)
        assert wound[0] == 0.0 and wound[-1] == 2.0e-3
        speed = np.diff(wound) / step
        acceleration = np.diff(speed) / step
        assert 0.15 * LIMITS.max_speed[0] < speed.max() <= 0.2 * LIMITS.max_speed[0] * 1.0001
        assert acceleration.max() <= 0.2 * LIMITS.max_acceleration[0] * 1.0001


def test_winding_and_controller_limits_add_up_to_the_actuator_limits():
    pretension = Pretension.of_length(2.0e-3, LIMITS)
    for winding in (False, True):
        room = pretension.room(LIMITS, winding=winding)
        assert np.allclose(room.position_max + pretension.amount, LIMITS.position_max)
        assert np.all(room.position_min >= LIMITS.position_min)
        share = 0.8 if winding else 1.0
        assert np.allclose(room.max_speed, share * LIMITS.max_speed)
        assert np.allclose(room.max_acceleration, share * LIMITS.max_acceleration)


@pytest.mark.parametrize('unit', ['Pa', 'N'])
def test_pretension_length_is_refused_for_actuators_not_in_metres(unit):
    with pytest.raises(ValueError, match=rf'pretension_m = 0\.002.*in {unit}; expected 0'):
        Pretension.of_length(2.0e-3, replace(LIMITS, unit=unit))


def test_pretension_beyond_the_range_is_refused_with_the_actuator():
    with pytest.raises(ValueError, match=r'pretension_m = 0\.2.*proximal_1, 0\.1 m'):
        Pretension.of_length(0.2, LIMITS)


@pytest.mark.parametrize(
    'rig',
    [
        'fishbone_arm',
        'hydraulic_arm',
        'pam_arm',
        'pneumatic_arm',
        'trunk',
    ],
)
def test_rigs_without_single_cables_refuse_pretension(rig):
    with pytest.raises(RigError, match=r'controller\.pretension_m'):
        load_rig(rig, ['controller.pretension_m=0.001'])


def test_winding_plus_full_speed_motion_keeps_speed_and_acceleration_limits():
    """From the first period on, winding and motion together keep both limits."""
    tracker = build_tracker(RIG, RIG.model())
    tracker.reset(np.array([0.3, 0.0, 0.3, 0.0]))
    commands = [tracker.actuation]
    for _ in range(round(2.0 * tracker.pretension.duration_s(2.0e-3) / PERIOD)):
        commands.append(tracker.step(np.array([0.2, 0.0, 0.0]), np.zeros(3), PERIOD).actuation)
    speed = np.diff(np.array(commands), axis=0) / PERIOD
    acceleration = np.diff(speed, axis=0) / PERIOD
    assert np.all(np.abs(speed) <= LIMITS.max_speed * (1.0 + 1e-6))
    assert np.abs(speed).max() > 0.95 * LIMITS.max_speed[0]  # the limit was active
    assert np.all(np.abs(acceleration) <= LIMITS.max_acceleration * 1.02)  # 2 % for curvature


def commands_of(rig, trajectory):
    """Return commands (n, m) and configurations (n, dof) of a run of an arm like its model."""
    loop = build_control_loop(rig, trajectory, laps=1)
    loop.start(0.0)
    outputs = []
    while not outputs or outputs[-1].phase is not Phase.DONE:
        now = PERIOD * len(outputs)
        outputs.append(loop.cycle(now, PoseSample(now, loop.tracker.tip())))
    return (
        np.array([output.actuation for output in outputs]),
        np.array([output.configuration for output in outputs]),
    )


def test_cables_keep_their_pretension_at_the_end_of_the_range():
    """The range is 1 mm short for the line plus pretension: the posture yields."""
    most = float(commands_of(RIG, 'line_small')[0].max()) - 1.0e-3
    tight = load_rig(
        'cable_arm',
        [f'arm.actuators[{i}].position_max_m={most}' for i in range(len(RIG.actuators))],
    )
    commands, configurations = commands_of(tight, 'line_small')
    limits, model = tight.actuator_limits(), tight.model()
    assert np.all(commands <= limits.position_max + limits.rounding)
    assert commands.max() > most - 1e-4  # the end of the range was reached
    extra = np.array([c - model.actuation_of(q) for c, q in zip(commands, configurations)])
    assert np.all(np.ptp(extra, axis=1) < 1e-8)
    assert extra[-1] == pytest.approx(tight.tracker.pretension_m, abs=1e-8)


def test_run_keeps_speed_limits_throughout_and_acceleration_limits_in_the_first_second():
    commands, _ = commands_of(RIG, 'line_small')
    speed = np.diff(commands, axis=0) / PERIOD
    acceleration = np.diff(speed, axis=0) / PERIOD
    assert np.all(np.abs(speed) <= LIMITS.max_speed * (1.0 + 1e-6))
    winding = slice(0, round(1.0 / PERIOD))
    assert np.all(np.abs(acceleration[winding]) <= LIMITS.max_acceleration)
