"""
The hydraulic arm of Chen et al. 2022 on its six axes: set B for any number of segments.

The assumed numbers are those of `dynamics_hydraulic_arm`. Rest length, bending stiffness and the
excess of actuator 1 are identified here, for one or several segments a section with the mass at
their tops, so that one hanging section takes the limit poses of the paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import root

from softarm_ros.models.arm_model import Array, ModelError
from softarm_ros.models.dynamics import hydraulic_arm as body
from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.config import DynamicSectionConfig, diagonal4
from softarm_ros.models.dynamics.drive import Chamber, ChamberDrive
from softarm_ros.models.dynamics.tangents import equilibrium
from softarm_ros.models.hydraulics.arm import HydraulicArm
from softarm_ros.models.hydraulics.axes import WaterHydraulics
from softarm_ros.models.hydraulics.config import HydraulicAxisConfig

LIMIT_PRESSURE_PA = 1e6

# Reported limit poses of one section: two actuators at 1 MPa, and one.
TWO_ACTUATORS = (0.401, 165.7)  # m, deg
ONE_ACTUATOR_DEG = 168.0


@dataclass(frozen=True)
class ArmSet:
    """Parameters of one section, all sections alike; mass sits at the tops of its segments."""

    segments: int
    length_m: float
    bending_stiffness_N_m2: float
    excess: float
    drag_N_s_m: float = body.DRAG_N_S_M
    turning_drag_N_m_s: float = body.TURNING_DRAG_N_M_S


def build_arm(values: ArmSet, sections: int = 2) -> ArmDynamics:
    """Return the arm; section 2 is turned by 180 degrees through its chambers' angles."""
    length = values.length_m
    bending = values.bending_stiffness_N_m2
    disc = body.MASS_KG / length * body.RADIUS_M**2
    section = DynamicSectionConfig(
        length_m=length,
        segments=values.segments,
        mass_per_length_kg_m=body.MASS_KG / length,
        slice_inertia_kg_m=(disc / 4.0, disc / 4.0, disc / 2.0),
        stiffness=diagonal4((body.AXIAL_STIFFNESS_N, bending, bending, 2.0 / 3.0 * bending)),
        damping=diagonal4((body.AXIAL_DAMPER_N_S_M * length, 0.0, 0.0, 0.0)),
        drag_N_s_m2=values.drag_N_s_m / length,
        turning_drag_N_s=values.turning_drag_N_m_s / length,
        mass_at='top',
    )
    return ArmDynamics([section] * sections)


def build_drive(arm: ArmDynamics, values: ArmSet) -> ChamberDrive:
    """Return three chambers per section; the first of each has the excess lever."""
    chambers = [
        Chamber(
            section,
            body.CHAMBER_AREA_M2,
            body.PITCH_RADIUS_M * (values.excess if j == 0 else 1.0),
            120.0 * j + 180.0 * (section % 2),
        )
        for section in range(len(arm.sections))
        for j in range(3)
    ]
    return ChamberDrive(arm, chambers)


def section_pose(
    arm: ArmDynamics, drive: ChamberDrive, pressures_Pa: Array
) -> tuple[float, float]:
    """
    Return arc length [m] and bending angle [rad] of a single hanging section at rest.

    The angle is signed about the y axis and unwrapped over the segments.

    Raises
    ------
    ModelError
        If no equilibrium is found.

    """
    loads = arm.loads(body.GRAVITY_M_S2, drive=drive.drive(pressures_Pa))
    rest = equilibrium(arm, loads)
    if not rest.converged:
        raise ModelError(f'no equilibrium at {pressures_Pa} Pa: {rest.message}')
    lengths = arm.body.length
    return (
        float(lengths @ (1.0 + rest.strains[:, 0])),
        float(lengths @ rest.strains[:, 2]),
    )


def identify(segments: int) -> ArmSet:
    """
    Return the set whose section takes both reported limit poses exactly.

    Three unknowns (rest length, bending stiffness, excess of actuator 1), three reported numbers:
    0.401 m and 165.7 degrees with actuators 2 and 3, 168 degrees with actuator 1.

    Raises
    ------
    ModelError
        If the search does not converge.

    """
    two = LIMIT_PRESSURE_PA * np.array([0.0, 1.0, 1.0])
    one = LIMIT_PRESSURE_PA * np.array([1.0, 0.0, 0.0])

    def values_of(x: Array) -> ArmSet:
        length, bending, excess = (float(value) for value in x)
        return ArmSet(segments, 0.397 * length, 0.397 * bending, excess)

    def misses(x: Array) -> Array:
        values = values_of(x)
        arm = build_arm(values, 1)
        drive = build_drive(arm, values)
        length, angle = section_pose(arm, drive, two)
        _, other = section_pose(arm, drive, one)
        wanted = math.radians(TWO_ACTUATORS[1]), math.radians(ONE_ACTUATOR_DEG)
        return np.array(
            [length - TWO_ACTUATORS[0], abs(angle) - wanted[0], abs(other) - wanted[1]]
        )

    found = root(misses, np.array([1.0, 1.0, 1.01]), tol=1e-10)
    if not found.success:
        raise ModelError(f'set B for {segments} segments: {found.message}')
    return values_of(found.x)


def build_hydraulic_arm(values: ArmSet, axis: HydraulicAxisConfig | None = None) -> HydraulicArm:
    """
    Return two sections on six axes, solved together.

    The chambers' own compliance is zero: their stretch is the arm's (`HydraulicArm`).
    """
    arm = build_arm(values)
    base = axis or HydraulicAxisConfig()
    volume = body.CHAMBER_AREA_M2 * values.length_m
    axes = [
        base.model_copy(
            update={
                'name': f'axis{i + 1}',
                'chamber_volume_m3': volume,
                'chamber_compliance_m3_Pa': 0.0,
            }
        )
        for i in range(6)
    ]
    return HydraulicArm(build_drive(arm, values), WaterHydraulics(axes))
