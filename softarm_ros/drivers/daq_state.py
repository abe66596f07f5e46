"""What a DAQ driver reports to its caller."""

from __future__ import annotations

from dataclasses import dataclass

from softarm_ros.drivers.counters import Latency
from softarm_ros.drivers.problems import Problem
from softarm_ros.geometry.arrays import Array


@dataclass(frozen=True)
class SampleBlock:
    """Samples of all inputs: stamps (k,) [monotonic, s], values (inputs, k), wrench (6, k)."""

    stamps_s: Array
    values: Array
    wrench: Array | None


@dataclass(frozen=True)
class DaqCounts:
    """
    What happened since the driver started.

    Attributes
    ----------
    samples, blocks :
        Read from the device.
    overruns, starts :
        Times that samples were lost in the device; times the acquisition began.
    dropped_blocks :
        Read, but nobody took them for five seconds.
    commands, superseded :
        Taken from the caller; overtaken by a newer one before they were written.
    command_latency :
        From the caller's command to the device's acknowledgement.
    read_age :
        Age of the newest sample of a block when it arrives here.

    """

    samples: int
    blocks: int
    overruns: int
    starts: int
    dropped_blocks: int
    commands: int
    superseded: int
    command_latency: Latency
    read_age: Latency


@dataclass(frozen=True)
class DaqState:
    """
    What is known of the device.

    Attributes
    ----------
    values :
        Means over the latest block (inputs,), SI; NaN before the first.
    wrench :
        Mean force [N] and torque [N m] over it (6,); NaN without sensor.
    stamp_s, age_s :
        When its newest sample was taken, monotonic clock; how long ago that is.
    outputs, lines :
        What the device last acknowledged: SI values (outputs,), on or off (lines,).
    reading, writing, enabled :
        Whether inputs are read; whether outputs are written; whether they follow commands.
    problems :
        Everything wrong since the last reset; while there is anything the outputs are safe.

    """

    values: Array
    wrench: Array
    stamp_s: float
    age_s: float
    outputs: Array
    lines: tuple[bool, ...]
    reading: bool
    writing: bool
    enabled: bool
    problems: tuple[Problem, ...]
