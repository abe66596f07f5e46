"""A heavy cable_arm falls aside in postures where a light one is stable, but not hanging down."""

import pytest

from softarm_reproduction.cable_arm_weight import nearest, stands
from softarm_ros import load_rig


@pytest.mark.parametrize(('mass_kg', 'stable'), [(0.020, True), (0.058, False)])
def test_only_a_light_arm_is_stable_if_bent_beyond_the_horizontal(mass_kg, stable):
    rig = load_rig('cable_arm')
    found = stands(rig, mass_kg, proximal_deg=(105,), distal_deg=(70, 90), pretensions_m=(3e-3,))
    assert len(found) == 4
    assert [one.stable for one in found] == [stable] * 4


def test_heavy_arm_is_stable_below_the_base():
    rig = load_rig('cable_arm')
    found = stands(rig, 0.058, proximal_deg=(60,), distal_deg=(30,), pretensions_m=(3e-3,))
    assert all(one.stable for one in found)
    _, away = nearest(found, 0.1278, -0.0225)
    assert away > 0.05
