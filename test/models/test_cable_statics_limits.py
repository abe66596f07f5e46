"""Cable statics: round trips, derivatives, symmetries, slack, limits, wrong input."""

import math

import numpy as np
import pytest
from cable_cases import PARAMETERS, cable_section
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import (
    BENDING,
    CUTTING,
    LENGTH,
    RADIUS,
    THREE,
    arm_parts,
    bend_of,
    central_differences,
)

from softarm_ros.geometry.poses import displacement
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cable_driven.cable_statics import (
    CableStaticsArm,
    single_cable_inverse,
)
from softarm_ros.models.cable_driven.constant_curvature import ConstantCurvatureArm

quick = settings(deadline=None, max_examples=80)


@quick
@given(
    st.floats(0.0, 170.0),
    st.floats(-180.0, 180.0),
    st.sampled_from([THREE, (0, 90, 180, 270), tuple(range(0, 360, 60)), (10, 130, 200, 300)]),
)
def test_bend_and_contractions_round_trip(theta, phi, angles):
    arm = CableStaticsArm(*arm_parts(1, angles))
    bend = bend_of(theta, phi)
    np.testing.assert_allclose(arm.configuration_of(arm.actuation_of(bend)), bend, atol=1e-10)


@quick
@given(st.floats(-9.0, -1.0), st.floats(0.0, 360.0))
def test_bend_and_contractions_round_trip_close_to_straight(exponent, phi):
    arm = CableStaticsArm(*arm_parts(1))
    bend = bend_of(10.0**exponent, phi)
    returned = arm.configuration_of(arm.actuation_of(bend))
    np.testing.assert_allclose(returned, bend, atol=1e-9 * np.linalg.norm(bend))


@pytest.mark.parametrize('angles', [(0,), (25,), (0, 90), (0, 180)])
def test_section_with_one_or_two_cables_refuses_bends_it_cannot_hold(angles):
    section = cable_section(angles)
    theta = math.radians(70.0)
    state = section.section_inverse(theta, math.radians(angles[0]))
    assert state.tension[0] > 1.0 and not state.tension[1:].any()
    forward = section.section_forward(LENGTH - state.contraction)
    np.testing.assert_allclose(forward.bend, state.bend, atol=1e-10)
    with pytest.raises(ModelError, match='no cables can hold a bend towards'):
        section.section_inverse(theta, math.radians(angles[0] - 5.0))


@pytest.mark.parametrize('cutting', [1e9, 1e11])
def test_stiff_body_approaches_constant_curvature(cutting):
    parts = arm_parts(2, cutting_in_stiffness_N_m2=cutting)
    bend = np.array([1.1, -0.4, 0.3, 1.6])
    baseline, arm = ConstantCurvatureArm(*parts), CableStaticsArm(*parts)
    difference = np.abs(arm.actuation_of(bend) - baseline.actuation_of(bend)).max()
    assert 0.0 < difference < 1e2 / cutting  # first order in 1 / K_t
    np.testing.assert_allclose(
        arm.actuation_jacobian(bend), baseline.actuation_jacobian(bend), atol=1e4 / cutting
    )
    np.testing.assert_allclose(arm.configuration_of(arm.actuation_of(bend)), bend, atol=1e-9)


def test_excess_contraction_grows_with_the_cube_of_the_bending_angle():
    excess = [
        single_cable_inverse(t, *PARAMETERS).contraction / t - RADIUS for t in (0.02, 0.04, 0.08)
    ]
    assert excess[1] / excess[0] == pytest.approx(4.0, rel=0.01)
    assert excess[2] / excess[1] == pytest.approx(4.0, rel=0.02)


def test_excess_far_below_the_contraction_keeps_its_relative_precision():
    """Small angles: alpha = 4 K_b theta^2 / (K_t d L^3), e = L theta alpha / 6."""
    section = cable_section((0,))
    for theta in (1e-6, 1e-5, 1e-4, 1e-3):
        state = section.section_inverse(theta)
        alpha = 4.0 * BENDING / (LENGTH**3 * RADIUS * CUTTING) * theta**2
        assert state.incident_angle[0] == pytest.approx(alpha, rel=0.3 * theta)
        excess = state.contraction[0] - RADIUS * theta
        assert excess == pytest.approx(LENGTH * theta * alpha / 6.0, rel=theta, abs=1e-16 * theta)
        back = section._forward(state.contraction)
        assert back.tension[0] == pytest.approx(state.tension[0], rel=1e-13 / theta**2)


@quick
@given(st.floats(0.0, 165.0), st.floats(1.0, 59.0), st.integers(0, 5))
def test_actuation_jacobian_equals_central_differences(theta, phi, sector):
    """Inside the sectors between cables, where the map is smooth; the straight pose included."""
    arm = CableStaticsArm(*arm_parts(1))
    bend = bend_of(theta, phi + 60.0 * sector)
    step = min(1e-3, 0.2 * math.radians(theta) * math.sin(math.radians(min(phi, 60.0 - phi))))
    if step < 1e-5:
        step = 1e-3 if theta < 1e-3 else 1e-5
    numeric = central_differences(arm.actuation_of, bend, step)
    np.testing.assert_allclose(arm.actuation_jacobian(bend), numeric, atol=3e-8)


def test_actuation_jacobian_is_smooth_through_straight():
    arm = CableStaticsArm(*arm_parts(1))
    baseline = arm.actuation_jacobian(np.zeros(2))
    np.testing.assert_allclose(
        baseline[:, 0], RADIUS * np.cos(np.radians(THREE)), rtol=1e-15, atol=1e-17
    )
    for theta in (1e-12, 1e-9, 1e-6, 1e-4):
        for sign in (1.0, -1.0):
            jacobian = arm.actuation_jacobian(sign * theta * np.array([0.8, 0.6]))
            np.testing.assert_allclose(jacobian, baseline, atol=max(1e-16, 0.1 * theta**2))


@pytest.mark.parametrize('angles', [THREE, (0, 90, 180, 270)])
@pytest.mark.parametrize('direction', [0.0, 120.0, 180.0])
def test_actuation_jacobian_at_a_cable_switch_is_a_one_sided_derivative(angles, direction):
    arm = CableStaticsArm(*arm_parts(1, angles))
    bend = bend_of(80.0, direction)
    across = np.array([-bend[1], bend[0]]) / np.linalg.norm(bend)
    analytic = arm.actuation_jacobian(bend) @ across
    sides = [
        (arm.actuation_of(bend + sign * 1e-6 * across) - arm.actuation_of(bend)) / (sign * 1e-6)
        for sign in (1.0, -1.0)
    ]
    assert min(np.abs(analytic - side).max() for side in sides) < 1e-6


@pytest.mark.parametrize(
    'contraction_mm',
    [
        (14.0, -5.0, -9.0),  # one cable
        (16.0, 6.0, -30.0),  # two
        (20.0, 2.0, -17.0),  # all three, cut in
        (24.0, -9.0, -9.5),
        (1.0, -3.0, -2.0),  # hardly bent
    ],
)
def test_jacobian_by_contraction_equals_central_differences(contraction_mm):
    arm = CableStaticsArm(*arm_parts(1))
    c = 1e-3 * np.array(contraction_mm)
    shape = arm.forward(c)
    numeric = central_differences(lambda q: displacement(shape.tip, arm.forward(q).tip), c, 2e-6)
    np.testing.assert_allclose(arm.jacobian(c), numeric, atol=3e-6 * np.abs(numeric).max())


@pytest.mark.parametrize('theta', [0.0, 1e-8, 1e-5, 1.0, 60.0, 160.0])
def test_jacobian_times_actuation_jacobian_equals_the_twist_jacobian(theta):
    """d tip / d contraction times d contraction / d bend = d tip / d bend, at any angle."""
    arm = CableStaticsArm(*arm_parts(2))
    bend = np.concatenate([bend_of(theta, 17.0), bend_of(theta, 200.0)])
    product = arm.jacobian(arm.actuation_of(bend)) @ arm.actuation_jacobian(bend)
    np.testing.assert_allclose(product, arm.twist_jacobian(bend), atol=1e-6)


@quick
@given(st.floats(1.0, 170.0), st.floats(0.0, 360.0))
def test_section_inverse_has_rotation_and_mirror_symmetry(theta, phi):
    section = cable_section()
    theta, phi = math.radians(theta), math.radians(phi)
    plain = section.section_inverse(theta, phi)
    turned = section.section_inverse(theta, phi + math.radians(120.0))
    np.testing.assert_allclose(turned.contraction, np.roll(plain.contraction, 1), atol=1e-14)
    np.testing.assert_allclose(turned.tension, np.roll(plain.tension, 1), atol=1e-11)
    mirrored = section.section_inverse(theta, -phi)
    np.testing.assert_allclose(mirrored.contraction, plain.contraction[[0, 2, 1]], atol=1e-14)


def test_slack_cable_does_not_change_the_bend():
    section = cable_section()
    state = section.section_inverse(math.radians(80.0), math.radians(40.0))
    lengths = LENGTH - state.contraction
    for payed_out in (0.0, 1e-9, 1e-4, 0.02):
        loose = section.section_forward(lengths + np.array([0.0, 0.0, payed_out]))
        np.testing.assert_allclose(loose.bend, state.bend, atol=1e-11)
        assert loose.tension[2] < 1e-9
    tight = section.section_forward(lengths - np.array([0.0, 0.0, 1e-4]))
    assert tight.tension[2] > 1e-3
    assert tight.theta < state.theta


def test_section_is_straight_if_all_cables_are_slack():
    state = cable_section().section_forward(LENGTH + np.array([0.001, 0.0, 0.02]))
    assert state.theta == 0.0 and not state.tension.any() and state.phi == 0.0
    np.testing.assert_allclose(state.cable_curvature, 0.0)


def test_co_contraction_of_a_straight_section_is_refused_with_names_and_amounts():
    with pytest.raises(ModelError) as caught:
        CableStaticsArm(*arm_parts(1)).forward(np.full(3, 0.002))
    message = str(caught.value)
    for text in ('section_0', '2.000 mm', 'section_0_cable_2 2.000 mm', 'against each other'):
        assert text in message
    # Co-contraction below the resolution of any drive leaves the section straight.
    assert cable_section().section_forward(np.full(3, LENGTH - 5e-7)).theta < 1e-6


@pytest.mark.parametrize('size', [1e-8, 1e-7, 1e-6, 1e-5, 1e-4])
def test_conflicts_below_the_drive_resolution_match_constant_curvature(size):
    """Near the straight pose, cutting in takes up less than the tolerance of a micrometre."""
    exact, cutting = ConstantCurvatureArm(*arm_parts(1)), CableStaticsArm(*arm_parts(1))
    rng = np.random.default_rng(0)
    for _ in range(40):
        contraction = rng.uniform(-size, size, 3)
        contraction += rng.uniform(0.0, min(size, 9e-7)) - contraction.mean()
        bend = cutting.configuration_of(contraction)
        expected = exact.configuration_of(contraction)
        np.testing.assert_allclose(bend, expected, atol=1e-2 * np.abs(expected).max())
        assert np.isfinite(cutting.jacobian(contraction)).all()


def test_slightly_bent_concentric_arcs_have_an_equilibrium_in_a_limp_stiff_walled_body():
    """All cables just touch the arc, and two of them cut in to hold it."""
    section = cable_section(bending_stiffness_N_m2=1.3e-4, cutting_in_stiffness_N_m2=4e5)
    cables = RADIUS * np.exp(1j * np.radians(THREE))
    for size in np.geomspace(1.001e-3, 2e-3, 60):
        for direction in np.radians(np.arange(1.0, 360.0, 3.0)):
            bend = size * np.exp(1j * direction)
            state = section.section_forward(LENGTH - (cables * bend.conjugate()).real)
            assert abs(complex(*state.bend) - bend) < 0.02 * size


def test_co_contraction_beyond_the_cutting_in_limit_is_refused():
    section = cable_section()
    free = section.section_inverse(math.radians(30.0), 0.3)
    with pytest.raises(ModelError, match='more than they can cut in'):
        section.section_forward(LENGTH - free.contraction - 0.004)


@pytest.mark.parametrize('angles', [(0,), THREE])
def test_bending_beyond_175_deg_is_refused(angles):
    section = cable_section(angles)
    with pytest.raises(ModelError, match=r'175 deg'):
        section.section_inverse(math.radians(175.5))
    farthest = section.section_inverse(math.radians(174.9))
    lengths = LENGTH - farthest.contraction
    assert section.section_forward(lengths).theta == pytest.approx(math.radians(174.9), abs=1e-8)
    with pytest.raises(ModelError, match=r'175 deg'):
        section.section_forward(lengths - np.eye(len(angles))[0] * 0.003)


def test_bend_that_leaves_the_inner_cable_no_length_is_refused():
    section = cable_section(length_m=0.03, cable_radius_m=0.02)
    assert section.section_inverse(math.radians(60.0)).tension[0] > 0.0
    with pytest.raises(ModelError, match=r'inner cable would have no length left'):
        section.section_inverse(math.radians(90.0))


@pytest.mark.parametrize('cutting', [2e2, 3e3, 3e5, 1e8])
@pytest.mark.parametrize('radius', [0.004, 0.02])
@pytest.mark.parametrize('length', [0.07, 0.3])
def test_bends_of_other_bodies_round_trip_up_to_170_deg(cutting, radius, length):
    section = cable_section(
        cutting_in_stiffness_N_m2=cutting, cable_radius_m=radius, length_m=length
    )
    last = -1.0
    for theta in range(0, 171, 5):
        state = section.section_inverse(math.radians(theta), 0.4)
        assert state.contraction[0] > last  # pulling in bends further
        last = state.contraction[0]
        try:
            forward = section.section_forward(length - state.contraction)
        except ModelError:
            # Cables run straight from hole to hole here, at alpha = theta / 2 and tens of newtons.
            assert cutting < 1e4 and theta > 160
            continue
        np.testing.assert_allclose(forward.bend, state.bend, atol=1e-9)


def test_equilibrium_does_not_depend_on_the_guess():
    section = cable_section()
    lengths = LENGTH - np.array([0.022, 0.001, -0.018])
    cold = section.section_forward(lengths)
    rng = np.random.default_rng(4)
    for _ in range(30):
        guess = rng.uniform(-2.5, 2.5, 2)
        np.testing.assert_allclose(
            section.section_forward(lengths, guess).bend, cold.bend, atol=1e-9
        )


@pytest.mark.parametrize(
    ('call', 'message'),
    [
        (lambda: cable_section().section_forward([0.09, 0.09]), r'shape \(2,\), expected \(3,\)'),
        (
            lambda: cable_section().section_forward([0.09, math.nan, 0.09]),
            'length of cable 2 is nan',
        ),
        (lambda: cable_section().section_forward([0.09] * 3, [0.0]), r'guess has shape \(1,\)'),
        (lambda: cable_section().section_inverse(math.inf), 'theta = inf'),
        (lambda: cable_section(angles_deg=()), 'cable_angles_rad'),
        (lambda: single_cable_inverse(-0.1, *PARAMETERS), 'no cables can hold'),
    ],
)
def test_errors_name_the_invalid_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
