"""Mass of an arm that swings with its tip."""

from __future__ import annotations

import numpy as np

from softarm_ros.models.arm_model import ArmModel
from softarm_ros.rigs.schema import Rig


def swung_mass_kg(rig: Rig, model: ArmModel) -> float:
    """
    Return the mass at the tip [kg] that swings like the arm; 0 if its masses are not known.

    Rayleigh's quotient with the shape of a cantilever that is bent by a force at its tip,
    (3 x^2 - x^3) / 2: 33/140 of an even mass. Gripper and payload at the tip count fully.
    `model` gives the lengths of the sections.
    """
    masses = rig.arm.masses(None)
    if not masses:
        return 0.0
    places = model.shape_of(model.rest_configuration).section_tips[:, :3, 3]
    lengths = np.linalg.norm(np.diff(np.vstack([np.zeros(3), places]), axis=0), axis=1)
    ends = np.concatenate([[0.0], np.cumsum(lengths)]) / lengths.sum()
    swung = rig.tip_load_kg + (0.0 if rig.gripper is None else rig.gripper.mass_kg)
    for spread, begin, end in zip(masses, ends[:-1], ends[1:]):
        for mass in spread:
            at = begin + (end - begin) * np.array([mass.start, mass.end])
            integral = np.diff((1.8 * at**5 - at**6 + at**7 / 7.0) / 4.0)[0]
            swung += mass.mass_kg * float(integral / (at[1] - at[0]))
    return swung
