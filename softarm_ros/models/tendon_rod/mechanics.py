"""The mechanics of tendon-driven rods, and the models built on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from softarm_ros.models.cosserat.config import CosseratConfig, RodCableConfig, RodSegmentConfig
from softarm_ros.models.parts import CosseratSettings, NoSettings

if TYPE_CHECKING:
    from softarm_ros.models.arm_model import ArmModel


@dataclass(frozen=True)
class RodCables:
    """
    Elastic segments and rigid connectors from base to tip, with one cable per actuator.

    `pretension_N` is the least tension of a cable; gravity is in the base frame.
    """

    segments: tuple[RodSegmentConfig, ...]
    cables: tuple[RodCableConfig, ...]
    gravity_m_s2: tuple[float, float, float]
    pretension_N: float
    tip_load_kg: float = 0.0

    def rod(self, settings: CosseratSettings) -> CosseratConfig:
        """Return the `CosseratConfig` of rod and cables with the given integration settings."""
        return CosseratConfig(
            segments=self.segments,
            cables=self.cables,
            gravity_m_s2=self.gravity_m_s2,
            extensible=settings.extensible,
            steps=settings.steps,
        )


def cosserat(settings: CosseratSettings, mechanics: RodCables) -> ArmModel:
    """Return the model of a Cosserat rod under weight, load and its cables."""
    from softarm_ros.models.tendon_rod.cosserat import CosseratTendonRod

    return CosseratTendonRod(
        mechanics.rod(settings), mechanics.pretension_N, mechanics.tip_load_kg
    )


def constant_curvature(_: NoSettings, mechanics: RodCables) -> ArmModel:
    """Return the model of arcs bent by the moments of the cables alone."""
    from softarm_ros.models.tendon_rod.constant_curvature import ConstantCurvatureTendonRod

    return ConstantCurvatureTendonRod(mechanics.rod(CosseratSettings()), mechanics.pretension_N)
