"""
The water-hydraulic arm of Chen et al. (Micromachines 2022, 13, 130): parameter set B, builders.

The paper's table of parameters is lost; none of these numbers are the authors'. Rest length,
bending stiffness and the excess of actuator 1 are identified so that one hanging section, gravity
along +z, takes the limit poses reported at 1 MPa: 0.401 m and 165.7 deg with actuators 2 and 3,
168 deg with actuator 1. The rest is assumed: bore 12 mm, pitch radius 30 mm, 0.5 % mean stretch
per chamber at 1 MPa, 0.35 kg and a radius of 45 mm per section (fabric, frames, bottom plate),
torsion of a round incompressible rod, G J = 2/3 E I. Body damping meets the reported settling
times.

The mass of a segment is at its top, as in the paper (n = 1), for any number of segments. The
centre of mass is then (n + 1) / (2 n) of the section's length from its base, so a parameter set
belongs to its number of segments.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import root

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.config import DynamicSectionConfig, diagonal4
from softarm_ros.models.dynamics.drive import Chamber, ChamberDrive
from softarm_ros.models.dynamics.tangents import equilibrium
from softarm_ros.models.hydraulics.arm import HydraulicArm
from softarm_ros.models.hydraulics.axes import WaterHydraulics
from softarm_ros.models.hydraulics.config import HydraulicAxisConfig

# z points down.
HANGING_M_S2 = (0.0, 0.0, 9.81)

MASS_KG = 0.35
RADIUS_M = 0.045
CHAMBER_AREA_M2 = 1.131e-4
PITCH_RADIUS_M = 0.030
AXIAL_STIFFNESS_N = 3.0 * 7540.0
AXIAL_DAMPER_N_S_M = 200.0

# Reported limit poses of one section: two actuators at 1 MPa, and one.
LIMIT_PRESSURE_PA = 1e6
TWO_ACTUATORS = (0.401, 165.7)  # m, deg
ONE_ACTUATOR_DEG = 168.0


@dataclass(frozen=True)
class ArmSet:
    """
    Parameters of one section; all sections are equal.

    Attributes
    ----------
    segments : int
        Segments per section, each with its mass at its top.
    length_m, bending_stiffness_N_m2 : float
        Rest length, and E I per rest length.
    excess : float
        Ratio of the lever of a section's first actuator to that of the others: the
        "non-axisymmetric" layout to which the paper attributes the difference between the two
        bending directions.
    drag_N_s_m, turning_drag_N_m_s : float
        Body damping d_v, d_w of a whole section.

    """

    segments: int
    length_m: float
    bending_stiffness_N_m2: float
    excess: float
    drag_N_s_m: float = 2.0
    turning_drag_N_m_s: float = 0.05


# For each number of segments per section, as `identify` finds them.
SET_B = {
    1: ArmSet(1, 0.3970246, 0.3968870, 1.0083395),
    5: ArmSet(5, 0.3970142, 0.4337873, 1.0121267),
}


@dataclass(frozen=True)
class RestPose:
    """Arc lengths (s,) [m], bending angles (s,) [rad] and tips (s, 3) [m] of sections at rest."""

    lengths: Array
    angles: Array
    tips: Array
    stable: bool


def build_body(values: ArmSet, sections: int = 2) -> ChamberDrive:
    """
    Return the arm (`.arm`) with its chambers, three per section, numbered from the base.

    Every other section is mounted rotated by 180 deg, so that actuators 1 and 4 are opposite.
    """
    length, bending = values.length_m, values.bending_stiffness_N_m2
    disc = MASS_KG / length * RADIUS_M**2
    section = DynamicSectionConfig(
        length_m=length,
        segments=values.segments,
        mass_per_length_kg_m=MASS_KG / length,
        slice_inertia_kg_m=(disc / 4.0, disc / 4.0, disc / 2.0),
        stiffness=diagonal4((AXIAL_STIFFNESS_N, bending, bending, 2.0 / 3.0 * bending)),
        damping=diagonal4((AXIAL_DAMPER_N_S_M * length, 0.0, 0.0, 0.0)),
        drag_N_s_m2=values.drag_N_s_m / length,
        turning_drag_N_s=values.turning_drag_N_m_s / length,
        mass_at='top',
    )
    chambers = [
        Chamber(
            index,
            CHAMBER_AREA_M2,
            PITCH_RADIUS_M * (values.excess if j == 0 else 1.0),
            120.0 * j + 180.0 * (index % 2),
        )
        for index in range(sections)
        for j in range(3)
    ]
    return ChamberDrive(ArmDynamics([section] * sections), chambers)


def build_hydraulic_arm(
    values: ArmSet, axis: HydraulicAxisConfig | None = None, sections: int = 2
) -> HydraulicArm:
    """
    Return the arm coupled to its axes, three per section, each a copy of `axis`.

    The compliance of the chambers is zero: their stretch is part of the arm's motion
    (`HydraulicArm`).
    """
    alike = (axis or HydraulicAxisConfig()).model_copy(
        update={
            'chamber_volume_m3': CHAMBER_AREA_M2 * values.length_m,
            'chamber_compliance_m3_Pa': 0.0,
        }
    )
    axes = [alike.model_copy(update={'name': f'axis{i + 1}'}) for i in range(3 * sections)]
    return HydraulicArm(build_body(values, sections), WaterHydraulics(axes))


def rest_pose(drive: ChamberDrive, pressures_Pa: ArrayLike) -> RestPose:
    """
    Return the hanging pose under chamber pressures (3 s,).

    Angles are signed about the y axis and summed over the segments.

    Raises
    ------
    ModelError
        If no equilibrium is found.

    """
    arm = drive.arm
    pressures = np.asarray(pressures_Pa, float)
    rest = equilibrium(arm, arm.loads(HANGING_M_S2, drive=drive.drive(pressures)))
    if not rest.converged:
        raise ModelError(f'no equilibrium at {pressures.tolist()} Pa: {rest.message}')
    sections = len(arm.sections)
    lengths = arm.body.length.reshape(sections, -1)
    strains = rest.strains.reshape(sections, -1, 4)
    return RestPose(
        (lengths * (1.0 + strains[:, :, 0])).sum(axis=1),
        (lengths * strains[:, :, 2]).sum(axis=1),
        arm.shape(rest.strains).section_tips[:, :3, 3],
        rest.stable,
    )


def identify(segments: int) -> ArmSet:
    """
    Return the parameter set whose section takes both reported limit poses exactly.

    Three unknowns (rest length, bending stiffness, excess of actuator 1) match three reported
    numbers. The length reported for one actuator, 0.473 m, is not used: one chamber cannot stretch
    a section more than two chambers do.

    Raises
    ------
    ModelError
        If the search does not converge.

    """
    two = LIMIT_PRESSURE_PA * np.array([0.0, 1.0, 1.0])
    one = LIMIT_PRESSURE_PA * np.array([1.0, 0.0, 0.0])
    wanted = math.radians(TWO_ACTUATORS[1]), math.radians(ONE_ACTUATOR_DEG)

    def values_of(x: Array) -> ArmSet:
        length, bending, excess = (float(value) for value in x)
        return ArmSet(segments, 0.397 * length, 0.397 * bending, excess)

    def misses(x: Array) -> Array:
        drive = build_body(values_of(x), 1)
        pose, other = rest_pose(drive, two), rest_pose(drive, one)
        return np.array(
            [
                pose.lengths[0] - TWO_ACTUATORS[0],
                abs(pose.angles[0]) - wanted[0],
                abs(other.angles[0]) - wanted[1],
            ]
        )

    found = root(misses, np.array([1.0, 1.0, 1.01]), tol=1e-10)
    if not found.success:
        raise ModelError(f'set B for {segments} segments: {found.message}')
    return values_of(found.x)
