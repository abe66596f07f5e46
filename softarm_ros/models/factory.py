"""Builds arm models by name, and compiles their kernels ahead of use."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softarm_ros.models.arm_model import ArmModel
from softarm_ros.models.cable_driven.arm import CableDrivenArm
from softarm_ros.models.cable_driven.cable_statics import CableStaticsArm
from softarm_ros.models.cable_driven.constant_curvature import ConstantCurvatureArm
from softarm_ros.models.config import MODEL_NAMES, CableConfig, SectionConfig

_MODELS: dict[str, type[CableDrivenArm]] = {
    'constant_curvature': ConstantCurvatureArm,
    'cable_statics': CableStaticsArm,
}


def build_model(
    name: str, sections: Sequence[SectionConfig], cables: Sequence[CableConfig]
) -> ArmModel:
    """
    Return the model of an arm.

    Raises
    ------
    ValueError
        If no model has that name, or sections and cables do not fit together.

    """
    if name not in _MODELS:
        raise ValueError(f'unknown model {name!r}; there are {", ".join(MODEL_NAMES)}')
    return _MODELS[name](sections, cables)


def warm_up() -> None:
    """
    Compile every kernel of the models, or load it from the cache.

    Seconds the first time, a fraction of one afterwards. A real-time loop calls this before it
    starts, so that no cycle waits for the compiler.
    """
    section = SectionConfig(
        name='warm_up',
        length_m=0.1,
        endcap_length_m=0.01,
        cable_radius_m=0.01,
        bending_stiffness_N_m2=2e-3,
        cutting_in_stiffness_N_m2=3e4,
    )
    cables = [
        CableConfig(name=f'cable_{angle}', section='warm_up', angle_deg=angle)
        for angle in (0, 120, 240)
    ]
    for model_type in _MODELS.values():
        model = model_type([section], cables)
        shape = model.shape_of(np.array([0.3, 0.2]))
        shape.centerline(3)
        model.tips_of(shape.configuration[None])
        model.observed_configuration(shape.section_tips)
        model.damped_step(shape.configuration, shape.tip[:3, 3], 1e-6)
        model.tip_and_jacobian(shape.configuration)
        model.actuation_jacobian(shape.configuration)
        actuation = model.actuation_of(shape.configuration)
        model.jacobian(actuation)
        model.jacobian(np.zeros(3))
        model.inverse(shape.tip[:3, 3], shape.tip[:3, :3], guess=actuation)
