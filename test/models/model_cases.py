"""Arms for the model tests: the published arm and variations of it."""

import math

import numpy as np

from softarm_ros.models.config import CableConfig, SectionConfig

LENGTH, ENDCAP, RADIUS = 0.093, 0.015, 0.0125  # m
BENDING, CUTTING = 20.02e-4, 3.1e4  # N m^2, N/m^2
THREE = (0.0, 120.0, 240.0)


def section_config(name='proximal', **changes):
    values = {
        'name': name,
        'length_m': LENGTH,
        'endcap_length_m': ENDCAP,
        'cable_radius_m': RADIUS,
        'bending_stiffness_N_m2': BENDING,
        'cutting_in_stiffness_N_m2': CUTTING,
    }
    return SectionConfig(**{**values, **changes})


def arm_parts(sections=2, angles=THREE, **changes):
    """Return (sections, cables) of an arm with the same cables on every section."""
    configs = [section_config(f'section_{k}', **changes) for k in range(sections)]
    cables = [
        CableConfig(name=f'{config.name}_cable_{i}', section=config.name, angle_deg=angle)
        for config in configs
        for i, angle in enumerate(angles)
    ]
    return configs, cables


def bend_of(theta_deg, phi_deg):
    theta, phi = math.radians(theta_deg), math.radians(phi_deg)
    return np.array([theta * math.cos(phi), theta * math.sin(phi)])


def polar_deg(bend):
    return math.degrees(math.hypot(*bend)), math.degrees(math.atan2(bend[1], bend[0]))


def central_differences(function, point, step):
    """Return d function / d point (outputs, inputs), fourth order."""
    columns = []
    for j in range(point.size):
        offset = np.zeros(point.size)
        offset[j] = step
        near = function(point + offset) - function(point - offset)
        far = function(point + 2.0 * offset) - function(point - 2.0 * offset)
        columns.append((8.0 * near - far) / (12.0 * step))
    return np.stack(columns, axis=-1)
