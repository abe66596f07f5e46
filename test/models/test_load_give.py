"""Arcs that bend under a load at the tip."""

import numpy as np
import pytest
from pair_cases import cables, sections, some_bends
from scipy.linalg import null_space

from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cable_driven.load_give import (
    bends_under_load,
    give_of_load,
    section_tips,
)
from softarm_ros.models.cable_driven.paired_cables import PairedCablesArm

WEIGHT = (0.3, -0.2, 1.5)


def soft_arm(weight=(0.0, 0.0, 0.0), give=0.3):
    soft = [s.model_copy(update={'bend_per_moment_rad_N_m': give}) for s in sections()]
    return PairedCablesArm(soft, cables(some_bends(np.random.default_rng(3))), weight)


def some_contractions(count):
    return np.random.default_rng(1).uniform(-0.004, 0.004, (count, len(cables())))


def test_batched_section_tips_equal_single_calls():
    arm = soft_arm(WEIGHT)
    rows = some_contractions(5)
    expected = [arm.forward(row).section_tips for row in rows]
    np.testing.assert_allclose(arm.section_tips_of(rows), expected, atol=1e-12)


def test_give_of_a_straight_arm_follows_virtual_work():
    """The generalised force of a bend is the moment about the middle of the straight arc."""
    arm = soft_arm()
    lengths = np.array([[s.length_m, s.endcap_length_m] for s in arm.sections])
    straight = np.zeros(2 * len(lengths))
    force = np.array([0.4, -0.7, 2.0])
    gives = np.linspace(0.1, 0.3, len(lengths))
    more = give_of_load(straight[None], lengths, gives, force[None], np.zeros((1, 3)))[0]
    _, jacobian = arm.tip_and_jacobian(straight)
    np.testing.assert_allclose(more, np.repeat(gives, 2) * (jacobian.T @ force), atol=1e-12)


def test_tip_moment_bends_about_its_axis_and_an_axial_moment_has_no_effect():
    lengths = np.array([[0.1, 0.0]])
    nothing = np.zeros((1, 3))
    turn = give_of_load(
        np.zeros((1, 2)), lengths, np.ones(1), nothing, np.array([[0.0, 0.1, 0.2]])
    )
    np.testing.assert_allclose(turn, [[0.1, 0.0]], atol=1e-12)
    tips = section_tips(turn, lengths)
    assert tips[0, 0, 0, 3] > 0.0  # about y, towards x


def test_loaded_bends_are_in_balance_and_a_missing_balance_is_refused():
    arm = soft_arm(WEIGHT)
    contraction = some_contractions(1)[0]
    bend = arm.configuration_of(contraction)
    free = soft_arm().configuration_of(contraction)
    lengths = np.array([[s.length_m, s.endcap_length_m] for s in arm.sections])
    gives = np.full(len(lengths), 0.3)
    more = give_of_load(bend[None], lengths, gives, np.array([WEIGHT]), np.zeros((1, 3)))[0]
    np.testing.assert_allclose(bend, free + more, atol=1e-9)
    assert np.abs(more).max() > 0.01
    with pytest.raises(ModelError, match='finds no balance with a load of 500 N'):
        bends_under_load(
            free[None], lengths, 10.0 * gives, np.array([[500.0, 0.0, 0.0]]), np.zeros((1, 3))
        )


def test_contractions_and_loaded_bends_round_trip():
    arm = soft_arm(WEIGHT)
    contraction = np.linalg.pinv(arm.bends_per_contraction) @ np.linspace(
        -0.1, 0.1, len(arm.rest_configuration)
    )
    bend = arm.configuration_of(contraction)
    np.testing.assert_allclose(arm.actuation_of(bend), contraction, atol=1e-10)
    np.testing.assert_allclose(arm.actuation_of(arm.rest_configuration), 0.0, atol=1e-10)


def test_derivatives_of_a_loaded_arm_match_finite_differences():
    arm, step = soft_arm(WEIGHT), 1e-6
    contraction = some_contractions(1)[0]
    bend = arm.configuration_of(contraction)
    by_bend = np.stack(
        [
            (arm.actuation_of(bend + d) - arm.actuation_of(bend - d)) / (2.0 * step)
            for d in step * np.eye(len(bend))
        ],
        axis=1,
    )
    np.testing.assert_allclose(arm.actuation_jacobian(bend), by_bend, atol=1e-7)
    columns = [
        (arm.forward(contraction + d).tip - arm.forward(contraction - d).tip)[:3, 3] / (2.0 * step)
        for d in step * np.eye(len(contraction))
    ]
    np.testing.assert_allclose(arm.jacobian(contraction)[:3], np.stack(columns, axis=1), atol=1e-5)


def test_inverse_of_a_loaded_arm_minimises_the_contractions():
    """Along the motions that keep the tip, their norm has no slope."""
    arm = soft_arm(WEIGHT, 0.6)
    for row in some_contractions(4):
        found = arm.inverse(arm.forward(row).tip[:3, 3])
        assert found.converged, found.message
        free = null_space(arm.jacobian(found.actuation)[:3])
        slope = free.T @ found.actuation / np.linalg.norm(found.actuation)
        assert np.abs(slope).max() < 5e-3


def test_arm_without_give_is_unchanged_by_tip_weight_and_refuses_tip_loads():
    stiff = PairedCablesArm(sections(), cables(), WEIGHT)
    free = PairedCablesArm(sections(), cables())
    np.testing.assert_array_equal(stiff.rest_configuration, free.rest_configuration)
    with pytest.raises(ModelError, match='does not account for tip loads'):
        stiff.forward(some_contractions(1)[0], (0.0, 0.0, 1.0))
