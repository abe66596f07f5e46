"""
Factory of the controller's side: loops, estimator, supervisor and gates of a rig.

The arm's side is `arm_assembly`: plant, drivers, sensors, emulated devices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from softarm_ros.control.command_gate import CommandGate
from softarm_ros.control.controller import Controller
from softarm_ros.control.estimator import Estimator, Surroundings
from softarm_ros.control.feedback_watch import FeedbackWatch
from softarm_ros.control.goals.plan import Planner, PlannerPort
from softarm_ros.control.goals.smoothed import windows_of
from softarm_ros.control.inverse_kinematics import InverseKinematics
from softarm_ros.control.measurement_frame import FramePairing
from softarm_ros.control.pressure_watch import PressureWatch
from softarm_ros.control.pretension import Pretension
from softarm_ros.control.reach import REACH_TOLERANCE_M, Reach
from softarm_ros.control.supervisor import Supervisor
from softarm_ros.control.tracker import Tracker
from softarm_ros.control.trajectory import Trajectory
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.sightings import Place
from softarm_ros.models.arm_model import ArmModel, ModelError, Posture
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.part_choice import chosen_part
from softarm_ros.rigs.part_registry import built_part
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.swung_mass import swung_mass_kg
from softarm_ros.rigs.task_file import load_task
from softarm_ros.rigs.trajectory_file import resolve_trajectory
from softarm_ros.runtime.control_loop import ControlLoop
from softarm_ros.runtime.goal_loop import GoalLoop
from softarm_ros.runtime.inline_planner import InlinePlanner
from softarm_ros.runtime.loop import Loop
from softarm_ros.runtime.part_failure import FailureWords
from softarm_ros.runtime.path_reach import path_reach, reaches_path
from softarm_ros.runtime.points_along import points_along
from softarm_ros.runtime.pose_intake import PoseIntake
from softarm_ros.runtime.task_loop import TaskLoop
from softarm_ros.runtime.task_plan import plan_stages

_SECTIONS_WAIT = 0.3  # share of a control period that a tip waits for the sections of its frame


class TrajectoryError(ValueError):
    """A trajectory with no point within reach of this arm."""


def build_trajectory(rig: Rig, trajectory: str | None, laps: int | None = None) -> Trajectory:
    """Return the timed reference of a named trajectory, a file, or the rig's default."""
    return Trajectory(
        resolve_trajectory(rig, trajectory),
        max_acceleration=rig.tracker.max_acceleration_m_s2,
        max_jerk=rig.tracker.max_jerk_m_s3,
        laps=laps,
    )


def describe_reach(reach: Reach) -> str | None:
    """Return one line about the points out of reach, or None if all are reachable."""
    missed = int(np.sum(~reach.reachable))
    if missed == 0:
        return None
    point, miss, nearest = reach.worst()
    return (
        f'{missed} of {len(reach.points)} points of the path are out of reach '
        f'(tolerance {1e3 * REACH_TOLERANCE_M:g} mm); worst: {np.round(point, 4).tolist()} m, '
        f'{1e3 * miss:.1f} mm beyond the nearest reachable {np.round(nearest, 4).tolist()} m'
    )


def build_pretension(rig: Rig, *, open_loop: bool = False) -> Pretension:
    """Return the pretension of the cables; none in open loop, as in the paper."""
    wanted = 0.0 if open_loop else rig.tracker.pretension_m
    return Pretension.of_length(wanted, rig.actuator_limits())


def build_tracker(
    rig: Rig, model: ArmModel, *, name: str | None = None, open_loop: bool = False
) -> Tracker:
    """Return the tracker of an arm, with the controller that moves its command."""
    part, config = chosen_part('controller', rig.tracker)
    return Tracker(
        model,
        built_part(
            part,
            part.builder('controller')(config, model),
            'velocity',
            'reset',
            'on_outcome',
            like=Controller,
        ),
        rig.actuator_limits(),
        rig.configuration_limits(),
        build_pretension(rig, open_loop=open_loop),
        rig.memory(name),
    )


def plan_trajectory(
    rig: Rig,
    trajectory: str | None,
    *,
    model: str | None = None,
    open_loop: bool = False,
    laps: int | None = None,
) -> tuple[Tracker, Trajectory]:
    """
    Return the tracker and the timed reference of a trajectory that another process drives.

    Raises
    ------
    TrajectoryError
        If no point of the trajectory is within reach.

    """
    tracker = build_tracker(rig, rig.model(model), name=model, open_loop=open_loop)
    reference = build_trajectory(rig, trajectory, laps)
    if not reaches_path(tracker, reference.path):
        reach = path_reach(rig, tracker, reference.path, model=model, open_loop=open_loop)
        raise _outside(rig, trajectory, reach)
    return tracker, reference


def build_control_loop(
    rig: Rig,
    trajectory: str | None,
    *,
    model: str | None = None,
    open_loop: bool = False,
    laps: int | None = None,
) -> ControlLoop:
    """
    Return the control loop of a rig.

    Raises
    ------
    TrajectoryError
        If no point of the trajectory is within reach.

    """
    tracker = build_tracker(rig, rig.model(model), name=model, open_loop=open_loop)
    reference = build_trajectory(rig, trajectory, laps)
    reach = path_reach(rig, tracker, reference.path, model=model, open_loop=open_loop)
    if not np.any(reach.reachable):
        raise _outside(rig, trajectory, reach)
    return ControlLoop(tracker, reference, reach, rig.tracker, open_loop=open_loop)


def _outside(rig: Rig, trajectory: str | None, reach: Reach) -> TrajectoryError:
    return TrajectoryError(
        f'trajectory {trajectory or rig.default_trajectory!r} lies outside the workspace: '
        f'{describe_reach(reach)}'
    )


def build_task_loop(
    rig: Rig, task: str, *, model: str | None = None, open_loop: bool = False
) -> TaskLoop:
    """
    Return the control loop of a task, by name or file.

    Raises
    ------
    RigError
        With every problem of the task file.
    TaskError
        If this arm cannot do a step; the message names the step.

    """
    config = load_task(task)
    tracker = build_tracker(rig, rig.model(model), name=model, open_loop=open_loop)
    stages = plan_stages(rig, tracker.model, config, tracker.room)
    return TaskLoop(tracker, stages, rig.tracker, open_loop=open_loop)


def goal_speed_m_s(rig: Rig) -> float:
    """Return the speed [m/s] of the tip on its way to live goals."""
    stated = rig.tracker.goal_speed_m_s
    return rig.trajectories[rig.default_trajectory].speed if stated is None else stated


def build_planner(rig: Rig, tracker: Tracker) -> Planner:
    """Return the planner that turns goals into courses of the arm's configuration."""
    return Planner(
        tracker.model,
        tracker.room,
        tracker.configuration_limits,
        windows_of(goal_speed_m_s(rig), rig.tracker),
        1.0 / rig.tracker.rate_hz,
    )


def build_goal_loop(
    rig: Rig,
    *,
    model: str | None = None,
    open_loop: bool = False,
    planner: PlannerPort | None = None,
) -> GoalLoop:
    """Return the control loop that waits for goals; by default it plans within its cycle."""
    tracker = build_tracker(rig, rig.model(model), name=model, open_loop=open_loop)
    return GoalLoop(
        tracker,
        InlinePlanner(build_planner(rig, tracker)) if planner is None else planner,
        rig.tracker,
        speed_m_s=goal_speed_m_s(rig),
        max_error_m=rig.supervisor.feedback_watch.max_tracking_error_m,
        open_loop=open_loop,
    )


def build_loop(
    rig: Rig,
    trajectory: str | None,
    *,
    task: str | None = None,
    model: str | None = None,
    open_loop: bool = False,
    laps: int | None = None,
) -> Loop:
    """Return the control loop of a task, or of a trajectory if no task is given."""
    if task is not None:
        return build_task_loop(rig, task, model=model, open_loop=open_loop)
    return build_control_loop(rig, trajectory, model=model, open_loop=open_loop, laps=laps)


def build_inverse_kinematics(
    rig: Rig, model: str | None = None, *, pretension: bool = True
) -> InverseKinematics:
    """Return the configuration -> actuator command stage of a rig, with or without pretension."""
    return InverseKinematics(
        rig.model(model),
        rig.configuration_limits(),
        build_pretension(rig, open_loop=not pretension),
        1.0 / rig.tracker.rate_hz,
    )


def build_supervisor(
    rig: Rig,
    required_nodes: Sequence[str],
    *,
    feedback_required: bool = True,
    strict: bool = True,
    real_time: bool = True,
) -> Supervisor:
    """Return the supervisor; with `strict`, lateness is a fault, as for a run with devices."""
    return Supervisor(
        rig.supervisor,
        rig.actuator_limits(),
        required_nodes,
        feedback_required=feedback_required,
        strict=strict,
        permit_timeout_s=permit_timeout_s(rig, real_time=real_time),
        bridge_s=bridge_s(rig),
    )


def bridge_s(rig: Rig) -> float:
    """Return how long [s] the rig's estimator drives the arm without a measured pose."""
    _, config = chosen_part('estimator', rig.estimator)
    return float(getattr(config, 'bridge_s', 0.0))


def build_estimator(
    rig: Rig, model: ArmModel, places: Mapping[str, Place] | None = None
) -> Estimator:
    """Return the estimator of a rig; `places`: bodies and points other than section tips."""
    part, config = chosen_part('estimator', rig.estimator)
    around = Surroundings(
        rig.supervisor.feedback_watch.response_s,
        rig.feedback.rate_hz,
        rig.feedback.position_noise_m,
        places,
        rig.gravity_m_s2,
        0.0 if rig.gripper is None else rig.gripper.centre_m,
        swung_mass_kg(rig, model),
    )
    try:
        built: Estimator = built_part(
            part,
            part.builder('estimator')(config, model, around),
            *('observe', 'estimate', 'command', 'actuated', 'pace', 'reset', 'predicts'),
            like=Estimator,
        )
    except ModelError as error:
        raise RigError(
            '', f'estimator {rig.estimator.kind!r} of rig {rig.name!r}: {error}'
        ) from error
    return built


def build_pose_intake(rig: Rig, model: ArmModel, *, time_scale: float = 1.0) -> PoseIntake:
    """Return the intake that turns measured poses into pose samples for the control loop."""
    watch = rig.supervisor.feedback_watch
    return PoseIntake(
        FeedbackWatch(watch, rig.base_frames, time_scale=time_scale),
        FramePairing(
            _SECTIONS_WAIT / rig.tracker.rate_hz,
            rig.supervisor.feedback_timeout_s,
            watch.sections_timeout_s,
        ),
        build_estimator(rig, model, points_along(rig)),
    )


def build_feedback_watch(
    rig: Rig, model: str | None = None, *, time_scale: float = 1.0
) -> FeedbackWatch:
    """
    Return the supervisor's watch, which compares measured poses with the controller's model.

    Its limits hold for the rig's default model; with another model, poses are not compared.
    """
    arm = rig.model() if rig.model_name(model) == rig.default_model else None

    posture: Posture | None = None
    words = FailureWords()

    def tip_of(configuration: Array) -> Array:
        nonlocal posture
        assert arm is not None
        try:
            posture = arm.posture_of(configuration, posture)
            return posture.tip
        except ModelError:
            raise
        except Exception as error:  # models of other packages may raise anything
            raise RuntimeError(words.of(error)) from error

    return FeedbackWatch(
        rig.supervisor.feedback_watch,
        rig.base_frames,
        None if arm is None else tip_of,
        # Also loads compiled code now, rather than in motion.
        rest_tip=None if arm is None else tip_of(arm.rest_configuration),
        time_scale=time_scale,
    )


def build_pressure_watch(rig: Rig) -> PressureWatch | None:
    """Return the supervisor's watch over chamber pressures, or None if the rig has none."""
    config = rig.supervisor.pressure_watch
    return None if config is None else PressureWatch(config, rig.actuator_names)


def permit_timeout_s(rig: Rig, *, real_time: bool) -> float:
    """
    Return how long [wall s] drivers and tracker wait for a permit of the supervisor.

    Off real time, the plant waits for its commands, so no arm moves unwatched: a permit is late
    only if the supervisor's process has died.
    """
    watch = rig.supervisor
    return watch.permit_timeout_s if real_time else watch.heartbeat_timeout_s


def build_command_gate(rig: Rig, *, real_time: bool = True) -> CommandGate:
    """Return the watchdog on the driver's side."""
    return CommandGate(
        rig.actuator_limits(),
        rig.supervisor.command_timeout_s,
        permit_timeout_s(rig, real_time=real_time),
    )
