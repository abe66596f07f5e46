"""Repeats the tracker's cycles of a recorded run in this process and compares the commands."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.recorded_rig import recorded_rig, require_residual
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import transforms_from_rows
from softarm_ros.leftovers import temporary_folder
from softarm_ros.nodes.bag_messages import (
    JOINTS,
    POSES,
    BaseFramePoses,
    messages_of,
    nanoseconds,
    pose_row,
    stamp_ns,
)
from softarm_ros.nodes.bag_messages import (
    POSE as POSE_TYPE,
)
from softarm_ros.nodes.bag_repair import about_of
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import build_loop
from softarm_ros.runtime.cycle_source import ALLOWED, LATE, POSE, SECTIONS, load_code
from softarm_ros.runtime.loop import Loop, PoseSample
from softarm_ros.runtime.permitted_loop import PermittedLoop


@dataclass(frozen=True)
class Cycle:
    """One cycle of the tracker: its time [s], stamp and receipt [ns], and its known inputs."""

    now_s: float
    stamp_ns: int
    received_ns: int
    knew: frozenset[str]


@dataclass(frozen=True)
class RecordedDay:
    """
    The tracker's inputs and outputs in a bag; arrays by time stamp [ns].

    Two cycles have one stamp if a pose was exposed at the time of an earlier cycle without a pose.
    """

    cycles: tuple[Cycle, ...]
    tips: dict[int, Array]
    sections: dict[int, Array]
    actuators: tuple[tuple[int, Array], ...]
    commands: dict[int, list[Array]]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Replayed:
    """
    Comparison of a replay with its recording.

    `lost` counts commands in the bag without their cycles, and `unseen` counts cycles without
    their poses. `gaps` are pauses between cycles: time since the first cycle, and length [s].
    After each of these, the replay may deviate. `notes` report poses left out. `difference`
    (dof,) is the largest difference of each coordinate of the configuration over all cycles.
    `first_s` is the time since the first cycle at which a difference first exceeds `TOLERANCE`;
    None if never.
    """

    cycles: int
    compared: int
    moving: int
    lost: int
    unseen: int
    names: tuple[str, ...]
    difference: Array
    scale: Array
    first_s: float | None
    notes: tuple[str, ...] = ()
    gaps: tuple[tuple[float, float], ...] = ()

    @property
    def largest(self) -> float:
        """Largest difference as a share of a coordinate's scale."""
        return float(np.max(self.difference / self.scale))


TOLERANCE = 1e-9  # of a coordinate's scale
GAP = 5.0  # periods; a longer time between two cycles is no jitter


def replay_direct(bag: Path) -> Replayed:
    """
    Run the cycles of a bag again and compare their commands with the recorded ones.

    Raises
    ------
    BagError, UsageError
        If the bag cannot be read, or lacks data that a replay needs.

    """
    about = about_of(bag)
    with temporary_folder() as folder:
        rig, arguments = recorded_rig(about, Path(folder)), recorded_run(about, Path(folder))
        if arguments.get('goals'):
            raise UsageError(
                'the run waited for goals, whose times of arrival are not recorded: '
                '`softarm replay` plays its topics, --direct cannot repeat it'
            )
        require_residual(rig, about)
        loop = build_loop(rig, **arguments)
    load_code(loop)
    day = read_day(bag, rig, loop)
    if ALLOWED in day.cycles[0].knew:
        raise UsageError(
            f'{bag}: the recording begins in mid-motion, and the state of the tracker at that '
            'time is not in it'
        )
    return compare(loop, day)


def recorded_run(about: dict[str, str], folder: Path) -> dict[str, Any]:
    """
    Return the arguments of a recorded run for `graph_plan`; its files are written to `folder`.

    Raises
    ------
    UsageError
        If the bag does not state them, because `softarm record` recorded it beside a run.

    """
    if 'trajectory' not in about:
        raise UsageError(
            'the bag does not state the model and the trajectory of its run: `softarm record` '
            'only hears an arm; `softarm run --bag` and `bag:=` state them'
        )
    common = {
        'model': about.get('model') or None,
        'open_loop': about.get('open_loop') == 'true',
    }
    if about.get('goals') == 'true':
        return {**common, 'goals': True}
    files: dict[str, str | None] = {}
    for name in ('trajectory', 'task'):
        files[name] = about.get(name) or None
        if about.get(f'{name}_file'):
            file = folder / f'{name}_of_run.yaml'
            file.write_text(about[f'{name}_file'], encoding='utf-8')
            files[name] = str(file)
    return {**common, **files, 'laps': int(about['laps']) if about.get('laps') else None}


def read_day(bag: Path, rig: Rig, loop: Loop) -> RecordedDay:
    """Return the tracker's data in a bag; raise UsageError if cycles or commands are missing."""
    prefix = f'/{rig.name}/'
    pose_topic = rig.feedback.pose_topic.removeprefix(prefix)
    cycles: list[Cycle] = []
    tips: dict[int, Array] = {}
    sections: dict[int, Array] = {}
    actuators: list[tuple[int, Array]] = []
    commands: dict[int, list[Array]] = defaultdict(list)
    in_base = BaseFramePoses(rig.base_frames)
    for message in messages_of(bag):
        topic = message.topic.removeprefix(prefix)
        if topic == 'tracker/cycle':
            found = message.decoded('sensor_msgs/msg/TimeReference')
            words = frozenset(found.source.split())
            now_s = 1e-9 * nanoseconds(found.time_ref)
            cycles.append(Cycle(now_s, stamp_ns(found), message.received_ns, words))
        elif topic == pose_topic:
            found = message.decoded(POSE_TYPE)
            if not in_base.hold(message.topic, found):
                continue
            tips[stamp_ns(found)] = np.array(pose_row(found.pose))[:3]
        elif topic == 'sections/poses':
            found = message.decoded(POSES)
            if not in_base.hold(message.topic, found):
                continue
            rows = np.array([pose_row(pose) for pose in found.poses])
            with contextlib.suppress(ValueError):  # not finite: the tracker used the tip alone
                sections[stamp_ns(found)] = transforms_from_rows(rows)
        elif topic == 'actuators/state':
            found = message.decoded(JOINTS)
            values = dict(zip(found.name, found.position))
            if set(loop.limits.names) <= set(values):
                position = np.array([values[name] for name in loop.limits.names])
                actuators.append((message.received_ns, position))
        elif topic == 'configuration/command':
            found = message.decoded(JOINTS)
            commands[stamp_ns(found)].append(np.asarray(found.position, dtype=float))
    if not cycles or not commands:
        found_none = {'tracker/cycle': not cycles, 'configuration/command': not commands}
        topics = ' and '.join(prefix + topic for topic, none in found_none.items() if none)
        raise UsageError(
            f'{bag}: nothing on {topics}; the recording may have ended before the tracker ran, '
            'or without these topics'
        )
    notes = tuple(in_base.notes())
    return RecordedDay(tuple(cycles), tips, sections, tuple(actuators), commands, notes)


def compare(loop: Loop, day: RecordedDay) -> Replayed:
    """Run the loop through recorded cycles and compare its output with the recorded commands."""
    motion = PermittedLoop(loop)
    states = iter(day.actuators)
    state = next(states, None)
    difference = np.zeros(len(loop.model.configuration_names))
    scale = loop.model.configuration_scale
    compared, moving, first_s = 0, 0, None
    recorded = {stamp: iter(of_stamp) for stamp, of_stamp in day.commands.items()}
    for cycle in day.cycles:
        while state is not None and state[0] <= cycle.received_ns:
            motion.on_actuators(state[1])
            state = next(states, None)
        allowed = ALLOWED in cycle.knew
        if allowed != motion.allowed:
            motion.follow(allowed, cycle.now_s)
        loop.pace = 0.0 if LATE in cycle.knew else 1.0
        output = motion.cycle(cycle.now_s, _sample(loop, day, cycle))
        command = next(recorded.get(cycle.stamp_ns, iter(())), None)
        if command is None:
            continue
        compared += 1
        moving += output.phase.drives
        off = np.abs(output.configuration - command)
        difference = np.maximum(difference, off)
        if first_s is None and np.any(off > TOLERANCE * scale):
            first_s = cycle.now_s - day.cycles[0].now_s
    names = loop.model.configuration_names
    lost = sum(len(list(unused)) for unused in recorded.values())
    # An open loop ignores its poses, which may be left out of the bag.
    needed = () if loop.open_loop else day.cycles
    unseen = sum(POSE in c.knew and c.stamp_ns not in day.tips for c in needed)
    counts = len(day.cycles), compared, moving, lost, unseen
    gaps = _gaps(day.cycles, GAP * loop.period_s)
    return Replayed(*counts, names, difference, scale, first_s, day.notes, gaps)


def describe(replayed: Replayed) -> Iterator[str]:
    """Yield the lines of the report."""
    yield from replayed.notes
    yield (
        f'{replayed.cycles} cycles, {replayed.compared} of them beside a recorded command, '
        f'{replayed.moving} in motion'
        + (f'; {replayed.lost} cycles are not in the bag' if replayed.lost else '')
        + (f'; the poses of {replayed.unseen} are not in the bag' if replayed.unseen else '')
        + _described_gaps(replayed.gaps)
    )
    worst = int(np.argmax(replayed.difference / replayed.scale))
    yield (
        f'largest difference of a command: {replayed.difference[worst]:.3g} of '
        f'{replayed.names[worst]}, {replayed.largest:.3g} of its scale'
        + ('' if replayed.first_s is None else f'; from {replayed.first_s:.2f} s on')
    )


def _gaps(cycles: Sequence[Cycle], longest_s: float) -> tuple[tuple[float, float], ...]:
    """Return begin, since the first cycle, and length [s] of each longer time between cycles."""
    apart = (
        (before.now_s - cycles[0].now_s, after.now_s - before.now_s)
        for before, after in pairwise(cycles)
    )
    return tuple((begin_s, length_s) for begin_s, length_s in apart if length_s > longest_s)


def _described_gaps(gaps: Sequence[tuple[float, float]]) -> str:
    if not gaps:
        return ''
    begin_s, length_s = max(gaps, key=lambda gap: gap[1])
    which = f'no cycle for {length_s:.2f} s from {begin_s:.2f} s on'
    if len(gaps) > 1:
        which = f'{len(gaps)} pauses between cycles, the longest: {which}'
    return f'; {which}: if the tracker ran then, its cycles are missing, and the replay deviates'


def _sample(loop: Loop, day: RecordedDay, cycle: Cycle) -> PoseSample | None:
    """Return the pose that a cycle used; None if it used none or the pose is not in the bag."""
    if POSE not in cycle.knew or cycle.stamp_ns not in day.tips:
        return None
    seen = None
    if SECTIONS in cycle.knew and cycle.stamp_ns in day.sections:
        seen = loop.model.observed_configuration(day.sections[cycle.stamp_ns])
    return PoseSample(1e-9 * cycle.stamp_ns, day.tips[cycle.stamp_ns], seen)
