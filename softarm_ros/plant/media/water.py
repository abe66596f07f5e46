"""The part `medium.water`: buoyancy, drag, added mass, and a current."""

from __future__ import annotations

from pydantic import Field

from softarm_ros.geometry.configs import Finite
from softarm_ros.geometry.parts import Part
from softarm_ros.models.hydrodynamics.config import WaterConfig
from softarm_ros.plant.fluid import Fluid


class WaterMediumConfig(WaterConfig):
    """Actual water around the simulated arm."""

    current_m_s: tuple[Finite, Finite, Finite] = Field(
        default=(0.0, 0.0, 0.0),
        description='velocity of the water far from the arm, base frame; uniform and steady',
    )


PART = Part(
    'medium',
    'water',
    WaterMediumConfig,
    {'fluid': f'{__name__}:build'},
    'buoyancy, drag and added mass (Morison), still or as a steady current',
)


def build(config: WaterMediumConfig) -> Fluid:
    """Return the water."""
    fields = {name: getattr(config, name) for name in WaterConfig.model_fields}
    return Fluid(WaterConfig(**fields), config.current_m_s)
