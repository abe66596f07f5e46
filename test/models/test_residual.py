"""Learned errors of section tips: features of commands, corrections, trust."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from pair_cases import cables, sections, some_bends

from softarm_ros.geometry.poses import displacement
from softarm_ros.models.cable_driven.paired_cables import PairedCablesArm
from softarm_ros.models.command_features import (
    command_features,
    groups_of_features,
    lagging,
    parsed,
    through_valve,
    with_play,
)
from softarm_ros.models.corrected import CorrectedModel
from softarm_ros.models.residual import Residual, corrected, groups_of

ARM = PairedCablesArm(sections(), cables(some_bends(np.random.default_rng(3))))
COUNT = len(cables())
TIPS = len(sections())


def residual(reach=1e9, noise=1e-3, left=0.5):
    rng = np.random.default_rng(7)
    features = ('linear', 'square')
    size = COUNT + COUNT * (COUNT + 1) // 2
    weights = rng.normal(0.0, 2e-4, (size + 1, 6 * TIPS))
    return Residual(
        features, TIPS, (0,) * COUNT, np.zeros(COUNT), np.full(COUNT, 0.01), np.zeros(size),
        np.ones(size), weights, np.eye(size + 1), np.full(6 * TIPS, noise), reach, left,
    )  # fmt: skip


def test_lag_feature_follows_the_first_order_step_response():
    time = 0.01 * np.arange(300)
    step = np.ones((300, 1))
    late = lagging(step, time, 0.4, np.zeros(1))[:, 0]
    np.testing.assert_allclose(late, 1.0 - np.exp(-time / 0.4), atol=1e-12)
    assert np.all(lagging(step, None, 0.4, np.zeros(1)) == 1.0)


def test_play_feature_moves_only_beyond_its_play():
    there_and_back = np.array([[0.0], [0.5], [1.0], [0.5], [0.0], [-0.2]])
    moved = with_play(there_and_back, 0.2, np.zeros(1))[:, 0]
    np.testing.assert_allclose(moved, [0.0, 0.3, 0.8, 0.7, 0.2, 0.0])


def test_worked_feature_keeps_the_past_activity_of_its_own_section_only():
    time = 0.1 * np.arange(100)
    u = np.zeros((100, 4))
    u[10:40, :2] = 1.0
    found = command_features(['worked 0.2'], u, time, np.zeros(4), (0, 0, 1, 1))
    assert found.shape == (100, 6)
    assert found[0, 0] == 0.0
    assert found[-1, 0] == pytest.approx(1.0, abs=1e-4)
    np.testing.assert_array_equal(found[:, 1], 0.0)


def test_valve_feature_fills_and_vents_with_separate_lags():
    time = 0.01 * np.arange(600)
    u = np.where(time < 2.995, 1.0, 0.0)[:, None]
    out = through_valve(u, time, 0.3, 1.0, np.zeros(1))[:, 0]
    np.testing.assert_allclose(out[:300], 1.0 - np.exp(-time[:300] / 0.3), atol=1e-12)
    falling = out[299] * np.exp(-(time[300:] - time[299]) / 1.0)
    np.testing.assert_allclose(out[300:], falling, atol=1e-12)
    behind = command_features(['linear', 'valve 0.3 1.0', 'linear'], u, time, np.zeros(1), (0,))
    np.testing.assert_array_equal(behind, np.stack([u[:, 0], out], axis=1))


def test_stiffened_feature_depends_on_the_common_command_of_its_section():
    u = np.array([[-1.0, -1.0, -1.0, -1.0], [1.0, 1.0, -1.0, -1.0], [0.0, -1.0, -1.0, -1.0]])
    groups, time = (0, 0, 1, 1), np.arange(3.0)
    found = command_features(['stiffened 0.25'], u, time, u[0], groups)
    section = groups_of_features(['stiffened 0.25'], groups)
    ease = np.array([1.0, 0.2, 0.5])  # 1 / (1 + c / 0.25), c = 0, 1, 0.25
    inflation = 0.5 * (u[:, :2] + 1.0)
    highest = np.array([0.0, 1.0, 1.0])
    expected = np.column_stack([ease, ease[:, None] * inflation, ease * highest])
    np.testing.assert_allclose(found[:, section == 0], expected)
    assert np.all(found[:, section == 1] == found[0, section == 1])


def test_options_without_a_feature_are_refused():
    with pytest.raises(ValueError, match='local, valve 1 2: expected at least one more feature'):
        parsed(['local', 'valve 1 2'])
    assert groups_of_features(['square'], (0, 1)).tolist() == [0, -1, 1]


@pytest.mark.parametrize(
    'text',
    ['linear 3', 'valve 0.3', 'stiffened 0', 'lag', 'lag -1', 'lag nan', 'creep 2', 'play x'],
)
def test_unknown_or_malformed_features_are_refused(text):
    with pytest.raises(ValueError, match=f"feature '{text}': expected one of linear"):
        parsed(['linear', text])


def test_correction_fades_far_from_its_training_data():
    known = residual(reach=3.0)
    near = known.at(known.remembered(np.full((1, COUNT), 1e-3), None))
    far = known.at(known.remembered(np.full((1, COUNT), 0.2), None))
    assert near[2][0] == 1.0
    assert far[2][0] < near[2][0]
    assert np.all(far[1] > near[1])
    # Beyond the data the error of the correction grows with left^2 times the extra leverage.
    beyond = np.sum(known.remembered(np.full((1, COUNT), 0.2), None) ** 2) + 1.0 - 3.0
    assert beyond > 10.0
    assert far[2][0] == pytest.approx(1.0 / (1.0 + 0.5**2 * beyond))
    surer = residual(reach=3.0, left=0.1)
    assert surer.at(surer.remembered(np.full((1, COUNT), 0.2), None))[2][0] > far[2][0]
    endless = known.at(known.remembered(np.full((1, COUNT), 1e4), None))
    assert np.abs(endless[0]).max() < 0.01 * np.abs(far[0]).max()


def test_correction_fades_where_an_actuator_moves_that_stood_still_in_training():
    known = residual(left=1e-9)
    known = replace(known, scale=np.where(np.arange(len(known.scale)) == 0, 0.0, 1.0))

    def trust(contraction, actuator):
        commands = np.zeros((1, COUNT))
        commands[0, actuator] = contraction
        return known.at(known.remembered(commands, None))[2][0]

    assert trust(0.009, 1) == 1.0
    assert trust(0.00009, 0) == 1.0  # noise of the command
    assert trust(0.0002, 0) == pytest.approx(0.5)
    assert trust(0.009, 0) < 1e-3


def test_corrected_model_is_consistent_with_its_derivatives():
    model = CorrectedModel(ARM, residual())
    command = np.random.default_rng(2).uniform(-0.003, 0.003, COUNT)
    bend, step = ARM.configuration_of(command), 1e-6
    tip, jacobian = model.tip_and_jacobian(bend)
    np.testing.assert_allclose(model.shape_of(bend).tip[:3, 3], tip, atol=1e-12)
    np.testing.assert_allclose(model.tips_of(bend[None])[0], tip, atol=1e-12)
    assert np.linalg.norm(tip - ARM.shape_of(bend).tip[:3, 3]) > 1e-4
    moved = [model.tip_and_jacobian(bend + d)[0] for d in step * np.eye(len(bend))]
    back = [model.tip_and_jacobian(bend - d)[0] for d in step * np.eye(len(bend))]
    numeric = (np.array(moved) - np.array(back)).T / (2.0 * step)
    np.testing.assert_allclose(jacobian, numeric, atol=1e-6)
    posture = model.posture_of(bend)
    np.testing.assert_allclose(posture.tip, tip, atol=1e-12)
    np.testing.assert_allclose(posture.tip_jacobian, jacobian, atol=1e-9)


def test_a_corrected_shape_can_be_sent_to_another_process():
    shape = CorrectedModel(ARM, residual()).forward(np.full(COUNT, 1e-3))
    received = pickle.loads(pickle.dumps(shape))
    assert np.array_equal(received.centerline(5), shape.centerline(5))


def test_inverse_reaches_the_corrected_tip():
    model = CorrectedModel(ARM, residual())
    command = np.random.default_rng(4).uniform(-0.003, 0.003, COUNT)
    goal = model.forward(command).tip[:3, 3]
    found = model.inverse(goal, guess=command)
    assert found.converged, found.message
    np.testing.assert_allclose(model.forward(found.actuation).tip[:3, 3], goal, atol=1e-6)
    np.testing.assert_allclose(found.shape.tip[:3, 3], goal, atol=1e-6)


@pytest.mark.parametrize('direction', [0.0, 1.0, 2.5, 4.0])
def test_the_inverse_reaches_where_the_correction_moves_the_tip_beyond_the_physics(direction):
    """The straight arm is the longest: a correction along it moves the tip out of its reach."""
    longer = residual()
    longer.weights[:] = 0.0
    longer.weights[0, -4] = 3e-3
    model = CorrectedModel(ARM, longer)
    bend = np.zeros(len(ARM.rest_configuration))
    bend[:2] = 0.02 * np.array([np.cos(direction), np.sin(direction)])
    goal = model.shape_of(bend).tip[:3, 3]
    assert not ARM.inverse(goal).converged
    found = model.inverse(goal)
    assert found.converged, found.message
    np.testing.assert_allclose(model.forward(found.actuation).tip[:3, 3], goal, atol=1e-6)


def test_the_inverse_says_how_far_the_corrected_tip_stays_off():
    model = CorrectedModel(ARM, residual())
    goal = np.array([0.0, 0.0, 1.0])
    found = model.inverse(goal)
    off = np.linalg.norm(goal - model.forward(found.actuation).tip[:3, 3])
    assert not found.converged
    assert found.residual == pytest.approx(off, abs=1e-9)
    assert f'corrected tip {1e3 * off:.3f} mm from the target' in found.message


def test_rotation_corrections_act_about_the_base_frame():
    tips = np.tile(np.eye(4), (2, 1, 1))
    errors = np.zeros((2, 6))
    errors[1] = [0.1, 0.0, 0.0, 0.0, 0.0, np.pi / 2.0]
    moved = corrected(tips, errors)
    np.testing.assert_array_equal(moved[0], np.eye(4))
    np.testing.assert_allclose(moved[1, :3, 0], [0.0, 1.0, 0.0], atol=1e-12)
    assert moved[1, 0, 3] == 0.1


def turning():
    """Return a residual that also turns the tips, by about 3 degrees."""
    weights = residual().weights.copy()
    weights.reshape(-1, TIPS, 6)[:, :, 3:] *= 100.0
    return replace(residual(), weights=weights)


def test_twist_of_a_turned_tip_matches_differences():
    model, command = CorrectedModel(ARM, turning()), np.linspace(-3e-3, 4e-3, COUNT)
    J, step = model.jacobian(command), 1e-6
    for k, one in enumerate(step * np.eye(COUNT)):
        ahead, behind = model.forward(command + one).tip, model.forward(command - one).tip
        np.testing.assert_allclose(J[:, k], displacement(behind, ahead) / (2 * step), atol=1e-5)


def test_inverse_of_a_pose_reaches_the_turned_tip():
    model, rng = CorrectedModel(ARM, turning()), np.random.default_rng(1)
    for _ in range(5):
        command = rng.uniform(-3e-3, 3e-3, COUNT)
        pose = model.forward(command).tip
        solution = model.inverse(pose[:3, 3], pose[:3, :3], command)
        assert solution.converged, solution.message
        np.testing.assert_allclose(model.forward(solution.actuation).tip, pose, atol=1e-5)
    for bad in (command[:2], np.full(COUNT, np.nan)):
        with pytest.raises(ValueError, match=r'shape|finite|nan'):
            model.inverse(pose[:3, 3], pose[:3, :3], bad)


def test_actuators_of_one_section_are_one_group():
    assert groups_of(['a', 'a', 'b', 'a']) == (0, 0, 1, 0)
    assert groups_of([None, None]) == (0, 0)
