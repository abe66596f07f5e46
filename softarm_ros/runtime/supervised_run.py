"""Control loop, supervisor, command gate and plant in one process, on simulated time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from softarm_ros.control.feedback_watch import Extremes
from softarm_ros.control.supervisor import SafetyState
from softarm_ros.geometry.arrays import Array
from softarm_ros.runtime.arm_assembly import build_plant
from softarm_ros.runtime.assembly import (
    build_command_gate,
    build_feedback_watch,
    build_loop,
    build_pose_intake,
    build_pressure_watch,
    build_supervisor,
)
from softarm_ros.runtime.loop import CycleOutput, Loop, Phase
from softarm_ros.runtime.permitted_loop import PermittedLoop
from softarm_ros.runtime.pose_intake import measure

if TYPE_CHECKING:
    from softarm_ros.rigs.schema import Rig

_LOOK_S = 0.01  # between two updates of the supervisor, as in its node
_TRACKER = 'tracker'
WATCH, PRESSURES = 'feedback watch', 'pressures'


@dataclass(frozen=True)
class SupervisedRun:
    """
    Result of a supervised run; n updates of the supervisor, times in simulated seconds.

    Attributes
    ----------
    time_s : (n,)
        Time of each update.
    tip, reference : (n, 3)
        True tip and reference at that time [m].
    effort : (n, m)
        Efforts of the actuators, as reported.
    phase : (n,) of str
        Phase of the control loop.
    started_s, tracking_s : float or None
        When motion was allowed and when tracking began; None: never.
    faulted_s : float or None
        When the supervisor stopped the arm; None: it did not.
    reason : str
        Why it stopped the arm, or why the arm never started.
    extremes : Extremes
        How close the rules of the feedback watch came to their limits.
    pressure_error_Pa : float
        Largest pressure error of the pressure watch; 0 without one.
    completed : bool
        Whether the loop reached its end.

    """

    time_s: Array
    tip: Array
    reference: Array
    effort: Array
    phase: NDArray[np.str_]
    started_s: float | None
    tracking_s: float | None
    faulted_s: float | None
    reason: str
    extremes: Extremes
    pressure_error_Pa: float
    completed: bool


class SupervisedArm:
    """
    A rig run with the classes of its nodes, but without topics: one after the other.

    The supervisor updates every 10 ms, or every control period if that is shorter. The loop
    follows its permission as in the tracker node, and the plant follows the gate.
    """

    def __init__(
        self,
        rig: Rig,
        trajectory: str | None = None,
        *,
        task: str | None = None,
        laps: int | None = None,
        seed: int = 0,
        loop: Loop | None = None,
    ) -> None:
        self.loop = build_loop(rig, trajectory, task=task, laps=laps) if loop is None else loop
        self.plant = build_plant(rig, seed)
        self._gripping = self.plant.gripping
        self.supervisor = build_supervisor(rig, [_TRACKER])
        self.watch = build_feedback_watch(rig)
        self.pressure_watch = build_pressure_watch(rig)
        self._intake = build_pose_intake(rig, self.loop.model)
        self._gate = build_command_gate(rig)
        self.looks = max(1, math.ceil(self.loop.period_s / _LOOK_S - 1e-6))
        self._motion = PermittedLoop(self.loop)
        self.status = self.supervisor.update(self.plant.time_s)
        self.output: CycleOutput | None = None

    @property
    def now_s(self) -> float:
        """Simulated time [s]."""
        return self.plant.time_s

    def start(self) -> tuple[bool, str]:
        """Ask the supervisor to allow motion; return whether it does, and otherwise why not."""
        return self.supervisor.request_start(self.now_s)

    def cycle(self) -> CycleOutput:
        """Run one cycle of the loop on the latest measurements, at the same simulated time."""
        now = self.now_s
        taken = self._intake.take(now)
        self.loop.pace = self._intake.pace(now)
        output = self._motion.cycle(now, None if taken is None else taken[0])
        self._intake.estimator.command(now, self.loop.tracker.posture)
        self.output = output
        command = output.actuation
        self.watch.on_configuration(output.configuration)
        tracking = output.phase is Phase.TRACK
        self.watch.on_tracking_error(output.error_m if tracking else None)
        self.supervisor.on_command(now, command)
        self._gate.on_command(now, command)
        if self.pressure_watch is not None:
            self.pressure_watch.on_command(command)
        if output.gripper_pressure_Pa is not None and self._gripping is not None:
            self._gripping.command_gripper(output.gripper_pressure_Pa)
        return output

    def advance(self) -> None:
        """Advance the plant to the supervisor's next update, and update the supervisor."""
        command, _ = self._gate.target(self.now_s)
        self.plant.step(command, self.loop.period_s / self.looks)
        now = self.now_s
        for frame in measure(self.plant, self._intake, now):
            tip = frame.section_tips[-1, :3, 3]
            if self.watch.admit(now, frame.stamp_s, frame.frame_id or 'base', tip) is None:
                self.supervisor.on_feedback(now, tip)
        state = self.plant.actuator_state()
        self._motion.on_actuators(state.position)
        self._intake.on_actuators(now, self.loop.tracker.measured(state.position))
        self.supervisor.on_actuator_state(now, state.position, state.effort)
        self.supervisor.on_heartbeat(_TRACKER, now, self._motion.refusal)
        running = self.status.state is SafetyState.RUNNING
        if self.pressure_watch is not None:
            problem = self.pressure_watch.on_pressure(now, state.position, moving=running)
            self.supervisor.on_problem(PRESSURES, problem)
        moving = running and not (self.output is None or self.output.phase.stands)
        self.supervisor.on_problem(WATCH, self.watch.problem(now, moving=moving))
        self.supervisor.on_problem('sections', self._intake.frames.problem())
        self.status = self.supervisor.update(now)
        self._gate.on_permit(now, self.status.motion_allowed)
        self._motion.follow(self.status.motion_allowed, self.now_s)


def run_supervised(
    rig: Rig,
    trajectory: str | None = None,
    *,
    task: str | None = None,
    laps: int | None = None,
    seed: int = 0,
    start_s: float = 0.5,
    fault: str | None = None,
    fault_s: float = math.inf,
    until_s: float = math.inf,
    until_tracking_s: float | None = None,
    after_fault_s: float = 0.0,
    should_stop: Callable[[], bool] = lambda: False,
) -> SupervisedRun:
    """
    Drive a trajectory (or a task) under supervision; exactly repeatable for a seed.

    Parameters
    ----------
    rig, trajectory, task, laps, seed
        Same as in `run_direct`.
    start_s : float
        Time of the start request; at rest until then.
    fault, fault_s : str, float
        Fault to inject, for example `cameras freeze`, and its time.
    until_s : float
        Latest end of the run.
    until_tracking_s : float, optional
        Latest end, counted from the begin of tracking.
    after_fault_s : float
        How long the run goes on after the supervisor has stopped the arm.
    should_stop : callable
        Called every control period; True ends the run.

    Raises
    ------
    ValueError
        If the plant has no such fault.

    """
    arm = SupervisedArm(rig, trajectory, task=task, laps=laps, seed=seed)
    rows: list[tuple[float, Array, Array, Array, str]] = []
    started = tracking = faulted = None
    reason, broken, completed = '', False, False
    while arm.now_s < until_s and not should_stop():
        if fault is not None and not broken and arm.now_s >= fault_s - 1e-9:
            arm.plant.inject(fault)
            broken = True
        if started is None and arm.now_s >= start_s - 1e-9:
            may_move, reason = arm.start()
            if may_move:
                started, reason = arm.now_s, ''
        output = arm.cycle()
        if tracking is None and output.phase is Phase.TRACK:
            tracking = arm.now_s
            if until_tracking_s is not None:
                until_s = min(until_s, tracking + until_tracking_s)
        if output.phase is Phase.DONE:
            completed = True
            break
        for _ in range(arm.looks):
            arm.advance()
            rows.append(
                (
                    arm.now_s,
                    arm.plant.true_section_tips()[-1, :3, 3].copy(),
                    output.reference_position.copy(),
                    arm.plant.actuator_state().effort.copy(),
                    output.phase.value,
                )
            )
            if faulted is None and arm.status.state is SafetyState.FAULT:
                faulted, reason = arm.now_s, arm.status.reason
        if faulted is not None and arm.now_s >= faulted + after_fault_s:
            break
    times, tips, references, efforts, phases = zip(*rows)
    return SupervisedRun(
        np.array(times),
        np.array(tips),
        np.array(references),
        np.array(efforts),
        np.array(phases),
        started,
        tracking,
        faulted,
        reason,
        arm.watch.extremes,
        0.0 if arm.pressure_watch is None else arm.pressure_watch.largest_Pa,
        completed,
    )
