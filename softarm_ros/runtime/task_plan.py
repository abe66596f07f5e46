"""Turn the steps of a task file into stages of one arm, checked before anything moves."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.control.reach import REACH_TOLERANCE_M, nearest_within
from softarm_ros.control.task_config import TaskConfig, TaskStep
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel, SetByBends
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.task_loop import Stage


class TaskError(ValueError):
    """A step of a task that this arm cannot do; nothing has moved."""


def plan_stages(
    rig: Rig, model: ArmModel, task: TaskConfig, limits: ActuatorLimits
) -> tuple[Stage, ...]:
    """
    Return the stages of a task, with all actuator commands within `limits`.

    Raises
    ------
    TaskError
        Lists every step that cannot be done: out of reach, beyond a limit, no gripper.

    """
    stages, problems = [], []
    guess: Array | None = None
    for i, step in enumerate(task.steps):
        try:
            stage, guess = _stage(rig, model, task, step, guess, limits)
        except ValueError as error:
            problems.append(f'steps[{i}]: {error}')
        else:
            stages.append(stage)
    if problems:
        raise TaskError('\n'.join(problems))
    return tuple(stages)


def _stage(
    rig: Rig,
    model: ArmModel,
    task: TaskConfig,
    step: TaskStep,
    guess: Array | None,
    limits: ActuatorLimits,
) -> tuple[Stage, Array | None]:
    if step.position_m is not None:
        position = np.array(step.position_m)
        actuation = _reaching(model, position, guess, limits, rig.configuration_limits())
        label = 'tip to (' + ', '.join(f'{1e3 * x:.1f}' for x in position) + ') mm'
        speed = step.speed_m_s or task.speed_m_s
        return Stage(label, position=position, speed=speed), actuation
    if step.attitude_deg is not None:
        configuration = attitude_configuration(rig, model, step.attitude_deg)
        actuation = limits.check(model.actuation_of(configuration))
        label = 'attitude (' + ', '.join(f'{a:g}' for a in step.attitude_deg) + ') deg'
        stage = Stage(label, step.duration_s or 0.0, configuration=configuration)
        return stage, actuation
    if step.gripper is not None:
        if rig.gripper is None:
            raise ValueError(f'gripper = {step.gripper!r}: rig {rig.name!r} has no gripper')
        pressure = {
            'open': rig.gripper.open_pressure_Pa,
            'close': rig.gripper.close_pressure_Pa,
            'hold': None,
        }[step.gripper]
        duration = step.duration_s or rig.gripper.action_s
        return Stage(f'gripper: {step.gripper}', duration, gripper_pressure_Pa=pressure), guess
    dwell = step.dwell_s or 0.0
    return Stage(f'dwell for {dwell:g} s', dwell), guess


def _reaching(
    model: ArmModel,
    position: Array,
    guess: Array | None,
    limits: ActuatorLimits,
    configuration_limits: ConfigurationLimits,
) -> Array:
    solution = model.inverse(position, guess=guess)
    miss = float(np.linalg.norm(solution.shape.tip[:3, 3] - position))
    if miss > REACH_TOLERANCE_M:
        nearest = np.round(solution.shape.tip[:3, 3], 4).tolist()
        raise ValueError(
            f'position_m = {position.tolist()}: out of reach by {1e3 * miss:.1f} mm '
            f'(tolerance {1e3 * REACH_TOLERANCE_M:g} mm); nearest {nearest}'
        )
    try:
        return limits.check(solution.actuation)
    except ValueError:  # another command may reach the position within the limits
        starts = (None, solution.shape.configuration)
        found = nearest_within(model, limits, configuration_limits, position, starts)
        if found is None or found.miss_m > REACH_TOLERANCE_M:
            raise
        return model.actuation_of(found.configuration)


def attitude_configuration(rig: Rig, model: ArmModel, attitude_deg: tuple[float, ...]) -> Array:
    """
    Return the configuration (dof,) for phi and theta [deg] of every section.

    Raises
    ------
    ValueError
        If the arm's configuration does not consist of bending vectors, the number of angles is
        wrong, or a section would bend beyond its limit.

    """
    if isinstance(model, SetByBends):
        angles = list(_pairs(_counted(rig, attitude_deg, len(rig.section_names))))
        return model.of_bends(np.concatenate([_bend(phi, theta) for phi, theta in angles]))
    limits = rig.configuration_limits()
    pairs = limits.bends
    if len(pairs) == 0:
        raise ValueError(f'attitude_deg: sections of a {rig.kind} arm are not set by angles')
    configuration = model.rest_configuration.copy()
    for (phi, theta), pair, limit, name in zip(
        _pairs(_counted(rig, attitude_deg, len(pairs))),
        pairs,
        limits.max_bending_rad,
        rig.section_names,
    ):
        if abs(math.radians(theta)) > limit + 1e-12:
            raise ValueError(
                f'theta of {name} = {theta:g} deg; expected at most {math.degrees(limit):g} deg'
            )
        configuration[pair] = _bend(phi, theta)
    return configuration


def _counted(rig: Rig, attitude_deg: tuple[float, ...], sections: int) -> tuple[float, ...]:
    if len(attitude_deg) != 2 * sections:
        raise ValueError(
            f'attitude_deg has {len(attitude_deg)} angles; expected {2 * sections}: '
            f'phi and theta of {", ".join(rig.section_names)}'
        )
    return attitude_deg


def _bend(phi_deg: float, theta_deg: float) -> Array:
    """Return theta (cos phi, sin phi) (2,) [rad]."""
    phi = math.radians(phi_deg)
    return math.radians(theta_deg) * np.array([math.cos(phi), math.sin(phi)])


def _pairs(values: tuple[float, ...]) -> Iterator[tuple[float, float]]:
    yield from zip(values[::2], values[1::2])
