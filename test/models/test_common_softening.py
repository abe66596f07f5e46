"""Chambers that soften their section together: one chamber, round trips, derivatives, limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softarm_ros.models.actuation_range import ActuationRange
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.pneumatic.angle_correction import PneumaticArm
from softarm_ros.models.pneumatic.chamber_arm import ChamberArm
from softarm_ros.models.pneumatic.chambers import ChamberCurves
from softarm_ros.models.pneumatic.common_softening import CommonSoftening, curves_of
from softarm_ros.models.pneumatic.config import ChamberSectionConfig, PressureCurveConfig

MOST = 1.1e5
CURVES = tuple(
    PressureCurveConfig(
        pressure_Pa=(0.0, 3.5e4, 7.2e4, MOST), extension_m=tuple(0.001 * k for k in knots)
    )
    for knots in ((0.0, 2.7, 7.0, 11.7), (0.0, 2.5, 6.2, 10.7), (0.0, 2.5, 6.6, 11.4))
)
SECTION = ChamberSectionConfig(
    name='module', bending_length_m=0.044, rigid_length_m=0.0145, chamber_radius_m=0.0073,
    mass_kg=0.0, curves=CURVES, softens_as_one=True,
)  # fmt: skip
TOGETHER = CommonSoftening(SECTION)
ARM = ChamberArm(PneumaticArm([SECTION]))
filled = st.lists(st.floats(0.0, MOST), min_size=3, max_size=3).map(np.array)


def by_differences(function, x, step):
    columns = [(function(x + d) - function(x - d)) / (2.0 * step) for d in step * np.eye(len(x))]
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize('chamber', [0, 1, 2])
def test_single_filled_chamber_extends_by_its_measured_curve(chamber):
    pressures = np.zeros(3)
    for value in (0.0, 10.0, 2e4, 8e4, MOST):
        pressures[chamber] = value
        alone = ChamberCurves(SECTION).extensions(pressures)
        np.testing.assert_allclose(TOGETHER.extensions(pressures), alone, atol=1e-12)


def test_total_extension_depends_on_the_sum_of_the_pressures():
    """With equal curves each chamber gets a share in proportion to its pressure."""
    alike = SECTION.model_copy(update={'curves': CURVES[:1]})
    curves = curves_of(alike)
    whole = curves.extensions(np.array([9e4, 0.0, 0.0]))
    divided = curves.extensions(np.array([4e4, 2e4, 3e4]))
    assert divided.sum() == pytest.approx(whole.sum(), rel=1e-12)
    np.testing.assert_allclose(divided / divided.sum(), [4 / 9, 2 / 9, 3 / 9], rtol=1e-12)
    apart = ChamberCurves(alike).extensions(np.array([4e4, 2e4, 3e4]))
    assert divided.sum() > 1.3 * apart.sum()


@settings(deadline=None, max_examples=50, derandomize=True)
@given(filled)
def test_pressures_and_extensions_round_trip(pressures):
    found = TOGETHER.pressures(TOGETHER.extensions(pressures))
    np.testing.assert_allclose(found, pressures, atol=1e-5 * MOST * 1e-2)
    again = ARM.actuation_of(ARM.configuration_of(pressures))
    np.testing.assert_allclose(again, pressures, atol=1e-6 * MOST)


def test_derivatives_match_finite_differences():
    pressures = np.array([3e4, 8e4, 1e4])
    by_pressure = by_differences(TOGETHER.extensions, pressures, 1.0)
    eye = np.eye(3)
    np.testing.assert_allclose(TOGETHER.by_pressures(pressures, eye), by_pressure, rtol=1e-5)
    inverse = TOGETHER.pressures_by(pressures, eye)
    np.testing.assert_allclose(inverse @ by_pressure, eye, atol=1e-5)
    e = ARM.configuration_of(pressures)
    numeric = by_differences(ARM.actuation_of, e, 1e-7)
    np.testing.assert_allclose(ARM.actuation_jacobian(e), numeric, rtol=1e-4, atol=1e3)
    tips = by_differences(lambda p: ARM.forward(p).tip[:3, 3], pressures, 10.0)
    np.testing.assert_allclose(ARM.jacobian(pressures)[:3], tips, rtol=1e-3, atol=1e-9)


def test_inverse_reaches_a_tip_set_by_two_chambers():
    goal = ARM.forward(np.array([0.0, 6e4, 3e4])).tip[:3, 3]
    found = ARM.inverse(goal)
    assert found.converged, found.message
    np.testing.assert_allclose(ARM.forward(found.actuation).tip[:3, 3], goal, atol=1e-6)


@pytest.mark.parametrize('shares', [(1.0, 1.0, 0.3), (1.0, 0.9, 1.0), (0.0, 1.0, 1.0)])
def test_inverse_reaches_a_tip_that_chambers_reach_only_together(shares):
    """Filled together, chambers extend further than each of them alone."""
    pressures = MOST * np.array(shares)
    assert np.any(ARM.configuration_of(pressures) > TOGETHER.max_extension_m)
    pose = ARM.forward(pressures).tip
    for orientation in (None, pose[:3, :3]):
        for guess in (None, 0.9 * pressures):
            found = ARM.inverse(pose[:3, 3], orientation, guess)
            assert found.converged, found.message
            assert np.all(found.actuation <= MOST)
            np.testing.assert_allclose(ARM.forward(found.actuation).tip, pose, atol=1e-5)


def test_inverse_of_a_tip_that_needs_too_much_pressure_names_the_chamber():
    within = ActuationRange(ARM.actuator_names, np.zeros(3), np.full(3, 0.5 * MOST), 'Pa')
    found = ChamberArm(PneumaticArm([SECTION]), within=within).inverse(
        ARM.forward(np.array([0.8 * MOST, 0.2 * MOST, 0.0])).tip[:3, 3]
    )
    assert not found.converged
    assert 'module_chamber_1 at 55 kPa' in found.message
    assert np.all(found.actuation <= 0.5 * MOST)


def test_pressure_of_a_single_chamber_with_a_flattening_curve_is_found_again():
    """With such curves a chamber extends furthest alone."""
    flat = PressureCurveConfig(pressure_Pa=(0.0, 4e4, MOST), extension_m=(0.0, 8e-3, 12e-3))
    arm = ChamberArm(PneumaticArm([SECTION.model_copy(update={'curves': (flat,)})]))
    pressures = np.array([0.0, MOST, 0.0])
    again = arm.actuation_of(arm.configuration_of(pressures))
    np.testing.assert_allclose(again, pressures, atol=1e-6 * MOST)
    found = arm.inverse(arm.forward(pressures).tip[:3, 3])
    assert found.converged, found.message


def test_values_outside_the_measured_range_are_refused():
    with pytest.raises(ModelError, match='outside the identified range'):
        TOGETHER.extensions(np.array([0.0, 1.01 * MOST, 0.0]))
    with pytest.raises(ModelError, match='not reached with pressures of up to'):
        TOGETHER.pressures(np.full(3, 0.05))
    with pytest.raises(ModelError, match='outside the identified range'):
        TOGETHER.pressures(np.array([1.2 * TOGETHER.max_extension_m[0], 0.0, 0.0]))
