"""The loop starts, holds, continues and takes over actuators as the supervisor permits."""

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


def test_loop_starts_holds_and_continues_from_the_held_command(motion):
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


def test_loop_takes_over_actuators_that_moved_and_approaches_the_path_again(rig, motion):
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
def test_command_of_a_restarted_loop_equals_the_actuators_before_it_may_move(rig, motion, bend):
    """A driver may receive the permit first, and then follows the present command."""
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
def test_small_jump_of_the_actuators_is_taken_over_only_while_held(motion, held):
    """A jump of 3 mm takes a tenth of a second at full speed, and moves the tip centimetres."""
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


def test_actuator_positions_with_nan_are_not_used(motion):
    motion.on_actuators(np.full(3, np.nan))
    assert motion.actuators is None


def test_loop_starts_at_the_limit_and_reports_actuators_that_stand_beyond(rig, motion):
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


@pytest.mark.parametrize(
    ('stand_mm', 'message'),
    [
        ([3.0, 0.0, 0.0], ''),  # within the errors of a homing
        (
            [90.0, -40.0, -40.0],
            'cable_1 stands at 90.0 mm, and would jump to the start at 42.3 mm',
        ),
        ([0.0, 30.0, 0.0], 'mm (limit 7.0 mm apart): its zero is wrong'),  # no posture has these
    ],
)
def test_actuator_that_would_jump_at_the_start_is_named(motion, stand_mm, message):
    motion.cycle(0.0, None)
    motion.on_actuators(1e-3 * np.array(stand_mm))
    found = motion.displaced()
    assert message in found
    assert bool(found) == bool(message)
    motion.on_actuators(motion.loop.model.actuation_of(np.array([0.5, -0.4])))
    assert motion.displaced() == ''


def test_lag_of_a_held_actuator_is_no_jump(motion):
    motion.on_actuators(np.zeros(3))
    motion.follow(True, 0.0)
    now, before = drive(motion, 0.0, 0.4)
    motion.follow(False, now)
    motion.on_actuators(before.actuation + 1.5e-3)
    assert motion.displaced() == ''


def test_model_error_holds_the_loop_with_its_reason_until_the_permit_ends(motion, monkeypatch):
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
    now, held = drive(motion, now, 0.2)  # still held, though the model answers again
    np.testing.assert_array_equal(held.actuation, before.actuation)
    motion.follow(False, now)
    assert not motion.refusal
    motion.follow(True, now)
    _, after = drive(motion, now, 2 * PERIOD)
    assert after.phase is Phase.APPROACH
    assert 0.0 < np.abs(after.actuation - held.actuation).max() < 1e-3


@pytest.mark.parametrize('when', ('in its first cycle', 'in mid-motion'))
def test_unexpected_exception_holds_the_loop_and_keeps_the_traceback(motion, monkeypatch, when):
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


def test_failure_before_the_first_permit_is_cleared_by_later_cycles(motion):
    with motion.refusing(0.0):
        raise ModelError('not yet')
    motion.cycle(0.0, None)
    assert motion.refusal == 'cannot go on: not yet'
    motion.cycle(PERIOD, None)
    assert not motion.refusal


@pytest.mark.parametrize(('moved', 'anew'), [(0.08, True), (0.03, False)])
def test_held_actuators_that_are_homed_are_taken_over(rig, motion, moved, anew):
    """Water chambers home smoothly, by less than a following actuator lags: the arm jumped."""
    motion.on_actuators(np.zeros(3))
    motion.follow(True, 0.0)
    now, before = drive(motion, 0.0, 6.0)
    assert motion.loop.phase is Phase.TRACK
    motion.follow(False, now)
    limits = rig.actuator_limits()
    home = moved * (limits.position_max - limits.position_min) * np.array([-1.0, 0.5, 0.5])

    def report(seconds, at):
        nonlocal now
        steps = round(seconds / PERIOD)
        for k in range(1, steps + 1):
            now += PERIOD
            motion.cycle(now, None)
            motion.on_actuators(before.actuation + at(k / steps))

    report(0.2, lambda share: (1.0 - share) * 1.5e-3)  # still catching up with its command
    report(1.0, lambda share: 0.0)
    report(2.0, lambda share: share * home)
    motion.follow(True, now)
    assert motion.loop.phase is (Phase.APPROACH if anew else Phase.TRACK)
    command = motion.cycle(now, None).actuation
    stands = before.actuation + (home if anew else 0.0)
    span = limits.position_max - limits.position_min
    assert np.abs(command - stands).max() < 0.02 * float(span.max())
