"""Samples, counts and state that a DAQ driver reports to its caller."""

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
    Counts and latencies since the driver started.

    Attributes
    ----------
    samples, blocks :
        Samples and blocks read from the device.
    overruns, starts :
        Times the device lost samples; times the acquisition started.
    dropped_blocks :
        Blocks that were read but not taken by the caller within five seconds.
    commands, superseded :
        Commands of the caller, and those replaced by a newer one before they were written.
    command_latency :
        Time from the caller's command to the device's acknowledgement.
    read_age :
        Age of the newest sample of a block when it reaches the driver.

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
    Latest measurements and state of the device.

    Attributes
    ----------
    values :
        Means over the latest block (inputs,), SI; NaN before the first.
    wrench :
        Mean force [N] and torque [N m] over the latest block (6,); NaN without sensor.
    stamp_s, age_s :
        Monotonic time of the newest sample of the block; its age.
    outputs, lines :
        Levels last acknowledged by the device: SI values (outputs,), on or off (lines,).
    reading, writing, enabled :
        Whether inputs are read; whether outputs are written; whether outputs follow commands.
    problems :
        Problems since the last reset; while there are any, the outputs have safe values.

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
