"""The medium around an arm: that of the model and that of the simulated body."""

import numpy as np
import pytest

from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.arm_assembly import build_plant

STREAM = 'plant.medium={kind: water, current_m_s: [0.3, 0.0, 0.0]}'


def resting(*settings):
    arm = build_plant(load_rig('pneumatic_arm', settings=settings), 0)
    for _ in range(10):
        arm.step(np.zeros(6), 0.5)
    return arm.true_section_tips()[-1, :3, 3]


def test_medium_of_the_rig_applies_to_model_and_simulated_body():
    rig = load_rig('pneumatic_arm', settings=('medium=water',))
    assert rig.plant.medium.kind == 'water'
    assert rig.mechanics().fluid_density_kg_m3 > 900.0


def test_medium_of_the_simulated_body_may_differ_from_that_of_the_model():
    rig = load_rig('pneumatic_arm', settings=(STREAM,))
    assert rig.mechanics().fluid_density_kg_m3 == 0.0
    still, streaming = resting('plant.medium=water'), resting(STREAM)
    assert streaming[0] - still[0] > 0.005


@pytest.mark.parametrize(
    ('rig', 'setting', 'message'),
    [
        ('pneumatic_arm', 'plant.medium=oil', r"plant.medium.kind = 'oil'.*known: 'air', 'water'"),
        (
            'hydraulic_arm',
            'plant.medium={kind: water, density_kg_m3: -1.0}',
            r'plant.medium.density_kg_m3 = -1.*expected a number > 0',
        ),
        ('hydraulic_arm', 'plant.medium={kind: water, curent_m_s: [0, 0, 0]}', 'current_m_s'),
        (
            'hydraulic_arm',
            'plant.medium={kind: water, current_m_s: [0.1, .nan, 0.0]}',
            r'plant.medium.current_m_s',
        ),
        ('cable_arm', 'plant.medium=water', r"expected 'air': the body 'cable_chain' has no"),
        ('hydraulic_arm', 'plant.water={}', r'write plant.medium: \{kind: water'),
    ],
)
def test_invalid_plant_medium_is_refused(rig, setting, message):
    with pytest.raises(RigError, match=message):
        load_rig(rig, settings=(setting,))
