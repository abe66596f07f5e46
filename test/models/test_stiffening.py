"""Sections of pairs that bend less than their pairs ask for."""

import numpy as np
import pytest
from model_cases import central_differences
from pair_cases import cables, sections, some_bends

from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cable_driven.paired_cables import PairedCablesArm
from softarm_ros.models.cable_driven.stiffening import asked_for, stiffened, stiffened_slope

STIFFENING = np.array([[0.2, 0.03, -0.02], [0.1, 0.1, -0.05], [0.04, 0.02, 0.09]])
WEIGHT = (0.3, -0.2, 1.5)


def stiff_arm(stiffening=STIFFENING, weight=(0.0, 0.0, 0.0), give=0.0):
    changed = [
        s.model_copy(update={'stiffening_1_rad2': tuple(row), 'bend_per_moment_rad_N_m': give})
        for s, row in zip(sections(), np.asarray(stiffening).tolist())
    ]
    return PairedCablesArm(changed, cables(some_bends(np.random.default_rng(3))), weight)


def some_bending(count, largest=0.9):
    return np.random.default_rng(1).uniform(-largest, largest, (count, 6))


def test_bends_turn_with_what_is_asked():
    asked = some_bending(4)
    about = np.deg2rad(40.0)
    turn = np.kron(np.eye(3), [[np.cos(about), -np.sin(about)], [np.sin(about), np.cos(about)]])
    np.testing.assert_allclose(
        stiffened(asked @ turn.T, STIFFENING), stiffened(asked, STIFFENING) @ turn.T, atol=1e-14
    )
    np.testing.assert_allclose(stiffened(-asked, STIFFENING), -stiffened(asked, STIFFENING))


def test_of_a_small_bend_the_cube_is_held_back():
    bends = stiffened(np.array([[0.0, -0.1]]), np.array([[0.3]]))
    np.testing.assert_allclose(bends, [[0.0, -0.1 + 0.3 * 1e-3]], atol=1e-6)


def test_slope_is_that_of_differences():
    asked = some_bending(1)[0]
    expected = central_differences(lambda a: stiffened(a[None], STIFFENING)[0], asked, 1e-4)
    slope = stiffened_slope(asked[None], STIFFENING)[0]
    np.testing.assert_allclose(slope, expected, atol=1e-7)


def test_who_asks_for_more_gets_more():
    """Twice what one expects before an identification, 0.1 / rad^2, up to any bending limit."""
    asked = np.stack([np.linspace(0.0, 9.0, 200), np.zeros(200)], axis=1)
    bends = stiffened(asked, np.array([[0.2]]))[:, 0]
    assert np.all(np.diff(bends) > 0.0)
    assert bends[-1] > np.deg2rad(170.0)


def test_a_bend_beyond_what_a_section_does_is_refused():
    assert asked_for(np.array([1.2, 0.0]), np.array([[1.0]])) is None
    arm = stiff_arm(np.eye(3))
    bend = np.zeros(6)
    bend[2] = 1.2
    with pytest.raises(ModelError, match='stiffening_1_rad2'):
        arm.actuation_of(bend)


@pytest.mark.parametrize(('weight', 'give'), [((0.0, 0.0, 0.0), 0.0), (WEIGHT, 0.2)])
def test_both_ways_and_slopes_agree(weight, give):
    arm = stiff_arm(weight=weight, give=give)
    for bend in some_bending(4):
        contraction = arm.actuation_of(bend)
        np.testing.assert_allclose(arm.configuration_of(contraction), bend, atol=1e-8)
        by_bend = central_differences(arm.actuation_of, bend, 1e-4)
        np.testing.assert_allclose(arm.actuation_jacobian(bend), by_bend, atol=1e-8)
        expected = central_differences(lambda c: arm.forward(c).tip[:3, 3], contraction, 1e-5)
        np.testing.assert_allclose(arm.jacobian(contraction)[:3], expected, atol=1e-5)
    contractions = np.array([arm.actuation_of(bend) for bend in some_bending(4)])
    tips = np.array([arm.forward(row).section_tips for row in contractions])
    np.testing.assert_allclose(arm.section_tips_of(contractions), tips, atol=1e-9)


def test_the_least_contractions_of_a_place_are_found():
    arm = stiff_arm()
    contraction = np.random.default_rng(5).uniform(-0.004, 0.004, 6)
    goal = arm.forward(contraction).tip[:3, 3]
    found = arm.inverse(goal)
    assert found.converged
    np.testing.assert_allclose(arm.forward(found.actuation).tip[:3, 3], goal, atol=1e-6)
    assert np.linalg.norm(found.actuation) <= np.linalg.norm(contraction) + 1e-9


def test_preferred_bends_need_less_of_the_motors():
    arm = stiff_arm()
    bend = some_bending(1)[0]
    better = arm.preferred_configuration(bend)
    assert np.linalg.norm(arm.actuation_of(better)) < np.linalg.norm(arm.actuation_of(bend))


def test_a_row_of_the_wrong_length_is_named():
    with pytest.raises(ValueError, match='section_0 has 2 values; expected 3'):
        stiff_arm(np.ones((3, 2)))
