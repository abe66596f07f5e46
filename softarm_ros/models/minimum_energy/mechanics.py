"""The mechanics of muscles along a backbone, and the model built on them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from softarm_ros.models.actuation_range import ActuationRange
from softarm_ros.models.minimum_energy.config import BackboneConfig, ParallelModulesConfig
from softarm_ros.models.parts import CosseratSettings, MinimumEnergySettings

if TYPE_CHECKING:
    from softarm_ros.models.minimum_energy.arm import MinimumEnergyArm
    from softarm_ros.models.minimum_energy.rod_arm import RodOfMuscles

_LEAST_INTERVALS = 40  # of the backbone beside a rod


@dataclass(frozen=True)
class MuscleModules:
    """
    Modules of three parallel muscles on an elastic backbone; gravity in the base frame.

    `commands_m` are the shortest and longest length of the actuators, if narrower than the limits
    of the muscles. With `within`, lengths outside its range are refused.
    """

    backbone: BackboneConfig
    modules: ParallelModulesConfig
    gravity_m_s2: tuple[float, float, float]
    tip_load_kg: float = 0.0
    commands_m: tuple[float, float] | None = None
    within: ActuationRange | None = None


def minimum_energy(settings: MinimumEnergySettings, mechanics: MuscleModules) -> MinimumEnergyArm:
    """Return the model of a backbone at least energy under commanded muscle lengths."""
    from softarm_ros.models.minimum_energy.arm import MinimumEnergyArm

    return MinimumEnergyArm(
        mechanics.backbone,
        mechanics.modules,
        settings.intervals,
        mechanics.gravity_m_s2,
        mechanics.tip_load_kg,
        mechanics.commands_m,
        mechanics.within,
    )


def cosserat(settings: CosseratSettings, mechanics: MuscleModules) -> RodOfMuscles:
    """Return the model of a Cosserat rod between straight muscles, under weight and load."""
    from softarm_ros.models.minimum_energy.rod_arm import RodOfMuscles

    modules = mechanics.modules.modules
    return RodOfMuscles(
        mechanics.backbone,
        mechanics.modules,
        settings.steps,
        modules * math.ceil(_LEAST_INTERVALS / modules),  # the disks lie on nodes
        mechanics.gravity_m_s2,
        mechanics.tip_load_kg,
        mechanics.commands_m,
        mechanics.within,
    )
