"""Muscles on a Cosserat rod: other formulations, closed forms, derivatives, stability."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import central_differences
from scipy.integrate import solve_bvp
from scipy.spatial.transform import Rotation

from softarm_ros.geometry.rotations import exp_so3, quaternion_from_matrix
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cosserat.rod import CosseratRod
from softarm_ros.models.minimum_energy.arm import MinimumEnergyArm
from softarm_ros.models.minimum_energy.config import BackboneConfig, ParallelModulesConfig
from softarm_ros.models.minimum_energy.muscles import muscle_anchors
from softarm_ros.models.minimum_energy.rod_arm import RodOfMuscles
from softarm_ros.models.minimum_energy.rod_modules import RodModules
from softarm_ros.models.minimum_energy.rod_modules_kernels import stiffness_into
from softarm_ros.rigs.loader import load_rig

HANGING = (0.0, 0.0, 9.81)
BACKBONE = BackboneConfig()
# A rod so thin for its bending stiffness that it hardly stretches or shears.
STIFF = BACKBONE.model_copy(
    update={'diameter_m': 2.5e-4, 'youngs_modulus_Pa': 62e13, 'shear_modulus_Pa': 24e13}
)
FORCE, MOMENT = np.array([0.3, -0.2, 0.4]), np.array([0.02, 0.04, -0.03])


def arm(steps=3, backbone=BACKBONE, gravity=HANGING, **changes):
    return RodOfMuscles(backbone, ParallelModulesConfig(**changes), steps, 40, gravity)


ARM = arm()
commands = st.lists(st.floats(0.085, 0.12), min_size=30, max_size=30).map(np.array)


def bent(seed=0):
    return np.random.default_rng(seed).uniform(0.09, 0.115, 30)


# -- against other formulations ---------------------------------------------------------------


@pytest.mark.parametrize('linear', [{}, {'muscle_stiffness_N_m': 600.0}])
def test_backbone_of_least_energy_converges_to_the_rod_with_order_two(linear):
    """Energy of quaternion nodes against balance of a rod: no equation is shared."""
    lengths = bent(1) if not linear else 0.1 + 0.3 * (bent(1) - 0.1)
    tip = arm(6, STIFF, **linear).equilibrium(lengths).tip[:3, 3]
    modules = ParallelModulesConfig(**linear)
    off = [
        np.linalg.norm(
            MinimumEnergyArm(STIFF, modules, n).equilibrium(lengths).positions[-1] - tip
        )
        for n in (40, 80, 160)
    ]
    assert off[2] < 1e-4
    assert off[0] / off[1] == pytest.approx(4.0, rel=0.05)
    assert off[1] / off[2] == pytest.approx(4.0, rel=0.05)


@pytest.mark.parametrize('gravity', [HANGING, (9.81, 0.0, 0.0)])
def test_one_module_solves_the_boundary_value_problem_of_rod_and_muscles(gravity):
    """Twelve distributed-load equations, solved by collocation instead of shooting."""
    backbone = BackboneConfig(length_m=0.15, mass_per_length_kg_m=1.0)
    modules = ParallelModulesConfig(modules=1, anchor_radius_m=0.03, max_length_m=0.2)
    lengths = np.array([0.12, 0.16, 0.19])
    rods = RodModules(backbone, modules, 8, gravity, 0.0)
    ours = rods.equilibrium(lengths[None], FORCE, tip_moment=MOMENT)
    law = modules.gas_springs
    (profile,) = (segment.profile for segment in rods.config.segments)
    give = 1.0 / np.diag(np.array(profile.stiffness_matrix))
    anchors = muscle_anchors(modules)[0]
    weight = 1.0 * np.array(gravity)

    def slopes(_, y):
        turn = Rotation.from_rotvec(y[3:6].T)
        u = give[:3, None] * turn.inv().apply(y[9:].T).T
        v = give[3:, None] * turn.inv().apply(y[6:9].T).T + np.array([[0.0], [0.0], [1.0]])
        tangent = turn.apply(v.T).T
        angle = np.maximum(np.linalg.norm(y[3:6], axis=0), 1e-12)
        # The rate of the rotation vector by the local curvature (inverse of the right Jacobian).
        half = 0.5 * angle
        factor = (1.0 - half / np.tan(half)) / angle**2
        w = y[3:6]
        cross = np.cross(w.T, u.T).T
        rate = u + 0.5 * cross + factor * np.cross(w.T, cross.T).T
        force = -np.repeat(weight[:, None], y.shape[1], axis=1)
        return np.vstack([tangent, rate, force, -np.cross(tangent.T, y[6:9].T).T])

    def ends(base, tip):
        turn = exp_so3(tip[3:6])
        force, moment = FORCE.copy(), MOMENT.copy()
        for anchor, command in zip(anchors, lengths):
            line = anchor - (tip[:3] + turn @ anchor)
            length = np.linalg.norm(line)
            pull = law.pull(length, command) * line / length
            force, moment = force + pull, moment + np.cross(turn @ anchor, pull)
        return np.concatenate([base[:6], tip[6:9] - force, tip[9:] - moment])

    s = np.linspace(0.0, 0.15, 41)
    start = np.zeros((12, 41))
    start[2] = s
    solved = solve_bvp(slopes, ends, s, start, tol=1e-9, max_nodes=20000)
    assert solved.success
    np.testing.assert_allclose(ours.tip[:3, 3], solved.y[:3, -1], atol=1e-9)
    np.testing.assert_allclose(ours.tip[:3, :3], exp_so3(solved.y[3:6, -1]), atol=1e-7)
    line = rods.shape(ours, lengths).centerline(31)
    np.testing.assert_allclose(line, solved.sol(np.linspace(0.0, 0.15, 31))[:3].T, atol=1e-8)


def test_without_muscles_it_is_the_rod_of_the_same_segments():
    """`CosseratRod` shoots through all segments at once and is proven against closed forms."""
    off = arm(5, muscle_stiffness_N_m=1e-9, modules=4)
    rods = RodModules(BACKBONE, off.modules, 5, HANGING, 0.0)
    ours = rods.equilibrium(np.full((4, 3), 0.11), FORCE, tip_moment=MOMENT)
    whole = CosseratRod(rods.config).solve(np.zeros(0), FORCE, MOMENT)
    np.testing.assert_allclose(ours.tip, whole.tip, atol=1e-8)
    np.testing.assert_allclose(ours.disks[1:], whole.segment_tips, atol=1e-8)
    state = rods.rod_state(ours)
    np.testing.assert_allclose(state.centerline(50), whole.centerline(50), atol=1e-8)
    assert state.elastic_energy_J == pytest.approx(whole.elastic_energy_J, rel=1e-7)


def test_equal_muscles_compress_the_straight_rod_as_hookes_law_says():
    model = arm(gravity=(0.0, 0.0, 0.0), muscle_stiffness_N_m=600.0)
    state = model.equilibrium(np.full(30, 0.098))
    pull = 3.0 * state.tensions.mean()
    axial = BACKBONE.youngs_modulus_Pa * math.pi * BACKBONE.diameter_m**2 / 4.0
    assert np.ptp(state.tensions) < 1e-9 and pull > 3.0
    np.testing.assert_allclose(state.tip[:3, 3], [0.0, 0.0, 1.0 - pull / axial], atol=1e-12)


@settings(max_examples=15, deadline=None)
@given(commands)
def test_every_disk_is_in_balance(lengths):
    """Forces and moments of the rods, the muscles and the load on each disk add up to zero."""
    state = ARM.rods.equilibrium(lengths.reshape(10, 3), FORCE, tip_moment=MOMENT)
    rod = ARM.rods.rod_state(state)
    anchors, law = muscle_anchors(ARM.modules), ARM.modules.gas_springs
    pulls = np.zeros((10, 3, 3))  # on the distal disk
    for k in range(10):
        near, far = state.disks[k + 1], state.disks[k]
        for i, anchor in enumerate(anchors[k]):
            line = (far[:3, :3] @ anchor + far[:3, 3]) - (near[:3, :3] @ anchor + near[:3, 3])
            length = np.linalg.norm(line)
            pulls[k, i] = law.pull(length, lengths[3 * k + i]) * line / length
    per = rod.nodes_per_segment
    for k in range(1, 11):
        turn, last = state.disks[k][:3, :3], per * k - 1
        force, moment = -rod.forces[last], -rod.moments[last]
        if k < 10:
            force, moment = force + rod.forces[last + 1], moment + rod.moments[last + 1]
        else:
            force, moment = force + FORCE, moment + MOMENT
        for i in range(3):
            force = force + pulls[k - 1, i]
            moment = moment + np.cross(turn @ anchors[k - 1, i], pulls[k - 1, i])
            if k < 10:
                force = force - pulls[k, i]
                moment = moment - np.cross(turn @ anchors[k, i], pulls[k, i])
        np.testing.assert_allclose(force, 0.0, atol=1e-7)
        np.testing.assert_allclose(moment, 0.0, atol=1e-8)


def test_steps_converge_with_order_six():
    lengths = bent(2)
    exact = arm(12).equilibrium(lengths).tip
    off = [np.abs(arm(n).equilibrium(lengths).tip - exact).max() for n in (1, 2, 3)]
    assert off[0] / off[1] > 50.0 and off[1] / off[2] > 9.0
    assert off[2] < 2e-7


# -- derivatives and symmetries ---------------------------------------------------------------


@settings(max_examples=8, deadline=None)
@given(commands)
def test_twists_of_the_tip_are_the_differences_of_its_pose(lengths):
    rods = ARM.rods
    state = rods.equilibrium(lengths.reshape(10, 3), FORCE, tip_moment=MOMENT)

    def pose(changes):
        load, wound = changes[:6], lengths + changes[6:]
        there = rods.equilibrium(
            wound.reshape(10, 3), FORCE + load[:3], state, MOMENT + load[3:]
        ).tip
        turned = Rotation.from_matrix(there[:3, :3] @ state.tip[:3, :3].T).as_rotvec()
        return np.concatenate([there[:3, 3], turned])

    np.testing.assert_allclose(
        state.twists[:, :6], central_differences(lambda x: pose(np.append(x, np.zeros(30))),
        np.zeros(6), 1e-4), atol=2e-6,
    )  # fmt: skip
    by_lengths = central_differences(lambda x: pose(np.append(np.zeros(6), x)), np.zeros(30), 1e-5)
    np.testing.assert_allclose(rods.jacobian(state), by_lengths, atol=2e-5)


def test_stiffness_of_the_energy_is_symmetric_and_its_inverse_the_compliance():
    """Displacements of all disks against shooting from the tip."""
    rods = ARM.rods
    state = rods.equilibrium(bent(3).reshape(10, 3), FORCE)
    stiffness = np.empty((60, 60))
    stiffness_into(rods._anchors, state.springs, state.wrenches, state.chain, 0.0, stiffness)
    assert np.abs(stiffness - stiffness.T).max() < 1e-6 * np.abs(stiffness).max()
    give = np.linalg.inv(0.5 * (stiffness + stiffness.T))[54:, 54:]
    turn = np.eye(6)
    turn[3:, 3:] = state.tip[:3, :3]
    np.testing.assert_allclose(turn @ give @ turn.T, rods.compliance(state), atol=1e-6)
    np.testing.assert_allclose(rods.compliance(state), rods.compliance(state).T, atol=1e-7)


@settings(max_examples=8, deadline=None)
@given(commands)
def test_a_third_of_a_turn_around_the_arm_permutes_the_muscles(lengths):
    turn = Rotation.from_rotvec([0.0, 0.0, 2.0 * np.pi / 3.0]).as_matrix()
    moved = np.roll(lengths.reshape(10, 3), 1, axis=1).ravel()
    here, there = ARM.equilibrium(lengths, FORCE), ARM.equilibrium(moved, turn @ FORCE)
    np.testing.assert_allclose(there.tip[:3, 3], turn @ here.tip[:3, 3], atol=1e-9)


def test_a_guess_changes_nothing_but_the_time():
    lengths = bent(4)
    near = ARM.equilibrium(lengths + 5e-4)
    warm, cold = ARM.equilibrium(lengths, guess=near), ARM.equilibrium(lengths)
    np.testing.assert_allclose(warm.tip, cold.tip, atol=1e-10)


# -- stability --------------------------------------------------------------------------------


@pytest.mark.parametrize(('load', 'stable'), [(7.82, True), (7.86, False)])
def test_standing_rod_is_stable_up_to_greenhills_load(load, stable):
    """A column without muscles buckles under its own weight at w L^3 / (E I) = 7.837."""
    stiffness = STIFF.bending_stiffness_N_m2
    backbone = STIFF.model_copy(update={'mass_per_length_kg_m': load * stiffness / 9.81})
    modules = ParallelModulesConfig(modules=5, muscle_stiffness_N_m=1e-9, max_length_m=0.3)
    rods = RodModules(backbone, modules, 4, (0.0, 0.0, -9.81), 0.0)
    straight = quaternion_from_matrix(np.eye(3))
    wrenches = np.zeros((5, 6))
    wrenches[:, 2] = -load * stiffness * np.arange(4, -1, -1) / 5.0
    state = rods._balance(
        straight, wrenches, modules.springs(np.full((5, 3), 0.2)), *np.zeros((2, 3))
    )
    np.testing.assert_allclose(state.tip[:2, 3], 0.0, atol=1e-12)
    assert state.stable is stable


def test_muscles_that_push_too_hard_buckle_the_arm_out_of_the_straight_shape():
    """The straight equilibrium exists and is not stable; the one returned is bent and is."""
    model = arm(gravity=(0.0, 0.0, -9.81))
    full = np.full(30, model.neutral_command())
    state = model.rods.equilibrium(full.reshape(10, 3))
    assert state.stable and np.hypot(*state.tip[:2, 3]) > 0.05
    springs = model.modules.springs(full.reshape(10, 3))
    wrenches = np.zeros((10, 6))
    wrenches[:, 2] = np.mean(state.wrenches[:, 2])
    straight = model.rods._balance(
        quaternion_from_matrix(np.eye(3)), wrenches, springs, np.zeros(3), np.zeros(3)
    )
    assert not straight.stable and np.hypot(*straight.tip[:2, 3]) < 1e-9


@pytest.mark.parametrize('steps', [1, 2])
def test_few_steps_do_not_look_unstable(steps):
    """With one step, the error of the integration exceeds the rod's compliance in stretch."""
    coarse = arm(steps)
    for seed in range(5):
        lengths = np.random.default_rng(seed).uniform(0.06, 0.095, 30)
        exact = ARM.equilibrium(lengths).tip[:3, 3]
        assert np.linalg.norm(coarse.equilibrium(lengths).tip[:3, 3] - exact) < 1e-3


# -- as a model of a rig ----------------------------------------------------------------------


def test_rig_arm_inverse_reaches_random_tips_of_its_workspace():
    rig = load_rig('pam_arm')
    model = rig.model('cosserat')
    drawn = rig.arm.sample_configurations(model, np.random.default_rng(0), 8)
    limits = rig.actuator_limits()
    for tip in model.tips_of(drawn):
        found = model.inverse(tip)
        assert found.converged, found.message
        limits.check(found.actuation)
        assert np.linalg.norm(model.forward(found.actuation).tip[:3, 3] - tip) < 1e-6


def test_moment_and_force_at_the_tip_move_it_by_the_compliance():
    lengths = bent(5)
    give = ARM.compliance(lengths)
    rest = ARM.forward(lengths).tip[:3, 3]
    force, moment = np.array([1e-4, 2e-4, 0.0]), np.array([0.0, 1e-4, -1e-4])
    moved = ARM.forward(lengths, force, moment).tip[:3, 3]
    wanted = (give @ np.concatenate([force, moment]))[:3]
    np.testing.assert_allclose(moved - rest, wanted, atol=2e-3 * np.abs(wanted).max())


def test_payload_acts_as_a_force_at_the_tip():
    lengths = bent(6)
    modules = ParallelModulesConfig()
    loaded = RodOfMuscles(BACKBONE, modules, 3, 40, HANGING, tip_load_kg=0.05)
    pulled = ARM.forward(lengths, (0.0, 0.0, 0.05 * 9.81))
    np.testing.assert_allclose(loaded.forward(lengths).tip, pulled.tip, atol=1e-9)


def test_posture_is_that_of_the_equilibrium_and_prefers_muscles_at_peace():
    lengths = bent(7)
    posture, state = ARM.posture_of(lengths), ARM.equilibrium(lengths)
    np.testing.assert_allclose(posture.tip, state.tip[:3, 3], atol=1e-12)
    np.testing.assert_allclose(posture.tip_jacobian, ARM.jacobian(lengths)[:3], atol=1e-9)
    np.testing.assert_allclose(posture.section_tips, state.disks[1:], atol=1e-12)
    preferred = ARM.equilibrium(posture.preferred)
    assert np.linalg.norm(preferred.tip[:3, 3] - posture.tip) < 1e-3
    assert np.abs(preferred.tensions).max() < np.abs(state.tensions).max()


def test_bad_lengths_and_loads_are_refused_by_name():
    lengths = bent(8)
    with pytest.raises(ModelError, match=r'module_1_muscle_2: length 0.5 m is outside'):
        ARM.forward(np.concatenate([[0.1, 0.5], lengths[2:]]))
    with pytest.raises(ValueError, match='actuation has shape'):
        ARM.forward(lengths[:3])
    with pytest.raises(ValueError, match='tip_moment'):
        ARM.forward(lengths, tip_moment=(0.0, np.nan, 0.0))
    with pytest.raises(ModelError, match=r'tip_moment = \[0.0, 500.0, 0.0\] N m: none was found'):
        ARM.forward(lengths, tip_moment=(0.0, 500.0, 0.0))
