"""Mechanics of cable-driven sections, and the models built from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from softarm_ros.models.actuation_range import ActuationRange
from softarm_ros.models.config import CableConfig, SectionConfig
from softarm_ros.models.parts import CosseratSettings, HeavyCableSettings, NoSettings

if TYPE_CHECKING:
    from softarm_ros.models.arm_model import ArmModel


@dataclass(frozen=True)
class CableMechanics:
    """
    Sections in series from base to tip, and a cable (or a pair of cables) per actuator.

    `tip_weight_N` is the weight of the payload; it and gravity are in the base frame. `within` is
    the range of the motors.
    """

    sections: tuple[SectionConfig, ...]
    cables: tuple[CableConfig, ...]
    tip_weight_N: tuple[float, float, float] = (0.0, 0.0, 0.0)
    gravity_m_s2: tuple[float, float, float] = (0.0, 0.0, 0.0)
    within: ActuationRange | None = None


def constant_curvature(_: NoSettings, mechanics: CableMechanics) -> ArmModel:
    """Return the model of circular arcs bent by single cables."""
    from softarm_ros.models.cable_driven.constant_curvature import ConstantCurvatureArm

    return ConstantCurvatureArm(mechanics.sections, mechanics.cables, mechanics.within)


def pairs_of_constant_curvature(_: NoSettings, mechanics: CableMechanics) -> ArmModel:
    """Return the model of circular arcs bent by pairs of cables."""
    from softarm_ros.models.cable_driven.paired_cables import PairedCablesArm

    return PairedCablesArm(
        mechanics.sections, mechanics.cables, mechanics.tip_weight_N, mechanics.within
    )


def cable_statics(_: NoSettings, mechanics: CableMechanics) -> ArmModel:
    """Return the model of cables that cut into the body."""
    from softarm_ros.models.cable_driven.cable_statics import CableStaticsArm

    return CableStaticsArm(mechanics.sections, mechanics.cables, mechanics.within)


def heavy_cable_statics(settings: HeavyCableSettings, mechanics: CableMechanics) -> ArmModel:
    """Return the model of cables that cut into the body, under weight and load."""
    from softarm_ros.models.cable_driven.heavy_cable_statics import HeavyCableStaticsArm

    return HeavyCableStaticsArm(
        mechanics.sections,
        mechanics.cables,
        mechanics.gravity_m_s2,
        mechanics.tip_weight_N,
        bends=settings.curvature_terms,
        twists=settings.twist_terms,
        pieces=settings.pieces,
        within=mechanics.within,
    )


def cosserat(settings: CosseratSettings, mechanics: CableMechanics) -> ArmModel:
    """Return the model of a Cosserat rod on single cables or pairs, under weight and load."""
    from softarm_ros.models.cable_driven.rod import CableRodArm

    return CableRodArm(
        mechanics.sections,
        mechanics.cables,
        mechanics.gravity_m_s2,
        mechanics.tip_weight_N,
        pretension_m=settings.pretension_m,
        steps=settings.steps,
        within=mechanics.within,
    )
