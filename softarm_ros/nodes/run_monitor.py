"""Observes a run from outside and collects its topics into the record of the run."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from numpy.typing import NDArray
from sensor_msgs.msg import JointState

from softarm_ros.geometry.arrays import Array
from softarm_ros.nodes import conversions
from softarm_ros.nodes.conversions import Health
from softarm_ros.nodes.graph_listener import GraphListener
from softarm_ros.nodes.pose_publisher import TRUE_TIP_TOPIC
from softarm_ros.nodes.qos import listening
from softarm_ros.nodes.wire import JointValues, StampedPoses, read_joints, read_pose
from softarm_ros.runtime.events import Event
from softarm_ros.runtime.run_record import LoopTiming, Samples
from softarm_ros.runtime.true_tips import TrueTips

QUEUE = 2000
KEPT_S = 3600.0
_BEFORE_NS = 1_000_000_000  # kept of the other topics before the first cycle that is kept
IDLE = 'idle'
RECORDER = 'recorder'
RECORDED = (
    'reference/pose',
    'configuration/command',
    'actuators/command',
    'actuators/state',
    'tracker/cycle',  # a replay needs it from the first motion on
)

# Messages are read in batches, twice a second: reading them one by one, between other work of the
# processor, takes several times as long. The queues hold them until then.
TAKE_S = 0.5

_Form = tuple[type, Callable[[bytes], Any]]  # message type and the function that reads it


class RunMonitor(GraphListener):
    """
    Listens to the topics of one arm; use it in a `with` block and call `spin` often.

    A row of the record is one control cycle: reference and measured tip with the same time stamp,
    and the commands in effect at that time. The latency uses the middleware's time of sending, so
    it does not depend on when this process reads the message.

    Only cycles of the last `kept_s` [s] are kept: a cycle takes two kilobytes, and a run may last
    for days.
    """

    def __init__(
        self,
        namespace: str,
        configuration_names: Sequence[str],
        actuator_names: Sequence[str],
        *,
        pose_topic: str,
        simulated_time: bool,
        kept_s: float = KEPT_S,
    ) -> None:
        super().__init__(
            'run_monitor',
            namespace,
            simulated_time=simulated_time,
            services=['supervisor/start', 'supervisor/stop'],
        )
        self._dof, self._actuators = len(configuration_names), len(actuator_names)
        self._simulated = simulated_time
        self._events: dict[tuple[str, int], Event] = {}
        self._phases: list[tuple[float, str, int]] = []
        self._kept_ns = round(kept_s * 1e9)
        self.forgets = False
        self._references: deque[tuple[int, Array]] = deque()
        self._tips: dict[int, Array] = {}
        self._truth = TrueTips()
        self._configurations: dict[int, Array] = {}
        self._commands: dict[int, Array] = {}
        self._states: deque[tuple[int, Array, Array]] = deque()
        self._pose_sent: dict[int, int] = {}
        self._command_sent: dict[int, int] = {}
        self._recorded = (*RECORDED, pose_topic)
        self._take_at_s = 0.0
        self._subscribe(pose_topic)

    def _subscribe(self, pose_topic: str) -> None:
        # Best effort: confirming messages costs both sides as much as sending them.
        queue = listening(depth=QUEUE)
        poses, joints = (PoseStamped, read_pose), (JointState, read_joints)
        heard: list[tuple[_Form, str, Callable[[Any, int], None]]] = [
            (poses, 'reference/pose', self._on_reference),
            (joints, 'configuration/command', self._on_configuration),
            (joints, 'actuators/state', self._on_state),
            (poses, pose_topic, self._on_tip),
            (poses, TRUE_TIP_TOPIC, self._on_true_tip),
            (joints, 'actuators/command', self._on_command),
        ]
        for (kind, read), topic, callback in heard:
            self.tap(kind, read, topic, queue, callback)

    # -- during the run

    def take_in(self) -> None:
        """Empty the taps as `GraphListener` does, but only twice a second."""
        if time.monotonic() >= self._take_at_s:
            self._take_at_s = time.monotonic() + TAKE_S
            super().take_in()
            self._forget()

    def close(self) -> None:
        """Empty the taps a last time, then close as `GraphListener` does."""
        self._take_in_now()
        super().close()

    def _take_in_now(self) -> None:
        if not self._closed:
            super().take_in()

    def _forget(self) -> None:
        """Drop what is older than the cycles to keep."""
        if not self._references:
            return
        newest = self._references[-1][0]
        first, last = newest - self._kept_ns, newest + self._kept_ns
        while self._references[0][0] < first:
            self._references.popleft()
            self.forgets = True
        first -= _BEFORE_NS
        while self._states and self._states[0][0] < first:
            self._states.popleft()
        self._truth.forget_before(1e-9 * first)
        by_stamp: tuple[dict[int, Any], ...] = (
            self._tips,
            self._configurations,
            self._commands,
            self._pose_sent,
            self._command_sent,
        )
        for values in by_stamp:
            while not first <= (oldest := next(iter(values), first)) <= last:
                del values[oldest]

    def hears_all(self, names: Sequence[str]) -> bool:
        """
        Return whether this process has heard all named nodes and all topics of the record.

        A recorder among the nodes must have heard the topics, too.
        """
        topics = (self._references, self._configurations, self._states, self._tips, self._commands)
        if not all(topics):
            self._take_in_now()
        if not all(topics) or not all(name in self.health for name in names):
            return False
        if RECORDER not in names:
            return True
        heard = set(self.value(RECORDER, 'heard').split())
        return {self.node.resolve_topic_name(topic) for topic in self._recorded} <= heard

    def on_health(self, health: Health) -> None:
        """Collect the events and phases in a heartbeat."""
        for number, event in conversions.events_of(health.values).items():
            self._events[health.name, number] = event
        since_s = conversions.number_of(health.values, 'phase_since_s')
        lap = conversions.number_of(health.values, 'lap')
        if np.isfinite(since_s) and np.isfinite(lap):
            entry = (since_s, health.values.get('phase', IDLE), int(lap))
            if not self._phases or entry != self._phases[-1]:
                self._phases.append(entry)

    def _on_reference(self, reference: StampedPoses, sent: int) -> None:
        self._references.append((reference.stamp_ns, reference.rows[0, :3]))

    # Messages of a wrong size, from a foreign node, are not part of the record.

    def _on_configuration(self, command: JointValues, sent: int) -> None:
        if command.position.size == self._dof:
            self._configurations[command.stamp_ns] = command.position

    def _on_state(self, state: JointValues, sent: int) -> None:
        if state.position.size != self._actuators:
            return
        nothing = np.full(self._actuators, np.nan)  # if no effort is measured
        effort = state.effort if state.effort.size == self._actuators else nothing
        self._states.append((state.stamp_ns, state.position, effort))

    def _on_tip(self, tip: StampedPoses, sent: int) -> None:
        self._tips[tip.stamp_ns] = tip.rows[0, :3]
        self._pose_sent[tip.stamp_ns] = sent

    def _on_true_tip(self, tip: StampedPoses, sent: int) -> None:
        self._truth.add([(1e-9 * tip.stamp_ns, tip.rows[0, :3])])

    def _on_command(self, command: JointValues, sent: int) -> None:
        if command.position.size != self._actuators:
            return
        self._commands[command.stamp_ns] = command.position
        self._command_sent[command.stamp_ns] = sent

    # -- after the run

    def origin_s(self) -> float:
        """Return the ROS time [s] at which the motion began (now, if it has not begun)."""
        for since, phase, _ in self._phases:
            if phase != IDLE:
                return since
        return self.now_s()

    def events(self) -> list[Event]:
        """Return the events of all nodes in order of time [s], from the start of the motion."""
        origin = self.origin_s()
        told = [
            Event(max(e.time_s - origin, 0.0), e.level, e.source, e.message)
            for e in self._events.values()
        ]
        return sorted(told, key=lambda e: e.time_s)

    def samples(self) -> Samples:
        """Return all cycles since the start of the motion."""
        self._take_in_now()
        origin = self.origin_s()
        first = round(origin * 1e9)
        rows = [(s, r) for s, r in sorted(self._references, key=lambda x: x[0]) if s >= first]
        stamps = np.array([s for s, _ in rows], dtype=np.int64)
        changes = np.array([since for since, _, _ in self._phases])
        index = np.searchsorted(changes, 1e-9 * stamps, side='right') - 1
        index = np.clip(index, 0, None)
        phases = [self._phases[i] for i in index] if self._phases else []
        position, effort = self._states_at(stamps)
        return Samples(
            np.asarray(1e-9 * (stamps - first), dtype=np.float64),
            np.array([phase for _, phase, _ in phases], dtype=np.str_),
            np.array([lap for _, _, lap in phases], dtype=np.int64),
            np.array([r for _, r in rows]).reshape(-1, 3),
            _exactly(self._tips, stamps, 3),
            _latest(self._configurations, stamps, self._dof),
            _latest(self._commands, stamps, self._actuators),
            position,
            effort,
            self._truth.at(np.asarray(1e-9 * stamps, dtype=np.float64)),
        )

    def timing(self, rate_hz: float) -> LoopTiming:
        """
        Return the loop's timing; the latency is None off real time and without poses.

        The latency is the time from the stamp of a pose to the sending of the actuator command
        with the same stamp.
        """
        latency = self._intervals({stamp: stamp for stamp in self._pose_sent})
        usable = len(latency) > 0 and not self._simulated
        p50, p99 = np.percentile(latency, [50, 99]).tolist() if usable else (None, None)
        compute = self.value('tracker', 'compute_ms').split()
        return LoopTiming(
            rate_hz=rate_hz,
            cycles=int(self.value('tracker', 'cycles', '0')),
            missed=int(self.value('tracker', 'missed', '0')),
            holds=int(self.value('supervisor', 'holds', '0')),
            latency_p50_ms=p50,
            latency_p99_ms=p99,
            compute_p50_ms=float(compute[0]) if compute else None,
            compute_p99_ms=float(compute[1]) if compute else None,
        )

    def _intervals(self, since: dict[int, int]) -> Array:
        """Return times (n,) [ms] from `since[stamp]` to the sending of that stamp's command."""
        begun = self.origin_s() * 1e9
        both = [s for s in self._command_sent if s in since and s >= begun]
        return np.array([1e-6 * (self._command_sent[s] - since[s]) for s in both])

    def _states_at(self, stamps: NDArray[np.int64]) -> tuple[Array, Array]:
        width = self._actuators
        if not self._states or len(stamps) == 0:
            empty = np.full((len(stamps), width), np.nan)
            return empty, empty.copy()
        times = np.array([s for s, _, _ in self._states])
        last = np.clip(np.searchsorted(times, stamps, side='right') - 1, 0, None)
        position = np.array([p for _, p, _ in self._states]).reshape(-1, width)
        effort = np.array([e for _, _, e in self._states]).reshape(-1, width)
        return position[last], effort[last]


def _exactly(by_stamp: dict[int, Array], stamps: NDArray[np.int64], width: int) -> Array:
    """Return the values (n, width) at each stamp, NaN for stamps without a value."""
    nothing = np.full(width, np.nan)
    return np.array([by_stamp.get(int(s), nothing) for s in stamps]).reshape(-1, width)


def _latest(by_stamp: dict[int, Array], stamps: NDArray[np.int64], width: int) -> Array:
    """Return the values (n, width) in effect at each stamp, NaN before the first."""
    times = np.array(sorted(by_stamp), dtype=np.int64)
    index = np.searchsorted(times, stamps, side='right') - 1
    nothing = np.full(width, np.nan)
    return np.array([by_stamp[int(times[i])] if i >= 0 else nothing for i in index]).reshape(
        -1, width
    )
