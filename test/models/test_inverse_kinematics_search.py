"""Inverse kinematics of both models: solutions, limits, best approach, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import arm_parts, bend_of
from scipy.optimize import minimize

from softarm_ros.geometry.rotations import exp_so3
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.config import MODEL_NAMES
from softarm_ros.models.factory import build_model

quick = settings(deadline=None, max_examples=60)
component = st.floats(-1.5, 1.5)


@pytest.fixture(params=MODEL_NAMES)
def arm(request):
    return build_model(request.param, *arm_parts())


@quick
@given(component, component, component, component, st.sampled_from(MODEL_NAMES))
def test_inverse_reaches_reachable_positions_within_the_bending_limit(a, b, c, d, name):
    arm = build_model(name, *arm_parts())
    target = arm.shape_of(np.array([a, b, c, d])).tip[:3, 3]
    solution = arm.inverse(target)
    assert solution.converged and solution.residual <= 1e-6
    np.testing.assert_allclose(arm.forward(solution.actuation).tip[:3, 3], target, atol=2e-6)
    bends = np.linalg.norm(solution.shape.configuration.reshape(-1, 2), axis=1)
    assert np.degrees(bends).max() <= 130.0 + 1e-9


@quick
@given(component, component, component, component)
def test_inverse_reaches_reachable_poses(a, b, c, d):
    arm = build_model('cable_statics', *arm_parts())
    goal = arm.shape_of(np.array([a, b, c, d])).tip
    solution = arm.inverse(goal[:3, 3], goal[:3, :3])
    assert solution.converged
    np.testing.assert_allclose(solution.shape.tip, goal, atol=1e-4)


@pytest.mark.parametrize('sections', [1, 2, 3, 5])
def test_inverse_of_the_straight_tip_is_the_straight_arm(sections):
    arm = build_model('cable_statics', *arm_parts(sections))
    solution = arm.inverse((0.0, 0.0, arm.rest_length_m))
    assert solution.converged
    np.testing.assert_allclose(solution.shape.configuration, 0.0, atol=6e-3)


@pytest.mark.parametrize('sections', [1, 2, 3])
@pytest.mark.parametrize(
    'target', [(0.0, 0.0, 0.5), (0.3, -0.1, 0.1), (0.0, 0.0, -0.3), (0.02, 0.0, 0.05), (0.0,) * 3]
)
def test_inverse_of_a_point_out_of_reach_gives_the_best_approach(sections, target):
    """Reference: bounded optimisation in polar coordinates from many random starts."""
    arm = build_model('constant_curvature', *arm_parts(sections))
    solution = arm.inverse(target)
    limit = math.radians(130.0)

    def distance(polar):
        theta, phi = polar[:sections], polar[sections:]
        bend = np.stack([theta * np.cos(phi), theta * np.sin(phi)], axis=1).ravel()
        return 1e2 * float(np.sum((arm.shape_of(bend).tip[:3, 3] - target) ** 2))

    rng = np.random.default_rng(sections)
    best = math.inf
    for _ in range(10):
        start = np.concatenate([rng.uniform(0, limit, sections), rng.uniform(-3, 3, sections)])
        bounds = [(0.0, limit)] * sections + [(None, None)] * sections
        best = min(best, minimize(distance, start, bounds=bounds, method='L-BFGS-B').fun)
    best = 0.1 * math.sqrt(best)
    if best < 1e-4:
        assert solution.residual < best + 1e-6
        return
    assert not solution.converged
    assert solution.residual <= best + 1e-6
    assert f'not reached: {1e3 * solution.residual:.3f} mm left' in solution.message
    at_limit = np.linalg.norm(solution.shape.configuration.reshape(-1, 2), axis=1) > limit - 1e-9
    for k in range(sections):
        assert (f'section_{k} at its 130 deg bending limit' in solution.message) == at_limit[k]
    assert ('out of reach' in solution.message) == (not at_limit.any())


def test_impossible_orientation_is_reported(arm):
    tip = arm.shape_of(np.array([0.5, 0.0, 0.5, 0.0])).tip
    twisted = exp_so3([0.0, 0.0, 0.5]) @ tip[:3, :3]
    solution = arm.inverse(tip[:3, 3], twisted)
    assert not solution.converged and solution.residual > 1e-3
    assert ' mm and ' in solution.message and ' deg left' in solution.message
    free = arm.inverse(tip[:3, 3])
    lever = 0.5 * arm.rest_length_m
    angle = np.linalg.norm(exp_so3([0.0, 0.0, 0.5]) - np.eye(3)) / math.sqrt(2.0)
    assert free.converged and solution.residual <= lever * angle * 1.05


def test_one_section_reaches_its_surface_only(arm):
    single = build_model(arm.name, *arm_parts(1))
    bend = bend_of(70.0, 200.0)
    on_surface = single.shape_of(bend).tip[:3, 3]
    np.testing.assert_allclose(single.inverse(on_surface).shape.configuration, bend, atol=1e-6)
    off = single.inverse(1.1 * on_surface)
    assert not off.converged
    # At the best approach the error is normal to the surface.
    tip, jacobian = single.tip_and_jacobian(off.shape.configuration)
    assert np.abs(jacobian.T @ (1.1 * on_surface - tip)).max() < 1e-8
    assert off.residual == pytest.approx(np.linalg.norm(1.1 * on_surface - tip), rel=1e-9)


def test_inverse_bends_only_towards_a_single_cable():
    arm = build_model('cable_statics', *arm_parts(1, (90.0,)))
    solution = arm.inverse((0.05, 0.05, 0.08))
    bend = solution.shape.configuration
    assert not solution.converged and abs(bend[0]) < 1e-12 and bend[1] > 0.1
    assert solution.actuation[0] > 0.0
    away = arm.inverse((0.0, -0.08, 0.08))
    np.testing.assert_allclose(away.shape.configuration, 0.0, atol=1e-9)


def test_guess_selects_the_branch_and_the_inverse_repeats_exactly(arm):
    bend = np.array([1.0, 0.3, -0.8, 0.4])
    target = arm.shape_of(bend).tip[:3, 3]
    near = arm.inverse(target, guess=arm.actuation_of(bend + 0.01))
    assert near.converged
    assert np.abs(near.shape.configuration - bend).max() < 0.05
    cold = arm.inverse(target)
    assert np.linalg.norm(cold.shape.configuration) < np.linalg.norm(near.shape.configuration)
    assert np.array_equal(cold.actuation, arm.inverse(target).actuation)


def test_inverse_converges_despite_a_useless_guess(arm):
    target = arm.shape_of(np.array([0.4, 0.1, 0.2, -0.3])).tip[:3, 3]
    assert arm.inverse(target, guess=np.full(6, 0.04)).converged


def test_tip_loads_are_refused(arm):
    for call in (
        lambda: arm.forward(np.zeros(6), tip_force=(0, 0, 1.0)),
        lambda: arm.forward(np.zeros(6), tip_moment=(0.1, 0, 0)),
        lambda: arm.inverse((0, 0, 0.2), tip_force=(0, 1.0, 0)),
    ):
        with pytest.raises(ModelError, match='does not account for tip loads'):
            call()


@pytest.mark.parametrize(
    ('call', 'message'),
    [
        (
            lambda arm: arm.forward(np.zeros(5)),
            r'actuation has shape \(5,\), expected \(6,\).*section_0_cable_0',
        ),
        (
            lambda arm: arm.forward([0, 0, 0, 0, math.nan, 0]),
            'actuation of section_1_cable_1 is nan',
        ),
        (
            lambda arm: arm.jacobian([math.inf, 0, 0, 0, 0, 0]),
            'actuation of section_0_cable_0 is inf',
        ),
        (
            lambda arm: arm.shape_of(np.zeros(3)),
            r'configuration has shape \(3,\), expected \(4,\)',
        ),
        (
            lambda arm: arm.actuation_of([0, math.nan, 0, 0]),
            'configuration of section_0_bend_y is nan',
        ),
        (
            lambda arm: arm.shape_of([0, -1e300, 0, 0]),
            r'configuration of section_0_bend_y is -1e\+300 rad, expected at most 1e\+06 rad',
        ),
        (lambda arm: arm.inverse((0, 0)), r'position has shape \(2,\)'),
        (lambda arm: arm.inverse((0, math.nan, 0.2)), 'position = .*not finite'),
        (lambda arm: arm.inverse((0, 0, 0.2), np.eye(3)[::-1]), 'not a rotation matrix'),
        (
            lambda arm: arm.inverse((0, 0, 0.2), guess=np.zeros(4)),
            r'guess has shape \(4,\), expected \(6,\)',
        ),
        (
            lambda arm: arm.inverse((0, 0, 0.2), guess=np.full(6, math.nan)),
            'guess of section_0_cable_0 is nan',
        ),
        (lambda arm: arm.forward(np.zeros(6), tip_force=(0, 0, math.nan)), 'tip_force'),
    ],
)
def test_errors_name_the_invalid_input(arm, call, message):
    with pytest.raises(ValueError, match=message):
        call(arm)


def test_read_only_and_strided_input_is_accepted(arm):
    actuation = arm.actuation_of(np.array([0.4, 0.1, 0.2, -0.3]))
    strided = np.repeat(actuation, 2)[::2]
    strided.flags.writeable = False
    assert np.array_equal(arm.forward(strided).tip, arm.forward(list(actuation)).tip)


@pytest.mark.parametrize(
    ('edit', 'message'),
    [
        (lambda s, c: ([], c), 'at least one section'),
        (lambda s, c: (s, c[:3]), "section 'section_1' has no cable"),
        (lambda s, c: (s[:1], c), "section 'section_1' does not exist"),
        (lambda s, c: (s, [*c, c[0]]), 'cable names repeat: section_0_cable_0'),
        (lambda s, c: ([*s, s[0]], c), 'section names repeat: section_0'),
    ],
)
def test_inconsistent_sections_and_cables_are_refused(edit, message):
    with pytest.raises(ValueError, match=message):
        build_model('cable_statics', *edit(*arm_parts()))


def test_unknown_model_is_refused():
    with pytest.raises(ValueError, match="unknown model 'rod'; there are constant_curvature"):
        build_model('rod', *arm_parts())
