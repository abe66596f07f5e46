"""Constant curvature: closed forms, independent formulations, straight pose, slack rule."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import arm_parts, bend_of, central_differences, polar_deg
from scipy.linalg import expm
from scipy.optimize import linprog, minimize

from softarm_ros.geometry.poses import displacement
from softarm_ros.geometry.rotations import rotation_y, rotation_z
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cable_driven.bending import configuration_of_tips
from softarm_ros.models.cable_driven.constant_curvature import ConstantCurvatureArm

quick = settings(deadline=None, max_examples=60)
bends = st.floats(-2.9, 2.9)


@pytest.fixture(scope='module')
def arm():
    return ConstantCurvatureArm(*arm_parts())


@pytest.fixture(scope='module')
def single():
    return ConstantCurvatureArm(*arm_parts(1))


def published_section(theta, phi, L=0.093, h=0.015):
    """Section transform as printed (eq. 31), in (theta, phi)."""
    endcap = np.eye(4)
    endcap[2, 3] = h
    arc = np.eye(4)
    arc[:3, :3] = rotation_z(phi) @ rotation_y(theta) @ rotation_z(-phi)
    p = L / theta * np.array([1.0 - math.cos(theta), 0.0, math.sin(theta)])
    arc[:3, 3] = rotation_z(phi) @ p
    return endcap @ arc @ endcap


def test_arm_reports_names_and_rest_length(arm):
    assert arm.rest_length_m == pytest.approx(0.246)
    assert arm.configuration_names == (
        'section_0_bend_x',
        'section_0_bend_y',
        'section_1_bend_x',
        'section_1_bend_y',
    )
    np.testing.assert_allclose(arm.forward(np.zeros(6)).tip[:3, 3], [0.0, 0.0, 0.246], atol=1e-15)


def test_one_section_at_90_deg_has_the_published_tip(single):
    tip = single.shape_of(bend_of(90.0, 0.0)).tip[:3, 3]
    np.testing.assert_allclose(tip, [0.074206, 0.0, 0.074206], atol=1e-6)


@quick
@given(st.floats(0.01, 3.0), st.floats(-7.0, 7.0), st.floats(0.01, 3.0), st.floats(-7.0, 7.0))
def test_chain_equals_the_published_product(theta1, phi1, theta2, phi2):
    arm = ConstantCurvatureArm(*arm_parts())
    bend = np.array(
        [
            theta1 * math.cos(phi1),
            theta1 * math.sin(phi1),
            theta2 * math.cos(phi2),
            theta2 * math.sin(phi2),
        ]
    )
    shape = arm.shape_of(bend)
    first = published_section(theta1, phi1)
    np.testing.assert_allclose(shape.section_tips[0], first, atol=1e-14)
    np.testing.assert_allclose(shape.tip, first @ published_section(theta2, phi2), atol=1e-14)


def test_section_is_the_exponential_of_its_twist(single):
    """An arc is a constant body twist: curvature about (-b_y, b_x), unit speed along z."""
    bend = np.array([0.8, -0.5])
    twist = np.zeros((4, 4))
    twist[:3, :3] = [[0.0, 0.0, bend[0]], [0.0, 0.0, bend[1]], [-bend[0], -bend[1], 0.0]]
    twist[2, 3] = 0.093
    endcap = np.eye(4)
    endcap[2, 3] = 0.015
    np.testing.assert_allclose(
        single.shape_of(bend).tip, endcap @ expm(twist) @ endcap, atol=1e-14
    )


@quick
@given(bends, bends, bends, bends)
def test_jacobians_equal_central_differences(a, b, c, d):
    arm = ConstantCurvatureArm(*arm_parts())
    bend = np.array([a, b, c, d])
    tip, jacobian = arm.tip_and_jacobian(bend)
    shape = arm.shape_of(bend)
    np.testing.assert_allclose(tip, shape.tip[:3, 3], atol=1e-15)
    numeric = central_differences(
        lambda q: displacement(shape.tip, arm.shape_of(q).tip), bend, 1e-3
    )
    # The rotation vector of a finite displacement differs from its differential at third order.
    np.testing.assert_allclose(arm.twist_jacobian(bend), numeric, atol=2e-9)
    np.testing.assert_allclose(arm.twist_jacobian(bend)[:3], jacobian, atol=1e-15)


def test_jacobian_of_the_straight_section_has_its_closed_form(single):
    jacobian = single.twist_jacobian(np.zeros(2))
    lever = 0.093 / 2 + 0.015
    expected = [[lever, 0], [0, lever], [0, 0], [0, -1], [1, 0], [0, 0]]
    np.testing.assert_allclose(jacobian, expected, atol=1e-16)


def test_jacobian_is_smooth_through_straight(arm):
    """The z row is odd and linear at zero, to full relative precision however small the bend."""
    slope = None
    for size in (1e-14, 1e-11, 1e-8, 1e-5, 1e-3):
        row = arm.tip_and_jacobian(size * np.array([0.6, -0.8, 0.3, 0.2]))[1][2] / size
        slope = row if slope is None else slope
        np.testing.assert_allclose(row, slope, rtol=1e-5)
        np.testing.assert_allclose(
            arm.tip_and_jacobian(-size * np.array([0.6, -0.8, 0.3, 0.2]))[1][2],
            -row * size,
            rtol=1e-12,
        )
    sizes = np.linspace(-2e-3, 2e-3, 81)
    column = np.array(
        [arm.tip_and_jacobian(np.array([s, 0.1 * s, 0.4, 0.1]))[1].ravel() for s in sizes]
    )
    roughness = np.abs(np.diff(column, n=3, axis=0)).max()
    assert roughness < 1e-12  # a switch of formula at a threshold would show here


def test_series_and_closed_forms_join_smoothly(single):
    """Third differences of the tip across theta = 1 rad, where the formula changes."""
    thetas = 1.0 + np.linspace(-1e-3, 1e-3, 41)
    tips = np.array([single.shape_of(np.array([t, 0.0])).tip.ravel() for t in thetas])
    assert np.abs(np.diff(tips, n=3, axis=0)).max() < 1e-12


@pytest.mark.parametrize('bend', [(0.0,) * 4, (1e-9, 0, 0, 1e-9), (1.2, 0.3, -0.8, 1.0)])
def test_centerline_is_evenly_spaced_along_the_body(arm, bend):
    shape = arm.shape_of(np.array(bend))
    points = shape.centerline(1201)
    np.testing.assert_allclose(points[0], np.zeros(3), atol=1e-16)
    np.testing.assert_allclose(points[-1], shape.tip[:3, 3], atol=1e-14)
    spacing = np.linalg.norm(np.diff(points, axis=0), axis=1)
    np.testing.assert_allclose(spacing, 0.246 / 1200, rtol=2e-5)
    middle = shape.centerline(3)[1]  # halfway: the outer face of the first section
    np.testing.assert_allclose(middle, shape.section_tips[0][:3, 3], atol=1e-14)


def test_batched_tips_equal_single_calls(arm):
    bends = np.random.default_rng(4).uniform(-3.0, 3.0, (200, 4))
    bends[0], bends[1] = 0.0, 1e-9
    one_by_one = [arm.shape_of(bend).tip[:3, 3] for bend in bends]
    np.testing.assert_allclose(arm.tips_of(bends), one_by_one, atol=1e-14)
    assert arm.tips_of(np.empty((0, 4))).shape == (0, 3)


@pytest.mark.parametrize(
    ('bends', 'message'),
    [
        (np.zeros((3, 2)), r'shape \(3, 2\); expected \(n, 4\)'),
        (np.array([[0.0] * 4, [0.0, np.inf, 0.0, 0.0]]), r'configurations\[1\]'),
    ],
)
def test_errors_name_invalid_configurations_in_a_batch(arm, bends, message):
    with pytest.raises(ValueError, match=message):
        arm.tips_of(bends)


def test_centerline_needs_two_points(arm):
    with pytest.raises(ValueError, match='n = 1'):
        arm.shape_of(np.zeros(4)).centerline(1)


def test_damped_step_solves_its_normal_equations(arm):
    bend, target = np.array([0.5, 0.2, -0.7, 0.9]), np.array([0.06, 0.05, 0.19])
    tip, jacobian = arm.tip_and_jacobian(bend)
    for damping in (1e-9, 1e-6, 1e-2):
        step = arm.damped_step(bend, target, damping)
        stacked = np.vstack([jacobian, math.sqrt(damping) * np.eye(4)])
        expected = np.linalg.lstsq(
            stacked, np.concatenate([target - tip, np.zeros(4)]), rcond=None
        )
        np.testing.assert_allclose(step, expected[0], rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match='damping'):
        arm.damped_step(bend, target, 0.0)


def test_damped_step_is_finite_at_the_straight_pose(arm):
    step = arm.damped_step(np.zeros(4), (0.05, 0.0, 0.2), 1e-6)
    assert np.isfinite(step).all() and step[0] > 0.0


@quick
@given(bends, bends, bends, bends)
def test_actuation_is_linear_in_the_bend_and_round_trips(a, b, c, d):
    arm = ConstantCurvatureArm(*arm_parts())
    bend = np.array([a, b, c, d])
    actuation = arm.actuation_of(bend)
    theta, phi = math.hypot(a, b), math.atan2(b, a)
    expected = [0.0125 * theta * math.cos(beta - phi) for beta in np.radians([0, 120, 240])]
    np.testing.assert_allclose(actuation[:3], expected, atol=1e-15)
    np.testing.assert_allclose(arm.actuation_jacobian(bend) @ bend, actuation, atol=1e-15)
    np.testing.assert_allclose(arm.configuration_of(actuation), bend, atol=1e-12)


@pytest.mark.parametrize(
    'angles',
    [(0,), (0, 90), (0, 120, 240), (0, 90, 180, 270), (10, 75, 200, 260, 300), range(0, 360, 60)],
)
def test_slack_rule_equals_a_general_optimiser(angles):
    """Reference: least |b| under a_i . b >= c_i by SLSQP, feasibility by linear programme."""
    arm = ConstantCurvatureArm(*arm_parts(1, angles))
    A = 0.0125 * np.stack([np.cos(np.radians(angles)), np.sin(np.radians(angles))], axis=1)
    rng = np.random.default_rng(len(angles))
    feasible = 0
    for _ in range(40):
        c = A @ rng.uniform(-1.5, 1.5, 2) + rng.uniform(-0.01, 0.004, len(angles))
        programme = linprog(
            [0, 0, 1],
            A_ub=np.hstack([-A, -np.ones((len(A), 1))]),
            b_ub=-c,
            bounds=[(None, None)] * 2 + [(-1.0, None)],
        )
        if programme.x[2] > 2e-6:
            with pytest.raises(ModelError, match='pulled in against each other') as caught:
                arm.configuration_of(c)
            assert f'{1e3 * programme.x[2]:.3f} mm' in str(caught.value)
            continue
        feasible += 1
        bend = arm.configuration_of(c)
        reference = minimize(
            lambda b: b @ b,
            programme.x[:2],
            jac=lambda b: 2 * b,
            method='SLSQP',
            constraints={
                'type': 'ineq',
                'fun': lambda b, c=c: 100 * (A @ b - c),
                'jac': lambda b: 100 * A,
            },
            options={'ftol': 1e-14, 'maxiter': 200},
        )
        np.testing.assert_allclose(bend, reference.x, atol=2e-5)
        assert (A @ bend - c).min() > -1e-12
    assert feasible >= 5


def test_slack_cables_do_not_change_the_bend(single):
    np.testing.assert_allclose(single.configuration_of([-0.01, -0.02, -0.005]), 0.0)
    bend = single.configuration_of([0.01, -0.02, -0.02])
    np.testing.assert_allclose(bend, [0.01 / 0.0125, 0.0], atol=1e-14)
    # Pulling one slack cable further changes nothing until it becomes taut.
    assert np.array_equal(bend, single.configuration_of([0.01, -0.006, -0.02]))


def test_pulling_all_cables_is_refused_with_names_and_amounts(single):
    with pytest.raises(ModelError) as caught:
        single.forward([0.010, 0.012, 0.005])
    message = str(caught.value)
    assert '9.000 mm' in message  # the mean: directions of the three cables cancel
    for text in ('section_0', 'section_0_cable_0 10.000 mm', 'section_0_cable_1 12.000 mm'):
        assert text in message


def test_rounded_commands_are_not_refused_as_a_conflict(single):
    bend = bend_of(75.0, 40.0)
    rounded = np.round(single.actuation_of(bend), 7) + 1e-7
    np.testing.assert_allclose(single.configuration_of(rounded), bend, atol=1e-4)


@pytest.mark.parametrize('c', [[0.012, -0.02, -0.015], [0.01, 0.008, -0.03], [0.001, -0.03, 0.02]])
def test_jacobian_by_contraction_equals_central_differences(single, c):
    c = np.array(c)
    shape = single.forward(c)
    numeric = central_differences(
        lambda q: displacement(shape.tip, single.forward(q).tip), c, 1e-5
    )
    np.testing.assert_allclose(single.jacobian(c), numeric, atol=1e-6)


@pytest.mark.parametrize('theta', [0.0, 1e-10, 30.0, 90.0])
def test_jacobian_times_actuation_jacobian_equals_the_twist_jacobian(arm, theta):
    bend = np.concatenate([bend_of(theta, 0.0), bend_of(theta, 77.0)])
    product = arm.jacobian(arm.actuation_of(bend)) @ arm.actuation_jacobian(bend)
    np.testing.assert_allclose(product, arm.twist_jacobian(bend), atol=1e-9)


def test_one_cable_holds_bends_in_its_own_direction_only():
    arm = ConstantCurvatureArm(*arm_parts(1, (30.0,)))
    np.testing.assert_allclose(
        arm.actuation_of(bend_of(80.0, 30.0)), [0.0125 * math.radians(80.0)]
    )
    with pytest.raises(
        ModelError, match=r'section_0: no cables can hold a bend towards 40\.0 deg'
    ):
        arm.actuation_of(bend_of(80.0, 40.0))
    assert polar_deg(arm.configuration_of([0.01])) == pytest.approx((math.degrees(0.8), 30.0))


def test_configuration_of_tips_recovers_bending_vectors_from_poses(arm):
    bend = np.array([1.9, -0.7, 0.0, 1e-7])
    np.testing.assert_allclose(
        configuration_of_tips(arm.shape_of(bend).section_tips), bend, atol=1e-12
    )
    np.testing.assert_allclose(configuration_of_tips(np.stack([np.eye(4)] * 2)), 0.0)
    with pytest.raises(ValueError, match='section_tips'):
        configuration_of_tips(np.eye(4))


def test_bending_beyond_360_deg_is_refused(single):
    with pytest.raises(ModelError, match='beyond 360'):
        single.forward([0.085, -0.2, -0.2])


def test_actuation_follows_the_order_of_the_cables():
    sections, cables = arm_parts()
    order = [4, 0, 3, 5, 2, 1]
    mixed = ConstantCurvatureArm(sections, [cables[i] for i in order])
    plain = ConstantCurvatureArm(sections, cables)
    bend = np.array([0.4, 0.1, -0.6, 0.9])
    actuation = plain.actuation_of(bend)
    np.testing.assert_allclose(mixed.actuation_of(bend), actuation[order])
    np.testing.assert_allclose(mixed.configuration_of(actuation[order]), bend, atol=1e-12)
    np.testing.assert_allclose(
        mixed.jacobian(actuation[order]), plain.jacobian(actuation)[:, order]
    )
