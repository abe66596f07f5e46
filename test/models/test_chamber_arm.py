"""Pneumatic arm with chamber extensions as configuration: round trips, derivatives, inverse."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from softarm_ros.models.arm_model import ModelError, SetByBends
from softarm_ros.models.pneumatic.angle_correction import PneumaticArm
from softarm_ros.models.pneumatic.chamber_arm import ChamberArm
from softarm_ros.models.pneumatic.chambers import ChamberCurves
from softarm_ros.models.pneumatic.config import (
    ChamberSectionConfig,
    MountConfig,
    PressureCurveConfig,
    placeholder_curve,
)

MOST = 0.031
quick = settings(deadline=None, max_examples=25, derandomize=True)
extensions = st.lists(st.floats(0.0, MOST), min_size=6, max_size=6).map(np.array)


def arm(corrected=True, give=0.0, **changes):
    sections = [
        ChamberSectionConfig(name=n, curves=(placeholder_curve(),), bend_per_moment_rad_N_m=give)
        for n in ('upper', 'lower')
    ]
    changes = {'tip_mass_kg': 0.065, 'tip_offset_m': 0.035} | changes
    return ChamberArm(PneumaticArm(sections, MountConfig() if corrected else None, **changes))


ARM = arm()


def attitude(*angles_deg):
    pairs = np.radians(np.reshape(angles_deg, (-1, 2)))
    return (pairs[:, 1:] * np.stack([np.cos(pairs[:, 0]), np.sin(pairs[:, 0])], 1)).ravel()


@pytest.mark.parametrize(
    ('angles', 'lengths_mm'),
    [
        ((270, 50, 15, 60), [102.253, 80, 80, 87.981, 109.784, 80]),
        ((150, 55, 10, 20), [80, 80, 104.478, 83.515, 90.122, 80]),
        ((30, 60, 0, 60), [80, 106.704, 80, 95.417, 110.835, 80]),
    ],
)
def test_attitudes_follow_the_papers_rule_for_chamber_lengths(angles, lengths_mm):
    found = ARM.of_bends(attitude(*angles))
    np.testing.assert_allclose(80.0 + 1e3 * found, lengths_mm, atol=6e-4)
    assert isinstance(ARM, SetByBends)


@quick
@given(extensions)
def test_pressures_extensions_and_bends_round_trip(e):
    np.testing.assert_allclose(ARM.configuration_of(ARM.actuation_of(e)), e, atol=1e-12)
    np.testing.assert_allclose(ARM.extensions_of(ARM.bends_and_lengths(e)), e, atol=1e-15)
    bends = ARM.bends_and_lengths(e).reshape(2, 3)
    np.testing.assert_allclose(bends[:, 2], 0.080 + e.reshape(2, 3).mean(axis=1), atol=1e-15)


@pytest.mark.parametrize('model', [ARM, arm(corrected=False), arm(give=0.5)])
@quick
@given(e=extensions)
def test_jacobians_match_finite_differences(model, e):
    e = 0.1 * MOST + 0.8 * e  # a step to either side stays within the curve
    tip, J = model.tip_and_jacobian(e)
    np.testing.assert_allclose(tip, model.shape_of(e).tip[:3, 3], atol=1e-12)
    A = model.actuation_jacobian(e)
    for k, h in enumerate(1e-6 * np.eye(6)):
        ahead, behind = model.tips_of(np.array([e + h, e - h]))
        np.testing.assert_allclose(J[:, k], (ahead - behind) / 2e-6, atol=2e-5)
        slope = (model.actuation_of(e + h) - model.actuation_of(e - h)) / 2e-6
        np.testing.assert_allclose(A[:, k], slope, atol=1e-3 * np.abs(A).max())


def test_pressure_jacobian_agrees_with_the_extension_jacobian():
    e = np.array([0.010, 0.004, 0.020, 0.002, 0.015, 0.012])
    pressures = ARM.actuation_of(e)
    by_pressure = ARM.jacobian(pressures)[:3] @ ARM.actuation_jacobian(e)
    np.testing.assert_allclose(by_pressure, ARM.tip_and_jacobian(e)[1], atol=1e-6)


@settings(deadline=None, max_examples=12, derandomize=True)
@given(extensions)
def test_inverse_reaches_workspace_points_within_the_pressure_limits(e):
    point = ARM.shape_of(0.9 * e).tip[:3, 3]
    free = ARM.inverse(point)
    near = ARM.inverse(point, guess=ARM.actuation_of(0.85 * e))
    for solution in (free, near):
        assert solution.converged, solution.message
        tip = ARM.forward(solution.actuation).tip[:3, 3]
        assert np.linalg.norm(tip - point) < 1e-7
        assert np.all(solution.actuation >= 0.0) and np.all(solution.actuation <= 9e4)


def test_inverse_uses_nearly_the_smallest_extensions():
    """The preference for small extensions fades as the search reaches the point."""
    for point in ([0.08, 0.03, 0.195], [-0.05, 0.09, 0.190]):
        found = ARM.inverse(point).shape.configuration
        least = minimize(
            lambda x: 1e6 * x @ x,
            found,
            jac=lambda x: 2e6 * x,
            bounds=[(0.0, MOST)] * 6,
            constraints={
                'type': 'eq',
                'fun': lambda x, p=point: 1e3 * (ARM.tip_and_jacobian(x)[0] - p),
                'jac': lambda x: 1e3 * ARM.tip_and_jacobian(x)[1],
            },
            options={'maxiter': 200, 'ftol': 1e-10},
        )
        assert np.linalg.norm(ARM.tip_and_jacobian(least.x)[0] - point) < 1e-5
        assert np.linalg.norm(found) < 1.05 * np.linalg.norm(least.x)


@pytest.mark.parametrize('load', [(0.0, 0.0, 0.0), (0.05, -0.02, 0.3)])
def test_inverse_reaches_poses_set_by_any_pressures_under_a_load(load):
    rng = np.random.default_rng(4)
    for pressures in rng.uniform(0.0, 9e4, (4, 6)):
        pose = ARM.forward(pressures, load).tip
        for guess in (None, np.clip(pressures + 3e3, 0.0, 9e4)):
            posed = ARM.inverse(pose[:3, 3], pose[:3, :3], guess, load)
            placed = ARM.inverse(pose[:3, 3], None, guess, load)
            assert posed.converged, posed.message
            assert placed.converged, placed.message
            np.testing.assert_allclose(ARM.forward(posed.actuation, load).tip, pose, atol=1e-6)
            # `shape` is the shape under the load.
            np.testing.assert_allclose(placed.shape.tip[:3, 3], pose[:3, 3], atol=1e-6)
            effort = np.linalg.norm(placed.shape.configuration)
            assert effort < 1.01 * np.linalg.norm(posed.shape.configuration)


@pytest.mark.parametrize('single', [[0, 0, 5e4, 0, 4e4, 0], [0, 0, 0, 0, 4e4, 0], 6 * [0.0]])
def test_inverse_converges_where_chambers_are_at_rest(single):
    target = ARM.forward(single).tip
    for guess in (None, np.add(single, 100.0)):
        for orientation in (None, target[:3, :3]):
            solution = ARM.inverse(target[:3, 3], orientation, guess)
            assert solution.converged and solution.residual < 2e-6


def test_rigid_mounts_refuse_a_load_of_the_inverse():
    with pytest.raises(ModelError, match='does not support loads'):
        arm(corrected=False).inverse([0.0, 0.0, 0.2], tip_force=(0.0, 0.0, 0.1))


def test_inverse_reports_a_point_out_of_reach():
    solution = ARM.inverse([0.0, 0.0, 0.35])
    assert not solution.converged and 'extension at 31 mm' in solution.message
    # Straight with every chamber at its limit: 0.2 m and two extensions.
    assert solution.residual == pytest.approx(0.35 - (0.2 + 2.0 * MOST), abs=2e-3)


def test_two_chamber_rule_folds_its_tip_shell_where_both_sections_bend_equally():
    """Extensions are the configuration because bends alone bind the tip to the shell."""
    same = attitude(75, 35, 75, 35)
    steps = 1e-4 * np.eye(4)
    tips = [[ARM.shape_of(ARM.of_bends(same + s * h)).tip[:3, 3] for s in (1, -1)] for h in steps]
    by_bends = np.array([(a - b) / 2e-4 for a, b in tips]).T
    by_extensions = ARM.tip_and_jacobian(ARM.of_bends(same))[1] * ARM.configuration_scale
    smallest = [np.linalg.svd(J, compute_uv=False)[-1] for J in (by_bends, by_extensions)]
    assert smallest[0] < 0.25 * smallest[1]


def test_invalid_configurations_are_refused():
    with pytest.raises(ValueError, match=r'shape \(4,\), expected \(6,\)'):
        ARM.shape_of(np.zeros(4))
    with pytest.raises(ValueError, match='not finite'):
        ARM.tip_and_jacobian(np.full(6, math.nan))
    with pytest.raises(ModelError, match=r'lower_chamber_2.*outside'):
        ARM.actuation_of(np.array([0, 0, 0, 0, 0.032, 0]))
    with pytest.raises(ModelError, match='upper_chamber_1'):
        ARM.actuation_of(np.array([-0.001, 0, 0, 0, 0, 0]))


@quick
@given(extensions)
def test_posture_answers_as_the_model_does(configuration):
    posture = ARM.posture_of(configuration)
    tip, jacobian = ARM.tip_and_jacobian(configuration)
    np.testing.assert_array_equal(posture.tip, tip)
    np.testing.assert_array_equal(posture.tip_jacobian, jacobian)
    np.testing.assert_array_equal(posture.section_tips, ARM.shape_of(configuration).section_tips)
    np.testing.assert_array_equal(posture.actuation, ARM.actuation_of(configuration))
    np.testing.assert_array_equal(
        posture.actuation_jacobian, ARM.actuation_jacobian(configuration)
    )


@settings(deadline=None, derandomize=True)
@given(st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).map(np.array))
def test_chambers_follow_their_curves_exactly(shares):
    """Chambers with curves of different length, also at the ends of the curves."""
    curves = [
        PressureCurveConfig(pressure_Pa=(0.0, 2e4, 5e4, 9e4), extension_m=(0.0, 4e-3, 6e-3, 0.03)),
        PressureCurveConfig(pressure_Pa=(0.0, 8e4), extension_m=(0.0, 0.02)),
        placeholder_curve(),
    ]
    chambers = ChamberCurves(ChamberSectionConfig(name='odd', curves=tuple(curves)))
    wanted = shares * chambers.max_extension_m
    pressures = chambers.pressures(wanted)
    assert pressures.tolist() == [
        float(c.inverse(e)) for c, e in zip(chambers.curves, wanted.tolist())
    ]
    slopes = [c.at(p)[1] for c, p in zip(chambers.curves, pressures.tolist())]
    assert chambers.slopes(pressures).tolist() == slopes


def test_chambers_refuse_values_beyond_their_curves():
    chambers = ChamberCurves(ChamberSectionConfig(name='odd', curves=(placeholder_curve(),)))
    beyond = np.array([0.0, 1.01, 0.5])
    with pytest.raises(ModelError, match=r'extension_m = .* outside the identified range'):
        chambers.pressures(beyond * chambers.max_extension_m)
    with pytest.raises(ModelError, match=r'pressure_Pa = .* outside the identified range'):
        chambers.slopes(beyond * chambers.max_pressure_Pa)
    with pytest.raises(ModelError, match='extension_m = nan'):
        chambers.pressures(np.array([0.0, math.nan, 0.0]))
