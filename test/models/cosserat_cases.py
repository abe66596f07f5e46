"""Loads and arms for the tests of Cosserat rods."""

import numpy as np

from softarm_ros.models.cosserat.config import (
    CableRoute,
    CosseratConfig,
    RigidConnector,
    RodCableConfig,
    RodSegmentConfig,
    RoundProfile,
)

TENSIONS = np.array([3.0, 1.0, 0.0, 0.0, 2.0, 1.0])
FORCE, MOMENT = (0.05, 0.02, -0.02), (0.001, 0.0, 0.002)


def winding_arm(steps=12, extensible=True, turn_deg=(0.0, 0.0, 0.0)):
    """Return a tapered, pre-curved arm: helical, conical and short cables, oblique gravity."""
    profile = dict(young_modulus_Pa=8e5, poisson_ratio=0.4, density_kg_m3=1100.0)
    return CosseratConfig(
        segments=[
            RodSegmentConfig(
                name='a',
                length_m=0.15,
                profile=RoundProfile(radius_m=0.012, tip_radius_m=0.009, **profile),
                rest_curvature_1_m=(1.0, -2.0, 3.0),
                connector=RigidConnector(rotation_vector_deg=turn_deg),
            ),
            RodSegmentConfig(
                name='b',
                length_m=0.1,
                profile=RoundProfile(radius_m=0.009, tip_radius_m=0.006, **profile),
            ),
        ],
        cables=[
            RodCableConfig(
                name='through',
                routes=[
                    CableRoute(segment='a', radius_m=0.01, end_radius_m=0.007, angle_deg=20.0),
                    CableRoute(segment='b', radius_m=0.007, end_radius_m=0.005, angle_deg=20.0),
                ],
            ),
            RodCableConfig(
                name='helix',
                routes=[CableRoute(segment='a', radius_m=0.009, angle_deg=130.0, turns=0.8)],
            ),
            RodCableConfig(
                name='sheathed',
                routes=[CableRoute(segment='b', radius_m=0.006, angle_deg=250.0, turns=-0.3)],
            ),
        ],
        gravity_m_s2=(3.0, -5.0, 7.0),
        steps=steps,
        extensible=extensible,
    )
