"""The held rod: the worked example, an independent solution, closed forms, properties."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from rod_shooting import shoot
from scipy.optimize import brentq
from scipy.special import ellipe, ellipeinc, ellipk, ellipkinc

from softarm_ros.geometry.rotations import exp_so3, quaternion_from_matrix
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.banded_kernels import (
    banded_ldl_into,
    banded_solve_into,
    dense_ldl_solve_into,
)
from softarm_ros.models.minimum_energy.config import BackboneConfig
from softarm_ros.models.minimum_energy.kernels import retract_into
from softarm_ros.models.minimum_energy.least_squares import TipSupport, solve_least_squares
from softarm_ros.models.minimum_energy.muscle_kernels import NO_SPRINGS, Springs
from softarm_ros.models.minimum_energy.newton_kernels import (
    CONVERGED,
    UNSTABLE,
    constrained_newton,
    potential,
    system_into,
)
from softarm_ros.models.minimum_energy.rod import NO_ANCHORS, MinimumEnergyRod

P = np.array([0.25, 0.10, 0.85])
BACKBONE = BackboneConfig()
WEIGHT = np.array([0.0, 0.0, 4.0])
START = np.array([0.55, -1.37, 0.0, -0.83, -0.33, -2.54])


@pytest.fixture(scope='module')
def exact():
    """Return the example by shooting."""
    return shoot(BACKBONE, WEIGHT, np.zeros(3), P, START)


def rod(intervals=40, gravity=(0.0, 0.0, 9.81), **changes):
    return MinimumEnergyRod(BackboneConfig(**changes), intervals, gravity)


def worst_mm(solution, exact, component=False):
    stride = (len(exact.positions) - 1) // (len(solution.positions) - 1)
    error = solution.positions - exact.positions[::stride]
    size = np.abs(error) if component else np.linalg.norm(error, axis=1)
    return 1e3 * float(size.max())


def test_shooting_solution_matches_the_worked_example(exact):
    assert exact.residual < 1e-11
    np.testing.assert_allclose(exact.force, [-0.8290, -0.3316, -2.5435], atol=6e-5)
    np.testing.assert_allclose(exact.base_curvature, [0.5481, -1.3702, 0.0], atol=6e-5)


def test_rod_matches_all_digits_of_the_worked_example(exact):
    solution = rod(80).reach(P)
    assert solution.converged and solution.stable and not solution.message
    fine = rod(640).reach(P)
    np.testing.assert_allclose(fine.tip_wrench, [-0.8290, -0.3316, -2.5435, 0, 0, 0], atol=6e-5)
    np.testing.assert_allclose(fine.base_curvature, [0.5481, -1.3702, 0.0], atol=6e-5)
    x, y, z, w = fine.quaternions[-1]
    np.testing.assert_allclose([w, x, y, z], [0.83365, -0.20512, 0.51280, 0.0], atol=1e-5)
    quarters = [[-0.0262, -0.0105, 0.2481], [-0.0401, -0.0160, 0.4969], [0.0534, 0.0214, 0.7208]]
    np.testing.assert_allclose(fine.positions[160:640:160], quarters, atol=6e-5)
    assert fine.elastic_energy_J == pytest.approx(exact.elastic_energy, rel=2e-6)
    assert fine.elastic_energy_J == pytest.approx(0.18065, rel=2e-4)
    np.testing.assert_allclose(solution.positions[-1], P, atol=1e-12)


def test_shape_error_has_order_two_and_is_below_0_1_mm_at_80_intervals(exact):
    errors = [worst_mm(rod(n).reach(P), exact) for n in (20, 40, 80)]
    assert errors[2] < 0.1
    np.testing.assert_allclose(errors, [0.272, 0.0677, 0.0169], rtol=0.01)
    assert math.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)
    assert math.log2(errors[1] / errors[2]) == pytest.approx(2.0, abs=0.1)


def test_least_squares_has_the_published_shape_errors(exact):
    published = {20: 0.335, 40: 0.078, 80: 0.019}
    for n, error in published.items():
        frame = rod(n)
        solution = solve_least_squares(frame, P, guess=frame.reach(P))
        assert solution.converged
        assert worst_mm(solution, exact, component=True) == pytest.approx(error, abs=6e-4)


def test_least_squares_converges_from_straight_unless_the_support_is_a_moment():
    frame = rod()
    held = solve_least_squares(frame, P)
    assert held.converged
    np.testing.assert_allclose(held.positions, frame.reach(P).positions, atol=3e-4)
    printed = solve_least_squares(frame, P, support=TipSupport.MOMENT, max_evaluations=60)
    assert not printed.converged and 'local minimum' in printed.message


def test_least_squares_meets_an_attitude():
    frame = rod()
    attitude = frame.reach(P).tip[:3, :3] @ exp_so3([0.1, 0.2, 0.3])
    least = frame.reach(P, attitude)
    solution = solve_least_squares(frame, P, attitude, guess=least)
    assert solution.converged
    np.testing.assert_allclose(solution.positions, least.positions, atol=5e-4)
    np.testing.assert_allclose(solution.tip_wrench, least.tip_wrench, atol=0.03)


@pytest.mark.parametrize('load', [0.2, 0.5])
def test_tip_load_changes_the_tip_wrench_but_not_the_shape(load):
    free, loaded = rod().reach(P), rod().reach(P, tip_force=(0.0, 0.0, load))
    np.testing.assert_allclose(loaded.positions, free.positions, atol=1e-10)
    np.testing.assert_allclose(
        loaded.tip_wrench[:3], free.tip_wrench[:3] - [0.0, 0.0, load], atol=1e-9
    )


def test_shapes_of_random_targets_match_shooting():
    rng = np.random.default_rng(5)
    frame = rod(80, (3.0, -2.0, 7.0))
    for _ in range(4):
        target = rng.normal(size=3)
        target[2] = abs(target[2]) + 0.5
        target *= rng.uniform(0.5, 0.95) / np.linalg.norm(target)
        solution = frame.reach(target)
        start = np.concatenate([solution.base_curvature, solution.tip_wrench[:3]])
        exact = shoot(BACKBONE, frame.weight, np.zeros(3), target, start)
        assert solution.stable and exact.residual < 1e-9
        assert worst_mm(solution, exact) < 0.1


def test_tip_held_at_the_elastica_needs_the_force_of_the_elastica():
    # A cantilever under an end force F at right angles to its root: elliptic integrals give the
    # tip; held there, the multiplier must be F.
    load, bending = 0.6, BACKBONE.bending_stiffness_N_m2
    beta = math.sqrt(load / bending)

    def residual(k):
        phi1 = math.asin(1.0 / (math.sqrt(2.0) * k))
        return float(ellipk(k * k) - ellipkinc(phi1, k * k)) - beta

    k = brentq(residual, math.sqrt(0.5) + 1e-9, 1.0 - 1e-12, xtol=1e-15)
    phi1 = math.asin(1.0 / (math.sqrt(2.0) * k))
    across = 1.0 - 2.0 / beta * float(ellipe(k * k) - ellipeinc(phi1, k * k))
    along = math.sqrt(2.0) / beta * math.sqrt(2.0 * k * k - 1.0)
    solution = rod(320, (0.0, 0.0, 0.0)).reach([across, 0.0, along])
    np.testing.assert_allclose(solution.tip_wrench[:3], [load, 0.0, 0.0], atol=2e-4)


def test_rod_held_at_the_end_pose_of_a_circle_is_that_circle():
    radius, angle = 0.5, 2.0
    position = [radius * (1.0 - math.cos(angle)), 0.0, radius * math.sin(angle)]
    solution = rod(80, (0.0, 0.0, 0.0)).reach(position, exp_so3([0.0, angle, 0.0]))
    assert solution.stable
    np.testing.assert_allclose(solution.curvatures[:, 1], 1.0 / radius, rtol=4e-4)
    np.testing.assert_allclose(solution.tip_wrench[:3], 0.0, atol=1e-3)
    moment = BACKBONE.bending_stiffness_N_m2 / radius
    np.testing.assert_allclose(solution.tip_wrench[3:], [0.0, moment, 0.0], atol=2e-4)


def test_tip_wrench_is_the_derivative_of_the_energy_by_the_tip_pose():
    frame = rod()
    attitude = frame.reach(P).tip[:3, :3] @ exp_so3([0.2, -0.1, 0.4])

    def total(position, orientation):
        s = frame.reach(position, orientation)
        steps = np.diff(s.positions, axis=0)
        return s.elastic_energy_J - float(np.sum(frame.loads() * steps))

    solution, h = frame.reach(P, attitude), 1e-5
    for k, axis in enumerate(np.eye(3)):
        slope = (total(P + h * axis, attitude) - total(P - h * axis, attitude)) / (2 * h)
        assert solution.tip_wrench[k] == pytest.approx(slope, abs=1e-6)
        turned = [total(P, exp_so3(sign * h * axis) @ attitude) for sign in (1.0, -1.0)]
        slope = (turned[0] - turned[1]) / (2 * h)
        assert solution.tip_wrench[3 + k] == pytest.approx(slope, abs=1e-6)


def test_gradient_and_hessian_match_differences_with_all_terms():
    rng = np.random.default_rng(1)
    n, modules, width = 12, 4, 11
    ds, stiffness = 1.0 / n, np.array([0.12, 0.11, 0.09])
    loads, target = rng.normal(size=(n, 3)), rng.normal(size=3)
    attitude = rng.normal(size=4)
    attitude /= np.linalg.norm(attitude)
    multipliers, spring = rng.normal(size=6), np.array([7.0, 7.0, 7.0, 2.0, 2.0, 2.0])
    anchors = np.concatenate([rng.normal(size=(modules, 3, 2)), np.zeros((modules, 3, 1))], axis=2)
    anchors *= 0.03
    lengths = 0.25 + 0.02 * rng.normal(size=(modules, 3))
    muscles = rng.uniform(100.0, 500.0, size=(modules, 3))
    gas = rng.uniform(1.0, 4.0, size=(modules, 3))
    springs = Springs(muscles, lengths, gas, muscles, np.zeros((modules, 3)))
    q = np.zeros((n + 1, 4))
    q[:, 0] = 1.0
    random_step = 0.3 * rng.normal(size=3 * n)
    bent = q.copy()
    retract_into(q, random_step, 1.0, bent)
    r, vectors, c = np.empty((n + 1, 3)), np.empty((modules, 3, 3)), np.empty(6)

    def energy(nodes):
        return potential(
            nodes, ds, stiffness, loads, target, attitude, multipliers, spring, anchors, springs,
            r, vectors, c,
        )  # fmt: skip

    def derivatives(nodes):
        energy(nodes)
        gradient, band = np.empty(3 * n), np.empty((3 * n, width + 1))
        border, by_lengths = np.empty((3 * n, 6)), np.empty((3 * n, 3 * modules))
        system_into(
            nodes, ds, stiffness, loads, attitude, multipliers - spring * c, anchors, vectors,
            springs, np.empty((n, 3)), gradient, band, border, by_lengths, True,
        )  # fmt: skip
        hessian = border @ np.diag(spring) @ border.T
        for i in range(3 * n):
            for j in range(min(width, i) + 1):
                hessian[i, i - j] += band[i, j]
                if j:
                    hessian[i - j, i] += band[i, j]
        return gradient, hessian

    gradient, hessian = derivatives(bent)
    for _ in range(6):
        step = rng.normal(size=3 * n)
        step /= np.linalg.norm(step)
        plus, minus = bent.copy(), bent.copy()
        retract_into(bent, step, 1e-4, plus)
        retract_into(bent, step, -1e-4, minus)
        here, up, down = energy(bent), energy(plus), energy(minus)
        assert gradient @ step == pytest.approx((up - down) / 2e-4, rel=1e-5, abs=1e-5)
        second = (up - 2 * here + down) / 1e-8
        assert step @ hessian @ step == pytest.approx(second, rel=1e-4, abs=1e-3)


def test_banded_and_dense_factorisations_solve_and_count_negative_eigenvalues():
    rng = np.random.default_rng(2)
    size, width = 30, 5
    full = rng.normal(size=(size, size))
    full = full + full.T + np.diag(np.where(np.arange(size) % 7 == 0, -20.0, 20.0))
    full[np.abs(np.subtract.outer(np.arange(size), np.arange(size))) > width] = 0.0
    band = np.zeros((size, width + 1))
    for j in range(width + 1):
        band[j:, j] = np.diagonal(full, -j)
    columns = rng.normal(size=(size, 3))
    solved = columns.copy()
    expected = int(np.sum(np.linalg.eigvalsh(full) < 0.0))
    assert banded_ldl_into(band) == expected
    banded_solve_into(band, solved)
    np.testing.assert_allclose(full @ solved, columns, atol=1e-10)
    vector = columns[:, 0].copy()
    assert dense_ldl_solve_into(full.copy(), vector) == (expected, 0)
    np.testing.assert_allclose(full @ vector, columns[:, 0], atol=1e-10)
    assert banded_ldl_into(np.zeros((3, 2))) == -1


@given(st.floats(0.2, 0.97), st.floats(0.0, 1.2), st.floats(-3.1, 3.1), st.floats(-3.1, 3.1))
@settings(deadline=None, max_examples=40)
def test_turning_target_and_gravity_turns_the_shape(distance, polar, azimuth, turn):
    assume(polar > 0.05)
    target = distance * np.array(
        [
            math.sin(polar) * math.cos(azimuth),
            math.sin(polar) * math.sin(azimuth),
            math.cos(polar),
        ]
    )
    gravity = np.array([2.0, 0.5, 8.0])
    about = exp_so3([0.0, 0.0, turn])
    first = rod(20, gravity).reach(target)
    second = rod(20, about @ gravity).reach(about @ target)
    assert first.converged and second.converged
    # Two minima may exist, but the turned start finds the same one.
    np.testing.assert_allclose(second.positions, first.positions @ about.T, atol=1e-7)
    np.testing.assert_allclose(second.tip_wrench[:3], about @ first.tip_wrench[:3], atol=1e-6)


@given(st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3), st.floats(0.05, 0.98))
@settings(deadline=None, max_examples=60)
def test_targets_within_reach_of_the_hanging_rod_are_reached_or_reported(direction, distance):
    norm = np.linalg.norm(direction)
    assume(norm > 0.1)
    target = np.array(direction) * distance / norm
    solution = rod(20).reach(target)
    if not solution.converged:
        assert 'no equilibrium' in solution.message
        reject()
    np.testing.assert_allclose(solution.positions[-1], target, atol=1e-11)
    assert solution.residual_moment_N_m < 1e-9


def test_100_random_rods_reach_their_targets_in_stable_shapes():
    rng = np.random.default_rng(0)
    for k in range(100):
        length = rng.uniform(0.1, 2.0)
        diameter, young = length * rng.uniform(0.001, 0.02), 10.0 ** rng.uniform(5, 11)
        down = rng.normal(size=3)
        config = BackboneConfig(
            length_m=length,
            diameter_m=diameter,
            youngs_modulus_Pa=young,
            shear_modulus_Pa=young / rng.uniform(2.0, 3.0),
        )
        # Weight times L^3 / EI from 0.01 to 50: from a stiff rod to a limp one.
        weight = 10.0 ** rng.uniform(-2.0, 1.7) * config.bending_stiffness_N_m2 / length**3
        config = config.model_copy(update={'mass_per_length_kg_m': weight / 9.81})
        frame = MinimumEnergyRod(config, 30, 9.81 * down / np.linalg.norm(down))
        target = rng.normal(size=3)
        target *= length * rng.uniform(0.05, 0.95) / np.linalg.norm(target)
        attitude = exp_so3(rng.normal(size=3)) if k % 2 else None
        if attitude is not None:
            target *= 0.9
        solution = frame.reach(target, attitude)
        assert solution.stable, solution.message
        np.testing.assert_allclose(solution.positions[-1], target, atol=1e-11)
        if attitude is not None:
            np.testing.assert_allclose(solution.tip[:3, :3], attitude, atol=1e-10)


def test_target_on_the_axis_gives_a_stable_bent_shape():
    solution = rod().reach([0.0, 0.0, 0.8])
    assert solution.stable
    assert np.abs(solution.positions[:, 0]).max() > 0.1


def test_second_buckling_mode_is_an_equilibrium_reported_as_unstable():
    frame = rod(40, (0.0, 0.0, 0.0))
    arc = np.linspace(0.0, 1.0, 41)
    # The rod bulges to +x; with the tip on that side as well, it is unstable and turns about z.
    for waves, aside, expected in (
        (1.43, -0.05, CONVERGED),
        (1.43, 0.05, UNSTABLE),
        (2.46, -0.05, UNSTABLE),
    ):
        target = np.array([aside, 0.0, 0.8])
        half = 0.5 * np.sin(waves * np.pi * arc)
        nodes = np.stack([np.cos(half), 0.0 * arc, np.sin(half), 0.0 * arc], axis=1)
        force = np.array([0.0, 0.0, -frame.stiffness[0] * (waves * np.pi) ** 2])
        status, _, moment, defect = constrained_newton(
            nodes, frame.ds, frame.stiffness, frame.loads(), target, np.eye(4)[0], force,
            NO_ANCHORS, NO_SPRINGS, np.empty((41, 3)), NO_ANCHORS, np.empty((120, 6)),
            np.empty((120, 0)), np.empty(120), 0.0, 40,
        )  # fmt: skip
        assert status == expected
        assert moment < 1e-9 and defect < 1e-11


def test_upright_rod_finds_stable_shapes_under_its_weight():
    upright = rod(20, (0.0, 0.0, -9.81))
    for target in ([0.3, 0.0, 0.7], [0.3, 0.2, 0.2], [0.0, -0.5, -0.3]):
        assert upright.reach(target).stable


def test_warm_start_finds_the_same_shape_in_fewer_iterations():
    frame = rod()
    near = frame.reach(P)
    target = P + np.array([0.01, 0.0, 0.0])
    cold, warm = frame.reach(target), frame.reach(target, guess=near)
    np.testing.assert_allclose(warm.positions, cold.positions, atol=1e-10)
    assert warm.iterations < cold.iterations and warm.iterations <= 5


def test_quaternions_are_unit_x_y_z_w_and_match_the_tip_rotation():
    solution = rod().reach(P)
    expected = quaternion_from_matrix(solution.tip[:3, :3])
    np.testing.assert_allclose(solution.quaternions[-1], expected, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(solution.quaternions, axis=1), 1.0, atol=1e-14)


def test_bad_input_is_refused():
    frame = rod()
    with pytest.raises(ModelError, match=r'beyond the length_m = 1\.0'):
        frame.reach([0.0, 0.9, 0.9])
    with pytest.raises(ValueError, match='position has shape'):
        frame.reach([0.0, 0.9])
    with pytest.raises(ValueError, match='not finite'):
        frame.reach([0.0, math.nan, 0.9])
    with pytest.raises(ValueError, match='intervals = 2'):
        MinimumEnergyRod(BACKBONE, 2)
    with pytest.raises(ValueError, match='guess has 20 intervals'):
        frame.reach(P, guess=rod(20).reach(P))
