"""Reads commands and poses of a recorded run from its bag."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softarm_ros.cli.measured_excitation import AROUND
from softarm_ros.cli.measured_run import (
    MeasuredRun,
    MeasurementError,
    Mount,
    measured_axes,
)
from softarm_ros.cli.recorded_rig import recorded_rig
from softarm_ros.cli.recording_warnings import other_lengths
from softarm_ros.geometry.arrays import Array, IntArray
from softarm_ros.leftovers import temporary_folder
from softarm_ros.nodes.bag_messages import (
    JOINTS,
    POSE,
    POSES,
    BaseFramePoses,
    messages_of,
    pose_row,
    stamp_ns,
)
from softarm_ros.nodes.bag_repair import about_of
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.field_values import values_of
from softarm_ros.rigs.recording import MarkerConfig
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import build_pretension

_TURN = slice(3, 7)
_LATE_S = 1.0  # no arm uses poses this old: the clocks differ
_GAP = 10.0  # times the median time between messages; and no arm moves on without poses


def read_bag_run(rig: Rig, bag: Path) -> MeasuredRun:
    """
    Return the commands and measurements in a bag of this rig.

    Commands are from `actuators/command`, each in effect until the next. Measurements are the
    poses of the sections, or of the tip alone if there are none. Times are those of the
    measurements, from the first on. A pose stamped by another clock than the recorder's is paired
    with the command in effect when the pose was received. Rows with non-finite numbers, poses
    in another frame than the base frame, and poses between a gap in the recording and the next
    command are left out. Tip weight, gravity and pretension are those
    of the rig that the bag was recorded with.

    Raises
    ------
    MeasurementError
        If commands or poses are missing, or commands are for other actuators than the rig's.

    """
    commands: list[tuple[int, Array]] = []
    poses: dict[int, Array] = {}
    tips: dict[int, Array] = {}
    received: dict[int, int] = {}
    names = rig.actuator_names
    prefix = f'/{rig.name}/'
    in_base = BaseFramePoses(rig.base_frames)
    held = {'sections': 0, 'tips': 0}  # messages in the base frame
    seen: dict[str, int] = defaultdict(int)
    others = ''  # description of a command for other actuators
    for message in messages_of(bag):
        topic = message.topic.removeprefix(prefix)
        seen[topic] += 1
        if topic == 'actuators/command':
            values = message.decoded(JOINTS)
            position = dict(zip(values.name, values.position))
            if set(names) <= set(position):
                command = np.array([position[name] for name in names], dtype=float)
                commands.append((message.received_ns, command))
            else:
                others = f'{len(values.position)} positions of {", ".join(values.name)}'
        elif topic == 'sections/poses':
            found = message.decoded(POSES)
            if not in_base.hold(message.topic, found):
                continue
            held['sections'] += 1
            poses[stamp_ns(found)] = np.array([pose_row(pose) for pose in found.poses])
            received[stamp_ns(found)] = message.received_ns
        elif topic == rig.feedback.pose_topic.removeprefix(prefix):
            found = message.decoded(POSE)
            if not in_base.hold(message.topic, found):
                continue
            held['tips'] += 1
            tips[stamp_ns(found)] = np.array([pose_row(found.pose)])
            received.setdefault(stamp_ns(found), message.received_ns)
    sections = rig.section_names
    whole = {stamp: rows for stamp, rows in poses.items() if len(rows) == len(sections)}
    again, part = held['sections'] - len(poses), len(poses) - len(whole)
    if not whole:
        sections, whole = sections[-1:], tips
        again = held['tips'] - len(tips)
    if not commands and others:
        raise MeasurementError(
            f'{bag}: {prefix}actuators/command has {others}; expected those of '
            f'{", ".join(names)}, as {rig.name} has'
        )
    foreign = in_base.notes()
    if commands and not whole and foreign:
        raise MeasurementError(f'{bag}: no pose in the base frame; {"; ".join(foreign)}')
    if not commands or not whole:
        missing = f'{prefix}actuators/command' if not commands else f'{prefix}sections/poses'
        raise MeasurementError(
            f'{bag}: nothing on {missing}; there are {", ".join(sorted(seen)) or "no messages"}'
        )
    given = np.array([at for at, _ in commands])
    late_s = {stamp: 1e-9 * abs(received[stamp] - stamp) for stamp in whole}
    off = [late for late in late_s.values() if late > _LATE_S]
    when = {stamp: received[stamp] if late_s[stamp] > _LATE_S else stamp for stamp in whole}
    stamps = np.array(sorted(stamp for stamp in whole if when[stamp] >= given[0]), dtype=np.int64)
    if not len(stamps):
        raise MeasurementError(f'{bag}: no pose was measured after the first command')
    rows = np.array([whole[stamp] for stamp in stamps])  # (n, sections, 7)
    at = np.array([when[stamp] for stamp in stamps], dtype=np.int64)
    in_effect = np.searchsorted(given, at, side='right') - 1
    told = np.array([command for _, command in commands])[in_effect]
    known, gap_s = _known(rig, given, np.array([*received.values()]), given[in_effect], at)
    known |= np.array([late_s[stamp] > _LATE_S for stamp in stamps])
    unsaid = int(np.count_nonzero(~known))
    if unsaid == len(stamps):
        raise MeasurementError(
            f'{bag}: no command was received between a gap of {gap_s:.3g} s and the poses after it'
        )
    stamps, rows, told = stamps[known], rows[known], told[known]
    complete = np.isfinite(told).all(axis=1) & np.isfinite(rows).all(axis=(1, 2))
    gone = int(np.count_nonzero(~complete))
    if gone == len(stamps):
        raise MeasurementError(f'{bag}: every row lacks a number')
    stamps, rows, told = stamps[complete], rows[complete], told[complete]
    # Models do not include the pretension, by which antagonists pull against each other.
    about = about_of(bag)
    recorded, unknown = _recorded(about, rig)
    wound = build_pretension(recorded or rig, open_loop=about.get('open_loop') == 'true')
    pretension = wound.amount
    axes, without = measured_axes(sections, rows[:, :, _TURN])
    run = MeasuredRun(
        bag.absolute().name,  # `.` has no name
        1e-9 * (stamps - stamps[0]).astype(float),
        told - pretension,
        {name: rows[:, k, :3] for k, name in enumerate(sections)},
        {name: MarkerConfig(columns=('', '', ''), section=name) for name in sections},
        axes,
        Mount(np.zeros(3), np.eye(3)),
        (
            *([f'left out: {again} poses with the stamp of a later one'] if again else []),
            *([f'left out: {part} poses of only some sections'] if part else []),
            *([f'left out: {gone} incomplete rows'] if gone else []),
            *(
                [
                    f'left out: {unsaid} poses after gaps of up to {gap_s:.3g} s in the '
                    'recording, before the next command'
                ]
                if unsaid
                else []
            ),
            *foreign,
            *without,
            *([unknown] if unknown else []),
            *(
                [
                    f'{len(off)} of {len(whole)} poses were received up to {max(off):.3g} s off '
                    'their stamps, by clocks that differ or jumped, or a computer that was busy: '
                    'each of these is paired with the last command before it was received'
                ]
                if off
                else []
            ),
            *([f'pretension taken off the commands: {pretension:g}'] if pretension else []),
        ),
        in_base=True,
        around={} if recorded is None else values_of(recorded, AROUND),
    )
    return replace(run, notes=(*run.notes, *other_lengths(rig, run, 'in m')))


def _known(
    rig: Rig, given: IntArray, received: IntArray, last: IntArray, at: IntArray
) -> tuple[NDArray[np.bool_], float]:
    """
    Return for each pose (n,) whether its command is recorded, and the longest pause [s].

    It is not if there is a gap in the recording, without commands (received at `given`) and poses
    (at `received`), between the `last` command and the time `at` of the pose. All times in ns.
    """
    heard = np.sort(np.concatenate([given, received]))
    pauses = np.diff(heard)
    least = max(1e9 * rig.supervisor.feedback_timeout_s, _GAP * float(np.median(pauses)))
    begins = heard[:-1][pauses > least]
    newest = np.append(np.iinfo(np.int64).min, begins)[np.searchsorted(begins, at)]
    return last > newest, 1e-9 * float(pauses.max())


def _recorded(about: Mapping[str, str], rig: Rig) -> tuple[Rig | None, str]:
    """Return the rig of the bag, None if it is unknown, and what to know about it, or ''."""
    if 'rig_file' not in about:
        return None, ''
    with temporary_folder() as folder:
        try:
            recorded = recorded_rig(about, Path(folder))
        except RigError as error:
            reason = str(error).splitlines()[0]
            note = f'the rig file in the bag is not valid today ({reason})'
            return None, f'{note}: {AROUND[0]} and pretension of {rig.name} used'
    note = ''
    if recorded.medium != rig.medium:
        note = (
            f'warning: recorded in {recorded.medium}, but predicted in {rig.medium}, as the rig '
            f'file states; expected --set medium={recorded.medium}'
        )
    return recorded, note
