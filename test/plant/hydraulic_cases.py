"""A simulated water-hydraulic arm with chosen errors, and the statics of the same arm."""

import numpy as np

from softarm_ros.drivers.pressure_loop import PressureLoopConfig
from softarm_ros.models.hydraulics.section_config import (
    ChamberConfig,
    HydraulicSectionConfig,
    Surroundings,
)
from softarm_ros.models.hydraulics.statics import HydraulicStatics
from softarm_ros.models.hydrodynamics.config import WaterConfig
from softarm_ros.plant.fluid import Fluid
from softarm_ros.plant.hydraulic.config import (
    HydraulicPlantConfig,
)
from softarm_ros.plant.hydraulic.hydraulic_plant import HydraulicPlant
from softarm_ros.plant.mocap import Mocap
from softarm_ros.plant.world import World

GRAVITY = (0.0, 0.0, 9.81)
RATIO = 2.5e-6
PRELOAD = 1e5
SECTION = {
    'length_m': 0.397,
    'mass_kg': 0.35,
    'displaced_volume_m3': 2.6e-4,
    'outer_radius_m': 0.045,
    'chamber_area_m2': 1.131e-4,
    'chamber_pitch_radius_m': 0.03,
    'axial_stiffness_N': 22620.0,
    'bending_stiffness_N_m2': 0.43,
    'torsion_stiffness_N_m2': 0.29,
}
LOSSES = {
    'axial_damper_N_s_m': 200.0,
    'drag_N_s_m': 2.0,
    'turning_drag_N_m_s': 0.05,
    'hydrodynamic_diameter_m': 0.04,
}
CHAMBERS = [
    ChamberConfig(name=f'c{3 * k + j + 1}', section=k, angle_deg=120.0 * j + 180.0 * k)
    for k in range(2)
    for j in range(3)
]
SWING = np.array([3e5, 1e5, 1.5e5, 1e5, 2.5e5, 2e5])


def config(friction=0.0, **changes):
    fields = {
        'segments_per_section': 3,
        'time_step_s': 0.004,
        'sections': [{**SECTION, **LOSSES}] * 2,
        'axis': {
            'coulomb_friction_N': friction,
            'static_friction_N': 1.4 * friction,
            'chamber_compliance_m3_Pa': 0.0,
        },
        'efficiency_factors': [1.0] * 6,
        'drive': {'max_torque_N_m': 2.5, 'torque_step_N_m': 1e-6, 'lag_s': 0.002},
        'pressure_sensor': {'noise_Pa': 0.0, 'offset_Pa': 0.0, 'step_Pa': 0.01},
        'pose_sensor': {
            'rate_hz': 60.0,
            'position_noise_m': 5e-4,
            'orientation_noise_rad': 5e-3,
            'delay_s': 0.035,
            'dropout_probability': 0.0,
        },
    }
    return HydraulicPlantConfig.model_validate({**fields, **changes})


def world_of(around):
    """Return the plant's world for the surroundings of the models."""
    density = around.fluid_density_kg_m3
    fluid = Fluid(WaterConfig(density_kg_m3=density)) if density else None
    return World(around.gravity_m_s2, fluid, around.tip_load_kg, around.tip_load_density_kg_m3)


def plant(seed=0, *, gain=0.0, preload=PRELOAD, surroundings=None, world=None, **changes):
    arm = HydraulicPlant(
        config(**changes),
        CHAMBERS,
        np.full(6, RATIO),
        PressureLoopConfig(gain=gain),
        np.full(6, preload),
        world or world_of(surroundings or Surroundings(GRAVITY)),
        seed,
    )
    arm.look_with(Mocap(arm.config.mocap, seed))
    return arm


def statics(surroundings=None, segments=3, **changes):
    sections = [HydraulicSectionConfig(name=name, **SECTION, **changes) for name in ('a', 'b')]
    return HydraulicStatics(
        sections,
        CHAMBERS,
        surroundings or Surroundings(GRAVITY),
        np.zeros(6),
        np.full(6, 1e6),
        PRELOAD,
        segments,
    )


def step_drives(arm, torque, lifted, seconds):
    arm.drives.follow(torque, lifted)
    arm.advance(seconds)


def ramp(arm, to, seconds=3.0, start=PRELOAD):
    steps = round(seconds / 0.02)
    for k in range(steps):
        arm.step(start + (np.asarray(to) - start) * (k + 1) / steps, 0.02)
