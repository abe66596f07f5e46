"""Water-chamber sections as one rod: other formulations, derivatives, round trips."""

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from scipy.integrate import solve_bvp
from scipy.spatial.transform import Rotation
from test_hydraulic_statics import HANGING, TOP, section, statics

from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.hydraulics.rod import WaterRod
from softarm_ros.models.hydraulics.section_config import ChamberConfig, Surroundings
from softarm_ros.rigs.loader import load_rig

WEIGHTLESS = Surroundings((0.0, 0.0, 0.0))
MIXED = np.array([3e5, 1e5, 2e5, 1e5, 4e5, 1e5])


def rod(surroundings=None, sections=2, steps=3, preload=1e5, turn_deg=0.0, **changes):
    names = ('proximal', 'distal')[:sections]
    chambers = [
        ChamberConfig(name=f'{name}_{j}', section=k, angle_deg=120.0 * j + 180.0 * k + turn_deg)
        for k, name in enumerate(names)
        for j in range(3)
    ]
    return WaterRod(
        [section(name, **changes) for name in names],
        chambers,
        surroundings or Surroundings(HANGING),
        np.zeros(len(chambers)),
        np.full(len(chambers), TOP),
        preload,
        steps,
    )


ARM = rod()
pressures = st.lists(st.floats(0.0, 6e5), min_size=6, max_size=6).map(np.array)


# -- against other formulations ---------------------------------------------------------------


@pytest.mark.parametrize('rest_bend', [(0.0, 0.0), (3.0, -2.0)])
def test_weightless_rod_matches_the_weightless_statics(rest_bend):
    """Without weight, bends and elongations are the same linear functions in both models."""
    ours = rod(WEIGHTLESS, steps=12, rest_bend_deg=rest_bend)
    theirs = statics(1, WEIGHTLESS, rest_bend_deg=rest_bend)
    for pressure in (MIXED, np.full(6, 8e5), np.array([0.0, 0.0, 6e5, 2e5, 0.0, 1e5])):
        here, there = ours.forward(pressure), theirs.forward(pressure)
        np.testing.assert_allclose(here.configuration, there.configuration, atol=1e-9)
        np.testing.assert_allclose(here.section_tips, there.section_tips, atol=2e-8)
        np.testing.assert_allclose(here.centerline(30), there.centerline(30), atol=1e-7)


def test_statics_of_segments_converge_to_the_rod_with_order_two():
    """Segments do not shear, nor does the rod with about a thousand times the axial stiffness."""
    stiff = {'axial_stiffness_N': 2e7, 'plate_mass_kg': 0.03}
    force = (0.3, -0.2, 0.1)
    exact = rod(steps=8, **stiff).forward(MIXED, force).tip
    misses = [
        np.abs(statics(n, **stiff).forward(MIXED, force).tip - exact).max() for n in (4, 8, 16)
    ]
    assert misses[0] < 1e-3
    np.testing.assert_allclose(np.divide(misses[:-1], misses[1:]), 4.0, atol=0.3)  # order two
    assert misses[2] - misses[1] / 4.0 < 1e-5


def test_shear_moves_the_tip_by_at_most_0_1_mm():
    """The file states no shear stiffness; a third of the axial one is assumed. Arm: 0.8 m."""
    spread = {'plate_mass_kg': 0.03}
    shape, other = rod(**spread).forward(MIXED), statics(20, **spread).forward(MIXED)
    away = np.linalg.norm(shape.tip[:3, 3] - other.tip[:3, 3])
    assert 1e-6 < away < 1e-4


@pytest.mark.parametrize('force', [(0.3, 0.0, 0.0), (-1.0, 0.0, 0.5), (0.5, 0.0, -0.5)])
def test_one_section_under_a_tip_force_matches_the_elastica(force):
    """theta'' = -(F_x cos theta - F_z sin theta) / E I; the pressure sets the end curvature."""
    arm = rod(WEIGHTLESS, sections=1, steps=8, axial_stiffness_N=2e8)
    own = arm.sections[0]
    pressure = np.array([0.0, 2e5, 2e5])
    length, bending = own.length_m, own.bending_stiffness_N_m2
    moment = own.chamber_area_m2 * own.chamber_pitch_radius_m * 2e5  # bends it towards x

    def slope(s, y):
        pull = force[0] * np.cos(y[0]) - force[2] * np.sin(y[0])
        return np.vstack([y[1], -pull / bending, np.sin(y[0]), np.cos(y[0])])

    found = solve_bvp(
        slope,
        lambda a, b: np.array([a[0], b[1] - moment / bending, a[2], a[3]]),
        np.linspace(0.0, length, 60),
        np.zeros((4, 60)),
        tol=1e-9,
        max_nodes=10**5,
    )
    assert found.success
    tip = arm.forward(pressure, force).tip[:3, 3]
    np.testing.assert_allclose(tip, (found.y[2, -1], 0.0, found.y[3, -1]), atol=5e-7)
    assert abs(tip[0]) > 0.02


# -- virtual work, round trips and derivatives ------------------------------------------------


def test_chamber_volume_by_load_and_tip_motion_by_pressure_are_reciprocal():
    step = 0.01
    by_pressure = ARM.solved(MIXED, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)).twists_by_pressure[:3]
    for i in range(3):
        force = step * np.eye(3)[i]
        gained = [
            ARM.pressure_map.T @ ARM.solved(MIXED, sign * force, (0.0, 0.0, 0.0)).configuration
            for sign in (1.0, -1.0)
        ]
        volumes = (gained[0] - gained[1]) / (2.0 * step)
        scale = np.abs(by_pressure).max()
        np.testing.assert_allclose(volumes, by_pressure[i], atol=1e-5 * scale)


@settings(max_examples=25, deadline=None)
@given(pressures)
def test_pressures_round_trip(pressure):
    try:
        configuration = ARM.configuration_of(pressure)
    except ModelError as error:
        assert 'equilibrium' in str(error)
        reject()
    shape = ARM.forward(pressure)
    np.testing.assert_allclose(shape.configuration, configuration, atol=1e-12)
    try:
        held = ARM.held(configuration)
    except ModelError:
        # The pressures have several shapes, or the arm is near a fold.
        gains = np.linalg.cond(ARM.solved(pressure, np.zeros(3), np.zeros(3)).twists_by_pressure)
        assert gains > 1e3 or np.abs(configuration).max() > 1.4
        return
    np.testing.assert_allclose(held.configuration, configuration, atol=2e-8)
    np.testing.assert_allclose(ARM.tip_of(held)[:3, 3], shape.tip[:3, 3], atol=1e-7)


@pytest.mark.parametrize('seed', range(4))
def test_jacobians_match_finite_differences(seed):
    pressure = np.random.default_rng(seed).uniform(5e4, 4e5, 6)
    q = ARM.configuration_of(pressure)
    tip, J = ARM.tip_and_jacobian(q)
    A = ARM.actuation_jacobian(q)
    np.testing.assert_allclose(tip, ARM.shape_of(q).tip[:3, 3], atol=1e-9)
    for i, step in enumerate(1e-3 * np.array([1.0, 1.0, 1e-2] * 2)):
        dq = step * np.eye(6)[i]
        move = (ARM.tips_of([q + dq])[0] - ARM.tips_of([q - dq])[0]) / (2 * step)
        np.testing.assert_allclose(J[:, i], move, atol=1e-5 * np.abs(J).max())
        change = (ARM.actuation_of(q + dq) - ARM.actuation_of(q - dq)) / (2 * step)
        np.testing.assert_allclose(A[:, i], change, atol=1e-5 * np.abs(A).max())
    by_pressure = ARM.jacobian(pressure)
    for i in range(6):
        dp = 1e3 * np.eye(6)[i]
        ahead, behind = ARM.forward(pressure + dp).tip, ARM.forward(pressure - dp).tip
        scale = np.abs(by_pressure).max()
        np.testing.assert_allclose(
            by_pressure[:3, i], (ahead - behind)[:3, 3] / 2e3, atol=1e-5 * scale
        )
        turn = Rotation.from_matrix(ahead[:3, :3] @ behind[:3, :3].T).as_rotvec() / 2e3
        np.testing.assert_allclose(by_pressure[3:, i], turn, atol=1e-5 * scale)


def test_posture_does_not_depend_on_earlier_calls():
    goal = np.array([0.6, -0.4, 1.5e-3, -0.3, 0.9, 1e-3])
    fresh, wandering, posture = rod(), rod(), None
    for share in np.linspace(0.0, 1.0, 15):
        rest = wandering.rest_configuration
        posture = wandering.posture_of(rest + share * (goal - rest), posture)
    there = fresh.posture_of(goal)
    np.testing.assert_allclose(posture.actuation, there.actuation, atol=1.0)
    np.testing.assert_allclose(posture.tip, there.tip, atol=1e-8)
    np.testing.assert_allclose(posture.section_tips, there.section_tips, atol=1e-8)
    np.testing.assert_allclose(
        posture.tip_jacobian, there.tip_jacobian, atol=1e-6 * np.abs(there.tip_jacobian).max()
    )


# -- surroundings -----------------------------------------------------------------------------


def test_buoyancy_cancels_or_reverses_the_weight():
    volume = 0.35 / 998.0
    sunk = rod(Surroundings(HANGING, 998.0), displaced_volume_m3=volume)
    np.testing.assert_allclose(
        sunk.forward(MIXED).tip, rod(WEIGHTLESS).forward(MIXED).tip, atol=1e-9
    )
    # An arm that displaces twice its weight stands on its base as it would hang in air.
    lifted = rod(Surroundings((0.0, 0.0, -9.81), 998.0), displaced_volume_m3=2.0 * volume)
    np.testing.assert_allclose(lifted.forward(MIXED).tip, ARM.forward(MIXED).tip, atol=1e-9)


def test_tip_load_acts_as_its_weight_less_that_of_the_displaced_water():
    loaded = rod(Surroundings(HANGING, 0.0, 0.2))
    pulled = ARM.forward(MIXED, tip_force=(0.0, 0.0, 0.2 * 9.81))
    np.testing.assert_allclose(loaded.forward(MIXED).tip, pulled.tip, atol=1e-9)
    floating = rod(Surroundings(HANGING, 998.0, 0.2, 998.0))
    wet = rod(Surroundings(HANGING, 998.0))
    np.testing.assert_allclose(floating.forward(MIXED).tip, wet.forward(MIXED).tip, atol=1e-9)


def test_turning_the_chambers_turns_the_arm():
    turned = rod(turn_deg=35.0)
    turn = Rotation.from_euler('z', 35.0, degrees=True).as_matrix()
    np.testing.assert_allclose(
        turned.forward(MIXED).section_tips[:, :3, 3],
        ARM.forward(MIXED).section_tips[:, :3, 3] @ turn.T,
        atol=1e-9,
    )


def test_tilted_arm_equals_an_upright_arm_under_turned_gravity_and_force():
    tilt = Rotation.from_euler('y', 7.0, degrees=True)
    tilt = Rotation.from_euler('x', 4.0, degrees=True) * tilt
    tilted = rod(Surroundings(HANGING, 0.0, 0.1, base_tilt_deg=(4.0, 7.0)))
    upright = rod(Surroundings(tuple(tilt.inv().apply(HANGING)), 0.0, 0.1))
    force = np.array([0.2, -0.1, 0.1])
    here, there = tilted.forward(MIXED, force), upright.forward(MIXED, tilt.inv().apply(force))
    np.testing.assert_allclose(here.configuration, there.configuration, atol=1e-9)
    turn = tilt.as_matrix()
    np.testing.assert_allclose(
        here.section_tips[:, :3], turn @ there.section_tips[:, :3], atol=1e-9
    )
    np.testing.assert_allclose(here.centerline(9), there.centerline(9) @ turn.T, atol=1e-9)
    tip, slope = tilted.tip_and_jacobian(here.configuration)
    for i, step in enumerate(1e-3 * np.array([1.0, 1.0, 1e-2] * 2)):
        dq = step * np.eye(6)[i]
        move = np.subtract(
            *(tilted.tips_of([here.configuration + sign * dq])[0] for sign in (1.0, -1.0))
        )
        np.testing.assert_allclose(
            slope[:, i], move / (2.0 * step), atol=1e-5 * np.abs(slope).max()
        )
    found = tilted.inverse(tip, guess=MIXED)
    assert found.converged
    np.testing.assert_allclose(found.shape.tip[:3, 3], tip, atol=1e-6)


# -- inverse ----------------------------------------------------------------------------------


@pytest.mark.parametrize('target', [(0.29, 0.0, 0.722), (-0.1, 0.25, 0.7), (0.0, -0.4, 0.64)])
def test_inverse_reaches_positions_within_the_pressure_limits(target):
    found = ARM.inverse(target)
    assert found.converged and found.residual < 1e-7
    assert found.actuation.min() >= -1.0 and found.actuation.max() <= TOP + 1.0
    np.testing.assert_allclose(ARM.forward(found.actuation).tip[:3, 3], target, atol=1e-6)


def test_inverse_meets_an_orientation_and_accounts_for_a_tip_force():
    wanted = ARM.forward(np.array([1.5e5, 3e5, 3.5e5, 3e5, 1.5e5, 1.2e5]))
    found = ARM.inverse(wanted.tip[:3, 3], wanted.tip[:3, :3])
    assert found.converged
    np.testing.assert_allclose(found.shape.tip, wanted.tip, atol=1e-6)
    force = (0.0, 0.3, 0.5)
    pulled = ARM.inverse((0.2, 0.1, 0.74), tip_force=force)
    assert pulled.converged
    again = ARM.forward(pulled.actuation, tip_force=force)
    np.testing.assert_allclose(again.tip[:3, 3], (0.2, 0.1, 0.74), atol=1e-6)


def test_rig_arm_inverse_reaches_random_tips_of_its_workspace():
    rig = load_rig('hydraulic_arm')
    arm = rig.model('cosserat')
    drawn = rig.arm.sample_configurations(arm, np.random.default_rng(0), 10)
    limits = rig.actuator_limits()
    for tip in arm.tips_of(drawn):
        found = arm.inverse(tip)
        assert found.converged, found.message
        limits.check(found.actuation)
        assert np.linalg.norm(arm.forward(found.actuation).tip[:3, 3] - tip) < 1e-6


def test_unreachable_points_and_invalid_pressures_and_bends_are_reported():
    found = ARM.inverse((0.0, 0.0, 0.95))
    assert not found.converged and 'mm left' in found.message
    with pytest.raises(ModelError, match=r'distal_0 = 1.2e\+06 Pa outside'):
        ARM.forward(np.array([0, 0, 0, 1.2e6, 0, 0]))
    with pytest.raises(ModelError, match='no pressures hold the arm in a stable shape'):
        ARM.held(np.array([2.6, 0.0, 1e-3, 2.6, 0.0, 1e-3]))
