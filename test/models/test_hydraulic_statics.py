"""Statics of the water-hydraulic arm: pressures <-> bends and elongations, twist by weight."""

import re

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.hydraulics.identified_arm import SET_B, build_body, rest_pose
from softarm_ros.models.hydraulics.section_config import (
    ChamberConfig,
    HydraulicSectionConfig,
    Surroundings,
)
from softarm_ros.models.hydraulics.statics import HydraulicStatics
from softarm_ros.rigs.loader import load_rig

HANGING = (0.0, 0.0, 9.81)
AREA, PITCH, AXIAL, MASS = 1.131e-4, 0.03, 22620.0, 0.35
TOP = 1e6


def section(name='proximal', *, set_b=SET_B[1], **changes):
    fields = {
        'name': name,
        'length_m': set_b.length_m,
        'mass_kg': MASS,
        'displaced_volume_m3': 2.6e-4,
        'outer_radius_m': 0.045,
        'chamber_area_m2': AREA,
        'chamber_pitch_radius_m': PITCH,
        'lever_factors': (set_b.excess, 1.0, 1.0),
        'axial_stiffness_N': AXIAL,
        'bending_stiffness_N_m2': set_b.bending_stiffness_N_m2,
        'torsion_stiffness_N_m2': 2.0 / 3.0 * set_b.bending_stiffness_N_m2,
    }
    return HydraulicSectionConfig(**{**fields, **changes})


def statics(segments=1, surroundings=None, sections=2, preload=1e5, **changes):
    names = ('proximal', 'distal')[:sections]
    chambers = [
        ChamberConfig(name=f'{name}_{j}', section=k, angle_deg=120.0 * j + 180.0 * k)
        for k, name in enumerate(names)
        for j in range(3)
    ]
    return HydraulicStatics(
        [section(name, **changes) for name in names],
        chambers,
        surroundings or Surroundings(HANGING),
        np.zeros(len(chambers)),
        np.full(len(chambers), TOP),
        preload,
        segments,
    )


ARM = statics(3)
pressures = st.lists(st.floats(0.0, 6e5), min_size=6, max_size=6).map(np.array)


# -- against other formulations ---------------------------------------------------------------


def helix_end(length, strain):
    """Return the end pose of a piece of constant strain, by quadrature of its tangent."""
    nodes, weights = np.polynomial.legendre.leggauss(24)
    turns = Rotation.from_rotvec(
        0.5 * (nodes + 1.0)[:, None] * length * np.asarray(strain[1:])
    ).apply([0.0, 0.0, 1.0])
    end = (1.0 + strain[0]) * length * 0.5 * weights @ turns
    return Rotation.from_rotvec(length * np.asarray(strain[1:])).as_matrix(), end


def potential(strains, values, pressure):
    """Return the energy of elasticity, of a mass at the top of each section, and of pressures."""
    length, bending = values.length_m, values.bending_stiffness_N_m2
    turn, place, energy = np.eye(3), np.zeros(3), 0.0
    for k, strain in enumerate(strains.reshape(-1, 4)):
        R, p = helix_end(length, strain)
        place, turn = place + turn @ p, turn @ R
        energy -= MASS * 9.81 * place[2]
        stiffness = np.array([AXIAL, bending, bending, 2.0 / 3.0 * bending])
        energy += 0.5 * length * stiffness @ strain**2
        for j in range(3):
            angle = np.radians(120.0 * j + 180.0 * k)
            lever = PITCH * (values.excess if j == 0 else 1.0)
            outward = strain[1] * np.sin(angle) - strain[2] * np.cos(angle)
            energy -= pressure[3 * k + j] * AREA * length * (strain[0] + lever * outward)
    return energy


@pytest.mark.parametrize(
    'pressure',
    [
        (6e5, 1e5, 1e5, 1e5, 4e5, 1e5),
        (2e5, 5e5, 0.0, 0.0, 3e5, 5e5),
        (0.0, 0.0, 0.0, 6e5, 0.0, 0.0),
    ],
)
def test_forward_minimises_the_potential_energy(pressure):
    arm = statics(1)
    scale = np.tile([1e-3, 1.0, 1.0, 1.0], 2)
    found = minimize(
        lambda x: potential(x * scale, SET_B[1], pressure),
        np.zeros(8),
        method='BFGS',
        options={'gtol': 1e-8},
    )
    shape = arm.forward(pressure)
    strains = (found.x * scale).reshape(2, 4)
    turn, place = np.eye(3), np.zeros(3)
    for strain in strains:
        R, p = helix_end(SET_B[1].length_m, strain)
        place, turn = place + turn @ p, turn @ R
    np.testing.assert_allclose(shape.tip[:3, 3], place, atol=2e-6)
    np.testing.assert_allclose(shape.tip[:3, :3], turn, atol=2e-5)
    held = arm.held(shape.configuration)
    np.testing.assert_allclose(held.strains, strains, atol=5e-5)


@pytest.mark.parametrize('segments', [1, 5])
def test_statics_agree_with_the_identified_arm(segments):
    values = SET_B[segments]
    arm = statics(segments, set_b=values)
    pressure = np.array([0.0, 0.0, 0.0, 4e5, 0.0, 0.0])
    rest = rest_pose(build_body(values), pressure)
    shape = arm.forward(pressure)
    np.testing.assert_allclose(shape.section_tips[:, :3, 3], rest.tips, atol=1e-9)
    bends = shape.configuration.reshape(2, 3)
    np.testing.assert_allclose(bends[:, 0], rest.angles, atol=1e-9)
    np.testing.assert_allclose(bends[:, 2] + values.length_m, rest.lengths, atol=1e-9)


def test_bend_and_elongation_without_weight_match_closed_forms():
    arm = statics(2, Surroundings((0.0, 0.0, 0.0)))
    values = SET_B[1]
    pressure = np.array([1e5, 3e5, 4e5, 2e5, 2e5, 5e5])
    angles = np.radians([0.0, 120.0, 240.0, 180.0, 300.0, 60.0])
    levers = PITCH * np.array([values.excess, 1.0, 1.0] * 2)
    wanted = []
    for own in (slice(0, 3), slice(3, 6)):
        moment = AREA * levers[own] * pressure[own]
        per_moment = values.length_m / values.bending_stiffness_N_m2
        wanted += [
            -per_moment * moment @ np.cos(angles[own]),
            -per_moment * moment @ np.sin(angles[own]),
            values.length_m * AREA * pressure[own].sum() / AXIAL,
        ]
    np.testing.assert_allclose(arm.configuration_of(pressure), wanted, rtol=1e-10)
    np.testing.assert_allclose(arm.held(np.array(wanted)).strains[:, 3], 0.0, atol=1e-12)


def test_weight_of_a_bent_distal_section_twists_the_proximal_section():
    bent = np.array([0.0, 0.7, 1e-3, 1.2, 0.0, 1e-3])
    twist = statics(3).held(bent).strains[:3, 3]
    light = statics(3, Surroundings((0.0, 0.0, 0.0))).held(bent).strains[:3, 3]
    turned = np.degrees(twist.sum() * SET_B[1].length_m / 3.0)
    assert 8.0 < abs(turned) < 15.0
    np.testing.assert_allclose(light, 0.0, atol=1e-12)


def test_hanging_arm_with_equal_bends_is_stable_at_80_but_not_at_100_deg():
    stable = [
        ARM.held(np.array([angle, 0.0, 1e-3] * 2)).stable for angle in np.radians([60, 80, 100])
    ]
    assert stable == [True, True, False]


def test_tip_converges_with_order_one_in_the_segments():
    pressure = np.array([3e5, 1e5, 1e5, 1e5, 3e5, 1e5])
    tips = [statics(n).forward(pressure).tip[:3, 3] for n in (2, 4, 8, 16)]
    steps = np.linalg.norm(np.diff(tips, axis=0), axis=1)
    # Placing the weight at the tops of the segments is of first order in 1 / n.
    np.testing.assert_allclose(steps[:-1] / steps[1:], 2.0, atol=0.35)


# -- round trips and derivatives --------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(pressures)
def test_pressures_round_trip(pressure):
    try:
        configuration = ARM.configuration_of(pressure)
    except ModelError as error:
        assert 'followed the loads' in str(error) or 'unstable' in str(error)
        reject()
    held = ARM.held(configuration)
    np.testing.assert_allclose(ARM.actuation_of(configuration), pressure, atol=0.01)
    assert held.stable
    shape = ARM.forward(pressure)
    np.testing.assert_allclose(ARM.shape_of(configuration).tip, shape.tip, atol=1e-8)
    np.testing.assert_allclose(shape.configuration, configuration)


@settings(max_examples=10, deadline=None)
@given(pressures)
def test_jacobians_match_finite_differences(pressure):
    pressure = 0.6 * pressure + 5e4
    try:
        q = ARM.configuration_of(pressure)
    except ModelError as error:
        assert 'followed the loads' in str(error) or 'unstable' in str(error)
        reject()
    tip, J = ARM.tip_and_jacobian(q)
    A = ARM.actuation_jacobian(q)
    np.testing.assert_allclose(tip, ARM.shape_of(q).tip[:3, 3], atol=1e-12)
    steps = 1e-5 * np.array([1.0, 1.0, 1e-2] * 2)
    for i, step in enumerate(steps):
        dq = np.zeros(6)
        dq[i] = step
        move = (ARM.tips_of([q + dq])[0] - ARM.tips_of([q - dq])[0]) / (2 * step)
        np.testing.assert_allclose(J[:, i], move, rtol=1e-5, atol=1e-6)
        change = (ARM.actuation_of(q + dq) - ARM.actuation_of(q - dq)) / (2 * step)
        np.testing.assert_allclose(A[:, i], change, rtol=1e-5, atol=1e-5 * np.abs(A).max())
    by_pressure = ARM.jacobian(pressure)
    np.testing.assert_allclose(by_pressure[:3], J @ np.linalg.inv(A), rtol=1e-5, atol=1e-13)
    for i in range(6):
        dp = np.zeros(6)
        dp[i] = 20.0
        ahead, behind = ARM.forward(pressure + dp).tip, ARM.forward(pressure - dp).tip
        np.testing.assert_allclose(
            by_pressure[:3, i], (ahead - behind)[:3, 3] / 40.0, rtol=1e-4, atol=1e-11
        )
        turn = Rotation.from_matrix(ahead[:3, :3] @ behind[:3, :3].T).as_rotvec() / 40.0
        np.testing.assert_allclose(by_pressure[3:, i], turn, rtol=1e-4, atol=1e-10)


def test_equilibrium_does_not_depend_on_earlier_calls():
    wandering, q = statics(3), ARM.rest_configuration
    goal = np.array([0.6, -0.4, 1.5e-3, -0.3, 0.9, 1e-3])
    for share in np.linspace(0.0, 1.0, 15):
        wandering.held(q + share * (goal - q))
    there, fresh = wandering.held(goal), statics(3).held(goal)
    assert there is not fresh
    np.testing.assert_allclose(there.strains, fresh.strains, atol=1e-10)
    np.testing.assert_allclose(
        there.resultants_by_configuration, fresh.resultants_by_configuration, rtol=1e-6, atol=1e-6
    )
    np.testing.assert_allclose(wandering.actuation_of(goal), ARM.actuation_of(goal), atol=1e-3)


def test_rest_configuration_needs_the_preload_in_every_chamber():
    np.testing.assert_allclose(ARM.actuation_of(ARM.rest_configuration), 1e5, atol=1e-3)
    np.testing.assert_allclose(ARM.rest_configuration[[0, 1, 3, 4]], 0.0, atol=0.01)


def test_preferred_configuration_keeps_the_least_filled_chamber_at_the_preload():
    q = ARM.configuration_of(np.array([4e5, 1.5e5, 2e5, 3e4, 2e5, 2.5e5]))
    preferred = ARM.preferred_configuration(q)
    np.testing.assert_allclose(preferred[:2], preferred[3:5])
    stretched = q.copy()
    stretched[[2, 5]] = preferred[[2, 5]]
    least = ARM.actuation_of(stretched).reshape(2, 3).min(axis=1)
    np.testing.assert_allclose(least, 1e5, rtol=0.05)


# -- surroundings -----------------------------------------------------------------------------


def test_neutrally_buoyant_arm_has_the_pose_of_a_weightless_arm():
    volume = 0.35 / 998.0
    sunk = statics(2, Surroundings(HANGING, 998.0), displaced_volume_m3=volume)
    weightless = statics(2, Surroundings((0.0, 0.0, 0.0)))
    pressure = np.array([3e5, 1e5, 0.0, 2e5, 0.0, 4e5])
    np.testing.assert_allclose(
        sunk.forward(pressure).tip, weightless.forward(pressure).tip, atol=1e-9
    )


def test_tip_load_acts_as_its_weight_less_that_of_the_displaced_water():
    pressure = np.array([3e5, 1e5, 0.0, 2e5, 0.0, 2e5])
    bare, loaded = statics(2), statics(2, Surroundings(HANGING, 0.0, 0.2))
    pulled = bare.forward(pressure, tip_force=(0.0, 0.0, 0.2 * 9.81))
    np.testing.assert_allclose(loaded.forward(pressure).tip, pulled.tip, atol=1e-8)
    floating = statics(2, Surroundings(HANGING, 998.0, 0.2, 998.0))
    wet = statics(2, Surroundings(HANGING, 998.0))
    np.testing.assert_allclose(
        floating.forward(pressure).tip, wet.forward(pressure).tip, atol=1e-8
    )


def test_standing_arm_that_buckles_is_refused():
    with pytest.raises(ModelError, match=r'unstable|followed'):
        statics(3, Surroundings((0.0, 0.0, -9.81)), preload=0.0)


# -- observed configuration -------------------------------------------------------------------


def test_observed_configuration_is_exact_for_one_segment():
    arm = statics(1)
    for pressure in ((6e5, 1e5, 1e5, 1e5, 4e5, 1e5), (1e5,) * 6):
        shape = arm.forward(np.array(pressure))
        seen = arm.observed_configuration(shape.section_tips)
        np.testing.assert_allclose(seen, shape.configuration, atol=1e-9)


def test_observed_configuration_is_none_or_nan_without_all_section_tips():
    tips = ARM.shape_of(ARM.rest_configuration).section_tips
    assert ARM.observed_configuration(tips[-1:]) is None
    tips[0, 0, 3] = np.nan
    assert np.isnan(ARM.observed_configuration(tips)).all()


# -- inverse ----------------------------------------------------------------------------------


@pytest.mark.parametrize('target', [(0.29, 0.0, 0.722), (-0.1, 0.25, 0.7), (0.0, -0.4, 0.64)])
def test_inverse_reaches_positions_within_the_pressure_limits(target):
    found = ARM.inverse(target)
    assert found.converged and found.residual < 1e-7
    assert found.actuation.min() >= -1.0 and found.actuation.max() <= TOP + 1.0
    np.testing.assert_allclose(ARM.forward(found.actuation).tip[:3, 3], target, atol=1e-6)


def test_tilted_arm_equals_an_upright_arm_under_turned_gravity_and_force():
    tilt = Rotation.from_euler('y', 7.0, degrees=True)
    tilt = Rotation.from_euler('x', 4.0, degrees=True) * tilt
    tilted = statics(3, Surroundings(HANGING, 0.0, 0.1, base_tilt_deg=(4.0, 7.0)))
    upright = statics(3, Surroundings(tuple(tilt.inv().apply(HANGING)), 0.0, 0.1))
    pressure, force = np.array([3e5, 1e5, 2e5, 1e5, 4e5, 1e5]), np.array([0.2, -0.1, 0.1])
    here, there = (
        tilted.forward(pressure, force),
        upright.forward(pressure, tilt.inv().apply(force)),
    )
    np.testing.assert_allclose(here.configuration, there.configuration, atol=1e-10)
    turn = tilt.as_matrix()
    np.testing.assert_allclose(
        here.section_tips[:, :3], turn @ there.section_tips[:, :3], atol=1e-10
    )
    np.testing.assert_allclose(here.centerline(9), there.centerline(9) @ turn.T, atol=1e-10)
    seen = tilted.observed_configuration(here.section_tips)
    np.testing.assert_allclose(seen, upright.observed_configuration(there.section_tips), atol=1e-9)
    tip, slope = tilted.tip_and_jacobian(here.configuration)
    for i, step in enumerate(1e-5 * np.array([1.0, 1.0, 1e-2] * 2)):
        dq = step * np.eye(6)[i]
        move = tilted.tips_of([here.configuration + dq]) - tilted.tips_of(
            [here.configuration - dq]
        )
        np.testing.assert_allclose(slope[:, i], move[0] / (2.0 * step), rtol=1e-5, atol=1e-6)
    found = tilted.inverse(tip, guess=pressure)
    assert found.converged
    np.testing.assert_allclose(found.shape.tip[:3, 3], tip, atol=1e-6)


def test_rest_bend_of_a_section_adds_to_its_bend():
    weightless = Surroundings((0.0, 0.0, 0.0))
    straight, bent = statics(3, weightless), statics(3, weightless, rest_bend_deg=(3.0, -2.0))
    for pressure in (np.full(6, 1e5), np.array([3e5, 1e5, 2e5, 1e5, 4e5, 1e5])):
        more = bent.configuration_of(pressure) - straight.configuration_of(pressure)
        np.testing.assert_allclose(more[[0, 1]], np.radians([3.0, -2.0]), atol=1e-9)
        np.testing.assert_allclose(more[[3, 4]], np.radians([3.0, -2.0]), atol=1e-9)


def test_plate_heavier_than_its_section_is_refused():
    with pytest.raises(ValueError, match=r'plate_mass_kg = 0\.4 kg; expected less than'):
        section(plate_mass_kg=0.4)


def test_inverse_with_a_near_guess_stays_near_it():
    first = ARM.inverse((0.29, 0.0, 0.722))
    second = ARM.inverse((0.289, 0.02, 0.722), guess=first.actuation)
    assert second.converged
    moved = second.shape.configuration - first.shape.configuration
    assert np.abs(moved[[0, 1, 3, 4]]).max() < 0.15


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


@pytest.mark.parametrize(
    ('target', 'reason'),
    [
        ((-0.0844, -0.4866, 0.5165), 'these pressures have several shapes: loaded from rest'),
        ((0.1062, -0.4669, 0.1424), 'these pressures have several shapes: loaded from rest'),
        ((0.1556, 0.4529, 0.3168), 'loaded from rest: no equilibrium'),
    ],
)
def test_inverse_refuses_pressures_under_which_the_arm_takes_another_shape(target, reason):
    model = load_rig('hydraulic_arm', ['gravity_m_s2=[9.81, 0.0, 0.0]']).model()
    found = model.inverse(target)
    assert found.residual < 1e-6
    assert not found.converged
    assert found.message.startswith(reason)


def test_inverse_reports_a_point_out_of_reach():
    found = ARM.inverse((0.0, 0.0, 0.95))
    assert not found.converged and 'mm left' in found.message
    assert found.residual == pytest.approx(0.95 - found.shape.tip[2, 3], abs=2e-3)


@pytest.mark.parametrize('target', [(0.1, 0.0, 0.5), (0.1, 0.0, 0.9)])
def test_inverse_names_a_chamber_outside_its_range_once_with_its_pressure(target):
    """And not also as at the end of its range, which is another pressure."""
    message = ARM.inverse(target).message
    outside = re.findall(r'(\w+) at \S+ Pa is outside', message)
    assert outside
    assert not [name for name in outside if re.search(rf'{name} at \S+ kPa', message)]


# -- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('call', 'message'),
    [
        (lambda: ARM.forward(np.zeros(5)), r'shape \(5,\)'),
        (lambda: ARM.forward(np.array([0, 0, np.nan, 0, 0, 0])), 'proximal_2'),
        (lambda: ARM.forward(np.array([0, 0, 0, 1.2e6, 0, 0])), r'distal_0 = 1.2e\+06 Pa outside'),
        (lambda: ARM.held(np.zeros(4)), r'shape \(4,\)'),
        (lambda: ARM.held(np.array([0, 0, 0, 0, np.inf, 0])), 'distal_bend_y'),
    ],
)
def test_errors_name_the_invalid_input(call, message):
    with pytest.raises(ModelError, match=message):
        call()


@pytest.mark.parametrize(
    ('target', 'message'),
    [
        (((0.0, np.nan, 0.7),), 'position = .* is not finite'),
        (((0.0, 0.0, 0.7), 2.0 * np.eye(3)), 'orientation is not a rotation matrix'),
    ],
)
def test_errors_name_the_invalid_target(target, message):
    with pytest.raises(ValueError, match=message):
        ARM.inverse(*target)


def test_chambers_all_on_one_side_or_fewer_than_three_are_refused():
    chambers = [ChamberConfig(name=f'c{j}', section=0, angle_deg=0.0) for j in range(3)]
    with pytest.raises(ModelError, match='one side'):
        HydraulicStatics(
            [section()], chambers, Surroundings(HANGING), np.zeros(3), np.full(3, TOP), 1e5
        )
    with pytest.raises(ModelError, match='exactly 3'):
        HydraulicStatics(
            [section()], chambers[:2], Surroundings(HANGING), np.zeros(2), np.full(2, TOP), 1e5
        )
