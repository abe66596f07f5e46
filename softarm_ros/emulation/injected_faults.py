"""Faults of emulated devices as lines of text: `servo fault distal_1 0x2310`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from softarm_ros.emulation.daq_service import EmulatedDaq
from softarm_ros.emulation.modbus_drive import EmulatedDrives
from softarm_ros.plant.faults import Faults, InjectedFault, milliseconds

_OPEN_V = 0.02  # reading of an input with a pull-down and no sensor


def servo_faults(drives: EmulatedDrives) -> Faults:
    """Return the faults of servo drives and their line."""
    names = drives.config.names

    def axis(word: str) -> int:
        if word not in names:
            raise ValueError(f'no axis {word!r}; there are {", ".join(names)}')
        return names.index(word)

    def heal(index: int) -> None:
        drives.heal(index)

    def delay(seconds: float) -> None:
        drives.faults.delay_s = seconds

    def lose(count: int) -> None:
        drives.faults.lose_answers = count

    def silent(index: int) -> None:
        drives.faults.silent_units.add(drives.config.axes[index].unit)

    def mend() -> None:
        drives.faults.delay_s, drives.faults.lose_answers = 0.0, 0
        drives.faults.silent_units.clear()

    at = ('AXIS', axis)
    return {
        'servo fault': InjectedFault((at, ('CODE', _code)), lambda i, code: drives.fail(i, code)),
        'servo broken': InjectedFault(
            (at, ('CODE', _code)), lambda i, code: drives.fail(i, code, persists=True)
        ),
        'servo heal': InjectedFault((at,), heal),
        'servo delay': InjectedFault((('MS', milliseconds),), delay),
        'servo lose': InjectedFault((('ANSWERS', _count),), lose),
        'servo silent': InjectedFault((at,), silent),
        'servo mend': InjectedFault((), mend),
        'servo kill': InjectedFault((), drives.kill),
        'servo revive': InjectedFault((), drives.revive),
    }


def daq_faults(daq: EmulatedDaq) -> Faults:
    """Return the faults of a DAQ, its sensors and its host."""
    channels = {part.name: part.channel for part in daq.config.inputs}
    channels |= {channel: channel for channel in daq.config.input_channels}

    def channel(word: str) -> str:
        if word not in channels:
            raise ValueError(f'no input {word!r}; there are {", ".join(channels)}')
        return channels[word]

    def open_(physical: str) -> None:
        daq.faults.open_V[physical] = _OPEN_V

    def set_(target: Any, name: str, value: Any) -> Callable[[], None]:
        return lambda: setattr(target, name, value)

    def delay(seconds: float) -> None:
        daq.host_faults.delay_s = seconds

    def mend() -> None:
        daq.faults.open_V.clear()
        daq.faults.stuck.clear()
        daq.faults.stall = daq.faults.gone = daq.host_faults.hang = False
        daq.host_faults.delay_s = 0.0

    at = ('INPUT', channel)
    return {
        'daq open': InjectedFault((at,), open_),
        'daq stuck': InjectedFault((at,), lambda physical: daq.faults.stuck.add(physical)),
        'daq overrun': InjectedFault((), daq.device.overrun),
        'daq stall': InjectedFault((), set_(daq.faults, 'stall', True)),
        'daq unplug': InjectedFault((), set_(daq.faults, 'gone', True)),
        'daq delay': InjectedFault((('MS', milliseconds),), delay),
        'daq hang': InjectedFault((), set_(daq.host_faults, 'hang', True)),
        'daq mend': InjectedFault((), mend),
        'daq kill': InjectedFault((), daq.kill),
        'daq revive': InjectedFault((), daq.revive),
    }


def _code(word: str) -> int:
    try:
        value = int(word, 0)
    except ValueError:
        value = -1
    if not 0 <= value <= 0xFFFF:
        raise ValueError(f'code {word}: expected 0 to 0xFFFF')
    return value


def _count(word: str) -> int:
    if not word.isdecimal():
        raise ValueError(f'{word}: expected a number of answers')
    return int(word)
