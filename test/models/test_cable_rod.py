"""A Cosserat rod on cables of given length: limits, closed forms, another solver, round trips."""

import math

import numpy as np
import pytest
from model_cases import (
    BENDING,
    ENDCAP,
    LENGTH,
    arm_parts,
    central_differences,
    section_config,
)
from pair_cases import cables as pairs
from pair_cases import sections as pair_sections
from test_heavy_cable_statics import BENT, GUIDED, HANGING, heavy_arm, rod_of

from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cable_driven.cable_statics import CableStaticsArm
from softarm_ros.models.cable_driven.constant_curvature import ConstantCurvatureArm
from softarm_ros.models.cable_driven.paired_cables import PairedCablesArm
from softarm_ros.models.cable_driven.rod import CableRodArm
from softarm_ros.models.cable_driven.rod_layout import LEAST_STRETCH_M_N
from softarm_ros.models.config import CableConfig

HEAVY = {'body_mass_kg': 0.058, 'endcap_mass_kg': 0.004}
AXIAL_N, STRETCH_M_N, WOUND_M = 690.0, 6e-5, 2e-3


def rod(sections=2, gravity=HANGING, pretension_m=0.0, steps=3, tip=(0, 0, 0), **changes):
    return CableRodArm(
        *arm_parts(sections, **{**HEAVY, **changes}), gravity, tip,
        pretension_m=pretension_m, steps=steps,
    )  # fmt: skip


def giving():
    """Return an arm with a compressible backbone and pretensioned cables."""
    return rod(pretension_m=WOUND_M, axial_stiffness_N=AXIAL_N)


def paired(pretension_m=1e-3, stretch_m_N=STRETCH_M_N, gravity=HANGING, **changes):
    found = [c.model_copy(update={'stretch_m_N': stretch_m_N}) for c in pairs()]
    return CableRodArm(
        pair_sections(**{'body_mass_kg': 0.06, 'endcap_mass_kg': 0.02, **changes}), found, gravity,
        pretension_m=pretension_m,
    )  # fmt: skip


PAIR_BENT = [
    np.array([0.2, 0.1, -0.4, 0.3, 0.6, -0.5]),
    np.array([-0.1, 0.3, 0.3, 0.3, -0.8, 0.2]),
]


@pytest.mark.parametrize('bend', BENT)
def test_weightless_rod_on_guides_matches_constant_curvature(bend):
    arm = rod(gravity=(0, 0, 0), steps=10, cutting_in_stiffness_N_m2=GUIDED)
    arcs = ConstantCurvatureArm(*arm_parts())
    # Cables stretch by at least 0.01 um per newton and cut in just as little.
    assert LEAST_STRETCH_M_N * arm.tensions_of(bend).max() < 1e-7
    np.testing.assert_allclose(arm.actuation_of(bend), arcs.actuation_of(bend), atol=1e-7)
    shape, arc = arm.shape_of(bend), arcs.shape_of(bend)
    np.testing.assert_allclose(shape.section_tips, arc.section_tips, atol=1e-9)
    np.testing.assert_allclose(shape.centerline(21), arc.centerline(21), atol=1e-7)
    np.testing.assert_allclose(
        arm.twist_jacobian(bend), arcs.twist_jacobian(bend), atol=1e-6 * arm.rest_length_m
    )


@pytest.mark.parametrize('bend', BENT)
def test_cables_of_a_weightless_rod_cut_in_as_in_cable_statics(bend):
    arm, plain = rod(gravity=(0, 0, 0)), CableStaticsArm(*arm_parts())
    np.testing.assert_allclose(arm.actuation_of(bend), plain.actuation_of(bend), atol=1e-6)
    np.testing.assert_allclose(
        arm.actuation_jacobian(bend), plain.actuation_jacobian(bend), atol=1e-6
    )
    if np.linalg.norm(bend) < 0.5:
        return
    # Pull the cables against each other as far as they can cut in; they then stretch by some um.
    wound = plain.actuation_of(bend) + 1e-3
    np.testing.assert_allclose(
        arm.configuration_of(wound), plain.configuration_of(wound), atol=5e-5
    )
    np.testing.assert_allclose(arm.jacobian(wound), plain.jacobian(wound), atol=5e-2)


@pytest.mark.parametrize('bend', BENT)
def test_cable_lengths_and_equal_dead_tensions_give_the_same_shape(bend):
    """The reference solves the same rod with another search (for tensions, scipy)."""
    arm = rod(cutting_in_stiffness_N_m2=GUIDED, steps=20)
    tensions = arm.tensions_of(bend)
    other = rod_of(arm).forward(tensions)
    away = arm.shape_of(bend).tip[:3, 3] - [0.0, 0.0, ENDCAP] - other.tip[:3, 3]
    assert np.linalg.norm(away) < 1e-7
    slack = tensions == 0.0
    found = rod_of(arm).forward_lengths(arm.actuation_of(bend) - 3e-3 * slack)
    assert found.converged
    np.testing.assert_allclose(found.actuation, tensions, atol=1e-3)
    away = arm.shape_of(bend).tip[:3, 3] - [0.0, 0.0, ENDCAP] - found.shape.tip[:3, 3]
    assert np.linalg.norm(away) < 1e-5


def test_heavy_cable_statics_on_guides_converges_to_the_rod_in_a_plane():
    bend = np.array([1.0, 0.0, 0.8, 0.0])
    arm = rod(cutting_in_stiffness_N_m2=GUIDED, steps=8)
    misses = []
    for bends in (1, 2, 4, 6):
        heavy = heavy_arm(
            cutting_in_stiffness_N_m2=GUIDED, finely={'bends': bends, 'twists': 2, 'pieces': 80}
        )
        slack = heavy.tensions_of(bend) == 0.0
        tip = arm.forward(heavy.actuation_of(bend) - 3e-3 * slack).tip
        misses.append(np.linalg.norm(tip[:3, 3] - heavy.shape_of(bend).tip[:3, 3]))
    assert misses[3] < 1e-5 < 0.2 * misses[0]


def test_pure_tip_moment_with_slack_cables_bends_every_section_into_an_arc():
    arm = rod(gravity=(0, 0, 0), steps=10)
    moment = 0.02
    bend = arm.forward(np.full(6, -0.05), tip_moment=(0.0, moment, 0.0)).configuration
    angle = moment * LENGTH / BENDING
    np.testing.assert_allclose(bend, [angle, 0.0, angle, 0.0], atol=1e-9)


def test_equal_pulls_shorten_the_backbone_and_stretch_the_cables():
    """The arm stays straight: c = 3 T L / E A + s T, the tip retracts by 3 T L / E A."""
    _, cables = arm_parts(1)
    threads = [c.model_copy(update={'stretch_m_N': STRETCH_M_N}) for c in cables]
    section = section_config('section_0', axial_stiffness_N=AXIAL_N)
    arm = CableRodArm([section], threads)
    pulled = 1e-3
    tension = pulled / (3.0 * LENGTH / AXIAL_N + STRETCH_M_N)
    shape = arm.forward(np.full(3, pulled))
    sunk = arm.rest_length_m - shape.tip[2, 3]
    assert sunk == pytest.approx(3.0 * tension * LENGTH / AXIAL_N, rel=1e-6)
    wound = CableRodArm([section], threads, pretension_m=pulled)
    np.testing.assert_allclose(wound.tensions_of(np.zeros(2)), tension, rtol=1e-6)


def test_hanging_arm_stretches_and_taut_cables_carry_part_of_its_weight():
    loose = rod(axial_stiffness_N=AXIAL_N).forward(np.full(6, -0.01))
    # Each section is stretched by half the weight of its body and by all weight below.
    below = np.array([0.058 + 2 * 0.004 + 0.004, 0.004]) + 0.5 * 0.058
    stretch = 9.81 * below.sum() * LENGTH / AXIAL_N
    straight = 2 * (LENGTH + 2 * ENDCAP)
    assert loose.tip[2, 3] - straight == pytest.approx(stretch, rel=1e-3)
    held = rod(axial_stiffness_N=AXIAL_N).forward(np.zeros(6))
    assert straight < held.tip[2, 3] < loose.tip[2, 3]


@pytest.mark.parametrize('make', [rod, giving])
@pytest.mark.parametrize('bend', BENT)
def test_derivatives_match_finite_differences(make, bend):
    check_derivatives(make(), bend)


@pytest.mark.parametrize('pretension', [0.0, 1e-3])
@pytest.mark.parametrize('bend', PAIR_BENT)
def test_derivatives_of_cable_pairs_match_finite_differences(bend, pretension):
    check_derivatives(paired(pretension), bend)


def check_derivatives(arm, bend):
    posture = arm.posture_of(bend)
    tip = central_differences(lambda q: arm.posture_of(q).tip, bend, 1e-4)
    np.testing.assert_allclose(posture.tip_jacobian, tip, atol=2e-4)
    pulled = central_differences(arm.actuation_of, bend, 1e-5)
    np.testing.assert_allclose(posture.actuation_jacobian, pulled, atol=2e-5)
    wound = arm.actuation_of(bend)
    if not arm.rod.paired and arm.rod.pretension_m == 0.0:
        if np.linalg.norm(bend) < 0.5:
            return  # just slack cables have one-sided slopes, and nothing yields here
        wound += 1e-3  # all taut
    slope = central_differences(lambda c: arm.forward(c).tip[:3, 3], wound, 1e-6)
    np.testing.assert_allclose(arm.jacobian(wound)[:3], slope, atol=2e-2)


@pytest.mark.parametrize('make', [rod, giving])
@pytest.mark.parametrize('bend', BENT)
def test_forward_of_inverse_returns_bend_and_tip(make, bend):
    arm = make()
    np.testing.assert_allclose(arm.configuration_of(arm.actuation_of(bend)), bend, atol=1e-7)
    target = arm.shape_of(bend).tip[:3, 3]
    solution = arm.inverse(target)
    assert solution.converged
    assert np.linalg.norm(arm.forward(solution.actuation).tip[:3, 3] - target) < 1e-5
    np.testing.assert_allclose(
        arm.observed_configuration(arm.shape_of(bend).section_tips), bend, atol=1e-9
    )


@pytest.mark.parametrize('pretension', [0.0, 5e-5, 1e-3])
@pytest.mark.parametrize('bend', PAIR_BENT)
def test_forward_of_inverse_returns_the_bend_of_cable_pairs(bend, pretension):
    """If one cable of a pair is slack, the taut one determines the motor position."""
    arm = paired(pretension)
    np.testing.assert_allclose(arm.configuration_of(arm.actuation_of(bend)), bend, atol=1e-7)
    np.testing.assert_allclose(
        arm.configuration_of(np.zeros(6)), arm.rest_configuration, atol=1e-7
    )


def test_search_from_a_near_posture_gives_the_same_result():
    for arm, bend in ((rod(), BENT[0]), (giving(), BENT[3]), (paired(), PAIR_BENT[0])):
        near = arm.posture_of(bend)
        for step in (1e-3, 0.05, 0.3):
            alone, beside = arm.posture_of(bend + step), arm.posture_of(bend + step, near)
            np.testing.assert_allclose(beside.tip, alone.tip, atol=1e-9)
            np.testing.assert_allclose(beside.actuation, alone.actuation, atol=1e-9)
            np.testing.assert_allclose(beside.tip_jacobian, alone.tip_jacobian, atol=1e-6)


def test_batched_section_tips_equal_single_calls_and_are_nan_if_impossible():
    arm = paired()
    way = np.linspace(0.0, 1.0, 30)[:, None] * np.array([0.01, 0.004, -0.006, 0.008, 0.01, -0.01])
    rows = np.concatenate([way, way[::-7], np.full((1, 6), 0.2)])
    tips = arm.section_tips_of(rows)
    for row, found in zip(rows[:-1], tips):
        np.testing.assert_allclose(found, arm.forward(row).section_tips, atol=1e-7)
    assert np.isnan(tips[-1]).all()


def test_turning_cables_and_gravity_turns_bend_and_tip():
    turn = math.radians(37.0)
    c, s = math.cos(turn), math.sin(turn)
    about = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    askew = np.array([3.0, -2.0, 8.0])
    bend = BENT[0]
    sections, cables = arm_parts(2, **HEAVY)
    turned = [c.model_copy(update={'angle_deg': c.angle_deg + 37.0}) for c in cables]
    one = CableRodArm(sections, cables, askew)
    other = CableRodArm(sections, turned, about @ askew)
    moved = (bend.reshape(2, 2) @ about[:2, :2].T).ravel()
    np.testing.assert_allclose(one.actuation_of(bend), other.actuation_of(moved), atol=1e-9)
    np.testing.assert_allclose(
        about @ one.shape_of(bend).tip[:3, 3], other.shape_of(moved).tip[:3, 3], atol=1e-9
    )


@pytest.mark.parametrize('cutting', [GUIDED, 3.1e4])
def test_tip_compliance_is_positive_and_symmetric_on_guides(cutting):
    """Maxwell-Betti; cutting in is approximated by arcs, which costs some of the symmetry."""
    arm = rod(pretension_m=WOUND_M, axial_stiffness_N=AXIAL_N, cutting_in_stiffness_N_m2=cutting)
    contraction, step = arm.actuation_of(BENT[0]), 1e-3
    columns = [
        arm.forward(contraction, step * axis).tip[:3, 3]
        - arm.forward(contraction, -step * axis).tip[:3, 3]
        for axis in np.eye(3)
    ]
    compliance = np.array(columns) / (2.0 * step)
    assert np.linalg.eigvalsh(0.5 * (compliance + compliance.T))[0] > 0.0
    share = 1e-4 if cutting == GUIDED else 0.15
    assert np.abs(compliance - compliance.T).max() < share * np.abs(compliance).max()


def test_inverse_accounts_for_a_tip_force():
    arm, force = giving(), (0.05, -0.03, 0.1)
    target = arm.shape_of(BENT[0]).tip[:3, 3]
    solution = arm.inverse(target, tip_force=force)
    assert solution.converged
    assert np.linalg.norm(arm.forward(solution.actuation, force).tip[:3, 3] - target) < 1e-5
    assert np.linalg.norm(arm.forward(solution.actuation).tip[:3, 3] - target) > 1e-3


def test_cable_lengths_hold_a_pose_that_is_unstable_under_dead_tensions():
    """Bent far up, the arm would snap under dead tensions; on cables of fixed length it stays."""
    arm = rod(pretension_m=3e-3, axial_stiffness_N=AXIAL_N, body_mass_kg=0.03)
    over = np.radians([135.0, 0.0, 70.0, 0.0])
    rest = arm.rod.settled(over, arm._own_load)
    assert rest.shot.folds > 0
    np.testing.assert_allclose(arm.configuration_of(arm.actuation_of(over)), over, atol=1e-7)
    heavier = rod(pretension_m=3e-3, axial_stiffness_N=AXIAL_N)
    with pytest.raises(ModelError, match='falls aside'):
        heavier.shape_of(over)
    assert np.isnan(heavier.tips_of(over[None])).all()


def test_weightless_cable_pairs_on_guides_match_constant_curvature():
    light = {'body_mass_kg': 0.0, 'endcap_mass_kg': 0.0}
    arm = paired(0.0, 0.0, gravity=(0, 0, 0), **light, cutting_in_stiffness_N_m2=GUIDED)
    arcs = PairedCablesArm(pair_sections(), pairs())
    np.testing.assert_allclose(arm.rest_configuration, arcs.rest_configuration, atol=1e-8)
    for bend in PAIR_BENT:
        np.testing.assert_allclose(arm.actuation_of(bend), arcs.actuation_of(bend), atol=2e-5)
        np.testing.assert_allclose(
            arm.shape_of(bend).tip[:3, 3], arcs.shape_of(bend).tip[:3, 3], atol=2e-3
        )


def test_pair_contractions_sum_to_twice_the_pretension_unless_one_cable_is_slack():
    for pretension in (5e-5, 5e-3):
        arm = paired(pretension)
        rest = arm.rod.settled(PAIR_BENT[0], arm._own_load)
        together = rest.lengths.contraction[0::2] + rest.lengths.contraction[1::2]
        taut = (rest.tension.reshape(-1, 2) > 0.0).all(axis=1)
        np.testing.assert_allclose(together[taut], 2.0 * pretension, atol=1e-9)
        assert np.all(together[~taut] > 2.0 * pretension)
        assert rest.tension.min() >= 0.0
        assert taut.all() == (pretension == 5e-3)


def test_pairs_that_stretch_bend_other_sections_too():
    """Pulling the tip's pairs bends the base if the cables stretch, and hardly if they do not."""
    stiff, soft = paired(5e-3, 1e-6), paired(5e-3, 1e-4)
    pull = np.array([0.0, 0.0, 0.0, 0.0, 0.008, 0.0])
    bent = [
        np.linalg.norm((arm.configuration_of(pull) - arm.rest_configuration)[:2])
        for arm in (stiff, soft)
    ]
    assert bent[0] < 0.1 * bent[1]


def test_invalid_arms_and_inputs_are_refused():
    sections, cables = arm_parts()
    with pytest.raises(ModelError, match=r'pretension_m = 0\.002: neither sections nor'):
        CableRodArm(sections, cables, pretension_m=2e-3)
    mixed = [*cables[1:], cables[0].model_copy(update={'pair': True})]
    with pytest.raises(ValueError, match='expected all or none'):
        CableRodArm(sections, mixed)
    more = [*pairs(), CableConfig(name='one_more', section='section_2', angle_deg=0, pair=True)]
    with pytest.raises(ValueError, match='7 pairs of cables bend 6 coordinates'):
        CableRodArm(pair_sections(), more)
    arm = rod()
    with pytest.raises(ValueError, match='tip_force'):
        arm.forward(np.zeros(6), (math.nan, 0.0, 0.0))
    with pytest.raises(ValueError, match='configuration'):
        arm.shape_of(np.zeros(3))
    with pytest.raises(ModelError, match='no rest'):
        arm.forward(np.full(6, 0.01))  # the backbone cannot shorten
