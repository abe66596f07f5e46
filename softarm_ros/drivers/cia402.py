"""
The state machine of a servo drive, read from its status word and driven by its control word.

States, bits and transitions are those of the drive profile CiA 402 (IEC 61800-7-201). If a drive
deviates, its words are set in the rig file.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Annotated

from pydantic import Field

from softarm_ros.geometry.configs import ConfigBlock

Word = Annotated[int, Field(ge=0, le=0xFFFF)]


class DriveState(Enum):
    """State of a drive; diagnostics print the values."""

    UNKNOWN = 'unknown'
    NOT_READY = 'not ready to switch on'
    DISABLED = 'switch on disabled'
    READY = 'ready to switch on'
    SWITCHED_ON = 'switched on'
    ENABLED = 'operation enabled'
    QUICK_STOP = 'quick stop active'
    FAULT_REACTION = 'fault reaction active'
    FAULT = 'fault'


class StatusPattern(ConfigBlock):
    """The drive is in a state if `status & mask == value`."""

    mask: Word
    value: Word


class StatusWords(ConfigBlock):
    """Patterns of the status word in each state."""

    not_ready: StatusPattern = StatusPattern(mask=0x4F, value=0x00)
    disabled: StatusPattern = StatusPattern(mask=0x4F, value=0x40)
    ready: StatusPattern = StatusPattern(mask=0x6F, value=0x21)
    switched_on: StatusPattern = StatusPattern(mask=0x6F, value=0x23)
    enabled: StatusPattern = StatusPattern(mask=0x6F, value=0x27)
    quick_stop: StatusPattern = StatusPattern(mask=0x6F, value=0x07)
    fault_reaction: StatusPattern = StatusPattern(mask=0x4F, value=0x0F)
    fault: StatusPattern = StatusPattern(mask=0x4F, value=0x08)

    def state(self, status: int) -> DriveState:
        """Return the state of a status word; UNKNOWN if it matches no pattern."""
        for state, name in _PATTERNS:
            pattern = getattr(self, name)
            if status & pattern.mask == pattern.value:
                return state
        return DriveState.UNKNOWN


_PATTERNS = (
    (DriveState.FAULT, 'fault'),
    (DriveState.FAULT_REACTION, 'fault_reaction'),
    (DriveState.ENABLED, 'enabled'),
    (DriveState.SWITCHED_ON, 'switched_on'),
    (DriveState.READY, 'ready'),
    (DriveState.QUICK_STOP, 'quick_stop'),
    (DriveState.DISABLED, 'disabled'),
    (DriveState.NOT_READY, 'not_ready'),
)


class ControlWords(ConfigBlock):
    """Control words of the commands."""

    disable_voltage: Word = Field(default=0x00, description='power off, from any state')
    shutdown: Word = Field(default=0x06, description='to the state ready to switch on')
    switch_on: Word = Field(default=0x07, description='power on, no torque')
    enable_operation: Word = Field(default=0x0F, description='torque')
    fault_reset: Word = Field(default=0x80, description='acts on its rising bit')


def next_control_word(state: DriveState, wanted: bool, words: ControlWords) -> int:
    """
    Return the control word of the next step towards operation enabled (`wanted`) or power off.

    It never resets a fault, and it leaves a quick stop only through power off.
    """
    if not wanted:
        return words.disable_voltage
    if state is DriveState.ENABLED or state is DriveState.SWITCHED_ON:
        return words.enable_operation
    if state is DriveState.READY:
        return words.switch_on
    return words.shutdown if state is DriveState.DISABLED else words.disable_voltage


def resetting_words(
    controls: Sequence[int], states: Sequence[DriveState], sent: Sequence[int], words: ControlWords
) -> list[int]:
    """Return control words that reset faults; not twice in a row, since the bit must rise."""
    return [
        words.fault_reset if state is DriveState.FAULT and last != words.fault_reset else word
        for word, state, last in zip(controls, states, sent)
    ]


# Error codes of the profile; those of a particular drive belong in the rig file.
FAULT_NAMES: dict[int, str] = {
    0x2310: 'continuous over-current',
    0x2320: 'short circuit or earth leakage',
    0x3110: 'mains over-voltage',
    0x3120: 'mains under-voltage',
    0x3210: 'DC link over-voltage',
    0x3220: 'DC link under-voltage',
    0x4210: 'drive over-temperature',
    0x4310: 'motor over-temperature',
    0x5441: 'safe torque off',
    0x7121: 'motor blocked',
    0x7305: 'encoder fault',
    0x8130: 'communication watchdog',
    0x8311: 'excess torque',
    0x8400: 'speed limit exceeded',
    0x8611: 'following error',
}


def is_of_drive(code: int) -> bool:
    """Return whether the profile counts a fault as one of current, voltage, heat or hardware."""
    return 0x2000 <= code < 0x8000  # from 0x8000: communication and motion, which a host causes
