"""Chambers and sagging mounts: worked examples, round trips, symmetries, limits."""

import math

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from softarm_ros.geometry.poses import displacement, pose
from softarm_ros.geometry.rotations import rotation_y, rotation_z
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.pneumatic.angle_correction import PneumaticArm
from softarm_ros.models.pneumatic.angle_correction_kernels import (
    is_surely_stable,
    tilt_per_moment,
    yeoh_stress,
)
from softarm_ros.models.pneumatic.chambers import (
    bend_of_chambers,
    chambers_of_bend,
    passive_length,
)
from softarm_ros.models.pneumatic.config import (
    ChamberSectionConfig,
    MountConfig,
    PressureCurveConfig,
    placeholder_curve,
)

RADIUS, REST = 0.017, 0.080
MOUNT = np.array([0.034, 0.020, 0.11e6, 0.02e6])
quick = settings(deadline=None, max_examples=60)
angles = st.floats(-math.pi, math.pi)


def arm(corrected=True, **changes):
    sections = [
        ChamberSectionConfig(name=n, curves=(placeholder_curve(),)) for n in ('upper', 'lower')
    ]
    return PneumaticArm(sections, MountConfig() if corrected else None, **changes)


def bend(theta_deg, phi_deg):
    theta, phi = math.radians(theta_deg), math.radians(phi_deg)
    return theta * np.array([math.cos(phi), math.sin(phi)])


DEMO = [
    ((270, 50, 15, 60), [102.253, 80, 80], [87.981, 109.784, 80], (53.63, -97.17, 143.04)),
    ((150, 55, 10, 20), [80, 80, 104.478], [83.515, 90.122, 80], (-99.40, 72.73, 148.44)),
    ((30, 60, 0, 60), [80, 106.704, 80], [95.417, 110.835, 80], (139.90, 48.72, 72.60)),
]


@pytest.mark.parametrize(('pose_deg', 'first', 'second', 'tip_mm'), DEMO)
def test_demonstration_poses_have_the_expected_chamber_lengths_and_tips(
    pose_deg, first, second, tip_mm
):
    phi1, theta1, phi2, theta2 = pose_deg
    bends = [bend(theta1, phi1), bend(theta2, phi2)]
    for b, expected in zip(bends, (first, second)):
        lengths = chambers_of_bend(b, passive_length(b, REST, RADIUS), RADIUS)
        np.testing.assert_allclose(1e3 * lengths, expected, atol=6e-4)
    fixed = np.concatenate([[*b, REST] for b in bends])
    tip = arm(corrected=False).shape_of(fixed).tip
    np.testing.assert_allclose(1e3 * tip[:3, 3], tip_mm, atol=6e-3)


@given(st.floats(0.0, 2.0), angles)
@quick
def test_bend_and_chamber_lengths_round_trip_and_match_eq_1_to_3(theta, phi):
    b = theta * np.array([math.cos(phi), math.sin(phi)])
    length = passive_length(b, REST, RADIUS)
    lengths = chambers_of_bend(b, length, RADIUS)
    assert lengths.min() == pytest.approx(REST, abs=1e-15)
    back = bend_of_chambers(lengths, RADIUS)
    np.testing.assert_allclose(back.bend, b, atol=1e-13)
    assert back.length_m == pytest.approx(length, abs=1e-15)
    # The paper's own formulas, eq. 1-3 with atan2.
    a1, a2, a3 = lengths
    g2 = max(0.0, a1**2 + a2**2 + a3**2 - a1 * a2 - a1 * a3 - a2 * a3)
    assert back.theta == pytest.approx(2.0 * math.sqrt(g2) / (3.0 * RADIUS), abs=1e-6)
    assert back.kappa == pytest.approx(2 * math.sqrt(g2) / ((a1 + a2 + a3) * RADIUS), abs=1e-5)
    if theta > 1e-3:
        printed = math.atan2(a2 + a3 - 2 * a1, math.sqrt(3.0) * (a2 - a3))
        assert math.cos(back.phi - printed) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ('moment', 'angle_deg'),
    [(0.02, 0.473), (0.05, 1.200), (0.10, 2.460), (0.15, 3.778), (0.20, 5.152), (0.30, 8.046)],
)
def test_mount_tilt_matches_the_worked_examples(moment, angle_deg):
    assert math.degrees(moment * tilt_per_moment(moment, MOUNT)) == pytest.approx(
        angle_deg, abs=6e-4
    )


def test_mount_tilt_matches_a_bracketing_solver_and_its_zero_moment_limit():
    for moment in (1e-9, 1e-5, 3e-3, 0.7, 5.0):
        stress = 12.0 * moment / MOUNT[0] ** 3
        stretch = brentq(
            lambda x, s=stress: yeoh_stress(x, *MOUNT[2:])[0] - s, 1.0, 1e3, xtol=1e-15, rtol=1e-15
        )
        expected = math.atan(2.0 * MOUNT[1] * (stretch - 1.0) / MOUNT[0])
        found = moment * tilt_per_moment(moment, MOUNT)
        assert found == pytest.approx(expected, rel=1e-6 if moment < 1e-6 else 1e-10)
    assert tilt_per_moment(0.0, MOUNT) == pytest.approx(tilt_per_moment(1e-7, MOUNT), rel=1e-5)


def test_yeoh_stress_slope_matches_differences_and_the_rest_modulus():
    h = 1e-6
    for stretch in (1.0, 1.1, 1.6):
        up, down = yeoh_stress(stretch + h, *MOUNT[2:])[0], yeoh_stress(stretch - h, *MOUNT[2:])[0]
        assert yeoh_stress(stretch, *MOUNT[2:])[1] == pytest.approx(
            (up - down) / (2 * h), rel=1e-8
        )
    assert yeoh_stress(1.0, *MOUNT[2:])[1] == pytest.approx(0.88e6)


def test_angle_correction_changes_nothing_without_gravity():
    configuration = np.array([0.4, -0.3, 0.09, 0.2, 0.7, 0.085])
    plain = arm(corrected=False).shape_of(configuration)
    sagged = arm(gravity=(0.0, 0.0, 0.0)).shape_of(configuration)
    np.testing.assert_allclose(sagged.tip, plain.tip, atol=1e-15)


def test_one_planar_section_matches_the_papers_matrix():
    # Eq. 5 corrected: Rz(phi) Ry(-alpha) [Ry(theta) | p] Rz(-phi) Tz; gravity reduces the bend.
    section = ChamberSectionConfig(name='only', curves=(placeholder_curve(),), mass_kg=0.2)
    model = PneumaticArm([section], MountConfig())
    theta, phi, length = 0.9, 0.7, 0.085
    state = model.sagged_pose([theta * math.cos(phi), theta * math.sin(phi), length])
    alpha = float(np.linalg.norm(state.tilts[0]))
    moment = float(np.linalg.norm(state.moments[0]))
    assert alpha == pytest.approx(moment * tilt_per_moment(moment, MOUNT), abs=1e-12)
    assert alpha > math.radians(0.5)
    r = length / theta
    arc = pose(rotation_y(theta), [r * (1.0 - math.cos(theta)), 0.0, r * math.sin(theta)])
    turn = pose(rotation_z(phi) @ rotation_y(-alpha), [0.0, 0.0, 0.0])
    expected = turn @ arc @ pose(rotation_z(-phi), [0.0, 0.0, 0.0]) @ pose(np.eye(3), [0, 0, 0.02])
    np.testing.assert_allclose(state.section_tips[0], expected, atol=1e-12)


def test_mount_moments_match_the_integrated_weight_and_tip_loads():
    model = arm(tip_mass_kg=0.05, tip_offset_m=0.03)
    configuration = np.array([0.5, -0.4, 0.09, 0.3, 0.6, 0.085])
    force, couple = np.array([0.1, -0.2, 0.15]), np.array([0.01, 0.0, -0.02])
    state = model.sagged_pose(configuration, force, couple)
    line = model.shape_under(configuration, force, couple).centerline(4001)
    middles = 0.5 * (line[1:] + line[:-1])
    steps = np.linalg.norm(np.diff(line, axis=0), axis=1)
    arc = np.cumsum(steps) - 0.5 * steps
    first = arc < 0.09 + 0.02
    density = np.where(first, 0.1255 / 0.11, 0.1255 / 0.105) * 9.81
    tip = state.section_tips[-1]
    for k, taken in ((0, np.ones_like(first)), (1, ~first)):
        origin = state.mounts[k, :3, 3]
        weight = np.outer(density * steps, [0.0, 0.0, 1.0])
        expected = np.cross(middles - origin, weight)[taken].sum(axis=0)
        expected += np.cross(tip[:3, 3] - origin, force) + couple
        grip = tip[:3, 3] + 0.03 * tip[:3, 2] - origin
        expected += np.cross(grip, [0.0, 0.0, 0.05 * 9.81])
        np.testing.assert_allclose(state.moments[k], expected, atol=2e-6)


@given(angles, st.lists(st.floats(-1.2, 1.2), min_size=4, max_size=4))
@quick
def test_turning_bends_and_load_about_gravity_turns_the_pose(turn, bends):
    model = arm()
    about = rotation_z(turn)
    first = np.array([bends[0], bends[1], 0.09, bends[2], bends[3], 0.1])
    second = first.copy()
    for k in (0, 3):
        second[k : k + 2] = about[:2, :2] @ first[k : k + 2]
    tip = model.sagged_pose(first, (0.1, 0.0, 0.0)).section_tips[-1]
    turned = model.sagged_pose(second, about @ [0.1, 0.0, 0.0]).section_tips[-1]
    np.testing.assert_allclose(turned[:3, 3], about @ tip[:3, 3], atol=1e-11)
    np.testing.assert_allclose(turned[:3, :3], about @ tip[:3, :3] @ about.T, atol=1e-11)


def test_compliant_arc_bends_as_a_cantilever():
    # An end moment turns the straight section by C M, exactly as a beam. A light transverse force
    # turns it by C F times its lever to the middle of the arc.
    section = ChamberSectionConfig(
        name='only', curves=(placeholder_curve(),), mass_kg=0.0, bend_per_moment_rad_N_m=30.0
    )
    model = PneumaticArm([section])
    assert model.name == 'angle_correction'
    straight = [0.0, 0.0, REST]
    bent = model.sagged_pose(straight, tip_moment=(0.0, 2e-3, 0.0))
    np.testing.assert_allclose(bent.bends[0], [30.0 * 2e-3, 0.0, REST], atol=1e-12)
    pushed = model.sagged_pose(straight, (0.0, 1e-5, 0.0))
    lever = 0.5 * REST + 0.020
    np.testing.assert_allclose(
        pushed.bends[0, :2], [0.0, 30.0 * 1e-5 * lever], rtol=1e-4, atol=1e-12
    )
    beam = 30.0 * (lever**2 + REST**2 / 12.0)
    deflection = pushed.section_tips[0, 1, 3] / 1e-5
    assert deflection == pytest.approx(beam, rel=0.2)  # one curvature cannot follow a cubic


def test_mount_tilts_and_arc_give_reach_a_joint_equilibrium():
    sections = [
        ChamberSectionConfig(name=n, curves=(placeholder_curve(),), bend_per_moment_rad_N_m=1.5)
        for n in ('upper', 'lower')
    ]
    model = PneumaticArm(sections, MountConfig())
    plain = PneumaticArm(sections[:1])
    configuration = np.array([0.4, -0.2, 0.09, 0.5, 0.3, 0.085])
    state = model.sagged_pose(configuration, (0.2, 0.1, -0.1))
    assert state.residual < 1e-10 and plain.gives
    give = state.bends[:, :2] - configuration.reshape(2, 3)[:, :2]
    assert np.all(np.linalg.norm(give, axis=1) > 1e-3)
    # With these final bends as configuration, the same arm with stiff arcs tilts equally.
    stiff = arm().sagged_pose(state.bends.ravel(), (0.2, 0.1, -0.1))
    np.testing.assert_allclose(stiff.tilts, state.tilts, atol=1e-11)
    np.testing.assert_allclose(stiff.section_tips, state.section_tips, atol=1e-11)


@given(st.integers(0, 10_000))
@quick
def test_random_arms_are_in_equilibrium_or_refused(seed):
    rng = np.random.default_rng(seed)
    sections = [
        ChamberSectionConfig(
            name=f'section_{k}',
            bending_length_m=rng.uniform(0.03, 0.15),
            rigid_length_m=rng.uniform(0.0, 0.04),
            chamber_radius_m=rng.uniform(0.008, 0.03),
            mass_kg=rng.uniform(0.0, 0.4),
            bend_per_moment_rad_N_m=float(rng.choice([0.0, 3.0])),
            curves=(placeholder_curve(),),
        )
        for k in range(rng.integers(1, 4))
    ]
    mount = MountConfig(deforming_length_m=rng.uniform(0.002, 0.03))
    model = PneumaticArm(sections, mount, gravity=9.81 * _direction(rng))
    configuration = np.concatenate(
        [[*rng.uniform(-1.0, 1.0, 2), s.bending_length_m] for s in sections]
    )
    force = 0.3 * rng.normal(size=3)
    try:
        state = model.sagged_pose(configuration, force)
    except ModelError as error:
        assert 'no stable equilibrium' in str(error)
        reject()
    assert state.residual < 1e-10
    for k, mounted in enumerate(state.mounts):
        local = mounted[:3, :3].T @ state.moments[k]
        across = float(np.hypot(local[0], local[1]))
        material = np.array([0.034, mount.deforming_length_m, 0.11e6, 0.02e6])
        expected = tilt_per_moment(across, material) * local[:2]
        np.testing.assert_allclose(state.tilts[k], expected, atol=1e-10)


def _direction(rng):
    vector = rng.normal(size=3)
    return vector / np.linalg.norm(vector)


def test_arm_sinks_along_any_direction_of_gravity():
    configuration = np.array([0.5, 0.2, 0.09, 0.3, -0.1, 0.085])
    plain = arm(corrected=False).shape_of(configuration).tip[:3, 3]
    for gravity in np.eye(3):
        sagged = arm(gravity=9.81 * gravity).shape_of(configuration).tip[:3, 3]
        assert (sagged - plain) @ gravity > 1e-4
    upright = arm(gravity=(0.0, 0.0, -9.81)).shape_of(configuration).tip[:3, 3]
    assert upright[2] < plain[2]


def test_arm_of_the_density_of_water_sags_in_air_but_not_in_water():
    section = ChamberSectionConfig(name='only', curves=(placeholder_curve(),))
    volume = math.pi * 0.017**2 * 0.1
    neutral = section.model_copy(update={'mass_kg': 998.0 * volume})
    configuration = [0.6, 0.3, 0.09]
    plain = PneumaticArm([neutral]).shape_of(configuration).tip
    in_water = PneumaticArm([neutral], MountConfig(), fluid_density_kg_m3=998.0)
    np.testing.assert_allclose(in_water.shape_of(configuration).tip, plain, atol=1e-12)
    in_air = PneumaticArm([neutral], MountConfig()).shape_of(configuration).tip
    assert np.linalg.norm(in_air - plain) > 1e-3


@given(st.lists(st.floats(0.0, 9e4), min_size=6, max_size=6))
@quick
def test_pressures_and_configuration_round_trip(pressures):
    model = arm()
    configuration = model.configuration_of(pressures)
    np.testing.assert_allclose(model.actuation_of(configuration), pressures, atol=1e-6)


@pytest.mark.parametrize('corrected', [True, False])
def test_jacobians_match_finite_differences(corrected):
    model = arm(corrected)
    pressures, h = np.array([2.3e4, 5.5e4, 0.5e4, 3.3e4, 1.2e4, 4.1e4]), 20.0
    jacobian = model.jacobian(pressures)
    by_pressure = model.actuation_jacobian(model.configuration_of(pressures))
    for i in range(6):
        step = h * np.eye(6)[i]
        twist = displacement(
            model.forward(pressures - step).tip, model.forward(pressures + step).tip
        )
        np.testing.assert_allclose(jacobian[:, i], twist / (2 * h), rtol=1e-5, atol=1e-11)
        slope = model.configuration_of(pressures + step) - model.configuration_of(pressures - step)
        np.testing.assert_allclose(by_pressure @ slope / (2 * h), np.eye(6)[i], atol=1e-4)
    configuration = model.configuration_of(pressures)
    tip, rows = model.tip_and_jacobian(configuration)
    np.testing.assert_allclose(tip, model.forward(pressures).tip[:3, 3], atol=1e-14)
    np.testing.assert_allclose(rows @ np.linalg.inv(by_pressure), jacobian[:3], atol=1e-10)


def test_each_chamber_follows_its_own_pressure_curve():
    curves = [
        PressureCurveConfig(pressure_Pa=(0.0, 5e4, 1e5), extension_m=(0.0, 0.01 * k, 0.03 * k))
        for k in (1, 2, 3)
    ]
    section = ChamberSectionConfig(name='only', curves=curves)
    model = PneumaticArm([section])
    configuration = model.configuration_of([5e4, 5e4, 5e4])
    lengths = chambers_of_bend(configuration[:2], configuration[2], RADIUS)
    np.testing.assert_allclose(lengths - REST, [0.01, 0.02, 0.03], atol=1e-15)
    np.testing.assert_allclose(model.actuation_of(configuration), 5e4, atol=1e-6)


def test_arm_reports_names_rest_length_and_an_evenly_spaced_centerline():
    model = arm()
    assert model.name == 'angle_correction' and arm(False).name == 'constant_curvature_chambers'
    assert model.actuator_names[4] == 'lower_chamber_2' and len(model.configuration_names) == 6
    assert model.rest_length_m == pytest.approx(0.2)
    shape = model.forward([2e4, 0, 5e4, 0, 4e4, 0])
    line = shape.centerline(401)
    np.testing.assert_allclose(line[-1], shape.tip[:3, 3], atol=1e-15)
    steps = np.linalg.norm(np.diff(line, axis=0), axis=1)
    assert steps.max() - steps.min() < 1e-3 * steps.mean()
    assert shape.section_tips.shape == (2, 4, 4)


def test_limits_and_bad_input_are_reported():
    model = arm()
    with pytest.raises(ModelError, match=r'upper_chamber_2: pressure 95000 Pa is outside 0 to'):
        model.forward([0, 9.5e4, 0, 0, 0, 0])
    with pytest.raises(ValueError, match='lower_chamber_3: pressure is nan'):
        model.forward([0, 0, 0, 0, 0, math.nan])
    with pytest.raises(ValueError, match='actuation has shape'):
        model.forward([0.0])
    with pytest.raises(ModelError, match='does not support loads'):
        arm(False).forward(np.zeros(6), (0.0, 0.0, 1.0))
    with pytest.raises(ModelError, match='upper_chamber_1: extension -5'):
        model.actuation_of([0.0, 0.0, 0.075, 0.0, 0.0, 0.08])
    with pytest.raises(ModelError, match='no stable equilibrium'):
        model.forward([3e4, 0, 0, 0, 0, 0], tip_force=(0.0, 0.0, -60.0))
    with pytest.raises(ValueError, match='must start at rest'):
        PressureCurveConfig(pressure_Pa=(1.0, 2.0), extension_m=(0.0, 1.0))
    with pytest.raises(ValueError, match='extension_m must be strictly monotone: point 2 is 1'):
        PressureCurveConfig(pressure_Pa=(0.0, 1.0, 2.0, 3.0), extension_m=(0.0, 2.0, 1.0, 3.0))
    with pytest.raises(ValueError, match='3 values of pressure_Pa but 2 of extension_m'):
        PressureCurveConfig(pressure_Pa=(0.0, 1.0, 2.0), extension_m=(0.0, 1.0))
    with pytest.raises(ValueError, match='section names repeat'):
        PneumaticArm([model.sections[0], model.sections[0]])
    with pytest.raises(ValueError, match='tip_mass_kg'):
        arm(tip_mass_kg=-1.0)
    # Five newtons tilt the bent arm a little. More tip it over on the same side, never the other.
    pushed = model.sagged_pose(model.configuration_of([3e4, 0, 0, 0, 0, 0]), (0.0, 0.0, -5.0))
    assert 0.1 < pushed.tilts[0, 0] < 0.2
    with pytest.raises(ValueError, match='2 curves, expected 1 or 3'):
        ChamberSectionConfig(name='two', curves=2 * (placeholder_curve(),))


@settings(deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.floats(-1.0, 1.5), st.floats(0.0, 2.0))
def test_surely_stable_equilibria_have_eigenvalues_with_positive_real_parts(seed, shift, spread):
    matrix = spread * np.random.default_rng(seed).normal(size=(8, 8)) + shift * np.eye(8)
    least = np.linalg.eigvalsh(0.5 * (matrix + matrix.T))[0]
    if is_surely_stable(matrix, np.empty((8, 8))):
        assert least > 0.0
        assert np.linalg.eigvals(matrix).real.min() > 0.0
    else:  # the least pivot is at least the least eigenvalue
        assert least < 2e-6


def test_eigenvalues_decide_on_equilibria_that_are_not_surely_stable():
    skewed = np.array([[1.0, 5.0], [0.0, 1.0]])
    assert np.linalg.eigvals(skewed).real.min() > 0.0
    for doubtful in (skewed, np.full((2, 2), math.nan), -np.eye(2)):
        assert not is_surely_stable(doubtful, np.empty((2, 2)))
    assert is_surely_stable(np.array([[1.0, 1.9], [0.0, 1.0]]), np.empty((2, 2)))


def test_hanging_arm_is_surely_stable_and_a_standing_one_tips_over(monkeypatch):
    asked = []
    eigvals = np.linalg.eigvals
    monkeypatch.setattr('numpy.linalg.eigvals', lambda m: asked.append(1) or eigvals(m))
    straight = np.array([0.0, 0.0, REST, 0.0, 0.0, REST])
    arm().sagged_pose(straight)
    assert not asked
    with pytest.raises(ModelError, match=r'tip_moment = \[0\.0, 0\.0, 0\.0\] N m.* tips over'):
        arm(gravity=(0.0, 0.0, -9.81), tip_mass_kg=1.0).sagged_pose(straight)
    assert asked
