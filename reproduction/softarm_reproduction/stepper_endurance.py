"""Send commands at 100 Hz to six moving motors and count the losses."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from softarm_reproduction.stepper_hosts import (
    PERIOD_S,
    READY_S,
    Driven,
    cable_rig,
    homed_driver,
    running_board,
)

if TYPE_CHECKING:
    from softarm_ros.drivers.cable_steppers import CableSteppers
    from softarm_ros.drivers.frames import ReceiveCounters
    from softarm_ros.drivers.messages import Counters
    from softarm_ros.drivers.serial_counters import SerialCounts

_USE = 0.5  # share of the largest speed in the sustained run
_SWING_HZ = 0.27
_STATES_HZ = 100.0
_SETTLE_S = 1.0


@dataclass(frozen=True)
class Endurance:
    """
    Counts of commands sent at 100 Hz to six moving motors.

    Attributes
    ----------
    emulator :
        Emulator that ran the firmware.
    duration_s, counted_s :
        Duration of the commands; time between the two readings of the counters.
    commands, refused :
        Commands given to the driver, and those it refused.
    frames_sent, frames_accepted :
        Frames counted by the driver and by the board, including pings and queries.
    frames_lost :
        Sequence gaps, damaged frames and stale frames counted by the board.
    frames_refused :
        Frames that the board refused.
    states, states_lost, states_skipped :
        State frames that arrived, that were missing or damaged, and that the board did not send
        because the line was busy.
    steps_commanded, steps_executed :
        Final positions as commanded and as counted on the coils [microsteps].
    late_p99_s, late_max_s :
        Delays of the driver's cycles.
    """

    emulator: str
    duration_s: float
    counted_s: float
    commands: int
    refused: int
    frames_sent: int
    frames_accepted: int
    frames_lost: int
    frames_refused: int
    states: int
    states_lost: int
    states_skipped: int
    steps_commanded: tuple[int, ...]
    steps_executed: tuple[int, ...]
    late_p99_s: float
    late_max_s: float

    @property
    def pace(self) -> float:
        """Return the speed of the emulated board; below 1, it lacked processor time."""
        sent = self.states + self.states_lost + self.states_skipped
        return sent / _STATES_HZ / self.counted_s

    @property
    def lossless(self) -> bool:
        """Return whether all commands and states arrived and all steps were made."""
        return (
            self.refused == self.frames_lost == self.frames_refused == self.states_lost == 0
            # One frame may be in transit at the counting; the board counts lost frames itself.
            and abs(self.frames_sent - self.frames_accepted) <= 1
            and self.steps_commanded == self.steps_executed
        )

    def lines(self) -> Iterator[str]:
        """Yield the counts as readable text."""
        yield (
            f'steppers at 100 Hz for {self.duration_s:.1f} s ({self.emulator}): '
            f'{"nothing lost" if self.lossless else "LOSS"}; pace {self.pace:.2f}'
        )
        yield (
            f'  commands {self.commands}, refused {self.refused}; frames sent {self.frames_sent}, '
            f'accepted {self.frames_accepted}, lost {self.frames_lost}, '
            f'refused {self.frames_refused}'
        )
        yield (
            f'  state frames {self.states}, lost {self.states_lost}, skipped by the board '
            f'{self.states_skipped}; cycles late by {1e3 * self.late_p99_s:.1f} ms (p99), '
            f'{1e3 * self.late_max_s:.1f} ms (most)'
        )
        yield (
            f'  steps commanded {" ".join(map(str, self.steps_commanded))}, '
            f'on the coils {" ".join(map(str, self.steps_executed))}'
        )


def endure(duration_s: float) -> Endurance:
    """
    Swing all cables for a time [s] and return the counts.

    Raises
    ------
    InterruptedError
        If the driver stops because of a problem.

    """
    rig = cable_rig()
    limits = rig.actuator_limits()
    swing = _USE * limits.max_speed / (2.0 * np.pi * _SWING_HZ)
    phase = np.arange(len(swing)) * 2.0 * np.pi / len(swing)
    with running_board() as (port, board), homed_driver(rig, port) as driver:
        driven = Driven(rig, driver)
        before = _settled_counts(driver)
        counting = time.monotonic()
        began = due = time.monotonic()
        commands = refused = 0
        while (now := time.monotonic()) < began + duration_s:
            angle = 2.0 * np.pi * _SWING_HZ * (now - began)
            ease = min(1.0, (now - began) / 2.0)
            command = ease * swing * (np.sin(angle + phase) - np.sin(phase))
            command = np.clip(command, limits.position_min, limits.position_max)
            commands += 1
            refused += driver.follow(command) is not None
            board.poll()
            due += PERIOD_S
            time.sleep(max(due - time.monotonic(), 0.0))
        elapsed = time.monotonic() - began
        while time.monotonic() < began + elapsed + _SETTLE_S:
            driver.follow(command)
            board.poll()
            time.sleep(PERIOD_S)
        driver.hold()
        after = _settled_counts(driver)
        counted_s = time.monotonic() - counting
        status = board.wait_for_status()
        wanted = np.rint(command / driven.steps).astype(int)
        had, has = before.board, after.board
        assert had is not None and has is not None
        skipped = has.skipped_states - had.skipped_states
        return Endurance(
            emulator=board.emulator,
            duration_s=elapsed,
            counted_s=counted_s,
            commands=commands,
            refused=refused,
            frames_sent=after.sent - before.sent,
            frames_accepted=has.accepted - had.accepted,
            frames_lost=_damage(has) - _damage(had),
            frames_refused=has.refused - had.refused,
            states=after.received.frames - before.received.frames,
            states_lost=_lost(after.received) - _lost(before.received) - skipped,
            states_skipped=skipped,
            steps_commanded=tuple(map(int, wanted)),
            steps_executed=tuple(status['shafts'][m] for m in driven.motors),
            late_p99_s=after.cycle_delay.p99_s,
            late_max_s=after.cycle_delay.max_s,
        )


def _settled_counts(driver: CableSteppers) -> SerialCounts:
    """Return the driver's counts right after the board has reported its own."""
    end = time.monotonic() + READY_S
    known = driver.counts().board
    while time.monotonic() < end:
        counts = driver.counts()
        if counts.board is not known:
            return counts
        time.sleep(0.0005)
    raise InterruptedError('the board does not report its counters')


def _damage(counts: Counters) -> int:
    return counts.lost + counts.corrupt + counts.malformed + counts.stale


def _lost(counts: ReceiveCounters) -> int:
    return counts.lost + counts.corrupt + counts.malformed
