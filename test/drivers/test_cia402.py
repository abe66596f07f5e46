"""The driver's view of a drive against the emulated drive, which is written separately."""

import pytest

from softarm_ros.drivers.cia402 import ControlWords, DriveState, StatusWords, next_control_word
from softarm_ros.emulation.cia402_drive import WATCHDOG_FAULT, EmulatedDrive

# Status words captured in manuals of CiA 402 drives, with voltage, remote and warning bits set.
CAPTURED = [
    (0x0000, DriveState.NOT_READY),
    (0x0250, DriveState.DISABLED),
    (0x0670, DriveState.DISABLED),
    (0x0231, DriveState.READY),
    (0x0233, DriveState.SWITCHED_ON),
    (0x1637, DriveState.ENABLED),
    (0x02B7, DriveState.ENABLED),
    (0x0217, DriveState.QUICK_STOP),
    (0x021F, DriveState.FAULT_REACTION),
    (0x0218, DriveState.FAULT),
    (0x0238, DriveState.FAULT),
]


@pytest.mark.parametrize(('word', 'state'), CAPTURED)
def test_status_words_are_decoded_to_their_states(word, state):
    assert StatusWords().state(word) is state


def test_every_status_word_matches_at_most_one_state():
    words = StatusWords()
    for word in range(0x80):
        shown = [
            name
            for name in type(words).model_fields
            if word & getattr(words, name).mask == getattr(words, name).value
        ]
        assert len(shown) <= 1, f'{word:#x}: {shown}'


def drive_towards(drive, wanted, steps):
    for _ in range(steps):
        state = StatusWords().state(drive.status_word)
        drive.write_control(next_control_word(state, wanted, ControlWords()))


def test_drive_is_enabled_in_three_steps_and_disabled_in_one():
    drive = EmulatedDrive(2.5)
    drive.write_torque(1.0)
    drive_towards(drive, True, 2)
    assert drive.torque == 0.0
    drive_towards(drive, True, 1)
    assert drive.state == 'enabled'
    assert drive.torque == 1.0
    drive_towards(drive, False, 1)
    assert (drive.state, drive.torque) == ('disabled', 0.0)


def test_fault_stays_until_a_rising_edge_of_the_reset_bit():
    drive = EmulatedDrive(2.5)
    drive_towards(drive, True, 3)
    drive.write_control(0x80 | 0x0F)
    drive.fail(0x2310)
    drive_towards(drive, True, 5)
    assert drive.state == 'fault'
    drive.write_control(0x80)
    assert (drive.state, drive.fault_code) == ('disabled', 0)


def test_quick_stop_is_left_through_the_disabled_state():
    drive = EmulatedDrive(2.5)
    drive_towards(drive, True, 3)
    drive.write_control(0x02)
    assert drive.state == 'quick_stop'
    drive_towards(drive, True, 1)
    assert drive.state == 'disabled'
    drive_towards(drive, True, 3)
    assert drive.state == 'enabled'


def test_drive_without_messages_for_its_watchdog_time_faults():
    drive = EmulatedDrive(2.5, watchdog_s=0.1)
    drive_towards(drive, True, 3)
    drive.write_torque(2.0)
    drive.advance(0.09)
    assert drive.torque == 2.0
    drive.advance(0.02)
    assert (drive.torque, drive.fault_code) == (0.0, WATCHDOG_FAULT)
