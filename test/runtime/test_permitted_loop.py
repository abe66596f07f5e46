"""Start, hold, go on, take over: as the supervisor allows and the actuators stand."""

from pathlib import Path

import numpy as np
import pytest

from softarm_ros.models.arm_model import ModelError
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.assembly import build_control_loop
from softarm_ros.runtime.loop import Phase
from softarm_ros.runtime.permitted_loop import PermittedLoop

PERIOD = 0.01


@pytest.fixture(scope='module')
def rig():
    return load_rig('cable_arm_single')


@pytest.fixture
def motion(rig):
    return PermittedLoop(build_control_loop(rig, 'circle_small', open_loop=False))


def drive(motion, now, seconds):
    """Let the actuators follow the command exactly; return the time and the last output."""
    for _ in range(round(seconds / PERIOD)):
        output = motion.cycle(now, None)
        motion.on_actuators(output.actuation)
        now += PERIOD
    return now, output


def test_it_starts_holds_and_goes_on_where_it_stood(motion):
    motion.on_actuators(np.zeros(3))
    assert motion.loop.cycle(0.0, None).phase is Phase.IDLE
    motion.follow(True, 0.0)
    now, before = drive(motion, 0.0, 0.4)
    assert before.phase is Phase.APPROACH
    motion.follow(False, now)
    now, held = drive(motion, now, 1.0)
    assert held.phase is Phase.HELD
    np.testing.assert_array_equal(held.actuation, before.actuation)
    motion.follow(True, now)
    _, after = drive(motion, now, 2 * PERIOD)
    assert after.phase is Phase.APPROACH
    assert 0.0 < np.abs(after.actuation - held.actuation).max() < 1e-3


def test_actuators_that_jumped_are_taken_over_and_the_path_begins_anew(rig, motion):
    motion.on_actuators(np.zeros(3))
    motion.follow(True, 0.0)
    now, _ = drive(motion, 0.0, 6.0)
    assert motion.loop.phase is Phase.TRACK
    motion.follow(False, now)
    stand = motion.loop.model.actuation_of(np.array([0.5, -0.4]))
    motion.on_actuators(stand + rig.tracker.pretension_m)
    motion.follow(True, now)
    assert motion.loop.phase is Phase.APPROACH
    output = motion.loop.cycle(now, None)
    np.testing.assert_allclose(output.configuration, [0.5, -0.4], atol=1e-3)


@pytest.mark.parametrize('bend', [0.5, 0.12])
def test_the_command_of_a_restarted_loop_is_where_the_actuators_stand_before_it_may_move(
    rig, motion, bend
):
    """A driver may hear the permission first, and follows the command that is there."""
    motion.loop.cycle(0.0, None)
    configuration = np.array([bend, -0.8 * bend])
    stand = motion.loop.model.actuation_of(configuration)
    motion.on_actuators(stand + rig.tracker.pretension_m)
    waiting = motion.loop.cycle(PERIOD, None)
    assert waiting.phase is Phase.IDLE
    np.testing.assert_allclose(waiting.configuration, configuration, atol=1e-3)
    motion.follow(True, PERIOD)
    started = motion.loop.cycle(2 * PERIOD, None)
    np.testing.assert_allclose(started.configuration, configuration, atol=1e-3)


@pytest.mark.parametrize('held', [True, False])
def test_a_small_jump_while_held_is_taken_over_at_once(motion, held):
    """Told anew where they are, 3 mm away: a tenth of a second at full speed, and centimetres."""
    motion.on_actuators(np.zeros(3))
    motion.follow(True, 0.0)
    now, before = drive(motion, 0.0, 6.0)
    motion.follow(not held, now)
    motion.on_actuators(before.actuation + np.array([3e-3, -1.5e-3, -1.5e-3]))
    after = motion.loop.cycle(now + PERIOD, None)
    moved = np.abs(after.actuation - before.actuation).max()
    assert moved == pytest.approx(3e-3, abs=5e-4) if held else moved < 1e-3
    motion.follow(True, now + PERIOD)
    assert motion.loop.phase is (Phase.APPROACH if held else Phase.TRACK)


def test_values_that_are_no_numbers_are_not_taken_for_a_posture(motion):
    motion.on_actuators(np.full(3, np.nan))
    assert motion.actuators is None


def test_beyond_what_the_controller_may_ask_for_it_starts_at_the_limit_and_says_so(rig, motion):
    limits = rig.actuator_limits()
    beyond = limits.position_max + np.array([0.01, -0.09, -0.09])
    motion.on_actuators(beyond)
    motion.follow(True, 0.0)
    output = motion.loop.cycle(0.0, None)
    room = motion.loop.tracker.room
    assert np.all(output.actuation <= limits.position_max + limits.rounding)
    rig.configuration_limits().check(output.configuration, motion.loop.model.configuration_names)
    names = motion.loop.limits.names
    assert any(
        e.message.startswith(f'{names[0]} stands at {beyond[0]:.6g} m, beyond')
        and f'starting from {room.position_max[0]:.6g} m' in e.message
        for e in output.events
    )


def test_where_its_model_refuses_it_stands_and_says_why_until_it_may_not_move(motion, monkeypatch):
    motion.on_actuators(np.zeros(3))
    motion.cycle(0.0, None)
    motion.follow(True, 0.0)
    now, before = drive(motion, 0.0, 0.4)

    def refuse(configuration, near=None):
        raise ModelError('bend 2.1 rad is beyond 2 rad')

    with monkeypatch.context() as patched:
        patched.setattr(motion.loop.model, 'posture_of', refuse)
        now, held = drive(motion, now, 0.2)
        assert motion.refusal == 'cannot go on: bend 2.1 rad is beyond 2 rad'
        assert held.phase is Phase.HELD
        np.testing.assert_array_equal(held.actuation, before.actuation)
    now, held = drive(motion, now, 0.2)  # nobody has asked for more
    np.testing.assert_array_equal(held.actuation, before.actuation)
    motion.follow(False, now)
    assert not motion.refusal
    motion.follow(True, now)
    _, after = drive(motion, now, 2 * PERIOD)
    assert after.phase is Phase.APPROACH
    assert 0.0 < np.abs(after.actuation - held.actuation).max() < 1e-3


@pytest.mark.parametrize('when', ('in its first cycle', 'in mid-motion'))
def test_where_a_part_fails_it_stands_and_names_what_failed(motion, monkeypatch, when):
    def fail(*_):
        return {}['gain']

    now, before = 0.0, motion.loop.tracker.actuation
    if when == 'in mid-motion':
        motion.on_actuators(np.zeros(3))
        motion.follow(True, 0.0)
        now, output = drive(motion, 0.0, 0.4)
        before = output.actuation
    monkeypatch.setattr(motion.loop, '_read', fail)
    for _ in range(3):
        output = motion.cycle(now, None)
    assert motion.refusal.startswith("cannot go on: KeyError: 'gain' (traceback: ")
    np.testing.assert_array_equal(output.actuation, before)
    kept = Path(motion.refusal.partition('(traceback: ')[2].rstrip(')'))
    assert 'Traceback' in kept.read_text()
    kept.unlink()


def test_what_failed_before_anybody_let_the_arm_move_may_be_over(motion):
    with motion.refusing(0.0):
        raise ModelError('not yet')
    motion.cycle(0.0, None)
    assert motion.refusal == 'cannot go on: not yet'
    motion.cycle(PERIOD, None)
    assert not motion.refusal
