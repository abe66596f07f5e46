"""
The models of this package as parts.

A role is the mechanics that a model is built on and that the arm of a rig must provide
(`mechanics.py` in the folder of each family of models).
"""

from __future__ import annotations

from pydantic import Field

from softarm_ros.geometry.configs import ConfigBlock, NonNegative
from softarm_ros.geometry.parts import Part

_HERE = 'softarm_ros.models'


class NoSettings(ConfigBlock):
    """Settings of a model that the mechanics of the arm determine completely."""


class HeavyCableSettings(ConfigBlock):
    """How finely the sections of a heavy arm are resolved."""

    curvature_terms: int = Field(
        default=3, ge=1, le=6, description='terms of the curvature along a section; 1: an arc'
    )
    twist_terms: int = Field(default=2, ge=0, le=6, description='terms of its twist; 0: no twist')
    pieces: int = Field(default=8, ge=2, le=40, description='pieces of a section')


class HydraulicStaticsSettings(ConfigBlock):
    """How finely the statics of water chambers is resolved."""

    segments_per_section: int = Field(
        default=1, ge=1, le=5, description='segments of constant strain; the paper has 1'
    )


class CosseratSettings(ConfigBlock):
    """How the rod is integrated."""

    steps: int = Field(default=3, ge=1, le=100, description='integration steps per segment')
    extensible: bool = Field(
        default=False,
        description='whether the rod stretches and shears; cable-driven sections do so if they '
        'state an axial stiffness, sections with chambers and backbones with muscles always',
    )
    pretension_m: NonNegative = Field(
        default=0.0,
        description='length by which all cables of cable-driven sections are wound beyond the '
        'command: the pretension of the controller, or of pairs at rest',
    )


class MinimumEnergySettings(ConfigBlock):
    """How finely the backbone is resolved."""

    intervals: int = Field(
        default=40, ge=4, le=200, description='intervals of the backbone, a multiple of modules'
    )


CONSTANT_CURVATURE = Part(
    'model',
    'constant_curvature',
    NoSettings,
    {
        'cables': f'{_HERE}.cable_driven.mechanics:constant_curvature',
        'cable_pairs': f'{_HERE}.cable_driven.mechanics:pairs_of_constant_curvature',
        'water_chambers': f'{_HERE}.hydraulics.mechanics:constant_curvature',
        'air_chambers': f'{_HERE}.pneumatic.mechanics:constant_curvature',
        'rod_cables': f'{_HERE}.tendon_rod.mechanics:constant_curvature',
    },
    'every section an arc, without weight and load',
)
CABLE_STATICS = Part(
    'model',
    'cable_statics',
    NoSettings,
    {'cables': f'{_HERE}.cable_driven.mechanics:cable_statics'},
    'cables that cut into a soft body (Qi et al. 2024)',
)
HEAVY_CABLE_STATICS = Part(
    'model',
    'heavy_cable_statics',
    HeavyCableSettings,
    {'cables': f'{_HERE}.cable_driven.mechanics:heavy_cable_statics'},
    'cables that cut into sections that sag under weight and load',
)
HYDRAULIC_STATICS = Part(
    'model',
    'hydraulic_statics',
    HydraulicStaticsSettings,
    {'water_chambers': f'{_HERE}.hydraulics.mechanics:hydraulic_statics'},
    'sections of water chambers under weight and load (Chen et al. 2022)',
)
ANGLE_CORRECTION = Part(
    'model',
    'angle_correction',
    NoSettings,
    {'air_chambers': f'{_HERE}.pneumatic.mechanics:angle_correction'},
    'arcs on mounts that sag under weight, buoyancy and load (Gong et al. 2018)',
)
COSSERAT = Part(
    'model',
    'cosserat',
    CosseratSettings,
    {
        'rod_cables': f'{_HERE}.tendon_rod.mechanics:cosserat',
        'cables': f'{_HERE}.cable_driven.mechanics:cosserat',
        'cable_pairs': f'{_HERE}.cable_driven.mechanics:cosserat',
        'water_chambers': f'{_HERE}.hydraulics.mechanics:cosserat',
        'air_chambers': f'{_HERE}.pneumatic.mechanics:cosserat',
        'muscles': f'{_HERE}.minimum_energy.mechanics:cosserat',
    },
    'an elastic rod with the exact wrenches of its cables, chambers or muscles, weight and load',
)
MINIMUM_ENERGY = Part(
    'model',
    'minimum_energy',
    MinimumEnergySettings,
    {'muscles': f'{_HERE}.minimum_energy.mechanics:minimum_energy'},
    'a backbone bent by parallel muscles, at its least energy (Chen et al. 2022)',
)
