"""Cable-driven sections that sag: limits, a Cosserat rod as reference, derivatives."""

import math

import numpy as np
import pytest
from model_cases import BENDING, ENDCAP, LENGTH, RADIUS, arm_parts, central_differences

from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cable_driven.cable_statics import CableStaticsArm
from softarm_ros.models.cable_driven.heavy_cable_statics import HeavyCableStaticsArm
from softarm_ros.models.cosserat.arm import CosseratArm
from softarm_ros.models.cosserat.config import (
    CableRoute,
    CosseratConfig,
    MatrixProfile,
    RigidConnector,
    RodCableConfig,
    RodSegmentConfig,
)

HANGING = (0.0, 0.0, 9.81)
BODY_KG, CAP_KG = 0.058, 0.004
GUIDED = 1e9  # N/m^2: cables that do not cut in
BENT = [
    np.array([0.7, 0.3, -0.5, 0.9]),
    np.array([0.1, 0.0, 0.0, 0.1]),
    np.array([0.9, -0.6, 0.8, 0.2]),
    np.array([-0.4, 0.8, 0.2, 1.3]),
]


def heavy_arm(sections=2, gravity=HANGING, tip_weight=(0.0, 0.0, 0.0), finely=None, **changes):
    masses = {'body_mass_kg': BODY_KG, 'endcap_mass_kg': CAP_KG}
    parts = arm_parts(sections, **{**masses, **changes})
    return HeavyCableStaticsArm(*parts, gravity, tip_weight, **(finely or {}))


def rod_of(arm):
    """Return the arm as a Cosserat rod with guided cables; its base is one endcap up."""
    count = len(arm.sections)
    stiffness = np.diag([BENDING, BENDING, 2.0 / 3.0 * BENDING, 1.0, 1.0, 1.0])
    profile = MatrixProfile(
        stiffness_matrix=tuple(map(tuple, stiffness)), mass_per_length_kg_m=BODY_KG / LENGTH
    )
    segments = []
    for k, section in enumerate(arm.sections):
        caps = 2 if k < count - 1 else 1
        connector = RigidConnector(length_m=caps * ENDCAP, mass_kg=caps * CAP_KG)
        segments.append(
            RodSegmentConfig(
                name=section.name, length_m=LENGTH, profile=profile, connector=connector
            )
        )
    cables = []
    for cable in arm.cables:
        own = [s.name for s in arm.sections].index(cable.section)
        before = [
            CableRoute(segment=s.name, radius_m=0.0, angle_deg=0.0) for s in arm.sections[:own]
        ]
        route = CableRoute(segment=cable.section, radius_m=RADIUS, angle_deg=cable.angle_deg)
        cables.append(RodCableConfig(name=cable.name, routes=(*before, route)))
    return CosseratArm(
        CosseratConfig(
            segments=tuple(segments), cables=tuple(cables), gravity_m_s2=HANGING,
            extensible=False, steps=20,
        )
    )  # fmt: skip


@pytest.mark.parametrize('bend', BENT)
def test_weightless_arm_equals_cable_statics(bend):
    heavy = heavy_arm(body_mass_kg=0.0, endcap_mass_kg=0.0)
    plain = CableStaticsArm(*arm_parts())
    np.testing.assert_allclose(heavy.actuation_of(bend), plain.actuation_of(bend), atol=1e-14)
    np.testing.assert_allclose(
        heavy.actuation_jacobian(bend), plain.actuation_jacobian(bend), atol=1e-9
    )
    np.testing.assert_allclose(
        heavy.shape_of(bend).section_tips, plain.shape_of(bend).section_tips, atol=1e-12
    )
    np.testing.assert_allclose(
        heavy.shape_of(bend).centerline(21), plain.shape_of(bend).centerline(21), atol=1e-12
    )
    # Pull the cables against each other as far as they can cut in.
    contraction = plain.actuation_of(bend) + (1e-3 if np.linalg.norm(bend) > 0.5 else 0.0)
    np.testing.assert_allclose(
        heavy.configuration_of(contraction), plain.configuration_of(contraction), atol=1e-9
    )
    np.testing.assert_allclose(heavy.jacobian(contraction), plain.jacobian(contraction), atol=1e-6)


@pytest.mark.parametrize('mass', [0.0, 0.02])
def test_conflicts_below_the_drive_resolution_match_cable_statics(mass):
    """Near the straight pose, cutting in takes up less than the tolerance of a micrometre."""
    arm = heavy_arm(body_mass_kg=mass, endcap_mass_kg=0.0)
    weightless = CableStaticsArm(arm.sections, arm.cables)
    rng = np.random.default_rng(0)
    for size in (1e-7, 1e-6, 1e-5, 1e-4):
        for _ in range(20):
            contraction = rng.uniform(-size, size, (2, 3))
            contraction -= contraction.mean(axis=1)[:, None]
            contraction += rng.uniform(0.0, min(size, 9e-7), (2, 1))
            bend = arm.configuration_of(contraction.ravel())
            expected = weightless.configuration_of(contraction.ravel())
            np.testing.assert_allclose(bend, expected, atol=1e-7 + 1e-2 * np.abs(expected).max())


def test_arm_hanging_straight_stays_straight_without_tension():
    arm = heavy_arm()
    shape = arm.forward(np.zeros(6))
    np.testing.assert_allclose(shape.tip[:3, 3], [0.0, 0.0, arm.rest_length_m], atol=1e-7)
    assert np.all(arm.tensions_of(np.zeros(4)) == 0.0)


LYING = (9.81, 0.0, 0.0)
LIGHT = {'body_mass_kg': 0.015, 'endcap_mass_kg': 0.002}


@pytest.mark.parametrize('slack', [1e-5, 3e-5, 3e-4, 6e-4])
def test_weight_bends_a_section_as_far_as_its_slack_cables_allow(slack):
    """The lengths alone leave it straight; its weight rests on two cables, 60 deg off the bend."""
    arm = heavy_arm(sections=1, gravity=LYING, **LIGHT)
    bend = arm.configuration_of(np.full(3, -slack))
    np.testing.assert_allclose(bend, [2.0 * slack / RADIUS, 0.0], rtol=0.02, atol=1e-7)


def test_arm_on_slack_cables_is_held_by_its_elasticity_alone():
    arm = heavy_arm(gravity=LYING, **LIGHT)
    bend = arm.configuration_of(np.full(6, -0.03))
    assert bend[0] > bend[2] > 0.05
    held = arm.posture_of(bend).held
    np.testing.assert_allclose(held.moments, 0.0, atol=1e-9)
    np.testing.assert_array_equal(arm.jacobian(np.full(6, -0.03)), 0.0)
    hanging = heavy_arm(**LIGHT).forward(np.full(6, -0.03))
    np.testing.assert_allclose(hanging.tip[:2, 3], 0.0, atol=1e-9)


@pytest.mark.parametrize('gravity', [HANGING, LYING, (3.0, -5.0, 7.0)])
@pytest.mark.parametrize('proximal', [(0.0, 0.0, 0.0), (-1e-3, -8e-4, -2e-3)])
def test_jacobian_matches_differences_beside_a_section_that_cables_leave_straight(
    gravity, proximal
):
    arm = heavy_arm(gravity=gravity, **LIGHT)
    contraction = np.array([*proximal, 0.38e-3, -1.2e-3, 0.05e-3])
    differences = central_differences(
        lambda c: arm.forward([*proximal, *c]).tip[:3, 3], contraction[3:], 1e-6
    )
    np.testing.assert_allclose(arm.jacobian(contraction)[:3, 3:], differences, atol=1e-4)


def miss_of_rod(model, bend):
    """Return the tip distance to a rod on cables of the same lengths, and the tip of the rod."""
    slack = model.tensions_of(bend) == 0.0  # just not taut; rounding must not make them pull
    rod = rod_of(model).forward_lengths(model.actuation_of(bend) - 3e-3 * slack)
    assert rod.converged
    exact = rod.shape.tip[:3, 3] + [0.0, 0.0, ENDCAP]
    return float(np.linalg.norm(model.shape_of(bend).tip[:3, 3] - exact)), exact


@pytest.mark.parametrize('bend', BENT)
def test_tip_nearly_matches_a_cosserat_rod_on_cables_of_the_same_lengths(bend):
    """The reference uses other equations and unknowns, and no polynomials."""
    arm = heavy_arm(cutting_in_stiffness_N_m2=GUIDED)
    fine = heavy_arm(
        cutting_in_stiffness_N_m2=GUIDED, finely={'bends': 6, 'twists': 6, 'pieces': 40}
    )
    plain = CableStaticsArm(*arm_parts(cutting_in_stiffness_N_m2=GUIDED))
    for model in (arm, fine):
        miss, exact = miss_of_rod(model, bend)
        weightless = plain.forward(model.actuation_of(bend)).tip[:3, 3]
        # The rest is the action of taut cables on a bent and twisted section, of first order.
        assert miss < 0.1 * np.linalg.norm(weightless - exact)


@pytest.mark.parametrize('share', [0.3, 1.0])
def test_planar_arm_converges_to_the_cosserat_rod(share):
    bend = share * np.array([1.0, 0.0, 0.8, 0.0])
    misses = []
    for bends, pieces in ((1, 80), (2, 80), (4, 80), (6, 80)):
        arm = heavy_arm(
            cutting_in_stiffness_N_m2=GUIDED,
            finely={'bends': bends, 'twists': 2, 'pieces': pieces},
        )
        misses.append(miss_of_rod(arm, bend)[0])
    assert misses[2] < 0.2 * misses[0]
    assert misses[3] < 1e-5


@pytest.mark.parametrize('bend', BENT)
def test_derivatives_match_finite_differences(bend):
    arm = heavy_arm(tip_weight=(0.0, 0.0, 0.1))
    posture = arm.posture_of(bend)
    tip = central_differences(lambda q: arm.posture_of(q).tip, bend, 1e-4)
    np.testing.assert_allclose(posture.tip_jacobian, tip, atol=1e-8)
    np.testing.assert_allclose(arm.twist_jacobian(bend)[:3], tip, atol=1e-8)
    turned = posture.section_tips[-1, :3, :3]
    spin = central_differences(lambda q: arm.shape_of(q).tip[:3, :3].ravel(), bend, 1e-4)
    for column in range(4):
        rate = spin[:, column].reshape(3, 3) @ turned.T
        np.testing.assert_allclose(
            arm.twist_jacobian(bend)[3:, column], [rate[2, 1], rate[0, 2], rate[1, 0]], atol=1e-7
        )
    np.testing.assert_allclose(
        posture.actuation_jacobian, central_differences(arm.actuation_of, bend, 1e-5), atol=1e-8
    )


@pytest.mark.parametrize('bend', [BENT[0], *BENT[2:]])
def test_jacobian_by_contraction_matches_finite_differences(bend):
    arm = heavy_arm()
    contraction = arm.actuation_of(bend) + 1e-3  # all cables taut
    differences = central_differences(lambda c: arm.forward(c).tip[:3, 3], contraction, 1e-6)
    np.testing.assert_allclose(arm.jacobian(contraction)[:3], differences, atol=1e-4)


@pytest.mark.parametrize('bend', BENT)
def test_forward_of_inverse_returns_bend_and_tip(bend):
    arm = heavy_arm()
    np.testing.assert_allclose(arm.configuration_of(arm.actuation_of(bend)), bend, atol=1e-8)
    target = arm.shape_of(bend).tip[:3, 3]
    solution = arm.inverse(target)
    assert solution.converged
    assert np.linalg.norm(arm.forward(solution.actuation).tip[:3, 3] - target) < 1e-5
    assert np.linalg.norm(solution.shape.configuration) < np.linalg.norm(bend) + 1e-6


def test_inverse_accounts_for_a_tip_force():
    arm, force = heavy_arm(), (0.05, -0.03, 0.1)
    target = arm.shape_of(BENT[0]).tip[:3, 3]
    solution = arm.inverse(target, tip_force=force)
    assert solution.converged
    assert np.linalg.norm(arm.forward(solution.actuation, force).tip[:3, 3] - target) < 1e-5
    assert np.linalg.norm(arm.forward(solution.actuation).tip[:3, 3] - target) > 3e-3


def test_tip_compliance_is_positive_and_nearly_symmetric():
    """Maxwell-Betti: the compliance of a tip held by cables is symmetric."""
    arm = heavy_arm()
    contraction = arm.actuation_of(BENT[0]) + 1e-3
    step = 1e-4  # N
    columns = [
        arm.forward(contraction, step * axis).tip[:3, 3]
        - arm.forward(contraction, -step * axis).tip[:3, 3]
        for axis in np.eye(3)
    ]
    compliance = np.array(columns) / (2.0 * step)
    assert np.linalg.eigvalsh(0.5 * (compliance + compliance.T))[0] > 0.0
    # Twist takes up cable length that the model neglects: see `HeavyCableStaticsArm`.
    assert np.abs(compliance - compliance.T).max() < 0.05 * np.abs(compliance).max()


def test_search_from_a_near_posture_gives_the_same_result():
    arm = heavy_arm()
    near = arm.posture_of(BENT[0])
    for step in (1e-3, 0.05, 0.5):
        bend = BENT[0] + step
        alone, beside = arm.posture_of(bend), arm.posture_of(bend, near)
        np.testing.assert_allclose(beside.tip, alone.tip, atol=1e-10)
        np.testing.assert_allclose(beside.actuation, alone.actuation, atol=1e-10)
        np.testing.assert_allclose(beside.tip_jacobian, alone.tip_jacobian, atol=1e-7)


def test_search_ignores_a_near_posture_from_which_it_fails():
    """Sections bent over in one plane twist to either side: steps from `near` do not end."""
    arm = heavy_arm(body_mass_kg=0.04)
    near = arm.posture_of(np.array([-1.39, 1.14, -0.99, 0.86]))
    bend = np.array([-1.4031, 1.1157, -1.0184, 0.8514])
    np.testing.assert_allclose(
        arm.posture_of(bend, near).tip, arm.posture_of(bend).tip, atol=1e-10
    )


@pytest.mark.parametrize('off', [-0.03, 0.03])
def test_bends_with_two_equilibria_are_refused_on_either_side(off):
    """The tip of the buckled arm is far off to one side, and the bends do not determine which."""
    arm = heavy_arm()
    over = 1.65 * np.array([1.0, 0.0, 0.9, 0.0])
    aside = np.array([0.0, 0.0, 0.0, off])
    askew = over + aside
    with pytest.raises(ModelError, match=r'may fall to either side: .* has two rests'):
        arm.posture_of(askew)
    start = over + aside / abs(off) * 1.4
    near = arm.posture_of(start)
    for share in np.linspace(0.0, 1.0, 41):
        bend = start + share * (askew - start)
        try:
            near = arm.posture_of(bend, near)
        except ModelError:
            break
        np.testing.assert_allclose(near.tip, arm.posture_of(bend).tip, atol=1e-9)
    assert 0.1 < share < 1.0


@pytest.mark.parametrize('target', [(-0.14, -0.022, -0.031), (-0.09, -0.05, -0.01)])
def test_inverse_reports_the_remaining_error_if_the_arm_falls_aside_on_the_way(target):
    """Bends reached step by step may not be found directly: no exception, the nearest pose."""
    arm = heavy_arm(endcap_mass_kg=0.0, max_bending_angle_deg=150.0)
    solution = arm.inverse(target)
    assert not solution.converged and 'mm left' in solution.message
    miss = float(np.linalg.norm(solution.shape.tip[:3, 3] - target))
    assert solution.residual == pytest.approx(miss, rel=1e-9)


def test_pose_that_falls_aside_is_refused_with_the_weight_in_the_message():
    """Bent beyond the horizontal, a light arm stays up and a heavy one falls."""
    over = np.radians([104.0, 0.0, 90.0, 0.0])
    heavy_arm(body_mass_kg=0.01).shape_of(over)
    with pytest.raises(ModelError, match=r'falls aside under 1\.29 N of weight'):
        heavy_arm().shape_of(over)
    assert np.isnan(heavy_arm().tips_of(over[None])).all()


def test_errors_name_the_invalid_input():
    arm = heavy_arm()
    with pytest.raises(ValueError, match='tip_force'):
        arm.forward(np.zeros(6), (math.nan, 0.0, 0.0))
    with pytest.raises(ValueError, match='configuration'):
        arm.shape_of(np.zeros(3))
    with pytest.raises(ValueError, match='damping'):
        arm.damped_step(np.zeros(4), (0.0, 0.0, 0.2), 0.0)
