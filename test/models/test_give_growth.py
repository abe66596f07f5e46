"""A bending part whose compliance grows as it elongates, because its walls thin."""

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
    """Return the tip deflection [m] by a sideways force under equal pressures."""
    module, pressures = arm(growth), np.full(3, pressure)
    moved = module.forward(pressures, FORCE).tip[:3, 3] - module.forward(pressures).tip[:3, 3]
    return float(np.linalg.norm(moved))


def test_give_growth_does_not_change_an_arm_at_rest():
    assert abs(given(2.0, 0.0) - given(0.0, 0.0)) < 1e-12


def test_compliance_grows_with_elongation_by_the_configured_share():
    """The load is small, so the deflection is proportional to the compliance."""
    extension = arm(0.0).configuration_of(np.full(3, 6e4))[2] / 0.080 - 1.0
    ratio = given(2.0, 6e4) / given(0.0, 6e4)
    assert abs(ratio - (1.0 + 2.0 * extension)) < 0.05 * ratio
    assert extension > 0.1


def test_tip_jacobian_includes_the_give_growth():
    module = arm(3.0)
    bent = module.configuration_of(np.array([5e4, 2e4, 1e4]))
    _, jacobian = module.tip_and_jacobian(bent)
    step = 1e-6 * np.eye(3)
    columns = [
        (module.tip_and_jacobian(bent + s)[0] - module.tip_and_jacobian(bent - s)[0]) / 2e-6
        for s in step
    ]
    np.testing.assert_allclose(jacobian, np.stack(columns, axis=1), atol=2e-6)
