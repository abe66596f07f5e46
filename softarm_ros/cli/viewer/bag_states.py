"""States of the arm over time, read from a recorded run."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.geometry.arrays import Array
from softarm_ros.nodes.bag_messages import (
    JOINTS,
    POSE,
    POSES,
    BagMessage,
    BaseFramePoses,
    messages_of,
    topics_of,
)
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.view_state import NodeHealth, ViewState, latency_ms

_SILENT_S = 1.0
_PAUSE_S = 60.0
_USED = {
    'tip': POSE,
    'reference/pose': POSE,
    'reference/path': 'nav_msgs/msg/Path',
    'sections/poses': POSES,
    'configuration/state': JOINTS,
    'configuration/command': JOINTS,
    'actuators/command': JOINTS,
    'actuators/state': JOINTS,
    'heartbeat': 'diagnostic_msgs/msg/DiagnosticStatus',
}
_IN_BASE = ('tip', 'sections/poses')


@dataclass
class _Track:
    """Messages of one topic: times of receipt [s] in order, and values."""

    times: list[float] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def add(self, time_s: float, value: Any) -> None:
        self.times.append(time_s)
        self.values.append(value)

    def at(self, time_s: float) -> Any:
        """Return the last value up to a time [s], None before the first."""
        index = bisect_right(self.times, time_s) - 1
        return None if index < 0 else self.values[index]


@dataclass(frozen=True)
class _Health:
    time_s: float
    level: int
    message: str
    values: dict[str, str]


class BagStates:
    """
    States of a rig's arm in a bag; time [s] counts from the first message.

    Gaps of more than a minute without any message (a clock that jumped, a computer that slept) are
    cut out of the time. `notes` report these gaps, and poses left out because they are in another
    frame than the base frame. Use `read`.
    """

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self._paths = _Track()
        self.duration_s = 0.0
        self.notes: list[str] = []
        self._tracks: dict[str, _Track] = {}
        self._nodes: dict[str, _Track] = {}
        self._names = rig.model().configuration_names
        self._references: dict[int, Array] = {}
        self._unlike: dict[str, tuple[str, ...]] = {}  # joint names that differ from the rig's

    @classmethod
    def read(cls, bag: Path, rig: Rig) -> BagStates:
        """
        Read a bag.

        Parameters
        ----------
        bag : Path
            Folder of a rosbag2 recording.
        rig : Rig
            Rig of the recorded arm.

        Raises
        ------
        BagError
            If the bag cannot be read.
        UsageError
            If the bag holds no topics of the rig, or topics of an arm with other joints.

        """
        states = cls(rig)
        states._fill(messages_of(bag))
        if states._unlike and not any(_USED[topic] == JOINTS for topic in states._tracks):
            topic, names = next(iter(states._unlike.items()))
            raise UsageError(
                f'{bag}: {topic} has {", ".join(names) or "no names"}; expected '
                f'{", ".join(states._joints(topic))}, as {rig.name} has. Name the rig: --rig RIG'
            )
        if not states._tracks:
            topics = sorted(topics_of(bag))
            ours = tuple(topic for topic in topics if topic.startswith(f'/{rig.name}/'))
            what = 'no messages on' if ours else 'no'
            raise UsageError(
                f'{bag}: {what} topics of {rig.name}; it has {", ".join(topics) or "no topics"}'
            )
        return states

    def at(self, time_s: float) -> ViewState:
        """Return the state at a time [s]."""
        measured, commanded = self._at('configuration/state', time_s), None
        if measured is None:
            commanded = self._at('configuration/command', time_s)
        tip, reference = self._at('tip', time_s), self._at('reference/pose', time_s)
        state, command = self._at('actuators/state', time_s), self._at('actuators/command', time_s)
        supervisor, tracker = self._health('supervisor', time_s), self._health('tracker', time_s)
        return ViewState(
            time_s=time_s,
            configuration=commanded if measured is None else measured,
            measured=measured is not None,
            tip=None if tip is None else tip[1],
            reference=None if reference is None else reference[1],
            error_m=self._error_m(tip),
            command=None if command is None else command[0],
            latency_ms=None if command is None else command[1],
            position=None if state is None else state[0],
            effort=None if state is None else state[1],
            sections=self._at('sections/poses', time_s),
            state=supervisor.get('state', 'recorded'),
            reason=supervisor.get('reason', ''),
            phase=tracker.get('phase', ''),
            lap=int(tracker.get('lap', '0')),
            counts=tracker.get('counts', 'lap'),  # older bags have laps alone
            progress=float(tracker.get('progress', '0')),
            goal=tracker.get('goal', '') if tracker.get('takes_goals') == 'true' else None,
            nodes=tuple(
                _node(name, track.at(time_s), time_s)
                for name, track in sorted(self._nodes.items())
            ),
        )

    @property
    def paths(self) -> int:
        """Number of reference paths: one for a trajectory, one for each goal."""
        return len(self._paths.values)

    def path_at(self, time_s: float) -> Array | None:
        """Return the reference path (n, 3) [m] at a time [s]; None if there is none."""
        # A recorder that starts late receives the first path after messages that are newer.
        path: Array | None = self._paths.at(time_s)
        return paths[0] if path is None and (paths := self._paths.values) else path

    def _at(self, topic: str, time_s: float) -> Any:
        track = self._tracks.get(topic)
        return None if track is None else track.at(time_s)

    def _health(self, node: str, time_s: float) -> dict[str, str]:
        track = self._nodes.get(node)
        health = None if track is None else track.at(time_s)
        return {} if health is None else health.values

    def _error_m(self, tip: tuple[int, Array] | None) -> float | None:
        """Return the distance [m] of a tip from the reference with the same time stamp."""
        reference = None if tip is None else self._references.get(tip[0])
        if tip is None or reference is None:
            return None
        return float(np.linalg.norm(tip[1] - reference))

    def _fill(self, messages: Iterable[BagMessage]) -> None:
        space, tip_topic = f'/{self.rig.name}/', self.rig.feedback.pose_topic
        tip_topic = tip_topic if tip_topic.startswith('/') else space + tip_topic
        begun: int | None = None
        last = 0
        in_base = BaseFramePoses(self.rig.base_frames)
        for message in messages:
            begun = message.received_ns if begun is None else begun
            pause_ns = message.received_ns - last if last else 0
            if pause_ns > 1e9 * _PAUSE_S:
                at_s = 1e-9 * (last - begun)
                self.notes.append(f'nothing received for {1e-9 * pause_ns:.0f} s, at {at_s:.2f} s')
                begun += pause_ns
            last = message.received_ns
            topic = 'tip' if message.topic == tip_topic else message.topic.removeprefix(space)
            if topic not in _USED:
                continue
            found = message.decoded(_USED[topic])
            if topic in _IN_BASE and not in_base.hold(message.topic, found):
                continue
            value = self._value(topic, found, message.received_ns)
            time_s = 1e-9 * (message.received_ns - begun)
            if topic == 'heartbeat' and value is not None:
                name, health = value
                self._nodes.setdefault(name, _Track()).add(time_s, _Health(time_s, *health))
            elif topic == 'reference/path' and value is not None:
                self._paths.add(time_s, value)
            elif value is not None:
                self._tracks.setdefault(topic, _Track()).add(time_s, value)
                if topic == 'reference/pose':
                    self._references[value[0]] = value[1]
            self.duration_s = max(self.duration_s, time_s)
        self.notes += in_base.notes()

    def _value(self, topic: str, message: Any, received_ns: int) -> Any:
        """Return the value to keep from a message, or None."""
        if topic in ('tip', 'reference/pose'):
            position = _position(message.pose.position)
            return (_stamp_ns(message.header), position) if np.isfinite(position).all() else None
        if topic == 'sections/poses':
            places = np.array([_position(pose.position) for pose in message.poses])
            return places if len(places) and np.isfinite(places).all() else None
        if topic in ('configuration/state', 'configuration/command'):
            return self._values(message, topic)
        if topic == 'actuators/command':
            asked = self._values(message, topic)
            delay_ms = 1e-6 * (received_ns - _stamp_ns(message.header))
            return None if asked is None else (asked, latency_ms(delay_ms))
        if topic == 'actuators/state':
            actual = self._values(message, topic)
            effort = np.asarray(message.effort, dtype=float)
            return None if actual is None else (actual, effort if effort.size else None)
        if topic == 'heartbeat':
            level = message.level
            values = {pair.key: pair.value for pair in message.values}
            code = level[0] if isinstance(level, bytes) else int(level)
            return message.name, (code, message.message, values)
        if topic == 'reference/path':
            return np.array([_position(p.pose.position) for p in message.poses]).reshape(-1, 3)
        return None

    def _joints(self, topic: str) -> tuple[str, ...]:
        return self._names if topic.startswith('configuration/') else self.rig.actuator_names

    def _values(self, joints: Any, topic: str) -> Array | None:
        position = np.asarray(joints.position, dtype=float)
        if tuple(joints.name) != tuple(self._joints(topic)):
            self._unlike.setdefault(topic, tuple(joints.name))
            return None
        return position if np.isfinite(position).all() else None


def _node(name: str, health: _Health | None, time_s: float) -> NodeHealth:
    if health is None or time_s - health.time_s > _SILENT_S:
        return NodeHealth(name, 2, 'silent')
    return NodeHealth(name, health.level, health.message)


def _position(point: Any) -> Array:
    return np.array([point.x, point.y, point.z])


def _stamp_ns(header: Any) -> int:
    return int(header.stamp.sec) * 1_000_000_000 + int(header.stamp.nanosec)
