import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares

from softarm_ros.geometry.poses import displacement
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.bounded_least_squares import bounded_least_squares
from softarm_ros.models.cosserat.config import (
    CableRoute,
    CosseratConfig,
    RectangularProfile,
    RigidConnector,
    RodCableConfig,
    RodSegmentConfig,
)
from softarm_ros.models.tendon_rod.constant_curvature import ConstantCurvatureTendonRod
from softarm_ros.models.tendon_rod.cosserat import CosseratTendonRod

STEEL = dict(young_modulus_Pa=210e9, poisson_ratio=0.3, density_kg_m3=7850.0)
EI = 210e9 * 0.023 * 0.0003**3 / 12.0
RADIUS, LENGTH, CONNECTOR = 0.01, 0.05, 0.0125
LIMIT, PRETENSION = 20.0, 1.0
DOWN = (0.0, -9.81, 0.0)


def strip(name, standing, turn_deg=0.0):
    width, height = (0.023, 0.0003) if standing else (0.0003, 0.023)
    return RodSegmentConfig(
        name=name,
        length_m=LENGTH,
        profile=RectangularProfile(width_m=width, height_m=height, **STEEL),
        connector=RigidConnector(
            length_m=CONNECTOR, mass_kg=0.01546, rotation_vector_deg=(0.0, 0.0, turn_deg)
        ),
    )


def cable(name, segment, angle_deg):
    route = CableRoute(segment=segment, radius_m=RADIUS, angle_deg=angle_deg)
    return RodCableConfig(name=name, routes=(route,), max_tension_N=LIMIT)


def config(units=4, gravity=DOWN, turn_deg=0.0):
    segments = [strip(f'unit_{k}', k % 2 == 1, turn_deg) for k in range(units)]
    cables = [
        cable(f'{side}_{k}', f'unit_{k}', 90.0 * (k % 2) + angle)
        for k in range(units)
        for side, angle in (('plus', 0.0), ('minus', 180.0))
    ]
    return CosseratConfig(
        segments=segments, cables=cables, gravity_m_s2=gravity, extensible=False, steps=4
    )


ARM = CosseratTendonRod(config(), PRETENSION)
LIGHT = CosseratTendonRod(config(gravity=(0.0, 0.0, 0.0), turn_deg=20.0), PRETENSION)
ARCS = ConstantCurvatureTendonRod(config(turn_deg=20.0), PRETENSION)
tensions = st.lists(st.floats(0.0, 12.0), min_size=8, max_size=8).map(np.array)


@pytest.mark.parametrize('tension', [0.5, 3.0, 9.0, 20.0])
def test_tip_of_one_arc_matches_the_closed_form(tension):
    arm = ConstantCurvatureTendonRod(config(units=1), PRETENSION)
    theta = tension * RADIUS * LENGTH / EI
    x = LENGTH * (1.0 - math.cos(theta)) / theta + CONNECTOR * math.sin(theta)
    z = LENGTH * math.sin(theta) / theta + CONNECTOR * math.cos(theta)
    tip = arm.forward(np.array([tension, 0.0])).tip
    np.testing.assert_allclose(tip[:3, 3], (x, 0.0, z), atol=1e-15)
    np.testing.assert_allclose(tip[2, 2], math.cos(theta), atol=1e-14)
    if tension == 9.0:
        assert math.degrees(theta) == pytest.approx(23.72, abs=0.005)  # printed for the fishbone


def test_arcs_and_weightless_rod_agree():
    """Two formulations: products of exponentials, and the rod's differential equations."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        actuation = rng.uniform(0.0, 15.0, 8)
        arcs, rod = ARCS.forward(actuation), LIGHT.forward(actuation)
        np.testing.assert_allclose(arcs.section_tips, rod.section_tips, atol=1e-9)
        np.testing.assert_allclose(arcs.centerline(50), rod.centerline(50), atol=1e-8)
        scale = np.abs(ARCS.jacobian(actuation)).max()
        np.testing.assert_allclose(
            ARCS.jacobian(actuation), LIGHT.jacobian(actuation), atol=1e-7 * scale
        )


@settings(max_examples=25)
@given(tensions)
def test_jacobian_by_tension_matches_finite_differences(actuation):
    step = 1e-4
    actuation = actuation + step
    for arm in (ARM, ARCS):
        jacobian = arm.jacobian(actuation)
        for i in range(8):
            h = step * (np.arange(8) == i)
            ahead, behind = arm.forward(actuation + h).tip, arm.forward(actuation - h).tip
            slope = displacement(behind, ahead) / (2.0 * step)
            np.testing.assert_allclose(jacobian[:, i], slope, atol=2e-6)


def test_tip_does_not_depend_on_earlier_calls():
    rng = np.random.default_rng(5)
    asked = rng.uniform(0.0, 12.0, (12, 8))
    tips = ARM.tips_of(asked)
    np.testing.assert_allclose(ARM.tips_of(asked[::-1])[::-1], tips, atol=1e-10)
    for actuation, tip in zip(asked, tips):
        np.testing.assert_allclose(ARM.forward(actuation).tip[:3, 3], tip, atol=1e-10)
    jacobian = ARM.jacobian(asked[0])
    jacobian[:] = 7.0
    assert not np.any(ARM.jacobian(asked[0]) == 7.0)


def test_preferred_tensions_shift_both_antagonists_by_the_same_amount():
    arm = ConstantCurvatureTendonRod(config(units=1), PRETENSION)
    np.testing.assert_allclose(
        arm.preferred_configuration(np.array([6.0, 4.0])), [3.0, 1.0], atol=1e-4
    )
    np.testing.assert_allclose(
        arm.preferred_configuration(np.array([0.0, 5.0])), [1.0, 6.0], atol=1e-4
    )


@given(tensions)
def test_preferred_tensions_keep_the_tip_and_are_the_smallest(actuation):
    _, jacobian = ARM.tip_and_jacobian(actuation)
    wanted = ARM.preferred_configuration(actuation)
    assert np.all(wanted >= PRETENSION) and np.all(wanted <= LIMIT)
    # The weight on the tensions moves the tip a little: at most 3 um in 1500 random draws.
    np.testing.assert_allclose(jacobian @ (wanted - actuation), 0.0, atol=5e-6)
    # In each pair one cable has no more than its pretension.
    assert np.all(np.minimum(wanted[::2], wanted[1::2]) < PRETENSION + 1e-3)
    # No nearby tensions within the bounds with the same tip are smaller (null-space moves).
    null = np.linalg.svd(jacobian)[2][3:]
    size = np.sum((wanted - PRETENSION) ** 2)
    for move in (*null, *-null):
        trial = wanted + 1e-2 * move
        if np.all(trial >= PRETENSION) and np.all(trial <= LIMIT):
            assert np.sum((trial - PRETENSION) ** 2) > size - 1e-4


def test_bounded_least_squares_meets_the_optimality_conditions():
    rng = np.random.default_rng(2)
    matrix, right = rng.standard_normal((7, 4)), rng.standard_normal(7)
    plain = np.linalg.lstsq(matrix, right, rcond=None)[0]
    free = bounded_least_squares(matrix, right, np.full(4, -9.0), np.full(4, 9.0))
    np.testing.assert_allclose(free, plain, atol=1e-9)
    bounded = bounded_least_squares(matrix, right, plain + 0.1, np.full(4, 9.0))
    gradient = matrix.T @ (matrix @ bounded - right)
    at_bound = np.isclose(bounded, plain + 0.1)
    assert at_bound.any()
    assert np.all(gradient[at_bound] > -1e-9) and np.all(np.abs(gradient[~at_bound]) < 1e-9)
    with pytest.raises(ArithmeticError, match='quadratic programme'):
        bounded_least_squares(np.full((2, 2), np.nan), np.zeros(2), np.zeros(2), np.ones(2))


@pytest.mark.parametrize('arm', [ARM, ARCS], ids=lambda a: a.name)
def test_inverse_finds_nearly_the_smallest_tensions(arm):
    rng = np.random.default_rng(11)
    for _ in range(4):
        start = arm.preferred_configuration(rng.uniform(1.0, 9.0, 8))
        tip = arm.forward(start).tip
        solution = arm.inverse(tip[:3, 3])
        assert solution.converged and solution.residual < 1e-6
        assert np.linalg.norm(solution.shape.tip[:3, 3] - tip[:3, 3]) < 1e-6
        near = arm.inverse(tip[:3, 3], guess=start)
        assert near.converged
        assert np.linalg.norm(near.actuation - 1.0) <= np.linalg.norm(start - 1.0) + 1e-3
        least = arm.preferred_configuration(near.actuation)
        assert np.linalg.norm(near.actuation - least) < 0.1 * np.linalg.norm(least)
        turned = arm.inverse(tip[:3, 3], tip[:3, :3], guess=start + 0.3)
        assert turned.converged
        assert np.linalg.norm(displacement(turned.shape.tip, tip)[3:]) < 1e-4


@pytest.mark.parametrize('arm', [ARM, ARCS], ids=lambda a: a.name)
def test_inverse_goes_below_the_pretension_only_if_the_target_requires_it(arm):
    corner = np.tile([LIMIT, 0.0], 4)
    target = arm.forward(corner).tip[:3, 3]
    solution = arm.inverse(target)
    assert solution.converged and np.min(solution.actuation) < 0.5 * PRETENSION
    assert np.linalg.norm(arm.forward(solution.actuation).tip[:3, 3] - target) < 1e-6
    kept = arm.inverse(arm.forward(corner.clip(PRETENSION, LIMIT - 1.0)).tip[:3, 3])
    assert kept.converged and np.all(kept.actuation >= PRETENSION)


def test_inverse_converges_from_poor_guesses():
    target = ARM.forward(np.array([1.0, 12.0, 9.0, 1.0, 1.0, 14.0, 1.0, 1.0])).tip[:3, 3]
    rng = np.random.default_rng(4)
    for _ in range(10):
        guess = rng.choice([PRETENSION, LIMIT], 8)
        assert ARM.inverse(target, guess=guess).converged


def test_inverse_of_a_point_out_of_reach_gives_the_nearest_point():
    """Reference: bounded least squares (scipy) from random tensions."""
    rng = np.random.default_rng(6)
    for target in ((0.0, 0.0, 0.3), (0.3, 0.0, 0.0), (-0.05, 0.01, 0.19), (0.0, 0.0, 0.0)):

        def miss(tensions, target=target):
            return 1e3 * (ARM.tip_and_jacobian(tensions)[0] - target)

        def slope(tensions):
            return 1e3 * ARM.tip_and_jacobian(tensions)[1]

        starts = rng.uniform(0.1, LIMIT - 0.1, (6, 8))
        nearest = min(
            math.sqrt(2.0 * least_squares(miss, start, slope, (0.0, LIMIT), method='dogbox').cost)
            for start in starts
        )
        solution = ARM.inverse(target)
        assert not solution.converged
        assert 1e3 * solution.residual < nearest + 0.1
        away = np.linalg.norm(ARM.forward(solution.actuation).tip[:3, 3] - target)
        assert away == pytest.approx(solution.residual, abs=1e-8)


def test_inverse_reports_a_point_out_of_reach():
    solution = ARM.inverse((0.0, 0.0, 0.3))
    assert not solution.converged
    assert 'nearer' in solution.message
    assert solution.residual > 0.04
    assert np.all(solution.actuation <= LIMIT)
    with pytest.raises(ValueError, match='not finite'):
        ARM.inverse((0.0, np.nan, 0.3))


def test_tip_load_acts_as_a_weight_at_the_tip():
    loaded = CosseratTendonRod(config(), PRETENSION, tip_load_kg=0.02)
    actuation = np.array([3.0, 1.0, 6.0, 1.0, 1.0, 2.0, 4.0, 1.0])
    by_force = ARM.forward(actuation, tip_force=(0.0, -0.02 * 9.81, 0.0)).tip
    np.testing.assert_allclose(loaded.forward(actuation).tip, by_force, atol=1e-12)
    np.testing.assert_allclose(loaded.tip_and_jacobian(actuation)[0], by_force[:3, 3], atol=1e-10)
    assert loaded.forward(actuation).tip[1, 3] < ARM.forward(actuation).tip[1, 3] - 1e-3
    solution = loaded.inverse((0.02, 0.0, 0.24))
    assert (
        solution.converged and solution.actuation[2] > ARM.inverse((0.02, 0.0, 0.24)).actuation[2]
    )


def test_configuration_equals_the_actuation():
    actuation = np.arange(8.0)
    np.testing.assert_array_equal(ARM.configuration_of(actuation), actuation)
    np.testing.assert_array_equal(ARM.actuation_of(actuation), actuation)
    np.testing.assert_array_equal(ARM.actuation_jacobian(actuation), np.eye(8))
    np.testing.assert_array_equal(ARM.forward(actuation).configuration, actuation)
    assert ARM.observed_configuration(np.tile(np.eye(4), (4, 1, 1))) is None
    gain = np.linalg.norm(ARM.jacobian(ARM.rest_configuration)[:3], axis=0).max()
    np.testing.assert_allclose(ARM.configuration_scale * gain, ARM.rest_length_m)
    # Values outside the range by rounding are clipped to it.
    assert ARM.actuation_of(np.full(8, -1e-9)).min() == 0.0


@pytest.mark.parametrize(
    ('values', 'message'),
    [
        (np.zeros(7), 'shape'),
        (np.full(8, -0.1), 'plus_0 is -0.1 N, allowed are 0 to 20 N'),
        (np.array([1, 1, 1, 20.1, 1, 1, 1, 1]), 'minus_1 is 20.1 N'),
        (np.array([1, np.nan, 1, 1, 1, 1, 1, 1]), 'minus_0 is nan'),
    ],
)
def test_errors_name_the_invalid_tension(values, message):
    for arm in (ARM, ARCS):
        for method in (arm.forward, arm.tip_and_jacobian, arm.actuation_of):
            with pytest.raises(ValueError, match=message):
                method(values)


def test_invalid_pretension_cables_loads_and_bends_are_refused():
    with pytest.raises(ModelError, match='pretension_N = 25'):
        CosseratTendonRod(config(), 25.0)
    with pytest.raises(ModelError, match='cables'):
        ConstantCurvatureTendonRod(config().model_copy(update={'cables': ()}), 0.0)
    with pytest.raises(ModelError, match='does not support a tip load'):
        ARCS.forward(np.ones(8), tip_force=(0.0, -1.0, 0.0))
    soft = strip('unit_0', False).model_copy(
        update={
            'profile': RectangularProfile(young_modulus_Pa=2e9, width_m=0.0003, height_m=0.023)
        }
    )
    with pytest.raises(ModelError, match='at most 360 deg'):
        ConstantCurvatureTendonRod(
            config(units=1).model_copy(update={'segments': (soft,)}), PRETENSION
        ).forward(np.array([20.0, 0.0]))
