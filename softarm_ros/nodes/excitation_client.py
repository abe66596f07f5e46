"""Moves a running arm through an excitation with goals; records commands and measured poses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from geometry_msgs.msg import PoseArray, PoseStamped
from sensor_msgs.msg import JointState

from softarm_ros.control.excitation import Excitation
from softarm_ros.control.excited_rows import READ_S, ExcitationError, ExcitedRows, RowCollector
from softarm_ros.control.goals.goal import GoalState
from softarm_ros.control.supervisor import SafetyState
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import transforms_from_rows
from softarm_ros.nodes.goal_client import TRACKER, GoalClient
from softarm_ros.nodes.qos import listening
from softarm_ros.nodes.wire import JointValues, StampedPoses, read_joints, read_pose, read_poses
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import build_pretension
from softarm_ros.runtime.excite import INTERRUPTED
from softarm_ros.runtime.goal_loop import HELD
from softarm_ros.runtime.loop import Phase

_LOOK_S = 0.02
_ANSWER_S = 10.0  # until the arm reports a new goal
SUPERVISOR = 'supervisor'
_HEARD_S = 20.0  # longest wait for the supervisor's first heartbeat
# After this long without a heartbeat of the supervisor, the graph counts as ended. A busy computer
# delays this process by a second or more; other nodes watch the arm, and each goal ends by itself.
_SILENT_S = 5.0
_REASON_S = 0.3  # until the cause of a goal's end has been reported, too
_MOST_HOLDS = 5  # after which one place is given up
_DEPTH = 200  # messages between two looks


class ExcitationClient(GoalClient):
    """
    A goal client that records commands and poses while it leads the arm; see `run`.

    If sections are not measured, rows contain the tip only. Poses without an orientation or with
    NaN are left out.
    """

    def __init__(self, rig: Rig) -> None:
        super().__init__(rig, 'excitation')
        self._rig, self._pretension = rig, build_pretension(rig).amount
        self._told = 0  # number of reports when our last goal was reached
        self._collected = RowCollector()
        self._tips: list[StampedPoses] = []
        self._sections: list[StampedPoses] = []
        self._left_out = ''  # why the last unusable pose was left out
        queue = listening(depth=_DEPTH)
        self.tap(JointState, read_joints, 'actuators/command', queue, self._on_command)
        self.tap(PoseArray, read_poses, 'sections/poses', queue, self._on_sections)
        self.tap(PoseStamped, read_pose, rig.feedback.pose_topic, queue, self._on_tip)

    def run(
        self, plan: Excitation, stopped: Callable[[], bool], progress: Callable[[float], None]
    ) -> str:
        """
        Lead the arm through a plan; return why it ended early, or ''.

        In both cases `rows` has the recorded rows, and no goal is under way.
        """
        for _ in range(round(_HEARD_S / _LOOK_S)):
            if self.fresh(SUPERVISOR, _SILENT_S):
                break
            self._look(plan.at_rest)
        try:
            for i, place in enumerate(plan.places):
                why = self._go(place, float(plan.least_s[i]), plan.at_rest, stopped)
                if plan.read[i]:
                    why = why or self._stand(plan, stopped)
                why = why or self._led_away()
                if why:
                    return why
                if plan.at_rest and plan.read[i]:
                    self._keep_still(f'place {i}')
                progress((i + 1) / len(plan.places))
        except ExcitationError as error:
            self.call('goal/cancel', 2.0)
            return str(error)
        return '' if self.rows is not None else f'no pose was measured{self._left_out}'

    @property
    def rows(self) -> ExcitedRows | None:
        """The rows recorded so far."""
        return self._collected.rows

    def _go(self, place: Array, least_s: float, at_rest: bool, stopped: Callable[[], bool]) -> str:
        """Lead the arm to a place, again after a hold; return why it is not there, or ''."""
        held = f'goal {GoalState.CANCELLED.value}: {HELD}'
        for _ in range(_MOST_HOLDS):
            why = self._approach(place, least_s, at_rest, stopped)
            if why != held:
                return why
        return f'{held}, {_MOST_HOLDS} times on the way to one place'

    def _approach(
        self, place: Array, least_s: float, at_rest: bool, stopped: Callable[[], bool]
    ) -> str:
        stamp, waited = self.send.configuration(place, least_s), 0.0
        while True:
            self._look(at_rest)
            waited += _LOOK_S
            reports = self.of_stamp(stamp)
            if reports and reports[-1].values.get('final') == 'true':
                last = reports[-1]
                if last.values['state'] == GoalState.REACHED.value:
                    # Another client may have sent a goal within the same look.
                    self._told = self.reports.index(last) + 1
                    return ''
                self.spin(_REASON_S)
                while self._is_held() and not self._why_not(stopped):
                    self._look(at_rest)
                ending = f'goal {last.values["state"]}: {last.message}'
                return self._why_not(stopped) or ending
            why = self._why_not(stopped)
            if not why and not reports and waited > _ANSWER_S:
                why = f'no answer within {_ANSWER_S:g} s'
            if why:
                self.call('goal/cancel', 2.0)
                return why

    def _stand(self, plan: Excitation, stopped: Callable[[], bool]) -> str:
        """Let the arm stand for the dwell, and then for reading if poses are read at rest."""
        for duration_s, kept in ((plan.dwell_s, False), (READ_S if plan.at_rest else 0.0, True)):
            for _ in range(round(duration_s / _LOOK_S)):
                self._look(plan.at_rest, clear=not kept)
                why = self._why_not(stopped) or self._led_away()
                if why:
                    return why
        return ''

    def _why_not(self, stopped: Callable[[], bool]) -> str:
        if stopped():
            return INTERRUPTED
        if not self.fresh(SUPERVISOR, _SILENT_S):
            return 'the graph is gone'
        state = self.value(SUPERVISOR, 'state')
        going = state in (SafetyState.RUNNING.value, SafetyState.HELD.value)
        return '' if going else f'{state}: {self.value(SUPERVISOR, "reason")}'

    def _is_held(self) -> bool:
        """Return whether the arm is held, or the tracker does not know yet that it goes on."""
        held = self.value(SUPERVISOR, 'state') == SafetyState.HELD.value
        return held or self.value(TRACKER, 'phase') == Phase.HELD.value

    def _led_away(self) -> str:
        """Return which goal of another client was reported since ours was reached, or ''."""
        for report in self.reports[self._told :]:
            if report.values.get('state') != 'refused':
                goal = f'{report.values.get("kind", "")} {report.values.get("number", "")}'
                return f'somebody else leads the arm: goal {goal}'
        return ''

    def _look(self, at_rest: bool, *, clear: bool = True) -> None:
        """Take in messages; make rows of the poses, unless poses are read at rest only."""
        self.spin(_LOOK_S)
        if not at_rest:
            for time_s, frames in self._seen():
                if self._collected.due(time_s):
                    self._collected.on_the_way(time_s, frames)
        if clear:
            self._tips.clear()
            self._sections.clear()

    def _seen(self) -> list[tuple[float, Array]]:
        """Return times [s] and transforms (n, 4, 4) of complete poses: sections, or the tip."""
        sections = self._whole(self._sections, len(self._rig.section_names))
        return sections or self._whole(self._tips, 1)

    def _whole(self, measured: Sequence[StampedPoses], count: int) -> list[tuple[float, Array]]:
        found = []
        for poses in measured:
            try:
                frames = self._frames(poses)
            except ExcitationError:
                raise
            except ValueError as error:
                self._left_out = f' that could be used: {error}'
                continue
            if len(frames) == count:
                found.append((1e-9 * poses.stamp_ns, frames))
            else:
                self._left_out = f' that could be used: {len(frames)} poses, expected {count}'
        return found

    def _keep_still(self, where: str) -> None:
        seen, command = self._seen(), self._collected.newest_command
        if not seen or command is None:
            said = f'no pose was measured at {where}{self._left_out}'
            raise ExcitationError(f'{self._rig.name}: {said}')
        self._collected.at_rest(command, [frames for _, frames in seen])

    def _frames(self, poses: StampedPoses) -> Array:
        if poses.frame_id not in self._rig.base_frames:
            names = ' or '.join(repr(name) for name in self._rig.base_frames)
            raise ExcitationError(f'poses in frame {poses.frame_id!r}: expected {names}')
        return transforms_from_rows(np.ascontiguousarray(poses.rows))

    def _on_command(self, joints: JointValues, _: int) -> None:
        self._collected.command(1e-9 * joints.stamp_ns, joints.position - self._pretension)

    def _on_tip(self, poses: StampedPoses, _: int) -> None:
        self._tips.append(poses)

    def _on_sections(self, poses: StampedPoses, _: int) -> None:
        self._sections.append(poses)
