"""Cable statics: the paper's numbers and equations, by independent formulations."""

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
    arm_parts,
    bend_of,
    polar_deg,
)
from scipy.optimize import fsolve

from softarm_ros.models.cable_driven.cable_statics import (
    CableStaticsArm,
    single_cable_forward,
    single_cable_inverse,
)
from softarm_ros.models.cable_driven.constant_curvature import ConstantCurvatureArm

quick = settings(deadline=None, max_examples=80)
# theta deg, contraction cm, T N, alpha deg, kappa_c 1/cm, delta_max cm
PUBLISHED = [
    (10, 0.2184, 0.301, 0.05, 0.0190, 0.0018),
    (20, 0.4381, 0.601, 0.19, 0.0386, 0.0075),
    (30, 0.6604, 0.902, 0.45, 0.0588, 0.0171),
    (40, 0.8867, 1.202, 0.83, 0.0795, 0.0308),
    (50, 1.1184, 1.503, 1.35, 0.1009, 0.0489),
    (60, 1.3571, 1.805, 2.02, 0.1230, 0.0716),
    (70, 1.6041, 2.107, 2.85, 0.1458, 0.0991),
    (80, 1.8612, 2.410, 3.88, 0.1695, 0.1318),
    (90, 2.1299, 2.716, 5.13, 0.1941, 0.1701),
    (100, 2.4122, 3.026, 6.63, 0.2198, 0.2145),
    (110, 2.7101, 3.342, 8.44, 0.2466, 0.2659),
    (120, 3.0259, 3.670, 10.63, 0.2747, 0.3252),
]
# theta deg, phi deg, cable lengths cm, tensions N
PUBLISHED_INVERSE = [
    (60, 0, [7.9429, 9.9545, 9.9545], [1.8045, 0, 0]),
    (60, 30, [8.1126, 9.2748, 10.4336], [2.084, 1.0413, 0]),
    (90, 60, [8.1666, 8.1666, 11.2635], [2.7119, 2.7119, 0]),
    (100, 20, [6.9965, 9.6024, 10.9712], [3.4453, 1.1875, 0]),
]


@pytest.mark.parametrize('row', PUBLISHED, ids=lambda row: f'{row[0]}deg')
def test_single_cable_states_match_the_published_table(row):
    theta, contraction, tension, alpha, kappa_c, delta = row
    state = single_cable_inverse(math.radians(theta), *PARAMETERS)
    assert 1e3 * state.contraction == pytest.approx(10 * contraction, abs=0.002)  # mm
    assert state.tension == pytest.approx(tension, abs=6e-4)
    assert math.degrees(state.alpha) == pytest.approx(alpha, abs=0.006)
    assert state.kappa_c / 100 == pytest.approx(kappa_c, abs=6e-5)
    assert 1e3 * state.delta == pytest.approx(10 * delta, abs=6e-4)
    back = single_cable_forward(state.contraction, *PARAMETERS)
    assert back.theta == pytest.approx(math.radians(theta), abs=1e-10)
    assert back.tension == pytest.approx(state.tension, rel=1e-9)


@pytest.mark.parametrize(('theta', 'phi', 'lengths', 'tensions'), PUBLISHED_INVERSE)
def test_section_inverse_matches_the_published_examples(theta, phi, lengths, tensions):
    state = cable_section().section_inverse(math.radians(theta), math.radians(phi))
    np.testing.assert_allclose(LENGTH - state.contraction, 0.01 * np.array(lengths), atol=2e-6)
    np.testing.assert_allclose(state.tension, tensions, atol=1e-4)


@pytest.mark.parametrize(
    ('phi', 'thetas', 'lag', 'turn'),
    [
        (0, (60, 90, 120), (2.0, 6.1, 13.0), (0, 0, 0)),
        (30, (60, 90, 120), (3.0, 8.7, 17.4), (1.0, 1.9, 2.9)),
        (60, (60, 90, 120), (3.5, 9.8, 19.4), (0, 0, 0)),
    ],
)
def test_constant_curvature_commands_underbend_a_section_whose_cables_cut_in(
    phi, thetas, lag, turn
):
    parts = arm_parts(1)
    baseline, arm = ConstantCurvatureArm(*parts), CableStaticsArm(*parts)
    for theta, missing, turned in zip(thetas, lag, turn):
        actual, direction = polar_deg(
            arm.configuration_of(baseline.actuation_of(bend_of(theta, phi)))
        )
        assert theta - actual == pytest.approx(missing, abs=0.1)
        assert phi - direction == pytest.approx(turned, abs=0.1)


def solve_eq_21(length):
    """Return (kappa_b, alpha, kappa_c, T) from the paper's four equations and its start."""

    def residual(unknown):
        kb, alpha, kc, tension = unknown * np.array([10.0, 1.0, 10.0, 1.0])
        half = 0.5 * kb * LENGTH
        return [
            alpha - (kb * LENGTH - kc * length) / 2,
            100 * (math.sin(half - alpha) / kc - (1 / kb - RADIUS) * math.sin(half)),
            100 * ((1 / kb - RADIUS) * (1 - math.cos(half)) - (1 - math.cos(half - alpha)) / kc)
            - 100 * tension * kc / CUTTING,
            100 * (tension * RADIUS * math.cos(alpha) - BENDING * kb),
        ]

    kb = (LENGTH - length) / (RADIUS * LENGTH)
    start = [kb / 10, 0.0, kb / (1 - RADIUS * kb) / 10, BENDING * kb / RADIUS]
    solution, _, found, message = fsolve(residual, start, xtol=1e-13, full_output=True)
    assert found == 1 or np.abs(residual(solution)).max() < 1e-10, message
    return solution * np.array([10.0, 1.0, 10.0, 1.0])


@pytest.mark.parametrize('contraction', [0.002, 0.006, 0.011, 0.0175, 0.025, 0.032])
def test_single_cable_forward_matches_eq_21_solved_by_fsolve(contraction):
    kappa_b, alpha, kappa_c, tension = solve_eq_21(LENGTH - contraction)
    state = single_cable_forward(contraction, *PARAMETERS)
    assert state.theta == pytest.approx(kappa_b * LENGTH, abs=1e-8)
    assert state.alpha == pytest.approx(alpha, abs=1e-8)
    assert state.kappa_c == pytest.approx(kappa_c, rel=1e-7)
    assert state.tension == pytest.approx(tension, rel=1e-7)


@pytest.mark.parametrize('theta', [5.0, 60.0, 120.0, 170.0])
def test_cable_arc_and_moment_match_integration_along_the_cable(theta):
    """The cable's arc, laid out from its base hole, must end at the tip hole of the bent body.

    The forces it exerts on the body, distributed along the arc and at the tip anchor, are
    integrated numerically; their moment about the base centre must balance K_b kappa (eq. 5-15).
    """
    theta = math.radians(theta)
    state = single_cable_inverse(theta, *PARAMETERS)
    length = LENGTH - state.contraction
    s = np.linspace(0.0, length, 4001)
    angle = state.alpha + state.kappa_c * s  # from the base normal y towards the bend, x
    tangent = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    middle = state.alpha + state.kappa_c * 0.5 * (s[1:] + s[:-1])
    steps = np.diff(s)[:, None] * np.stack([np.sin(middle), np.cos(middle)], axis=1)
    path = np.array([RADIUS, 0.0]) + np.vstack([[0.0, 0.0], np.cumsum(steps, axis=0)])
    body_radius = LENGTH / theta
    centre = np.array([body_radius, 0.0])
    tip_hole = centre - (body_radius - RADIUS) * np.array([math.cos(theta), -math.sin(theta)])
    np.testing.assert_allclose(path[-1], tip_hole, atol=1e-8)
    assert angle[-1] == pytest.approx(theta - state.alpha, abs=1e-12)  # eq. 16
    # Greatest depth below the hole's own arc, seen from the centre of the bend (by symmetry).
    depth = (body_radius - RADIUS) - np.linalg.norm(path - centre, axis=1)
    assert depth[len(depth) // 2] == pytest.approx(state.delta, abs=1e-8)
    assert depth.max() == pytest.approx(depth[len(depth) // 2], abs=1e-8)
    assert state.tension * state.kappa_c == pytest.approx(
        CUTTING * state.delta, rel=1e-9
    )  # eq. 18
    # Cable on body: T dt along the arc, -T t at the tip anchor.
    force = state.tension * np.diff(tangent, axis=0)
    where = 0.5 * (path[1:] + path[:-1])
    moment = np.sum(where[:, 0] * force[:, 1] - where[:, 1] * force[:, 0])
    anchor = -state.tension * tangent[-1]
    moment += path[-1, 0] * anchor[1] - path[-1, 1] * anchor[0]
    assert -moment == pytest.approx(BENDING * theta / LENGTH, rel=1e-6)
    assert -moment == pytest.approx(state.tension * RADIUS * math.cos(state.alpha), rel=1e-6)


def eq_30_residuals(section, state):
    """Residuals of the paper's 3n + 2 equations; slack cables only need their inequality."""
    theta, phi = state.theta, state.phi
    kappa = theta / LENGTH
    angles = section._cables[:, 2] - phi
    offsets, levers = RADIUS * np.cos(angles), RADIUS * np.sin(angles)
    alpha, kc, tension = state.incident_angle, state.cable_curvature, state.tension
    length = LENGTH - state.contraction
    taut = tension > 0.0
    arm = 1 / kappa - offsets
    chord = np.sin(theta / 2 - alpha) / kc - arm * math.sin(theta / 2)
    sagitta = arm * (1 - math.cos(theta / 2)) - (1 - np.cos(theta / 2 - alpha)) / kc
    return {
        'closure': (theta - kc * length - 2 * alpha)[taut],
        'chord': 1e2 * chord,
        'depth': (tension * kc - CUTTING * sagitta)[taut] / 100,
        'moment': np.sum(tension * offsets * np.cos(alpha)) - BENDING * kappa,
        'lateral': np.sum(tension * levers * np.cos(alpha)),
        'slack': np.minimum(length - LENGTH * (1 - offsets * kappa), 0.0)[~taut],
    }


@quick
@given(
    st.floats(3.0, 170.0),
    st.floats(0.0, 360.0),
    st.sampled_from([(0, 120, 240), (0, 90, 180, 270), (10, 130, 200, 300)]),
)
def test_inverse_satisfies_the_papers_equations(theta, phi, angles):
    section = cable_section(angles)
    state = section.section_inverse(math.radians(theta), math.radians(phi))
    for name, residual in eq_30_residuals(section, state).items():
        assert np.abs(residual).max(initial=0.0) < 1e-9, name
    assert np.count_nonzero(state.tension) <= 2 and (state.tension >= 0.0).all()


@pytest.mark.parametrize('squeeze_mm', [0.1, 0.5, 2.0])
def test_co_contraction_of_a_bent_section_makes_all_cables_cut_in(squeeze_mm):
    section = cable_section()
    free = section.section_inverse(math.radians(100.0), math.radians(25.0))
    state = section.section_forward(LENGTH - free.contraction - 1e-3 * squeeze_mm)
    assert (state.tension > 0.01).all()
    for name, residual in eq_30_residuals(section, state).items():
        assert np.abs(residual).max(initial=0.0) < 1e-8, name
