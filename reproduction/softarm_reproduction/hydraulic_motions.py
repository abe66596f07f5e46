"""Motions of Chen et al. 2022 on the hydraulic arm: torques, simulations and settling."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.simulation import ArmIntegrator
from softarm_ros.models.dynamics.tangents import equilibrium
from softarm_ros.models.hydraulics.arm import HydraulicArm
from softarm_ros.models.hydraulics.config import HydraulicAxisConfig
from softarm_ros.models.hydraulics.identified_arm import HANGING_M_S2 as HANGING
from softarm_ros.models.hydraulics.identified_arm import (
    ArmSet,
    build_body,
    build_hydraulic_arm,
)

Torques = Callable[[float], Array]
SETTLED = 0.05
# First-order lag [s] that replaces the hydraulics if the arm is simulated alone.
LAG_S = 0.020
BLOWN_UP_PA = 1e8


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper: motor torques (6,) [N m] over time and reported result."""

    name: str
    torques: Torques
    starts_s: float
    ends_s: float
    duration_s: float
    reported: str


@dataclass(frozen=True)
class Record:
    """Times (k,), mean curvatures (k, 2) [1/m], tips (k, 2, 3) [m], pressures (k, 6) [Pa]."""

    time: Array
    curvature: Array
    tips: Array
    pressure: Array
    piston: Array


@dataclass(frozen=True)
class Settling:
    """
    Settling times after the last change of the command, overshoot and tip speed.

    A curvature has settled within 5 % of the larger final curvature, the tip of section 2 within
    5 % of its displacement. `overshoot` is the largest excursion of a curvature beyond its end
    value after the last change, relative to the larger end value; `tip_speed` is the largest tip
    speed of the run [m/s].
    """

    curvature_s: tuple[float, float]
    tip_s: float
    overshoot: float
    tip_speed: float


def on_motors(*which: int, torque_N_m: float = 1.5) -> Array:
    """Return the torques (6,) [N m] with the given motors on, numbered from 1."""
    torque = np.zeros(6)
    torque[[i - 1 for i in which]] = torque_N_m
    return torque


def _ramp(t: float, start: float, stop: float) -> float:
    return min(max((t - start) / (stop - start), 0.0), 1.0)


def experiments() -> list[Experiment]:
    """Return the simulations 3.2.1 to 3.2.3 and the experiments 4.3.1 and 4.3.2."""
    return [
        Experiment(
            '3.2.1 step, 1 5 6', lambda t: on_motors(1, 5, 6), 0.0, 0.0, 4.0, 'steady < 1 s'
        ),
        Experiment('3.2.2 step, 1 4', lambda t: on_motors(1, 4), 0.0, 0.0, 4.0, 'steady < 1.5 s'),
        Experiment(
            '3.2.3 ramps 5 6, 1',
            lambda t: on_motors(5, 6) * _ramp(t, 2, 3) + on_motors(1) * _ramp(t, 6, 7),
            6.0,
            7.0,
            10.0,
            'calmer',
        ),
        Experiment(
            '(3.2.3 as steps)',
            lambda t: on_motors(5, 6) * (t >= 2.0) + on_motors(1) * (t >= 6.0),
            6.0,
            6.0,
            10.0,
            '-',
        ),
        Experiment(
            '4.3.1 steps 4, 1',
            lambda t: on_motors(4) * (t >= 2.0) + on_motors(1) * (t >= 6.0),
            6.0,
            6.0,
            10.0,
            'pose at 10 s',
        ),
        Experiment(
            '4.3.2 ramps 4, 1',
            lambda t: on_motors(4) * _ramp(t, 2, 4) + on_motors(1) * _ramp(t, 6, 8),
            6.0,
            8.0,
            12.0,
            'less error',
        ),
    ]


def simulate_coupled(system: HydraulicArm, experiment: Experiment, dt_s: float) -> Record:
    """
    Return the coupled motion of arm and axes from the hanging equilibrium.

    Raises
    ------
    RuntimeError
        If a step does not converge.

    """
    loads = system.arm.loads(HANGING)
    state = system.rest_state(equilibrium(system.arm, loads).strains)
    rows = []
    for k in range(round(experiment.duration_s / dt_s)):
        torque = experiment.torques((k + 0.5) * dt_s)
        step = system.step(state, torque, dt_s, loads)
        if not step.converged:
            raise RuntimeError(f'{experiment.name} at {k * dt_s:.4f} s: {step.message}')
        state = step.state
        pressure = system.hydraulics.chamber_pressure(state.axes)
        piston = system.hydraulics.piston_position(state.axes)
        rows.append((state.strains, pressure, piston))
    return _record(system.arm, rows, dt_s)


def simulate_apart(values: ArmSet, experiment: Experiment, dt_s: float) -> Record:
    """
    Return the motion of the arm alone; pressures follow the torque with a 20 ms lag (order 1).

    Raises
    ------
    RuntimeError
        If a step does not converge.

    """
    drive = build_body(values)
    arm = drive.arm
    integrator = ArmIntegrator(arm, tolerance_m=1e-5)
    rest = equilibrium(arm, arm.loads(HANGING))
    state = integrator.start(arm.loads(HANGING), rest.strains)
    per_torque = HydraulicAxisConfig().pressure_per_torque_Pa_Nm
    pressure, keep = np.zeros(6), math.exp(-0.5 * dt_s / LAG_S)
    rows = []
    for k in range(round(experiment.duration_s / dt_s)):
        wanted = per_torque * experiment.torques((k + 0.5) * dt_s)
        middle = wanted + (pressure - wanted) * keep
        pressure = wanted + (middle - wanted) * keep
        loads = arm.loads(HANGING, drive=drive.drive(middle))
        step = integrator.advance(state, loads, dt_s)
        if not step.converged:
            raise RuntimeError(f'{experiment.name} at {k * dt_s:.4f} s: {step.message}')
        state = step.state
        rows.append((state.strains.copy(), pressure, np.zeros(6)))
    return _record(arm, rows, dt_s)


def _record(arm: ArmDynamics, rows: list[tuple[Array, Array, Array]], dt_s: float) -> Record:
    half = arm.segments // 2
    strains = np.array([row[0] for row in rows])
    bending = strains[:, :, 2]
    curvature = np.stack([bending[:, :half].mean(1), bending[:, half:].mean(1)], axis=1)
    tips = np.array([arm.node_poses(q)[[half, 2 * half], :3, 3] for q in strains])
    times = np.asarray(dt_s * np.arange(1.0, len(rows) + 1.0), dtype=np.float64)
    pressure = np.array([row[1] for row in rows])
    piston = np.array([row[2] for row in rows])
    return Record(times, curvature, tips, pressure, piston)


def settling(record: Record, experiment: Experiment) -> Settling:
    """Return settling times [s] counted from the end of the last change of the command."""
    start = int(np.searchsorted(record.time, experiment.starts_s + 1e-9))
    first = max(start - 1, 0)

    def last_outside(distance: Array, limit: float) -> float:
        outside = np.flatnonzero(distance > limit)
        if not len(outside):
            return 0.0
        return max(float(record.time[outside[-1]]) - experiment.ends_s, 0.0)

    final = record.curvature[-1]
    band = SETTLED * float(np.abs(final).max())
    bends = [last_outside(np.abs(record.curvature[:, i] - final[i]), band) for i in (0, 1)]
    tip = record.tips[:, 1]
    away = np.linalg.norm(tip - tip[-1], axis=1)
    moved = float(np.linalg.norm(tip[first] - tip[-1]))
    way = np.sign(final - record.curvature[first])
    rests = int(np.searchsorted(record.time, experiment.ends_s + 1e-9))
    beyond = float(((record.curvature[rests:] - final) * way).max())
    speed = np.linalg.norm(np.diff(tip, axis=0), axis=1).max() / (record.time[1] - record.time[0])
    return Settling(
        (bends[0], bends[1]),
        last_outside(away, SETTLED * moved),
        max(beyond, 0.0) / float(np.abs(final).max()),
        float(speed),
    )


def simulate_in_turn(values: ArmSet, experiment: Experiment, dt_s: float) -> Record | None:
    """
    Return the motion if arm and water are stepped alternately, or None if it diverges.

    This is the usual co-simulation: the axes use the chamber flow of the last arm step, the arm
    uses the pressures of the hydraulic step, and both inputs are held during the step.
    """
    system = build_hydraulic_arm(values)
    arm, hydraulics, drive = system.arm, system.hydraulics, system.drive
    integrator = ArmIntegrator(arm, tolerance_m=1e-5)
    state = integrator.start(arm.loads(HANGING), equilibrium(arm, arm.loads(HANGING)).strains)
    axes, rows = hydraulics.rest_state(), []
    for k in range(round(experiment.duration_s / dt_s)):
        torque = experiment.torques((k + 0.5) * dt_s)
        axes = hydraulics.step(axes, torque, dt_s, drive.volume_flow(state.rates)).state
        pressure = hydraulics.chamber_pressure(axes)
        if np.abs(pressure).max() > BLOWN_UP_PA:
            return None
        loads = arm.loads(HANGING, drive=drive.drive(pressure))
        advanced = integrator.advance(state, loads, dt_s)
        if not advanced.converged:
            return None
        state = advanced.state
        rows.append((state.strains.copy(), pressure, hydraulics.piston_position(axes)))
    return _record(arm, rows, dt_s)
