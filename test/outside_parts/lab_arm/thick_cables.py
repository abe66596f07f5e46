"""A model: arcs with thick cables, which act at a larger radius."""

from pydantic import Field

from softarm_ros.geometry.configs import ConfigBlock, Positive
from softarm_ros.geometry.parts import Part
from softarm_ros.models.cable_driven.constant_curvature import ConstantCurvatureArm


class ThickCables(ConfigBlock):
    diameter_m: Positive = Field(default=0.001, description='of every cable')


def build(settings, mechanics):
    sections = [
        section.model_copy(
            update={'cable_radius_m': section.cable_radius_m + 0.5 * settings.diameter_m}
        )
        for section in mechanics.sections
    ]
    arm = ConstantCurvatureArm(sections, mechanics.cables, mechanics.within)
    arm.name = 'thick_cables'
    return arm


PART = Part('model', 'thick_cables', ThickCables, {'cables': f'{__name__}:build'}, 'thick cables')
