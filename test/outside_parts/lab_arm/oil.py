"""A medium: oil, which is more viscous and lighter than water."""

from pydantic import Field

from softarm_ros.geometry.configs import ConfigBlock, Positive
from softarm_ros.geometry.parts import Part
from softarm_ros.models.hydrodynamics.config import WaterConfig
from softarm_ros.plant.fluid import Fluid


class OilConfig(ConfigBlock):
    density_kg_m3: Positive = Field(default=870.0, description='of the oil')


def build(config):
    return Fluid(WaterConfig(density_kg_m3=config.density_kg_m3, drag_across=4.0))


PART = Part('medium', 'lab_oil', OilConfig, {'fluid': f'{__name__}:build'}, 'oil, still')
