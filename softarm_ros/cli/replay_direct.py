"""Repeats the tracker's cycles of a recorded run in this process and compares the commands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.recorded_rig import recorded_rig, require_residual
from softarm_ros.geometry.arrays import Array
from softarm_ros.leftovers import temporary_folder
from softarm_ros.nodes.bag_messages import JOINTS, messages_of, nanoseconds, pose_row, stamp_ns
from softarm_ros.nodes.bag_repair import about_of
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import build_loop, build_pose_intake
from softarm_ros.runtime.cycle_source import ALLOWED, POSE, SECTIONS, load_code, pace_in
from softarm_ros.runtime.loop import Loop, PoseSample
from softarm_ros.runtime.permitted_loop import PermittedLoop
from softarm_ros.whole_file import write_text


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

    `tips` (3,) [m] and `configurations` (dof,) are those of the estimator. They have the time of
    the cycle if they are `predicted`, otherwise the stamp of the measured pose. Two cycles have
    one stamp if a pose was exposed at the time of an earlier cycle without a pose.
    """

    cycles: tuple[Cycle, ...]
    tips: dict[int, Array]
    configurations: dict[int, list[Array]]
    actuators: tuple[tuple[int, Array], ...]
    commands: dict[int, list[Array]]
    predicted: bool = False


@dataclass(frozen=True)
class Replayed:
    """
    Comparison of a replay with its recording.

    `lost` counts commands in the bag without their cycles, and `unseen` counts cycles without
    their poses. `gaps` are pauses between cycles: time since the first cycle, and length [s].
    After each of these, the replay may deviate. `difference` (dof,) is the largest difference of
    each coordinate of the configuration over all cycles.
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
            write_text(file, about[f'{name}_file'])
            files[name] = str(file)
    return {**common, **files, 'laps': int(about['laps']) if about.get('laps') else None}


def read_day(bag: Path, rig: Rig, loop: Loop) -> RecordedDay:
    """Return the tracker's data in a bag; raise UsageError if cycles or commands are missing."""
    prefix = f'/{rig.name}/'
    cycles: list[Cycle] = []
    tips: dict[int, Array] = {}
    configurations: dict[int, list[Array]] = defaultdict(list)
    actuators: list[tuple[int, Array]] = []
    commands: dict[int, list[Array]] = defaultdict(list)
    of_topic = {'configuration/state': configurations, 'configuration/command': commands}
    for message in messages_of(bag):
        topic = message.topic.removeprefix(prefix)
        if topic == 'tracker/cycle':
            found = message.decoded('sensor_msgs/msg/TimeReference')
            words = frozenset(found.source.split())
            now_s = 1e-9 * nanoseconds(found.time_ref)
            cycles.append(Cycle(now_s, stamp_ns(found), message.received_ns, words))
        elif topic == 'state/tip':
            found = message.decoded('geometry_msgs/msg/PoseWithCovarianceStamped')
            tips[stamp_ns(found)] = np.array(pose_row(found.pose.pose))[:3]
        elif topic == 'actuators/state':
            found = message.decoded(JOINTS)
            values = dict(zip(found.name, found.position))
            if set(loop.limits.names) <= set(values):
                position = np.array([values[name] for name in loop.limits.names])
                actuators.append((message.received_ns, position))
        elif topic in of_topic:
            found = message.decoded(JOINTS)
            of_topic[topic][stamp_ns(found)].append(np.asarray(found.position, dtype=float))
    if not cycles or not commands:
        found_none = {'tracker/cycle': not cycles, 'configuration/command': not commands}
        topics = ' and '.join(prefix + topic for topic, none in found_none.items() if none)
        raise UsageError(
            f'{bag}: nothing on {topics}; the recording may have ended before the tracker ran, '
            'or without these topics'
        )
    predicted = build_pose_intake(rig, loop.model).estimator.predicts
    return RecordedDay(tuple(cycles), tips, configurations, tuple(actuators), commands, predicted)


def compare(loop: Loop, day: RecordedDay) -> Replayed:
    """Run the loop through recorded cycles and compare its output with the recorded commands."""
    motion = PermittedLoop(loop)
    states = iter(day.actuators)
    state = next(states, None)
    difference = np.zeros(len(loop.model.configuration_names))
    scale = loop.model.configuration_scale
    compared, moving, first_s = 0, 0, None
    recorded = {stamp: iter(of_stamp) for stamp, of_stamp in day.commands.items()}
    seen = {stamp: iter(of_stamp) for stamp, of_stamp in day.configurations.items()}
    unseen = 0
    for cycle in day.cycles:
        while state is not None and state[0] <= cycle.received_ns:
            motion.on_actuators(state[1])
            state = next(states, None)
        allowed = ALLOWED in cycle.knew
        if allowed != motion.allowed:
            motion.follow(allowed, cycle.now_s)
        loop.pace = pace_in(cycle.knew)
        pose = _sample(day, cycle, seen)
        # An open loop ignores its poses, which may be left out of the bag.
        missing = pose is None or (SECTIONS in cycle.knew and pose.configuration is None)
        unseen += POSE in cycle.knew and missing and not loop.open_loop
        output = motion.cycle(cycle.now_s, pose)
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
    counts = len(day.cycles), compared, moving, lost, unseen
    gaps = _gaps(day.cycles, GAP * loop.period_s)
    return Replayed(*counts, names, difference, scale, first_s, gaps)


def describe(replayed: Replayed) -> Iterator[str]:
    """Yield the lines of the report."""
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


def _sample(
    day: RecordedDay, cycle: Cycle, configurations: Mapping[int, Iterator[Array]]
) -> PoseSample | None:
    """Return the pose that a cycle used; None if it used none or the pose is not in the bag."""
    if POSE not in cycle.knew:
        return None
    stamp_s = cycle.now_s if day.predicted else 1e-9 * cycle.stamp_ns
    stamp = round(1e9 * stamp_s)  # as the tracker stamps its estimates
    found = None
    if SECTIONS in cycle.knew:
        of_ns = stamp if day.predicted else cycle.stamp_ns
        found = next(configurations.get(of_ns, iter(())), None)
    tip = day.tips.get(stamp)
    return None if tip is None else PoseSample(stamp_s, tip, found)
