"""Pairs of cables: contraction against measured path lengths, least contractions, errors."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import arm_parts, central_differences
from pair_cases import LENGTHS, PASSING, RADII, cables, sections, some_bends
from scipy.linalg import null_space

from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cable_driven.constant_curvature import ConstantCurvatureArm
from softarm_ros.models.cable_driven.paired_cables import PairedCablesArm
from softarm_ros.models.factory import build_model

quick = settings(deadline=None, max_examples=40)
bend = st.floats(-0.8, 0.8)
configurations = st.lists(bend, min_size=6, max_size=6).map(np.array)


@pytest.fixture(scope='module')
def nominal():
    return PairedCablesArm(sections(), cables())


@pytest.fixture(scope='module')
def identified():
    return PairedCablesArm(sections(), cables(some_bends(np.random.default_rng(3))))


def cable_length(arm, configuration, index, side, points=4000):
    """Return the length of a cable through the bending parts, summed along its own path."""
    cable = arm.cables[index]
    own = [s.name for s in arm.sections].index(cable.section)
    angle = math.radians(cable.angle_deg) + (0.0 if side > 0 else math.pi)
    total = 0.0
    for k in range(own + 1):
        radius = RADII[k] if k == own else PASSING[k]
        place = radius * np.array([math.cos(angle), math.sin(angle), 0.0])
        bx, by = configuration[2 * k : 2 * k + 2]
        theta, length = math.hypot(bx, by), LENGTHS[k]
        # Rotation about (-by, bx, 0) by Rodrigues' formula; centre on the circular arc.
        t = theta * np.linspace(0.0, 1.0, points)[:, None]
        axis, towards = np.array([-by, bx, 0.0]) / theta, np.array([bx, by, 0.0]) / theta
        turned = (
            place * np.cos(t)
            + np.cross(axis, place) * np.sin(t)
            + axis * (axis @ place) * (1.0 - np.cos(t))
        )
        centre = length / theta * (towards * (1.0 - np.cos(t)) + [0.0, 0.0, 1.0] * np.sin(t))
        path = centre + turned
        total += np.linalg.norm(np.diff(path, axis=0), axis=1).sum()
    return total


@pytest.mark.parametrize('index', range(6))
def test_contraction_equals_the_shortening_of_the_cable_path(nominal, index):
    rng = np.random.default_rng(index)
    configuration = rng.uniform(-0.9, 0.9, 6)
    contraction = nominal.actuation_of(configuration)[index]
    rest = nominal.rest_configuration
    for side in (1, -1):
        shorter = cable_length(nominal, rest, index, side) - cable_length(
            nominal, configuration, index, side
        )
        assert side * contraction == pytest.approx(shorter, abs=2e-8)


def test_pairs_without_passing_radius_and_rest_bend_match_constant_curvature():
    plain = sections(passing_radius_m=0.0, rest_bend_deg=(0.0, 0.0))
    paired = PairedCablesArm(plain, cables())
    for k, section in enumerate(plain):
        _, ring = arm_parts(1)
        single = ConstantCurvatureArm(
            [section], [c.model_copy(update={'section': section.name}) for c in ring]
        )
        b = np.array([0.3, -0.2])
        whole = np.zeros(6)
        whole[2 * k : 2 * k + 2] = b
        direction = np.radians(paired.cables[2 * k].angle_deg)
        unit = np.array([math.cos(direction), math.sin(direction)])
        assert paired.actuation_of(whole)[2 * k] == pytest.approx(
            section.cable_radius_m * unit @ b, abs=1e-15
        )
        # Each cable of the ring of three obeys the same law.
        own = [math.radians(c.angle_deg) for c in ring]
        expected = [
            section.cable_radius_m * (math.cos(a) * b[0] + math.sin(a) * b[1]) for a in own
        ]
        np.testing.assert_allclose(single.actuation_of(b), expected, atol=1e-15)


@quick
@given(configurations, st.booleans())
def test_configuration_round_trips_and_actuation_jacobian_matches_differences(
    configuration, by_data
):
    bends = some_bends(np.random.default_rng(1)) if by_data else None
    arm = PairedCablesArm(sections(), cables(bends))
    actuation = arm.actuation_of(configuration)
    np.testing.assert_allclose(arm.configuration_of(actuation), configuration, atol=1e-12)
    np.testing.assert_allclose(
        arm.actuation_jacobian(configuration),
        central_differences(arm.actuation_of, configuration, 1e-3),
        atol=1e-8,
    )


@pytest.mark.parametrize('which', ['nominal', 'identified'])
def test_jacobian_equals_central_differences(which, request):
    arm = request.getfixturevalue(which)
    actuation = np.random.default_rng(0).uniform(-0.004, 0.004, 6)
    found = central_differences(lambda c: arm.forward(c).tip[:3, 3], actuation, 1e-6)
    np.testing.assert_allclose(arm.jacobian(actuation)[:3], found, rtol=1e-6, atol=1e-6)


def test_identified_bends_are_used_unchanged():
    bends = some_bends(np.random.default_rng(5))
    arm = PairedCablesArm(sections(), cables(bends))
    np.testing.assert_allclose(arm.bends_per_contraction, bends, atol=1e-12)
    one = np.zeros(6)
    one[4] = 0.003
    np.testing.assert_allclose(
        arm.configuration_of(one) - arm.rest_configuration, 0.003 * bends[:, 4], atol=1e-15
    )


def test_rest_configuration_is_bent_with_zero_actuation(nominal):
    rest = nominal.rest_configuration
    np.testing.assert_allclose(np.degrees(rest[:2]), [4.0, 6.0])
    np.testing.assert_array_equal(nominal.actuation_of(rest), 0.0)


def test_configuration_round_trips_with_three_pairs_per_section():
    three = [
        c.model_copy(update={'name': f'{c.name}_{turn}', 'angle_deg': c.angle_deg + turn})
        for c in cables()[::2]
        for turn in (0.0, 60.0, 120.0)
    ]
    arm = PairedCablesArm(sections(), three)
    configuration = np.random.default_rng(2).uniform(-0.5, 0.5, 6)
    np.testing.assert_allclose(
        arm.configuration_of(arm.actuation_of(configuration)), configuration, atol=1e-12
    )


# -- inverse kinematics ---------------------------------------------------------------------


@quick
@given(st.lists(st.floats(-0.5, 0.5), min_size=6, max_size=6).map(np.array))
def test_inverse_reaches_the_tip_with_no_more_contraction_than_the_original(away):
    arm = PairedCablesArm(sections(), cables(some_bends(np.random.default_rng(4))))
    configuration = arm.rest_configuration + 0.8 * away
    target = arm.shape_of(configuration).tip[:3, 3]
    found = arm.inverse(target)
    assert found.converged, found.message
    np.testing.assert_allclose(found.shape.tip[:3, 3], target, atol=1e-6)
    assert (
        np.linalg.norm(found.actuation) <= np.linalg.norm(arm.actuation_of(configuration)) + 1e-6
    )


def test_inverse_is_stationary_along_the_motions_that_keep_the_tip(identified):
    for target in ((0.05, 0.0, 0.30), (-0.03, 0.06, 0.29), (0.0, -0.08, 0.28)):
        found = identified.inverse(target)
        assert found.converged
        jacobian = identified.jacobian(found.actuation)[:3]
        free = null_space(jacobian)
        assert free.shape == (6, 3)
        slope = free.T @ found.actuation / np.linalg.norm(found.actuation)
        assert np.abs(slope).max() < 2e-3


def test_inverse_meets_an_orientation(identified):
    shape = identified.shape_of(identified.rest_configuration + 0.2)
    found = identified.inverse(shape.tip[:3, 3], orientation=shape.tip[:3, :3])
    assert found.converged
    np.testing.assert_allclose(found.shape.tip, shape.tip, atol=1e-5)


def test_inverse_reports_a_point_out_of_reach(identified):
    found = identified.inverse((0.5, 0.0, 0.3))
    assert not found.converged
    assert 'not reached' in found.message and 'mm left' in found.message


@quick
@given(configurations)
def test_preferred_configuration_needs_no_more_contraction(configuration):
    arm = PairedCablesArm(sections(), cables())
    before = np.linalg.norm(arm.actuation_of(configuration))
    after = np.linalg.norm(arm.actuation_of(arm.preferred_configuration(configuration)))
    assert after <= before * (1.0 + 1e-12)


# -- errors ---------------------------------------------------------------------------------


def test_single_cables_among_pairs_are_refused():
    mixed = (*cables()[:5], cables(pair=False)[5])
    with pytest.raises(ValueError, match='pair_2_1 is no pair'):
        PairedCablesArm(sections(), mixed)


def test_bends_for_some_pairs_only_are_refused():
    mixed = (*cables(some_bends(np.random.default_rng(0)))[:5], cables()[5])
    with pytest.raises(ValueError, match='expected all or none'):
        PairedCablesArm(sections(), mixed)


def test_parallel_pairs_that_cannot_bend_in_all_directions_are_refused():
    parallel = [c.model_copy(update={'angle_deg': 10.0}) for c in cables()]
    with pytest.raises(ValueError, match='only 3 of 6 bends'):
        PairedCablesArm(sections(), parallel)


def test_bends_that_name_a_section_twice_are_refused():
    wrong = [c.model_copy(update={'bends': (c.bends[0], c.bends[0])}) for c in
             cables(some_bends(np.random.default_rng(0)))]  # fmt: skip
    with pytest.raises(ValueError, match="section 'section_0' is named twice"):
        PairedCablesArm(sections(), wrong)


def test_bend_that_leaves_the_inner_cable_no_length_is_refused(nominal):
    with pytest.raises(ModelError, match='inner cable vanishes'):
        nominal.actuation_of(np.array([3.7, 0.0, 0.0, 0.0, 0.0, 0.0]))


def test_constant_curvature_supports_pairs_and_cable_statics_refuses_them():
    assert build_model('constant_curvature', sections(), cables()).name == 'constant_curvature'
    with pytest.raises(ValueError, match='does not support pairs'):
        build_model('cable_statics', sections(), cables())
