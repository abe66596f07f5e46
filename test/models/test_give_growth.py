"""A bending part that gives the more the longer it is: walls thin as they stretch."""

import numpy as np

from softarm_ros.models.pneumatic.angle_correction import PneumaticArm
from softarm_ros.models.pneumatic.config import ChamberSectionConfig, placeholder_curve

FORCE = (0.05, -0.02, 0.0)


def arm(growth):
    section = ChamberSectionConfig(
        name='module',
        mass_kg=0.02,
        bend_per_moment_rad_N_m=10.0,
        give_growth=growth,
        curves=(placeholder_curve(),),
    )
    return PneumaticArm([section])


def given(growth, pressure):
    """Return how far a sideways force moves the tip of an arm under even pressure [m]."""
    module, pressures = arm(growth), np.full(3, pressure)
    moved = module.forward(pressures, FORCE).tip[:3, 3] - module.forward(pressures).tip[:3, 3]
    return float(np.linalg.norm(moved))


def test_an_arm_at_rest_gives_as_without_growth():
    assert abs(given(2.0, 0.0) - given(0.0, 0.0)) < 1e-12


def test_an_elongated_arm_gives_by_the_stated_share_more():
    """Small loads: what moves is proportional to the give."""
    extension = arm(0.0).configuration_of(np.full(3, 6e4))[2] / 0.080 - 1.0
    ratio = given(2.0, 6e4) / given(0.0, 6e4)
    assert abs(ratio - (1.0 + 2.0 * extension)) < 0.05 * ratio
    assert extension > 0.1


def test_the_derivative_knows_the_growth():
    module = arm(3.0)
    bent = module.configuration_of(np.array([5e4, 2e4, 1e4]))
    _, jacobian = module.tip_and_jacobian(bent)
    step = 1e-6 * np.eye(3)
    columns = [
        (module.tip_and_jacobian(bent + s)[0] - module.tip_and_jacobian(bent - s)[0]) / 2e-6
        for s in step
    ]
    np.testing.assert_allclose(jacobian, np.stack(columns, axis=1), atol=2e-6)
