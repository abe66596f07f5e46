"""Node of the control loop: turns measured poses into configuration commands."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped, TwistStamped
from nav_msgs.msg import Path
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import FluidPressure, JointState, TimeReference

from softarm_ros.control.command_gate import silence, staleness
from softarm_ros.control.estimation.configuration_rate import configuration_rate
from softarm_ros.control.estimator import Health
from softarm_ros.control.goals.reference_history import ReferenceHistory
from softarm_ros.nodes import conversions
from softarm_ros.nodes.base_frame import BaseFrame
from softarm_ros.nodes.clocks import steady_clock
from softarm_ros.nodes.event_log import EventLog
from softarm_ros.nodes.heartbeat import Heartbeat
from softarm_ros.nodes.loop_parameters import declared_loop
from softarm_ros.nodes.node_parameters import declare_priority, declare_rig, declare_time_scale
from softarm_ros.nodes.other_nodes import refuse_twin
from softarm_ros.nodes.pacing import EARLY, LATE, control_tick
from softarm_ros.nodes.permit import RequestMemory, listen_to_permit
from softarm_ros.nodes.point_topic import listen_to_points
from softarm_ros.nodes.qos import (
    CYCLES,
    LATCHED,
    MEASUREMENT,
    VISUAL,
    command_deadline_s,
    command_qos,
    newest,
)
from softarm_ros.nodes.run_nodes import run_node
from softarm_ros.nodes.self_paced import SelfPaced
from softarm_ros.nodes.timing import DurationHistogram
from softarm_ros.nodes.wire import (
    JointValues,
    StampedPoses,
    joint_bytes,
    listen,
    position_bytes,
    pressure_bytes,
    read_joints,
    read_pose,
    read_poses,
    time_reference_bytes,
)
from softarm_ros.runtime.assembly import (
    bridge_s,
    build_pose_intake,
    describe_reach,
    permit_timeout_s,
)
from softarm_ros.runtime.cycle_count import CycleCount
from softarm_ros.runtime.cycle_source import cycle_source
from softarm_ros.runtime.events import Event
from softarm_ros.runtime.goal_loop import GoalLoop
from softarm_ros.runtime.loop import CycleOutput, Phase, PoseSample
from softarm_ros.runtime.permitted_loop import PermittedLoop

if TYPE_CHECKING:
    from softarm_ros.nodes.goal_topics import GoalTopics

PATH_POINTS = 400
# Shares of the loop's rate: slower feedback than the first cannot pace the loop; with feedback
# faster than the second, some poses trigger no cycle.
PACING_RATE, FASTER = 0.8, 1.25


class TrackerNode(SelfPaced, Node):
    """Runs a control loop: one cycle per measured pose, or by the clock if no pose arrives."""

    def __init__(self, **options: Any) -> None:
        super().__init__('tracker', **options)
        refuse_twin(self)
        self.rig = declare_rig(self)
        self._time_scale = declare_time_scale(self)
        declare_priority(self)
        self.loop, self._planner = declared_loop(self, self.rig)
        self._motion = PermittedLoop(self.loop)
        self._period = self.loop.period_s
        self._pose_paced = (
            not self.loop.open_loop
            and self.rig.feedback.rate_hz >= PACING_RATE * self.loop.config.rate_hz
        )
        # If poses are faster than cycles, some of them wait for the next cycle.
        faster = self.rig.feedback.rate_hz > FASTER * self.loop.config.rate_hz
        self._early = EARLY * self._period if faster else 0.0
        self._simulated = bool(self.get_parameter('use_sim_time').value)
        self._clock_ns = 0
        self._tick = -1
        self._wait = self._period * (LATE if self._pose_paced else 1.0)
        self.due = float('inf') if self._simulated else 0.0
        self._intake = build_pose_intake(self.rig, self.loop.model, time_scale=self._time_scale)
        self._base = BaseFrame(self, self.rig.base_frames, self._intake.watch.max_ahead_s)
        self._refused, self._tell_refusal_s = 0, -np.inf
        self._told_unused = False  # that sections are not used
        self._last_cycle: int | None = None
        self._actuators_ns = self._poses_ns = 0  # when the last state and pose arrived
        self._references = ReferenceHistory()
        self._estimates_ns: int | None = None  # when the estimator last gave an estimate
        self._permit_time = -np.inf
        self._permit_timeout_s = permit_timeout_s(self.rig, real_time=self._time_scale == 1.0)
        # The supervisor waits for poses as long.
        self._pose_timeout_s = bridge_s(self.rig) + self.rig.supervisor.feedback_timeout_s
        self._cycles = CycleCount(self._period)
        self._compute, self._latency = DurationHistogram(), DurationHistogram()
        self._output: CycleOutput | None = None
        self._phase: tuple[str, int] = (Phase.IDLE.value, 0)
        self._phase_since = 0.0
        self._events = EventLog()
        self._health = Health.OK
        self._connect()
        reach = describe_reach(self.loop.reach)
        if reach is not None:
            self._tell(Event(self._now_s(), 'warning', 'tracker', reach))
        self._heartbeat.ok(f'tracking with {self.loop.model.name}')

    def _connect(self) -> None:
        deadline = command_deadline_s(self.rig, self._time_scale)
        self._command = self.create_publisher(
            JointState, 'configuration/command', command_qos(deadline)
        )
        self._state = self.create_publisher(JointState, 'configuration/state', MEASUREMENT)
        self._tip = self.create_publisher(PoseWithCovarianceStamped, 'state/tip', MEASUREMENT)
        self._twist = self.create_publisher(TwistStamped, 'state/twist', MEASUREMENT)
        self._reference = self.create_publisher(PoseStamped, 'reference/pose', VISUAL)
        self._path = self.create_publisher(Path, 'reference/path', LATCHED)
        self._gripper = (
            self.create_publisher(FluidPressure, 'gripper/command', VISUAL)
            if self.rig.gripper is not None
            else None
        )
        self._heartbeat = Heartbeat(self, self.rig.name, fill=self._values)
        # The time of each cycle and its inputs: a replay cannot infer them from the commands.
        self._cycle_time = self.create_publisher(TimeReference, 'tracker/cycle', CYCLES)
        self._publish_path()
        listen(self, read_pose, self.rig.feedback.pose_topic, self._on_pose, MEASUREMENT)
        listen(self, read_poses, 'sections/poses', self._on_sections, MEASUREMENT)
        listen(self, read_joints, 'actuators/state', self._on_actuators, MEASUREMENT)
        listen_to_points(self, self.rig, self._intake, self._now_s, self._motion.refusing)
        listen_to_permit(self, self._on_permit)
        self._memory = RequestMemory(self)
        self._goals: GoalTopics | None = None
        if isinstance(self.loop, GoalLoop):
            from softarm_ros.nodes.goal_topics import GoalTopics  # imports messages only it needs

            self._goals = GoalTopics(self, self.rig, self.loop, self._base)
        if self._simulated:
            self.create_subscription(Clock, '/clock', self._on_clock, newest(VISUAL))
        self.create_timer(0.05, self._watch_others, clock=steady_clock())

    def _publish_path(self) -> None:
        stamp = self.get_clock().now().to_msg()
        path = conversions.path_message(self.loop.path(PATH_POINTS), stamp, self.rig.base_frame)
        self._path.publish(path)

    def close(self) -> None:
        """Stop the action server and the planner process."""
        if self._goals is not None:
            self._goals.close()
        if self._planner is not None:
            self._planner.close()

    # -- pacing: by poses or the wall clock; off real time, by the control periods of /clock

    def work(self) -> None:
        """Run a cycle: no pose has triggered it in time, or the pose's sections are missing."""
        self._cycle()

    def _on_clock(self, message: Clock) -> None:
        self._clock_ns = conversions.nanoseconds_of(message.clock)
        tick = control_tick(self._clock_ns, round(1e9 * self._period))
        if tick != self._tick:
            self._tick = tick
            self._cycle()

    def _cycle_on_pose(self) -> None:
        """Run a cycle if a pose is ready, or schedule it for when the pose stops waiting."""
        if self._simulated or not self._pose_paced or self._since_cycle() < self._early:
            return
        frames, now = self._intake.frames, self._now_s()
        if frames.ready(now):
            self._cycle()
        elif np.isfinite(frames.ready_at_s()):
            self.due = min(self.due, time.monotonic() + max(frames.ready_at_s() - now, 0.0))

    def _now_ns(self) -> int:
        """Return ROS time [ns]."""
        return self._clock_ns if self._simulated else time.time_ns()

    def _pacing_ns(self) -> int:
        """Return the time [ns] that paces cycles: simulated, or the monotonic clock."""
        return self._clock_ns if self._simulated else time.monotonic_ns()

    def _since_cycle(self) -> float:
        if self._last_cycle is None:
            return float('inf')
        return 1e-9 * float(self._pacing_ns() - self._last_cycle)

    def _now_s(self) -> float:
        return 1e-9 * float(self._now_ns())

    # -- inputs

    def _on_pose(self, tip: StampedPoses) -> None:
        refusal = self._intake.on_tip(self._now_s(), tip.stamp_ns, *self._base.tip_of(tip))
        if refusal is None:
            self._poses_ns = self._pacing_ns()
            self._cycle_on_pose()
            return
        self._refused += 1
        if time.monotonic() >= self._tell_refusal_s:  # the text differs from pose to pose
            self._tell_refusal_s = time.monotonic() + 1.0
            why = '; '.join(filter(None, (refusal, self._base.unused, 'not used')))
            self._tell(Event(self._now_s(), 'error', 'tracker', why))

    def _on_sections(self, sections: StampedPoses) -> None:
        # Sections in a wrong frame, or not finite, need no report: that of their tip is enough.
        with contextlib.suppress(ValueError):
            measured = self._base.sections_of(sections)
            if self._intake.on_sections(self._now_s(), sections.stamp_ns, *measured) is None:
                self._cycle_on_pose()

    def _on_actuators(self, state: JointValues) -> None:
        with contextlib.suppress(ValueError):  # the supervisor reports invalid messages
            position = conversions.positions_of(state, self.loop.limits.names)
            self._actuators_ns = self._pacing_ns()
            with self._motion.refusing(self._now_s()):
                self._motion.on_actuators(position)
                self._intake.on_actuators(self._now_s(), self.loop.tracker.measured(position))

    def _on_permit(self, allowed: bool) -> None:
        self._permit_time = time.monotonic()
        if allowed != self._motion.allowed:
            with self._motion.refusing(self._now_s()):
                self._motion.follow(allowed, self._now_s())

    def _watch_others(self) -> None:
        """Stand still without a supervisor; report once sections that can never be used."""
        unused = self._intake.frames.unused_sections()
        if unused is not None and not self._told_unused:
            self._told_unused = True
            self._tell(Event(self._now_s(), 'warning', 'tracker', unused))
        silent = time.monotonic() - self._permit_time
        if self._motion.allowed and silent > self._permit_timeout_s:
            self._tell(
                Event(
                    self._now_s(),
                    'error',
                    'tracker',
                    f'supervisor silent for {1e3 * silent:.0f} ms; standing still',
                )
            )
            with self._motion.refusing(self._now_s()):
                self._motion.follow(allowed=False, now_s=self._now_s())

    # -- the cycle

    def _cycle(self) -> None:
        gap = self._since_cycle()
        self._last_cycle = self._pacing_ns()
        self._schedule()
        now = self._now_ns()
        went_on = not self._motion.refusal
        pose: PoseSample | None = None
        stamp_ns, pace = now, 0.0
        estimator = self._intake.estimator
        with self._motion.refusing(1e-9 * now):
            pose, stamp_ns = self._sample(now)
            pace = self._intake.pace(1e-9 * now)
        if pose is not None:
            self._estimates_ns = self._pacing_ns()
        # A command carries the time stamp of the pose it was computed from.
        answers_ns = stamp_ns if not self.loop.open_loop else now
        self.loop.pace = 0.0 if self._stale() else float(pace)
        began = time.perf_counter()
        output = self._motion.cycle(1e-9 * now, pose)
        self._compute.add(1e3 * (time.perf_counter() - began))
        with self._motion.refusing(1e-9 * now):
            estimator.command(1e-9 * now, self.loop.tracker.posture)
        self._command.publish(
            joint_bytes(self.loop.model.configuration_names, answers_ns, output.configuration)
        )
        if self._cycle_time.get_subscription_count() > 0:
            knew = cycle_source(self._motion.allowed, pose, self.loop.pace)
            self._cycle_time.publish(time_reference_bytes(answers_ns, now, knew))
        if self._gripper is not None and output.gripper_pressure_Pa is not None:
            self._gripper.publish(
                pressure_bytes(answers_ns, 'gripper', output.gripper_pressure_Pa)
            )
        # The estimate of an estimator that predicts, and so its reference, are of a later time.
        reference = output.reference_position if pose is None else output.matched_reference
        self._references.add(1e-9 * now if pose is None else pose.stamp_s, reference)
        then = self._references.at(1e-9 * stamp_ns)
        reference = reference if then is None else then
        self._reference.publish(position_bytes(stamp_ns, self.rig.base_frame, reference))
        self._count(gap, pose)
        self._after(output)
        if went_on and self._motion.refusal:  # send it to the supervisor at once
            self._tell(Event(self._now_s(), 'error', 'tracker', self._motion.refusal))

    def _schedule(self) -> None:
        """Set when the next cycle is due on the wall clock if no pose triggers it."""
        if self._simulated:
            return
        now = time.monotonic()
        # Without poses a late cycle does not delay the next ones.
        regular = self.due + self._wait if not self._pose_paced else 0.0
        self.due = regular if now < regular <= now + self._wait else now + self._wait

    def _sample(self, now_ns: int) -> tuple[PoseSample | None, int]:
        """Return the newest pose for the loop and its stamp [ns], or None and the time now."""
        # Poses that pace the loop have already waited for their sections.
        before = self._intake.newest
        taken = self._intake.take(1e-9 * now_ns, wait=not self._pose_paced)
        if self._intake.newest is not before:
            self._tell_estimate()
        if taken is None:
            return None, now_ns
        pose, stamp_ns = taken
        if pose.configuration is not None and self._state.get_subscription_count() > 0:
            predicts = self._intake.estimator.predicts
            of_ns = round(1e9 * pose.stamp_s) if predicts else stamp_ns
            model, estimate = self.loop.model, self._intake.newest
            rate = None if estimate is None else configuration_rate(model, estimate)
            self._state.publish(
                joint_bytes(
                    model.configuration_names,
                    of_ns,
                    pose.configuration,
                    velocity=() if rate is None else rate,
                )
            )
        return pose, stamp_ns

    def _tell_estimate(self) -> None:
        """Publish the estimated tip and its velocity; report when it is lost and found again."""
        estimate = self._intake.newest
        if estimate is None:
            return
        before, self._health = self._health, estimate.health
        if Health.LOST in (before, estimate.health) and before is not estimate.health:
            lost = estimate.health is Health.LOST
            text = f'the tip is lost: {estimate.reason}' if lost else 'the tip is found again'
            self._tell(Event(self._now_s(), 'warning' if lost else 'info', 'tracker', text))
        if self._tip.get_subscription_count() > 0:
            self._tip.publish(conversions.estimate_message(estimate, self.rig.base_frame))
        if self._twist.get_subscription_count() > 0:
            twist = conversions.twist_message(estimate, self.rig.base_frame)
            if twist is not None:
                self._twist.publish(twist)

    def _count(self, gap: float, measured: PoseSample | None) -> None:
        if not self._cycles.add(gap, self.loop.phase):
            return
        if np.isfinite(gap) and not self._simulated:
            self._heartbeat.late(gap - self._wait)
        newest = self._intake.newest
        if measured is not None and newest is not None:
            self._latency.add(1e3 * (self._now_s() - newest.measured_s))

    def _after(self, output: CycleOutput) -> None:
        self._output = output
        now = self._now_s()
        for event in output.events:
            self._tell(Event(now, event.level, event.source, event.message))
        if self._goals is not None:
            self._goals.publish()
            if self.loop.path_changed:
                self.loop.path_changed = False
                self._publish_path()
        phase = (output.phase.value, output.lap)
        if phase != self._phase:
            self._phase, self._phase_since = phase, now
            self._heartbeat.publish(diagnostics=False)

    # -- reports

    def _tell(self, event: Event) -> None:
        if not self._events.add(event):
            return
        logger = self.get_logger()
        if event.level == 'info':
            logger.info(event.message)
        else:
            logger.warning(event.message)
        self._heartbeat.publish()

    def _not_ready(self) -> str:
        """Return which input has never arrived, or ''; its sender may not know this node yet."""
        if self._motion.actuators is None:
            return 'no actuator state yet'
        if not self.loop.open_loop and self._intake.frames.counts.handed_out == 0:
            return 'no pose yet'
        if not self.loop.open_loop and self._estimates_ns is None:
            return f'no estimate yet of estimator {type(self._intake.estimator).__name__}'
        return ''

    def _unheard(self) -> str:
        """
        Return which input no longer arrives: permit, actuator states or poses; or ''.

        A start would then jump from an old posture, or follow an old pose.
        """
        if (silent_s := time.monotonic() - self._permit_time) > self._permit_timeout_s:
            return silence(silent_s, self._permit_timeout_s)
        return self._stale()

    def _stale(self) -> str:
        """
        Return which of actuator states, poses and estimates no longer arrive here, or ''.

        The supervisor may still receive them. An old pose leads a moving arm off its path.
        """
        if self._not_ready():
            return ''
        kinds = [('actuator state', self._actuators_ns, self.rig.supervisor.state_timeout_s)]
        if not self.loop.open_loop:
            kinds.append(('pose', self._poses_ns, self._pose_timeout_s))
            if self._estimates_ns is not None:
                kinds.append(('estimate', self._estimates_ns, self._pose_timeout_s))
        ages = [(kind, 1e-9 * (self._pacing_ns() - at), limit) for kind, at, limit in kinds]
        return next((staleness(*aged) for aged in ages if aged[1] > aged[2]), '')

    def _values(self) -> dict[str, str]:
        output = self._output
        not_ready = self._motion.refusal or self._not_ready() or self._motion.displaced()
        values = {
            'ready': str(not not_ready).lower(),
            'not_ready': not_ready,
            'unheard': self._unheard(),
            **self._memory.values(),
            'phase': self._phase[0],
            'lap': str(self._phase[1]),
            'counts': self.loop.counts,
            'phase_since_s': f'{self._phase_since:.6f}',
            'takes_goals': str(self._goals is not None).lower(),
            'goal': self.loop.goal_state if isinstance(self.loop, GoalLoop) else '',
            'goal_stamps_ns': '' if self._goals is None else self._goals.under_way,
            'progress': f'{output.progress:.4f}' if output else '0',
            'error_mm': f'{1e3 * output.error_m:.3f}' if output else 'nan',
            'cycles': str(self._cycles.cycles),
            'missed': str(self._cycles.missed),
            'compute_ms': self._compute.text(),
            'latency_ms': self._latency.text(),
            'refused_poses': str(self._refused),
            'frames': self._intake.frames.counts.text(),
            'estimate': self._health.value,
            **conversions.innovation_values(self._intake.newest),
            **conversions.load_values(self._intake.newest),
            'sections': self._intake.frames.problem() or '',
        }
        return values | self._events.values()


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run_node(TrackerNode, 'tracker', args)


if __name__ == '__main__':
    sys.exit(main())
