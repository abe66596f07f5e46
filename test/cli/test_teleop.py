"""The target moved by keys and sticks, and the keyboard, without an arm."""

import os
import select
import signal
import sys
import termios

import numpy as np
import pytest

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.keyboard import typed_keys
from softarm_ros.cli.teleop import HELD_S, KEYS, LEAD_S, SILENT_S, TargetMover, Typing
from softarm_ros.cli.teleop_command import teleop
from softarm_ros.rigs.loader import load_rig

START = np.array([0.1, 0.0, 0.2])
SPEED = 0.01


def led(mover, seconds, press=None, now=0.0, reference=START):
    """Advance a target at 30 Hz, with a key that the terminal repeats; return the time."""
    for k in range(round(seconds * 30)):
        time = now + k / 30
        if press is not None:
            mover.press(press, time)
        mover.advance(time, 1 / 30, reference)
    return now + seconds


@pytest.mark.parametrize(('key', 'way'), KEYS.items())
def test_a_held_key_moves_the_target_at_its_speed_until_released(key, way):
    mover = TargetMover(START, SPEED)
    now = led(mover, 1.0, key)
    np.testing.assert_allclose(mover.target - START, SPEED * np.array(way), atol=1e-9)
    now = led(mover, HELD_S + 0.1, None, now)
    stood = mover.target.copy()
    led(mover, 1.0, None, now)
    np.testing.assert_array_equal(mover.target, stood)


def test_two_keys_are_no_faster_than_one():
    mover = TargetMover(START, SPEED)
    for k in range(30):
        mover.press('w', k / 30)
        mover.press('a', k / 30)
        mover.advance(k / 30, 1 / 30, START)
    assert np.linalg.norm(mover.target - START) == pytest.approx(SPEED)


def test_the_target_leads_a_constant_reference_by_a_bounded_distance():
    mover = TargetMover(START, SPEED)
    led(mover, 10.0, 'r')
    assert np.linalg.norm(mover.target - START) == pytest.approx(LEAD_S * SPEED)


def test_sticks_move_the_target_until_silent_and_non_finite_axes_have_no_effect():
    mover = TargetMover(START, SPEED)
    mover.axes([0.0, 0.0], 0.0)
    mover.axes([0.0, 1.0], 0.0)
    for k in range(60):
        mover.advance(k / 30, 1 / 30, START)
    moved = mover.target - START
    assert 0.9 * SILENT_S * SPEED <= moved[0] <= (SILENT_S + 1 / 15) * SPEED
    assert moved[1] == moved[2] == 0.0
    before = mover.target.copy()
    mover.axes([0.0, 0.0], 3.0)
    mover.axes([float('nan'), float('inf'), 0.0, 0.0, 0.05], 3.0)
    mover.advance(3.0, 1 / 30, START)
    np.testing.assert_array_equal(mover.target, before)


def test_halt_returns_the_target_to_the_reference():
    mover = TargetMover(START, SPEED)
    led(mover, 1.0, 'w')
    mover.halt(START)
    led(mover, 0.2, None, 1.0)
    np.testing.assert_array_equal(mover.target, START)


def test_a_held_stick_has_no_effect_until_it_is_released():
    """Neither at the start nor after a halt; otherwise a starting arm would follow it at once."""
    mover = TargetMover(START, SPEED)

    def pushed(*axes):
        before = mover.target.copy()
        mover.axes([0.0, *axes], 0.0)
        mover.advance(0.0, 1 / 30, START)
        return mover.target[0] - before[0]

    assert pushed(1.0) == 0.0  # held from the start
    assert '(axis 1 = 1.00)' in mover.refusal(0.0)
    assert pushed(float('nan')) == 0.0  # not known to be at rest
    assert pushed(1.0) == 0.0
    pushed(0.0)
    assert pushed(1.0) > 0.0
    assert mover.refusal(0.0) == ''
    mover.halt(START)
    assert pushed(1.0) == 0.0
    mover.axes([], 0.0)  # as from a gamepad that was unplugged: not known to be at rest
    assert pushed(1.0) == 0.0
    pushed(0.05)
    mover.halt(START)  # released while the arm is held
    assert pushed(1.0) > 0.0


def test_a_stick_held_while_its_gamepad_was_silent_has_no_effect_until_it_is_released():
    mover = TargetMover(START, SPEED)
    mover.axes([0.0, 0.0], 0.0)
    mover.axes([0.0, 1.0], 0.1)  # unplugged in mid-motion
    assert mover.refusal(0.2) == ''
    assert mover.refusal(5.1) == 'gamepad silent for 5.0 s; expected a message every 0.2 s'
    mover.axes([0.0, 1.0], 6.0)  # plugged in again
    assert 'until they are released (axis 1 = 1.00)' in mover.refusal(6.0)
    np.testing.assert_array_equal(mover.advance(6.0, 1 / 30, START), START)
    mover.axes([0.0, 0.0], 6.1)
    mover.axes([0.0, 1.0], 6.2)
    assert mover.advance(6.2, 1 / 30, START)[0] > START[0]


@pytest.mark.parametrize(
    'special',
    ['\x1b[A', '\x1b[D', '\x1b[3~', '\x1b[1;5D', '\x1b[[A', '\x1bOS', '\x1bOQ', '\x1bd', '\x1b'],
)
def test_arrows_and_function_keys_are_no_letters(special):
    assert Typing().letters(f'W{special}{special}') == 'w'


@pytest.mark.parametrize('special', ['\x1b[A', '\x1b[1;5D', '\x1b[[A', '\x1bOS', '\x1bd'])
def test_an_arrow_key_that_arrives_in_two_pieces_is_no_letter(special):
    for cut in range(1, len(special)):
        typing = Typing()
        assert [typing.letters(special[:cut]), typing.letters(special[cut:])] == ['', '']
        assert typing.letters('w') == 'w'


def test_the_escape_key_swallows_no_later_key():
    typing = Typing()
    assert [typing.letters(piece) for piece in ('\x1b', '', ' ')] == ['', '', ' ']


def test_a_text_that_is_no_topic_of_a_gamepad_is_refused():
    with pytest.raises(UsageError, match="--joy 'my pad': expected the name of a topic"):
        teleop(load_rig('cable_arm'), 'my pad', print)


@pytest.mark.parametrize(('required', 'at_the_end'), [(True, '\x04'), (False, '')])
def test_end_of_the_input_is_ctrl_d_unless_a_gamepad_is_enough(monkeypatch, required, at_the_end):
    reader, writer = os.pipe()
    with os.fdopen(reader) as keyboard:
        monkeypatch.setattr(sys, 'stdin', keyboard)
        with typed_keys(required=required) as read:
            assert read() == ''
            os.write(writer, b'wq')
            assert read() == 'wq'
            os.close(writer)
            assert [read(), read()] == [at_the_end, '']


@pytest.fixture
def terminal(monkeypatch):
    """Make a pseudo-terminal the keyboard; yield its far end, at which a person types."""
    far, near = os.openpty()
    with os.fdopen(near) as keyboard, os.fdopen(far, 'wb', buffering=0) as typist:
        monkeypatch.setattr(sys, 'stdin', keyboard)
        yield typist


def pressed(read, keyboard):
    assert select.select([keyboard], [], [], 5.0)[0], 'no key arrived'
    return read()


def test_keys_need_no_enter_after_a_shell_suspended_and_resumed_the_command(terminal):
    shell = termios.tcgetattr(sys.stdin)
    with typed_keys(required=True) as read:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, shell)  # Ctrl-Z
        signal.raise_signal(signal.SIGCONT)  # fg
        terminal.write(b'w')
        assert pressed(read, sys.stdin) == 'w'
    assert termios.tcgetattr(sys.stdin) == shell
    assert signal.getsignal(signal.SIGCONT) == signal.SIG_DFL


def test_a_closed_terminal_is_the_end_of_the_input(terminal):
    with typed_keys(required=True) as read:
        terminal.close()
        assert pressed(read, sys.stdin) == '\x04'
