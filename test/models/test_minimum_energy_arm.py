"""Muscles on the backbone: the worked lengths, the paper's curves, the forward model, limits."""

import math

import numpy as np
import pytest

from softarm_reproduction.minimum_energy_study import accuracy, curve_points, follow_curve
from softarm_ros.geometry.poses import displacement
from softarm_ros.geometry.rotations import exp_so3, quaternion_from_matrix
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.minimum_energy.arm import MinimumEnergyArm
from softarm_ros.models.minimum_energy.config import BackboneConfig, ParallelModulesConfig
from softarm_ros.models.minimum_energy.kernels import bend_modules, elastic_energy, turns_into
from softarm_ros.models.minimum_energy.muscles import (
    clamp_lengths,
    muscle_anchors,
    muscle_lengths,
)
from softarm_ros.models.minimum_energy.newton_kernels import (
    CONVERGED,
    constrained_newton,
    descend,
)
from softarm_ros.models.minimum_energy.rod import MinimumEnergyRod

P = np.array([0.25, 0.10, 0.85])
PUBLISHED_MM = [
    [98.56, 99.11, 102.17], [100.34, 99.06, 100.57], [100.23, 100.14, 99.62],
    [99.30, 101.75, 98.85], [101.92, 101.11, 96.62], [98.05, 104.37, 96.90],
    [103.07, 101.72, 94.27], [97.71, 104.99, 96.39], [102.32, 101.32, 95.84],
    [99.40, 101.51, 99.01],
]  # fmt: skip


def arm(**changes):
    """Return the paper's arm, whose muscles have the commanded lengths."""
    return MinimumEnergyArm(BackboneConfig(), linear(**changes))


def linear(**changes):
    return ParallelModulesConfig(**({'muscle_stiffness_N_m': 1e5} | changes))


def test_muscle_lengths_match_the_worked_example():
    rod = MinimumEnergyRod(BackboneConfig(), 320).reach(P)
    lengths = muscle_lengths(rod, ParallelModulesConfig())
    np.testing.assert_allclose(1e3 * lengths.reshape(10, 3), PUBLISHED_MM, atol=0.0061)
    np.testing.assert_allclose(
        arm().lengths_of_held_tip(P)[0].reshape(10, 3) * 1e3, PUBLISHED_MM, atol=0.03
    )


def test_muscles_of_the_straight_arm_have_the_disk_distance_and_no_tension():
    model = arm(muscle_stiffness_N_m=1e3)
    state = model.equilibrium(np.full(30, 0.1))
    np.testing.assert_allclose(state.lengths, 0.1, atol=1e-12)
    np.testing.assert_allclose(state.tensions, 0.0, atol=1e-9)


def test_anchors_of_successive_modules_alternate_by_60_deg():
    anchors = muscle_anchors(ParallelModulesConfig())
    turn = exp_so3([0.0, 0.0, math.radians(-60.0)])
    np.testing.assert_allclose(anchors[1], anchors[0] @ turn.T, atol=1e-15)
    np.testing.assert_allclose(anchors[2], anchors[0], atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(anchors, axis=2), 0.02)


@pytest.mark.parametrize('name', ['circle', 'square', 'cardioid'])
@pytest.mark.parametrize('load', [0.0, 0.2, 0.5])
def test_all_20_points_of_the_papers_curves_are_solved(name, load):
    row = follow_curve(name, load)
    assert row.solved == 20 and row.inverse_solved == 20
    assert 0.09 < row.shortest_m < row.longest_m < 0.11


def test_study_reproduces_its_recorded_errors():
    energy, squares = accuracy(20)
    assert 1e3 * energy == pytest.approx(0.271, abs=2e-3)
    assert 1e3 * squares == pytest.approx(0.383, abs=2e-3)
    with pytest.raises(ValueError, match='unknown curve'):
        curve_points('spiral')


@pytest.mark.parametrize('name', ['circle', 'square', 'cardioid'])
@pytest.mark.parametrize('load', [0.0, 0.5])
def test_forward_of_inverse_returns_the_points_of_the_curves(name, load):
    model, force = arm(), (0.0, 0.0, load)
    for point in curve_points(name)[::4]:
        solution = model.inverse(point, tip_force=force)
        assert solution.converged, solution.message
        shape = model.forward(solution.actuation, tip_force=force)
        np.testing.assert_allclose(shape.tip[:3, 3], point, atol=1e-8)
        assert solution.residual < 1e-8


def test_inverse_meets_an_attitude_from_a_guess():
    model = arm()
    first = model.inverse(P)
    attitude = first.shape.tip[:3, :3] @ exp_so3([0.05, -0.08, 0.0])
    posed = model.inverse(P, attitude, guess=first.actuation)
    assert posed.converged
    tip = model.forward(posed.actuation).tip
    np.testing.assert_allclose(tip[:3, :3], attitude, atol=1e-6)
    np.testing.assert_allclose(tip[:3, 3], P, atol=1e-7)


def test_jacobian_matches_finite_differences():
    model, h = arm(), 1e-6
    rng = np.random.default_rng(3)
    lengths = model.lengths_of_held_tip(P)[0] + 1e-3 * rng.normal(size=30)
    jacobian = model.jacobian(lengths)
    for i in range(0, 30, 4):
        step = h * np.eye(30)[i]
        twist = displacement(model.forward(lengths - step).tip, model.forward(lengths + step).tip)
        np.testing.assert_allclose(
            jacobian[:, i], twist / (2 * h), atol=1e-6 * np.abs(jacobian).max()
        )
    tip, rows = model.tip_and_jacobian(lengths)
    np.testing.assert_allclose(tip, model.forward(lengths).tip[:3, 3], atol=1e-10)
    np.testing.assert_allclose(rows, jacobian[:3], atol=1e-9)


def test_muscle_tension_is_minus_the_energy_derivative_by_its_length():
    # The virtual work of every muscle is its force times its change of length: the derivative of
    # the total energy by a commanded length is minus its tension.
    model = arm()
    lengths = model.lengths_of_held_tip(P)[0]
    state = model.equilibrium(lengths)

    def total(command):
        s = model.equilibrium(command)
        rod = model.rod
        steps = np.diff(s.positions, axis=0)
        elastic = elastic_energy(s.nodes, rod.ds, rod.stiffness)
        energy = elastic - float(np.sum(rod.loads() * steps))
        return energy + float(np.sum(s.tensions**2)) / (2 * model.modules.muscle_stiffness_N_m)

    for i in (0, 7, 16, 29):
        step = 1e-5 * np.eye(30)[i]
        slope = (total(lengths + step) - total(lengths - step)) / 2e-5
        assert state.tensions[i] == pytest.approx(-slope, abs=1e-4)


def test_stiffer_muscles_reduce_the_error_of_the_papers_command():
    lengths = arm().lengths_of_held_tip(P)[0]
    missed = [
        float(np.linalg.norm(arm(muscle_stiffness_N_m=k).forward(lengths).tip[:3, 3] - P))
        for k in (2e3, 2e4, 2e5, 1e7)
    ]
    assert missed[0] > missed[1] > missed[2] > missed[3]
    # Even rigid muscles do not exert the wrench of the held tip: a few millimetres remain.
    assert 1e-3 < missed[3] < 5e-3


def test_arm_reports_names_rest_length_and_an_evenly_spaced_centerline():
    model = arm()
    assert len(model.actuator_names) == 30 and model.actuator_names[3] == 'module_2_muscle_1'
    assert model.configuration_names == model.actuator_names
    lengths = model.lengths_of_held_tip(P)[0]
    shape = model.shape_of(lengths)
    assert shape.section_tips.shape == (10, 4, 4) and model.rest_length_m == 1.0
    line = shape.centerline(81)
    np.testing.assert_allclose(line[0], 0.0)
    np.testing.assert_allclose(line[-1], shape.tip[:3, 3])
    steps = np.linalg.norm(np.diff(line, axis=0), axis=1)
    np.testing.assert_allclose(steps, 1.0 / 80, rtol=2e-3)
    np.testing.assert_allclose(model.configuration_of(lengths), lengths)
    np.testing.assert_allclose(model.actuation_of(lengths), lengths)
    np.testing.assert_allclose(model.actuation_jacobian(lengths), np.eye(30))


def test_limits_and_bad_input_are_reported():
    model, lengths = arm(), np.full(30, 0.1)
    with pytest.raises(ModelError, match=r'module_1_muscle_3: length 0\.12 m is outside 0\.05'):
        model.forward(np.where(np.arange(30) == 2, 0.12, lengths))
    with pytest.raises(ValueError, match='actuation has shape'):
        model.forward(lengths[:29])
    with pytest.raises(ModelError, match='tip_moment'):
        model.forward(lengths, tip_moment=(0.0, 0.1, 0.0))
    with pytest.raises(ValueError, match='multiple of modules'):
        MinimumEnergyArm(BackboneConfig(), linear(), intervals=33)
    with pytest.raises(ValueError, match='must be below max_length_m'):
        ParallelModulesConfig(min_length_m=0.2)
    clamped, clamps = clamp_lengths(np.r_[0.04, 0.12, lengths[2:]], linear())
    assert [c.muscle for c in clamps] == ['module_1_muscle_1', 'module_1_muscle_2']
    assert 'shortest 50.00 mm' in str(clamps[0]) and 'longest 110.00 mm' in str(clamps[1])
    np.testing.assert_allclose(clamped[:2], [0.05, 0.11])


def test_inverse_approaches_a_target_farther_away_than_the_arm_is_long():
    model, far = arm(), np.array([0.3, 0.1, 1.2])
    for guess in (None, model.rest_configuration - 1e-3):
        solution = model.inverse(far, guess=guess)
        assert not solution.converged
        assert solution.message.startswith('target (0.3000, 0.1000, 1.2000) m not reached')
        miss = np.linalg.norm(far - model.forward(solution.actuation).tip[:3, 3])
        assert solution.residual == pytest.approx(miss)
        straight = np.linalg.norm(far - [0.0, 0.0, 1.0])
        assert np.linalg.norm(far) - 1.0 < solution.residual < 0.9 * straight


def test_muscles_limited_to_99_to_100_mm_miss_the_example_and_report_the_limit():
    solution = arm(max_length_m=0.1, min_length_m=0.099).inverse(P)
    assert not solution.converged
    assert solution.residual > 0.01
    assert 'mm left; at a limit: module_1_muscle_1 at' in solution.message


def test_muscles_limited_to_100_mm_reach_the_example_only_beyond_their_strength():
    solution = arm(max_length_m=0.1).inverse(P)
    assert not solution.converged and solution.residual < 1e-6
    assert 'N, 22.8 N at most' in solution.message
    assert np.max(arm(max_length_m=0.1).equilibrium(solution.actuation).tensions) > 100.0


def test_preferred_lengths_depend_only_on_the_tip():
    model = arm()
    lengths = model.inverse((0.2, 0.05, 0.9)).actuation
    tip, jacobian = model.tip_and_jacobian(lengths)
    rng = np.random.default_rng(1)
    other = lengths + 3e-4 * rng.normal(size=30)
    for _ in range(6):  # back to the same tip, by other lengths
        now, jacobian = model.tip_and_jacobian(other)
        other = other + np.linalg.pinv(jacobian) @ (tip - now)
    assert np.abs(other - lengths).max() > 2e-4
    preferred = model.preferred_configuration(other)
    np.testing.assert_allclose(preferred, model.preferred_configuration(lengths), atol=1e-8)
    np.testing.assert_allclose(model.forward(preferred).tip[:3, 3], tip, atol=1e-7)
    pulls = [np.abs(model.equilibrium(q).tensions).max() for q in (preferred, other)]
    assert pulls[0] < pulls[1]


def test_straight_arm_is_its_own_preferred_configuration():
    model = arm()
    rest = model.rest_configuration
    np.testing.assert_allclose(rest, 0.1)
    np.testing.assert_allclose(model.preferred_configuration(rest), rest)
    assert model.observed_configuration(np.eye(4)[None]) is None
    # One scale of a muscle at the base moves the tip by about the length of the arm.
    moves = np.linalg.norm(model.jacobian(rest)[:3], axis=0) * model.configuration_scale
    assert 0.3 < moves.max() < 1.5


def test_payload_acts_as_a_tip_force_along_gravity():
    loaded = MinimumEnergyArm(BackboneConfig(), linear(), tip_load_kg=0.05)
    lengths = arm().inverse((0.2, 0.05, 0.9)).actuation
    expected = arm().forward(lengths, tip_force=(0.0, 0.0, 0.05 * 9.81))
    np.testing.assert_allclose(loaded.forward(lengths).tip, expected.tip, atol=1e-9)
    np.testing.assert_allclose(loaded.tips_of(lengths[None])[0], expected.tip[:3, 3], atol=1e-9)
    with pytest.raises(ValueError, match='tip_load_kg'):
        MinimumEnergyArm(BackboneConfig(), linear(), tip_load_kg=-1.0)


@pytest.mark.parametrize('longer', [-0.002, 0.002, 0.004])
def test_inverse_from_a_buckling_guess_agrees_with_forward(longer):
    model = arm()
    lengths = model.inverse((0.15, -0.1, 0.94)).actuation
    target = model.forward(lengths).tip[:3, 3]
    solution = model.inverse(target, guess=lengths + longer)
    assert solution.converged, solution.message
    np.testing.assert_allclose(model.forward(solution.actuation).tip[:3, 3], target, atol=1e-6)
    assert model.equilibrium(solution.actuation).tensions.max() < model.modules.max_pull_N


def test_muscle_tensions_are_limited_to_the_greatest_pull():
    model = arm()
    pulls = model.muscle_tensions(np.full(30, 0.0995))  # against an incompressible backbone
    np.testing.assert_allclose(pulls, model.modules.max_pull_N)


# Commands [mm] of a run through random targets: close to them the arm snaps over.
FLAT_MINIMA = (
    [98.0533, 100.44259, 102.32487, 100.3943, 97.80097, 99.44654, 97.23745, 99.98172, 102.21891,
     96.50128, 100.26151, 102.75576, 98.06756, 101.5064, 97.9663, 99.78913, 101.38917, 101.70626,
     98.36794, 99.8283, 99.72716, 101.2425, 103.20413, 103.32423, 98.42176, 101.50418, 97.56635,
     97.32531, 102.37877, 101.03335],
    [98.58522, 100.09298, 103.99921, 100.366, 97.68333, 99.55378, 97.74624, 97.63397, 103.00043,
     97.04905, 98.45552, 103.17768, 97.66223, 101.2525, 98.64114, 99.2631, 100.14006, 100.92993,
     98.86527, 99.86779, 99.2862, 101.76517, 104.11669, 103.76892, 98.42262, 101.6531, 97.55844,
     97.1202, 103.18911, 102.89853],
)  # fmt: skip


@pytest.mark.parametrize('lengths_mm', FLAT_MINIMA)
def test_stable_minimum_is_found_just_before_the_arm_snaps_over(lengths_mm):
    backbone = BackboneConfig(length_m=0.9977, mass_per_length_kg_m=0.428987)
    modules = ParallelModulesConfig(anchor_radius_m=0.02027, muscle_stiffness_N_m=73067.2)
    state = MinimumEnergyArm(backbone, modules).equilibrium(1e-3 * np.array(lengths_mm))
    assert state.stable
    assert 0.9 < state.positions[-1, 2] < 0.95


def test_start_of_the_descent_bends_each_module_as_its_muscles_do():
    anchors = muscle_anchors(ParallelModulesConfig(modules=2))
    turns = np.array([[0.3, -0.1], [-0.2, 0.4]])  # of the modules, about x and y
    across = np.stack([turns[:, 1], -turns[:, 0]], axis=1)
    # A disk that turns by a about x and b about y lifts the point (x, y) by a y - b x.
    lengths = 0.1 - np.einsum('tij,tj->ti', anchors[:, :, :2], across)
    turn = np.empty((2, 2))
    turns_into(lengths, anchors, 2.0 / (3.0 * 0.02**2), 4, turn)
    np.testing.assert_allclose(turn, 0.5 * turns / 4, atol=1e-15)
    half = np.hypot(turn[:, 0], turn[:, 1])
    nodes = np.zeros((9, 4))
    nodes[0, 0] = 1.0
    bend_modules(turn, np.cos(half), np.sin(half) / half, nodes)
    rotation = np.eye(3)
    for i in range(8):
        rotation = rotation @ exp_so3([*turns[i // 4] / 4, 0.0])
        x, y, z, w = quaternion_from_matrix(rotation)
        np.testing.assert_allclose(nodes[i + 1], [w, x, y, z], atol=1e-15)


def test_last_step_of_the_descent_is_the_first_of_newtons():
    muscled = MinimumEnergyArm(BackboneConfig(), ParallelModulesConfig()).muscled
    rod, anchors, band = muscled.rod, muscle_anchors(muscled.modules), 14
    commands = np.random.default_rng(3).uniform(0.09, 0.11, (10, 3))
    springs, none, free = muscled.modules.springs(commands), np.zeros(3), np.zeros(0)
    attitude = np.array([1.0, 0.0, 0.0, 0.0])
    start, step = muscled._bent_modules(commands), np.empty(120)
    status, _, gradient = descend(
        start, rod.ds, rod.stiffness, rod.loads(), none, attitude, free, free, anchors, springs,
        band, step, 1e-4, 200,
    )  # fmt: skip
    assert status == CONVERGED
    ends = []
    for known in (0.0, gradient):
        nodes, by_commands = start.copy(), np.empty((120, 30))
        factor, first = np.empty((120, band + 1)), step.copy()
        if known == 0.0:
            first[:] = np.nan  # must not be used
        status, iterations, _, _ = constrained_newton(
            nodes, rod.ds, rod.stiffness, rod.loads(), none, attitude, free, anchors, springs,
            np.empty((41, 3)), np.empty((10, 3, 3)), factor, by_commands, first, known, 10,
        )  # fmt: skip
        assert status == CONVERGED and iterations > 0
        ends.append((iterations, nodes, factor, by_commands))
    for one, other in zip(*ends):
        np.testing.assert_array_equal(one, other)
