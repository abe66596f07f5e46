"""Feeds a viewer with the newest data of a running graph, at the viewer's own pace."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseArray, PoseStamped
from nav_msgs.msg import Path
from sensor_msgs.msg import JointState

from softarm_ros.geometry.arrays import Array
from softarm_ros.nodes import conversions
from softarm_ros.nodes.conversions import Health
from softarm_ros.nodes.goal_intake import STATUS
from softarm_ros.nodes.graph_listener import ONLOOKERS, GraphListener
from softarm_ros.nodes.qos import LATCHED, REPORTS, listening, newest
from softarm_ros.nodes.wire import (
    JointValues,
    StampedPoses,
    listen,
    read_joints,
    read_pose,
    read_poses,
    read_status,
)
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.view_state import NO_SUPERVISOR, NodeHealth, ViewState, latency_ms

# Queued messages between two looks; a slow viewer loses the oldest ones.
_DEPTH = 50
_REMEMBERED = 100  # tips and references, until both of the same stamp have arrived
SUPERVISOR, TRACKER = 'supervisor', 'tracker'
_SILENT_S = 1.0
_SERVICES = tuple(f'{SUPERVISOR}/{asked}' for asked in ('estop', 'stop', 'start', 'reset'))


class ViewFeed(GraphListener):
    """
    Listens to one arm for a viewer, which asks for the state as often as it draws.

    Subscriptions are best effort, so a slow or stopped viewer does not delay other nodes.
    """

    def __init__(self, rig: Rig) -> None:
        super().__init__('viewer', f'/{rig.name}', services=_SERVICES)
        self._names = rig.model().configuration_names
        self._actuators = rig.actuator_names
        self._base_frames = rig.base_frames
        self._live = False
        self._forget()
        self.path: Array | None = None
        queue = listening(depth=_DEPTH)
        joints: tuple[tuple[str, Callable[[Any, int], None]], ...] = (
            ('configuration/state', self._on_configuration),
            ('configuration/command', self._on_configuration_command),
            ('actuators/state', self._on_state),
            ('actuators/command', self._on_command),
        )
        for topic, callback in joints:
            self.tap(JointState, read_joints, topic, queue, callback)
        self.tap(PoseStamped, read_pose, 'reference/pose', queue, self._on_reference)
        self.tap(PoseArray, read_poses, 'sections/poses', queue, self._on_sections)
        self.tap(PoseStamped, read_pose, rig.feedback.pose_topic, queue, self._on_tip)
        self.node.create_subscription(Path, 'reference/path', self._on_path, LATCHED)
        self._reports: list[str] = []
        listen(self.node, read_status, STATUS, self._on_report, newest(REPORTS))

    def _forget(self) -> None:
        """Forget the data of a graph that has ended; its successor may measure less."""
        self._measured: Array | None = None
        self._commanded: Array | None = None
        self._tips: dict[int, Array] = {}
        self._references: dict[int, Array] = {}
        self._command: Array | None = None
        self._position: Array | None = None
        self._effort: Array | None = None
        self._latency_ms: float | None = None
        self._command_ns = 0  # stamp of the newest command
        self._sections: Array | None = None
        for name in [known for known in self.health if not self.fresh(known, _SILENT_S)]:
            del self.health[name]

    def state(self) -> ViewState:
        """Return the newest state of the arm."""
        live = self.fresh(SUPERVISOR, _SILENT_S)
        if live and not self._live:
            self._forget()
        self._live = live
        configuration = self._commanded if self._measured is None else self._measured
        stamp_ns, tip = _newest(self._tips)
        return ViewState(
            time_s=1e-9 * max(stamp_ns, self._command_ns),
            configuration=configuration,
            measured=self._measured is not None,
            tip=tip,
            reference=_newest(self._references)[1],
            error_m=self._error_m(),
            command=self._command,
            position=self._position,
            effort=self._effort,
            sections=self._sections,
            latency_ms=self._latency_ms,
            state=self.value(SUPERVISOR, 'state') if live else self._unsupervised(),
            reason=self.value(SUPERVISOR, 'reason') if live else '',
            phase=self.value(TRACKER, 'phase'),
            lap=int(self.value(TRACKER, 'lap', '0')),
            counts=self.value(TRACKER, 'counts', 'lap'),
            progress=float(self.value(TRACKER, 'progress', '0')),
            goal=self.goal if self.value(TRACKER, 'takes_goals') == 'true' else None,
            nodes=tuple(
                NodeHealth(name, int(health.level), health.message)
                if self.fresh(name, _SILENT_S)
                else NodeHealth(name, 2, 'silent')
                for name, health in sorted(self.health.items())
            ),
        )

    def _unsupervised(self) -> str:
        """Return the state of a graph whose supervisor is silent; empty if there is no graph."""
        alive = any(self.fresh(name, _SILENT_S) for name in self.health.keys() - {*ONLOOKERS})
        return NO_SUPERVISOR if alive else ''

    @property
    def takes_goals(self) -> bool:
        """Whether the arm waits for goals, and may move."""
        heard = all(self.fresh(name, _SILENT_S) for name in (SUPERVISOR, TRACKER))
        allowed = heard and self.value(SUPERVISOR, 'state') == 'running'
        return allowed and self.value(TRACKER, 'takes_goals') == 'true'

    @property
    def goal(self) -> str:
        """The goal under way, as text; empty if there is none."""
        return self.value(TRACKER, 'goal')

    @property
    def commanded(self) -> Array | None:
        """The commanded configuration (dof,)."""
        return self._commanded

    def take_reports(self) -> list[str]:
        """Return the reports on goals since the last call."""
        reports, self._reports = self._reports, []
        return reports

    def _on_report(self, report: Health) -> None:
        self._reports.append(f'{report.values.get("state", "")}: {report.message}')

    def _on_configuration(self, values: JointValues, sent: int) -> None:
        self._measured = self._ordered(values, self._names)

    def _on_configuration_command(self, values: JointValues, sent: int) -> None:
        self._commanded = self._ordered(values, self._names)

    def _on_state(self, values: JointValues, sent: int) -> None:
        self._position = self._ordered(values, self._actuators)
        if values.effort.size == len(self._actuators):
            self._effort = values.effort

    def _on_command(self, values: JointValues, sent: int) -> None:
        self._command = self._ordered(values, self._actuators)
        self._command_ns = values.stamp_ns
        self._latency_ms = latency_ms(1e-6 * (sent - values.stamp_ns))

    def _on_reference(self, reference: StampedPoses, sent: int) -> None:
        _remember(self._references, reference)

    def _on_tip(self, tip: StampedPoses, sent: int) -> None:
        if self._drawn(tip):
            _remember(self._tips, tip)

    def _on_sections(self, poses: StampedPoses, sent: int) -> None:
        drawn = self._drawn(poses) and len(poses.rows)
        self._sections = poses.rows[:, :3] if drawn else None

    def _drawn(self, poses: StampedPoses) -> bool:
        """Return whether poses are finite and in the base frame; others are not drawn."""
        return poses.frame_id in self._base_frames and bool(np.isfinite(poses.rows[:, :3]).all())

    def _error_m(self) -> float | None:
        """Return the distance [m] between the newest tip and reference with the same stamp."""
        both = self._tips.keys() & self._references.keys()
        if not both:
            return None
        stamp_ns = max(both)
        return float(np.linalg.norm(self._tips[stamp_ns] - self._references[stamp_ns]))

    def _on_path(self, message: Path) -> None:
        self.path = conversions.path_points(message)

    def _ordered(self, values: JointValues, names: tuple[str, ...]) -> Array | None:
        """Return the positions if their names are exactly `names` and all are finite, or None."""
        with contextlib.suppress(ValueError):
            ordered = conversions.positions_of(values, names)
            if np.isfinite(ordered).all():
                return ordered
        return None


def _remember(by_stamp: dict[int, Array], pose: StampedPoses) -> None:
    by_stamp[pose.stamp_ns] = pose.rows[0, :3]
    while len(by_stamp) > _REMEMBERED:
        del by_stamp[next(iter(by_stamp))]


def _newest(by_stamp: dict[int, Array]) -> tuple[int, Array | None]:
    """Return the newest stamp [ns] and its position; 0 and None before the first."""
    return next(reversed(by_stamp.items()), (0, None))
