"""`softarm identify`: the stiffnesses of a section, as the paper identifies them."""

import pytest

from softarm_ros.cli.identify import identify, measure_single_cable
from softarm_ros.rigs.loader import load_rig

RIG = load_rig('cable_arm')


@pytest.fixture(scope='module')
def identification():
    return identify(RIG, measure_single_cable(RIG, seed=0))


def test_the_rig_file_holds_what_identification_gives(identification):
    section = RIG.arm.sections[0]
    assert identification.bending_stiffness == pytest.approx(
        section.bending_stiffness_N_m2, rel=1e-3
    )
    assert identification.cutting_in_stiffness == pytest.approx(
        section.cutting_in_stiffness_N_m2, rel=1e-3
    )


def test_identification_is_not_the_plants_own_parameters(identification):
    plant = RIG.plant.sections[0]
    assert abs(identification.bending_stiffness / plant.bending_stiffness_N_m2 - 1.0) > 0.02
    assert abs(identification.cutting_in_stiffness / plant.cutting_in_stiffness_N_m2 - 1.0) > 0.02
    assert identification.contraction_rms < 0.2 * identification.baseline_rms
