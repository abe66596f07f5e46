"""Arms for several tests of the plant."""

import numpy as np

from softarm_ros.plant.config import PlantCable, PlantConfig
from softarm_ros.plant.soft_arm import SoftArm

LENGTH, RADIUS, ENDCAP = 0.093, 0.0125, 0.015
EI, EA, KT = 2.0e-3, 400.0, 31e3
GRAVITY = (0.0, 0.0, 9.81)
WEIGHTLESS = (0.0, 0.0, 0.0)

SECTION = {
    'length_m': LENGTH,
    'endcap_length_m': ENDCAP,
    'cable_radius_m': RADIUS,
    'outer_radius_m': 0.016,
    'body_mass_kg': 0.058,
    'endcap_mass_kg': 0.008,
    'bending_stiffness_N_m2': EI,
    'torsion_stiffness_N_m2': EI / 1.5,
    'axial_stiffness_N': EA,
    'damping_time_s': 0.03,
    'cutting_in_stiffness_N_m2': KT,
    'cutting_in_relaxation_s': 0.02,
}
STEPPER = {
    'step_m': 2.9e-5,
    'max_speed_m_s': 0.02,
    'max_acceleration_m_s2': 0.1,
    'backlash_m': 1e-4,
}
MOCAP = {
    'rate_hz': 100.0,
    'position_noise_m': 2e-4,
    'orientation_noise_rad': 2e-3,
    'delay_s': 0.01,
    'dropout_probability': 0.0,
}


def plant_config(sections=1, stepper=None, mocap=None, section=None, **fields):
    values = {
        'cable_axial_stiffness_N': 7000.0,
        'cable_free_length_m': 0.3,
        'sections': (
            [SECTION | (section or {})] * sections if isinstance(sections, int) else sections
        ),
        'stepper': STEPPER | (stepper or {}),
        'pose_sensor': MOCAP | (mocap or {}),
    }
    return PlantConfig.model_validate(values | fields)


def ring(sections=1, turned_rad=0.0):
    """Return three cables for each section, 120 deg apart."""
    return [
        PlantCable(k, turned_rad + 2.0 * np.pi * i / 3.0)
        for k in range(sections)
        for i in range(3)
    ]


def soft_arm(cables=(), sections=1, gravity=WEIGHTLESS, segments=10, section=None, **fields):
    config = plant_config(sections, section=section, segments_per_section=segments, **fields)
    return SoftArm(config, list(cables), gravity)


def beam(segments=10, **section):
    """Return a thin, practically inextensible cantilever without endcaps."""
    thin = {
        'endcap_length_m': 0.0,
        'endcap_mass_kg': 0.0,
        'outer_radius_m': 1e-3,
        'cable_radius_m': 5e-4,
        'axial_stiffness_N': 1e7,
    }
    return soft_arm(segments=segments, section=thin | section)


def bend_angle(tip, start=None):
    """Return the angle [rad] of a tip's z axis to that of the base, or of another pose."""
    axis = np.array([0.0, 0.0, 1.0]) if start is None else start[:3, 2]
    return float(np.arctan2(np.linalg.norm(np.cross(axis, tip[:3, 2])), axis @ tip[:3, 2]))


def rotation_about_z(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
