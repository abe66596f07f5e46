"""
Body of the water-hydraulic arm (Chen et al., Micromachines 2022, 13, 130), identified.

The paper's table of parameters is lost. These were chosen so that one section reaches the two
reported limit poses: 165.7 deg with two chambers, 168 deg with the opposite one, at 1 MPa, hanging
with gravity along +z, one segment with its mass at the top (the paper's n = 1).
Bending stiffness and the factor of chamber 1 are fitted to the two angles for strains per rest
length; the rest is assumed: bore 12 mm, pitch radius 30 mm, 0.5 % stretch a chamber at 1 MPa,
0.35 kg a section, body damping from the reported settling times.
"""

from __future__ import annotations

from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.config import DynamicSectionConfig, diagonal4
from softarm_ros.models.dynamics.drive import Chamber, ChamberDrive

LENGTH_M = 0.39702
MASS_KG = 0.35
RADIUS_M = 0.045
CHAMBER_AREA_M2 = 1.131e-4
PITCH_RADIUS_M = 0.030
AXIAL_STIFFNESS_N = 3.0 * 7540.0
BENDING_STIFFNESS_N_M2 = 0.39688
CHAMBER_1_FACTOR = 1.00833
DRAG_N_S_M = 2.0
TURNING_DRAG_N_M_S = 0.05
AXIAL_DAMPER_N_S_M = 200.0
GRAVITY_M_S2 = (0.0, 0.0, 9.81)


def hydraulic_arm(sections: int = 2, segments: int = 1) -> tuple[ArmDynamics, ChamberDrive]:
    """
    Return the arm and its chambers, three a section, numbered from the base.

    The second section is mounted turned by 180 deg, so that chambers 1 and 4 are opposite. One
    segment a section carries its mass at the top as in the paper, more carry it along the piece.
    """
    per_length = MASS_KG / LENGTH_M
    slice_ = per_length * RADIUS_M**2 / 4.0
    section = DynamicSectionConfig(
        length_m=LENGTH_M,
        segments=segments,
        mass_per_length_kg_m=per_length,
        slice_inertia_kg_m=(slice_, slice_, 2.0 * slice_),
        stiffness=diagonal4(
            (
                AXIAL_STIFFNESS_N,
                BENDING_STIFFNESS_N_M2,
                BENDING_STIFFNESS_N_M2,
                # Round and incompressible: G J = 2/3 E I.
                2.0 / 3.0 * BENDING_STIFFNESS_N_M2,
            )
        ),
        damping=diagonal4((AXIAL_DAMPER_N_S_M * LENGTH_M, 0.0, 0.0, 0.0)),
        drag_N_s_m2=DRAG_N_S_M / LENGTH_M,
        turning_drag_N_s=TURNING_DRAG_N_M_S / LENGTH_M,
        mass_at='top' if segments == 1 else 'piece',
    )
    arm = ArmDynamics([section] * sections)
    chambers = [
        Chamber(index, CHAMBER_AREA_M2, PITCH_RADIUS_M, 180.0 * index + angle)
        for index in range(sections)
        for angle in (0.0, 120.0, 240.0)
    ]
    drive = ChamberDrive(arm, chambers)
    # The layout is not quite symmetric: chamber 1 bends a little more (its moment, not its force).
    for index in range(sections):
        drive.map[:, 1:3, 3 * index] *= CHAMBER_1_FACTOR
    return arm, drive
