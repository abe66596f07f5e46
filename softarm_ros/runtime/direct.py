"""The in-process runner: control loop and plant in lockstep, without topics and without ROS."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.models.arm_model import ArmModel, ModelError
from softarm_ros.plant.errors import PlantError
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.arm_assembly import build_plant, machine_facts
from softarm_ros.runtime.assembly import bridge_s, build_loop, build_pose_intake, describe_reach
from softarm_ros.runtime.events import Event
from softarm_ros.runtime.loop import CycleOutput, Loop, Phase
from softarm_ros.runtime.part_failure import FAILURES, failure_text, no_bug, refuses_or_fails
from softarm_ros.runtime.pose_intake import PoseIntake, measure
from softarm_ros.runtime.run_record import LoopTiming, RunInfo, RunRecord, SampleLog
from softarm_ros.runtime.true_tips import TrueTips

if TYPE_CHECKING:
    from softarm_ros.plant.actuator_state import ActuatorState
    from softarm_ros.plant.plant import Plant

# An estimator without poses lets nothing move; no simulated sensor recovers after so long.
_STANDS_S = 60.0
_PROBE_N = 1e-6

Progress = Callable[[CycleOutput], None]


def run_direct(
    rig: Rig,
    trajectory: str | None = None,
    *,
    task: str | None = None,
    model: str | None = None,
    open_loop: bool = False,
    laps: int | None = None,
    seed: int = 0,
    plant: Plant | None = None,
    progress: Progress | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> RunRecord:
    """
    Run a trajectory, or a task if one is given, with control and plant in one process.

    With a task, `trajectory` and `laps` have no effect. Exactly repeatable for a seed. `plant`
    replaces the rig's own (tests, parameter studies); the record then states no machine.
    There is no supervisor: an event says where one would have held the arm, because the tip was
    too far from its reference or poses were missing for too long. The run ends early and keeps
    its samples if the model refuses a motion, a part fails or answers nonsense, an actuator
    reports a value that is not finite, or the arm buckles.

    Raises
    ------
    RigError
        For an unknown trajectory, task or model, or a rig without a plant.
    TrajectoryError
        If no point of the trajectory is within reach.
    TaskError
        If this arm cannot do a step of the task.
    ValueError
        If `laps` is not a whole number from 1 to 1000, or the seed none from 0.

    """
    loop = build_loop(rig, trajectory, task=task, model=model, open_loop=open_loop, laps=laps)
    body = build_plant(rig, seed) if plant is None else plant
    gripping = body.gripping
    log = SampleLog(len(loop.model.configuration_names), len(loop.limits.names))
    events = _reach_events(loop)
    compute_ms: list[float] = []
    truth, seen_s = TrueTips(), list[float]()
    origin = body.time_s
    most_m = rig.supervisor.feedback_watch.max_tracking_error_m
    intake = build_pose_intake(rig, loop.model)
    loop.start(origin)
    completed = failed = False
    off_track = unseen = open_loop  # in open loop the measured tip is not checked
    stood_s = 0.0  # since when the estimator lets nothing move
    poses, pose_s, longest_s = 0, origin, bridge_s(rig) + rig.supervisor.feedback_timeout_s
    try:
        while not should_stop():
            now = body.time_s
            measure(body, intake, now)
            truth.add(body.poll_true_tips())
            taken = intake.take(now)
            pose = None if taken is None else taken[0]
            loop.pace = intake.pace(now)
            stood_s = stood_s + loop.period_s if loop.pace == 0.0 else 0.0
            if stood_s > _STANDS_S:
                events.append(Event(now - origin, 'error', 'tracker', _lost(intake)))
                failed = True
                break
            began = time.perf_counter()
            output = loop.cycle(now, pose)
            compute_ms.append(1e3 * (time.perf_counter() - began))
            intake.estimator.command(now, loop.tracker.posture)
            command = loop.limits.check(output.actuation)  # no gate stands before the plant
            events.extend(output.events)
            if not off_track and output.phase is Phase.TRACK and output.error_m > most_m:
                off_track = True
                text = _off_track(rig, loop.model, output.error_m)
                events.append(Event(now - origin, 'warning', 'run', text))
            if pose is not None and intake.frames.counts.handed_out != poses:
                poses, pose_s = intake.frames.counts.handed_out, now
            if not unseen and now - pose_s > longest_s + 1e-9:
                unseen = True
                late_ms, limit_ms = 1e3 * (now - pose_s), 1e3 * longest_s
                text = f'no pose for {late_ms:.0f} ms (limit {limit_ms:.0f} ms)'
                text += ': its supervisor would hold the arm here; the run goes on without poses'
                events.append(Event(now - origin, 'warning', 'run', text))
            state = finite_state(body)
            intake.on_actuators(now, loop.tracker.measured(state.position))
            seen_s.append(now if pose is None else pose.stamp_s)
            log.add(
                now - origin,
                output.phase.value,
                output.lap,
                output.matched_reference,
                pose.position if pose is not None else np.full(3, np.nan),
                output.configuration,
                command,
                state.position,
                state.effort,
            )
            if progress is not None:
                progress(output)
            if output.gripper_pressure_Pa is not None and gripping is not None:
                gripping.command_gripper(output.gripper_pressure_Pa)
            if output.phase is Phase.DONE:
                completed = True
                break
            body.step(command, loop.period_s)
    except FAILURES as error:
        if not refuses_or_fails(error):
            raise  # a bug of this package
        source = 'plant' if isinstance(error, PlantError) else 'tracker'
        events.append(Event(body.time_s - origin, 'error', source, failure_text(error)))
        failed = True
    if not completed:
        body.hold()
        if not failed:
            events.append(Event(body.time_s - origin, 'warning', 'run', 'stopped before the end'))
    return RunRecord(
        RunInfo(
            rig=rig.name,
            backend='sim',
            model=loop.model.name,
            controller=loop.config.kind,
            trajectory='' if task else trajectory or rig.default_trajectory,
            open_loop=open_loop,
            seed=seed,
            rate=0.0,
            direct=True,
            arm_length_m=loop.model.rest_length_m,
            actuator_names=loop.limits.names,
            actuator_unit=loop.limits.unit,
            configuration_names=loop.model.configuration_names,
            effort_unit=loop.limits.effort_unit,
            task=task,
            **(machine_facts(rig, seed) if plant is None else {}),
        ),
        log.finish(truth.at(np.array(seen_s))),
        LoopTiming(
            rate_hz=loop.config.rate_hz,
            cycles=len(compute_ms),
            missed=0,
            # No cycle at all: interrupted before the first one.
            compute_p50_ms=float(np.percentile(compute_ms, 50)) if compute_ms else None,
            compute_p99_ms=float(np.percentile(compute_ms, 99)) if compute_ms else None,
        ),
        tuple(events),
        body.time_s - origin,
        completed,
        loop.path(400),
    )


def _lost(intake: PoseIntake) -> str:
    """Say that an estimator has let nothing move for so long that the run would never end."""
    estimate = intake.newest
    why = '' if estimate is None or not estimate.reason else f': {estimate.reason}'
    return f'the tip has been lost for {_STANDS_S:g} s, and the arm stands{why}'


def finite_state(plant: Plant) -> ActuatorState:
    """Return the state of the actuators; raise PlantError if a value in it is not finite."""
    state = plant.actuator_state()
    for kind, values in (('position', state.position), ('effort', state.effort)):
        if not np.isfinite(values).all():
            drives = type(plant.drives).__name__
            raise PlantError(f'drives {drives}: actuator {kind} is not finite: {values.tolist()}')
    return state


def _reach_events(loop: Loop) -> list[Event]:
    line = describe_reach(loop.reach)
    return [] if line is None else [Event(0.0, 'warning', 'run', line)]


def _off_track(rig: Rig, model: ArmModel, error_m: float) -> str:
    """Describe a tip too far from its reference [m], and name the models that know weight."""
    limit = rig.supervisor.feedback_watch.max_tracking_error_m
    text = (
        f'tip {1e3 * error_m:.1f} mm from its reference, beyond supervisor.feedback_watch.'
        f'max_tracking_error_m = {limit:g}: its supervisor would hold the arm here'
    )
    if not any(rig.gravity_m_s2) or _bears_loads(model):
        return text
    others = ' and '.join(name for name in rig.model_names if _named_bears_loads(rig, name))
    return f'{text}; model {model.name} includes no weight' + (
        f', {others} do if the arm block states masses' if others else ''
    )


def _named_bears_loads(rig: Rig, name: str) -> bool:
    try:
        return _bears_loads(rig.model(name))
    except ModelError:  # this model knows weight: it refuses an arm that falls
        return True
    except FAILURES as error:
        if not no_bug(name, error):
            raise
        return False


def _bears_loads(model: ArmModel) -> bool:
    """Return whether a model accounts for loads at the tip, and thus for weight."""
    still = model.actuation_of(model.rest_configuration)
    try:
        model.forward(still, tip_force=(_PROBE_N, 0.0, 0.0))
    except ModelError:
        return False
    return True
