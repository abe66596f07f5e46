"""
Computations for the experiments of Chen et al. 2022 on the simulated hydraulic arm.

The paper's own model (coupled arm and water, parameters of set B) is compared with the rig's
plant, the same kind of arm with other parameters, friction and a tilted base. As in the paper, the
plant's motors are torque-controlled and its chambers have no preload.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from softarm_reproduction.hydraulic_motions import Experiment as Motion
from softarm_reproduction.hydraulic_motions import experiments as paper_motions
from softarm_reproduction.hydraulic_motions import simulate_coupled
from softarm_ros.drivers.pressure_loop import PressureLoopConfig
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.dynamics.tangents import equilibrium
from softarm_ros.models.hydraulics.identified_arm import (
    HANGING_M_S2,
    LIMIT_PRESSURE_PA,
    SET_B,
    build_body,
    build_hydraulic_arm,
    rest_pose,
)
from softarm_ros.models.hydraulics.statics import HydraulicStatics
from softarm_ros.models.parts import HydraulicStaticsSettings
from softarm_ros.plant.hydraulic.hydraulic_plant import HydraulicPlant
from softarm_ros.rigs.arms.hydraulic import HydraulicArm
from softarm_ros.rigs.part_choice import chosen_part
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.arm_assembly import build_plant
from softarm_ros.runtime.direct import run_direct
from softarm_ros.runtime.run_record import RunRecord

MODEL_STEP_S = 0.002
SAMPLE_S = 0.02
RAMP_S = 2.0  # ramp time of the torques of the static poses
REST_S = 3.0
TORQUES_N_M = (0.5, 1.0, 1.5, 2.0)


def torque_controlled(rig: Rig) -> Rig:
    """Return the rig without pressure loop and preload, as in the paper."""
    return rig.with_arm(pressure_loop=PressureLoopConfig(gain=0.0), preload_Pa=0.0)


# -- 3.1: one section -------------------------------------------------------------------------


@dataclass(frozen=True)
class Workspace:
    """
    Tips (k, 3) [m] of one hanging section under a grid of pressures.

    `lost` counts the pressures for which no stable equilibrium was found.
    """

    tips: Array
    lost: int

    @property
    def extent_m(self) -> Array:
        """Return the size (3,) [m] of the bounding box of the tips."""
        return np.asarray(np.ptp(self.tips, axis=0))


def sweep_workspace(levels: int = 11, segments: int = 5) -> Workspace:
    """Return the tips of one section for `levels` pressures from 0 to 1 MPa in each chamber."""
    drive = build_body(SET_B[segments], 1)
    arm, loads = drive.arm, drive.arm.loads(HANGING_M_S2)
    tips, lost, guess = [], 0, None
    steps = np.linspace(0.0, LIMIT_PRESSURE_PA, levels)
    for k, (first, second) in enumerate(product(range(levels), repeat=2)):
        # Back and forth along the third chamber, so each solution starts from a neighbour's.
        for third in range(levels) if k % 2 == 0 else reversed(range(levels)):
            pressures = steps[[first, second, third]]
            rest = equilibrium(arm, loads._replace(drive=drive.drive(pressures)), guess)
            if not (rest.converged and rest.stable):
                lost, guess = lost + 1, None
                continue
            guess = rest.strains
            tips.append(arm.node_poses(rest.strains)[-1, :3, 3])
    return Workspace(np.array(tips), lost)


@dataclass(frozen=True)
class LimitPose:
    """Length [m], angle [deg] and radius [m] of one section at 1 MPa, ours and the paper's."""

    actuators: str
    length_m: float
    angle_deg: float
    paper_length_m: float
    paper_angle_deg: float
    paper_radius_m: float

    @property
    def radius_m(self) -> float:
        """Return the radius of the arc [m]."""
        return self.length_m / float(np.radians(self.angle_deg))


def limit_poses(segments: int = 5) -> list[LimitPose]:
    """Return the two limit poses of section 3.1."""
    drive = build_body(SET_B[segments], 1)
    found = []
    for name, on, *paper in (
        ('2 and 3', (0.0, 1.0, 1.0), 0.401, 165.7, 0.139),
        ('1', (1.0, 0.0, 0.0), 0.473, 168.0, 0.136),
    ):
        pose = rest_pose(drive, LIMIT_PRESSURE_PA * np.array(on))
        angle = abs(float(np.degrees(pose.angles[0])))
        found.append(LimitPose(name, float(pose.lengths[0]), angle, *paper))
    return found


# -- 4.2: at rest -----------------------------------------------------------------------------


@dataclass(frozen=True)
class StaticPose:
    """
    The arm at rest with a torque on one actuator.

    Attributes
    ----------
    actuator : int
        Number of the actuator from 1, as in the paper.
    torque_N_m : float
        Torque of its motor [N m].
    plant, model : (k, 3)
        Centrelines of the simulated arm and of the controller's model [m].
    sectional_m : (2,)
        Distance of the model's section tips from those of the plant [m].
    first_order_m : (2,)
        The same for the paper's n = 1.

    """

    actuator: int
    torque_N_m: float
    plant: Array
    model: Array
    sectional_m: Array
    first_order_m: Array


def static_poses(rig: Rig, seed: int, points: int = 41) -> list[StaticPose]:
    """Return the poses of section 4.2: torques of 0.5 to 2 N m on actuator 1 or 4 alone."""
    bare = torque_controlled(rig)
    model, coarse = bare.model(), coarse_statics(bare)
    ratio = np.array([a.torque_per_pressure_N_m_Pa for a in HydraulicArm.of(rig).actuators])
    found = []
    for actuator, torque in product((1, 4), TORQUES_N_M):
        command = np.zeros(len(HydraulicArm.of(rig).actuators))
        command[actuator - 1] = torque / ratio[actuator - 1]
        plant = build_plant(bare, seed)
        for k in range(round((RAMP_S + REST_S) / SAMPLE_S)):
            share = min((k + 1) * SAMPLE_S / RAMP_S, 1.0)
            plant.step(share * command, SAMPLE_S)
        tips = plant.true_section_tips()[:, :3, 3]
        shape = model.forward(command)
        rough = coarse.forward(command).section_tips[:, :3, 3]
        found.append(
            StaticPose(
                actuator,
                torque,
                plant.true_centerline(points),
                shape.centerline(points),
                np.linalg.norm(shape.section_tips[:, :3, 3] - tips, axis=1),
                np.linalg.norm(rough - tips, axis=1),
            )
        )
    return found


def segments_per_section(rig: Rig) -> int:
    """Return the number of segments per section in the rig's statics model."""
    _, settings = chosen_part('model', rig.chosen_model)
    assert isinstance(settings, HydraulicStaticsSettings)
    return settings.segments_per_section


def coarse_statics(rig: Rig) -> HydraulicStatics:
    """Return the statics with one segment per section and its own set B: the paper's n = 1."""
    values = SET_B[1]
    sections = [
        section.model_copy(
            update={
                'length_m': values.length_m,
                'bending_stiffness_N_m2': values.bending_stiffness_N_m2,
                'torsion_stiffness_N_m2': 2.0 / 3.0 * values.bending_stiffness_N_m2,
                'lever_factors': (values.excess, 1.0, 1.0),
            }
        )
        for section in HydraulicArm.of(rig).sections
    ]
    coarse = rig.with_arm(sections=tuple(sections)).with_model(segments_per_section=1)
    model = coarse.model('hydraulic_statics')
    assert isinstance(model, HydraulicStatics)
    return model


# -- 4.3: in motion ---------------------------------------------------------------------------


@dataclass(frozen=True)
class MotionError:
    """
    Section tips of a model and of the plant over time (eq. 37).

    Attributes
    ----------
    segments : int
        Segments per section of the model.
    time_s : (k,)
        Times [s].
    plant, model : (k, 2, 3)
        Section tips [m].

    """

    segments: int
    time_s: Array
    plant: Array
    model: Array

    @property
    def errors_m(self) -> Array:
        """Return the distances (k, 2) [m] between model and plant."""
        return np.asarray(np.linalg.norm(self.plant - self.model, axis=2))

    @property
    def sectional_m(self) -> float:
        """Return the largest distance [m] of any section at any time."""
        return float(self.errors_m.max())

    @property
    def cumulative_m(self) -> float:
        """Return the largest sum [m] of the sections' distances at any time."""
        return float(self.errors_m.sum(axis=1).max())


def motion_errors(
    rig: Rig, motion: Motion, seed: int, segments: Sequence[int] = (1, 5)
) -> list[MotionError]:
    """Return the errors of set B in a motion of the paper, for each number of segments."""
    plant = build_plant(torque_controlled(rig), seed)
    assert isinstance(plant, HydraulicPlant)
    times, tips = _plant_motion(plant, rig, motion)
    stride = round(SAMPLE_S / MODEL_STEP_S)
    found = []
    for count in segments:
        system = build_hydraulic_arm(SET_B[count])
        record = simulate_coupled(system, motion, MODEL_STEP_S)
        found.append(MotionError(count, times, tips, record.tips[stride - 1 :: stride]))
    return found


def _plant_motion(plant: HydraulicPlant, rig: Rig, motion: Motion) -> tuple[Array, Array]:
    ratio = np.array([a.torque_per_pressure_N_m_Pa for a in HydraulicArm.of(rig).actuators])
    times, tips = [], []
    for k in range(round(motion.duration_s / SAMPLE_S)):
        plant.step(motion.torques((k + 0.5) * SAMPLE_S) / ratio, SAMPLE_S)
        times.append((k + 1) * SAMPLE_S)
        tips.append(plant.true_section_tips()[:, :3, 3])
    return np.array(times), np.array(tips)


def motion(number: str) -> Motion:
    """Return the motion of a section of the paper: '3.2.1' to '3.2.3', '4.3.1' or '4.3.2'."""
    for found in paper_motions():
        if found.name.startswith(number):
            return found
    raise ModelError(f'no motion {number!r} is known')


# -- effects of weight, torsion and segments --------------------------------------------------


@dataclass(frozen=True)
class OpenLoopByModel:
    """Runs of one path with one model, in open and closed loop."""

    label: str
    opened: RunRecord
    closed: RunRecord


def compare_models(
    rig: Rig, path: str, seed: int, progress: Callable[[str], None]
) -> list[OpenLoopByModel]:
    """Drive a path with the rig's model, with one segment per section, and without weight."""
    coarse = coarse_statics(rig)
    variants = (
        (f'statics, n = {segments_per_section(rig)}', rig, 'hydraulic_statics'),
        (
            'statics, n = 1',
            rig.with_arm(sections=coarse.sections).with_model(segments_per_section=1),
            'hydraulic_statics',
        ),
        ('constant curvature, no weight', rig, 'constant_curvature'),
    )
    found = []
    for label, variant, name in variants:
        progress(f'{path}: {label}')
        runs = [
            run_direct(variant, path, model=name, open_loop=open_loop, laps=1, seed=seed)
            for open_loop in (True, False)
        ]
        found.append(OpenLoopByModel(label, *runs))
    return found
