"""Conditions in an exchange with servo drives that must stop the arm: pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from softarm_ros.drivers.cia402 import DriveState, is_of_drive
from softarm_ros.drivers.servo_config import ServoConfig
from softarm_ros.geometry.arrays import Array


class Finding(NamedTuple):
    """A condition that must stop the arm."""

    source: str
    code: str
    text: str
    outside: bool = False  # a late computer cannot be the cause


@dataclass(frozen=True)
class Intent:
    """
    Values to write in one exchange, and the wanted state of the drives.

    `stamp` is the time of the command that gave the torques (n,); None without a command.
    `running` says that all axes have come into operation since they were enabled at `since_s`.
    """

    controls: list[int]
    torques: Array
    stamp: float | None
    wanted: bool
    running: bool
    enabling: int
    since_s: float


def drive_faults(
    config: ServoConfig, states: Sequence[DriveState], codes: Sequence[int]
) -> Iterator[Finding]:
    """Yield the drives in a fault, with their fault codes."""
    for axis, state, code in zip(config.axes, states, codes):
        if state in (DriveState.FAULT, DriveState.FAULT_REACTION):
            yield Finding(axis.name, f'0x{code:04X}', config.fault_name(code), is_of_drive(code))


def overspeed(config: ServoConfig, intent: Intent, speeds: Sequence[float]) -> Iterator[Finding]:
    """Yield the axes that turn too fast, or whose speed is unknown while running."""
    for axis, speed in zip(config.axes, speeds):
        limit = axis.speed_limit_rad_s
        unknown = intent.running and not math.isfinite(speed)
        if unknown or (intent.wanted and abs(speed) > limit):
            text = f'{abs(speed):.4g} rad/s (limit {limit:.4g} rad/s)'
            yield Finding(axis.name, 'overspeed', text)


def out_of_operation(
    config: ServoConfig, intent: Intent, states: Sequence[DriveState], now_s: float
) -> Iterator[Finding]:
    """Yield the axes that left operation unasked, or did not reach it in time."""
    limit = config.transition_timeout_s
    if not intent.wanted or not (intent.running or now_s - intent.since_s > limit):
        return
    what = 'left operation' if intent.running else f'not enabled within {limit:g} s'
    for axis, state in zip(config.axes, states):
        if state is not DriveState.ENABLED:
            yield Finding(axis.name, 'state', f'{what}: {state.value}')


def stale_command(config: ServoConfig, intent: Intent, age_s: float) -> Iterator[Finding]:
    """Yield a finding if the command of running axes is stale."""
    if intent.running and age_s > config.command_timeout_s:
        yield Finding(
            'command', 'stale', f'no command for {1e3 * config.command_timeout_s:.0f} ms'
        )


def unanswered(config: ServoConfig, axes: Iterable[int]) -> Iterator[Finding]:
    """Yield axes that have been silent for too long."""
    for i in axes:
        text = f'no answer for {1e3 * config.link_timeout_s:.0f} ms'
        yield Finding(config.axes[i].name, 'timeout', text)
