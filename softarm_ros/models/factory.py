"""Builds models of cable-driven arms by name."""

from __future__ import annotations

from collections.abc import Sequence

from softarm_ros.models.arm_model import ArmModel
from softarm_ros.models.cable_driven.arm import CableDrivenArm
from softarm_ros.models.cable_driven.cable_statics import CableStaticsArm
from softarm_ros.models.cable_driven.constant_curvature import ConstantCurvatureArm
from softarm_ros.models.cable_driven.paired_cables import PairedCablesArm
from softarm_ros.models.config import MODEL_NAMES, PAIRED_MODEL_NAMES, CableConfig, SectionConfig

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
    if any(cable.pair for cable in cables):
        if name not in PAIRED_MODEL_NAMES:
            raise ValueError(
                f'model {name!r} does not support pairs of cables; use '
                f'{", ".join(PAIRED_MODEL_NAMES)}'
            )
        return PairedCablesArm(sections, cables)
    return _MODELS[name](sections, cables)
