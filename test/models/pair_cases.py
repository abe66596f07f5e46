"""Arms with pairs of cables, for several tests."""

import numpy as np

from softarm_ros.models.config import BendConfig, CableConfig, SectionConfig

LENGTHS = (0.107, 0.098, 0.117)
ENDCAPS = (0.004, 0.0, 0.003)
RADII = (0.030, 0.018, 0.011)
PASSING = (0.014, 0.009, 0.0)
ANGLES = ((180.0, 85.0), (-45.0, 50.0), (-110.0, 160.0))
REST_DEG = ((4.0, 6.0), (-9.0, -2.0), (7.0, -6.0))


def sections(**changes):
    return tuple(
        SectionConfig(
            **{
                'name': f'section_{k}',
                'length_m': LENGTHS[k],
                'endcap_length_m': ENDCAPS[k],
                'cable_radius_m': RADII[k],
                'passing_radius_m': PASSING[k],
                'rest_bend_deg': REST_DEG[k],
                'bending_stiffness_N_m2': 0.03,
                'cutting_in_stiffness_N_m2': 1e6,
                'max_bending_angle_deg': 80.0,
                **changes,
            }
        )
        for k in range(3)
    )


def cables(bends=None, pair=True):
    """Return two pairs per section; `bends` (dof, m) [rad/m] are identified bending gains."""
    found = []
    for k, angles in enumerate(ANGLES):
        for i, angle in enumerate(angles):
            column = None if bends is None else bends[:, len(found)].reshape(-1, 2)
            effects = () if column is None else tuple(effect(s, b) for s, b in enumerate(column))
            found.append(
                CableConfig(
                    name=f'pair_{k}_{i}',
                    section=f'section_{k}',
                    angle_deg=angle,
                    pair=pair,
                    bends=effects,
                )
            )
    return tuple(found)


def effect(section, bend):
    return BendConfig(
        section=f'section_{section}',
        gain_rad_m=float(np.hypot(*bend)),
        angle_deg=float(np.degrees(np.arctan2(bend[1], bend[0]))),
    )


def some_bends(rng):
    """Return a well-conditioned B (6, 6) [rad/m] with effects on every section."""
    return 50.0 * np.eye(6) + rng.uniform(-12.0, 12.0, (6, 6))
