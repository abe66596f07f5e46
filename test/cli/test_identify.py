"""`softarm identify`: the stiffnesses of a section, as the paper identifies them."""

from dataclasses import replace

import numpy as np
import pytest

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.identify import identify, measure_single_cable
from softarm_ros.rigs.loader import load_rig

RIG = load_rig('cable_arm')
SLIPPERY = load_rig('cable_arm', ['plant.cable_friction_coefficient=0'])


@pytest.fixture(scope='module')
def readings():
    return measure_single_cable(RIG, seed=0)


@pytest.fixture(scope='module')
def without_friction():
    return measure_single_cable(SLIPPERY, seed=0)


@pytest.fixture(scope='module')
def identification(readings):
    return identify(RIG, readings)


def test_the_rig_file_states_the_identified_stiffnesses(identification):
    section = RIG.arm.sections[0]
    assert identification.bending_stiffness == pytest.approx(
        section.bending_stiffness_N_m2, rel=1e-3
    )
    assert identification.cutting_in_stiffness == pytest.approx(
        section.cutting_in_stiffness_N_m2, rel=1e-3
    )


def test_identified_stiffnesses_differ_from_the_plant_and_fit_the_readings(identification):
    plant = RIG.plant.sections[0]
    assert abs(identification.bending_stiffness / plant.bending_stiffness_N_m2 - 1.0) > 0.02
    assert abs(identification.cutting_in_stiffness / plant.cutting_in_stiffness_N_m2 - 1.0) > 0.02
    assert identification.contraction_rms < 0.2 * identification.baseline_rms


@pytest.mark.long
def test_friction_makes_a_loop_whose_branches_give_the_frictionless_stiffness(
    readings, identification, without_friction
):
    pulled, let_out = readings.branch(pulled=True), readings.branch(pulled=False)
    assert len(pulled.angle) == len(let_out.angle) + 3  # the far end of each run is read once
    pulls = []
    for way in (pulled, let_out):
        order = np.argsort(way.angle)
        pulls.append(np.interp(np.deg2rad(60.0), way.angle[order], way.tension[order]))
    assert pulls[0] > 1.15 * pulls[1]
    ways = [identify(RIG, one).bending_stiffness for one in (let_out, pulled)]
    assert ways[0] < 0.98 * identification.bending_stiffness < 0.98**2 * ways[1]
    slippery = identify(SLIPPERY, without_friction.branch(pulled=True))
    assert identification.bending_stiffness == pytest.approx(slippery.bending_stiffness, rel=0.01)


@pytest.mark.long
def test_without_friction_both_branches_give_the_same_stiffness(without_friction):
    pulled, let_out = (
        identify(SLIPPERY, without_friction.branch(pulled=way)) for way in (True, False)
    )
    assert let_out.bending_stiffness == pytest.approx(pulled.bending_stiffness, rel=5e-3)


def test_the_cable_of_the_section_is_pulled_within_its_own_range():
    narrow = load_rig('cable_arm', ['arm.actuators[0].position_max_m=0.003'])
    distal = measure_single_cable(narrow, seed=0, section=1, step_m=0.018)
    assert distal.contraction.max() == pytest.approx(0.036)


def test_a_range_or_a_bend_too_small_for_the_steps_is_refused(readings):
    narrow = load_rig('cable_arm', ['arm.actuators[0].position_max_m=0.003'])
    with pytest.raises(UsageError, match=r'proximal_1: position_max_m = 0.003: .* 0.0045'):
        measure_single_cable(narrow, seed=0)
    far = readings.branch(True)
    bent = replace(far, angle=far.angle + 1.0)
    with pytest.raises(UsageError, match='section proximal: 0 readings below 25 deg'):
        identify(RIG, bent)
