"""Recursive dynamics against Lagrange's equations, energies and limits."""

import time

import numpy as np
import pytest
from dynamics_cases import (
    DENSITY,
    LENGTH,
    RADIUS,
    cantilever,
    full_arm,
    random_loads,
    random_state,
    seeds,
    sizes,
)
from hypothesis import given, settings

from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.config import RigidBodyConfig, round_section
from softarm_ros.models.dynamics.layout import allocate_scratch
from softarm_ros.models.dynamics.recursion_kernels import (
    place_arm,
    replace_segment,
    static_residual,
)
from softarm_ros.models.dynamics.tangents import residual_tangents, static_tangent_into

quick = settings(deadline=None, max_examples=25)


@quick
@given(seed=seeds, size=sizes)
def test_inverse_dynamics_of_forward_accelerations_leaves_no_force(seed, size):
    arm = full_arm(seed)
    q, v = random_state(arm, seed, size)
    loads = random_loads(arm, seed)
    a = arm.forward_dynamics(q, v, loads)
    terms = np.abs(arm.inverse_dynamics(q, v, 0.0 * a, loads)).max()
    assert np.abs(arm.inverse_dynamics(q, v, a, loads)).max() < 1e-10 * terms


@quick
@given(seed=seeds, size=sizes)
def test_mass_matrix_is_positive_definite_and_gives_the_kinetic_energy(seed, size):
    """v M v / 2 is the energy of the moving pieces, and solve_mass inverts M."""
    arm = full_arm(seed)
    q, v = random_state(arm, seed, max(size, 1e-3))
    loads = random_loads(arm, seed)
    matrix = arm.mass_matrix(q, loads)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12 * np.abs(matrix).max())
    assert np.linalg.eigvalsh(matrix)[0] > 0.0
    energy = arm.energy(q, v, loads).kinetic
    assert 0.5 * v.ravel() @ matrix @ v.ravel() == pytest.approx(energy, rel=1e-10)
    unit = np.random.default_rng(seed).normal(size=q.shape)
    solved = arm.solve_mass(q, unit, loads)
    assert np.allclose(matrix @ solved.ravel(), unit.ravel(), atol=1e-7)


def test_mass_matrix_matches_second_differences_of_the_kinetic_energy():
    arm = full_arm(5)
    q, _ = random_state(arm, 5)
    loads = random_loads(arm, 5)
    size = q.size
    steps = np.eye(size).reshape(size, *q.shape)

    def energy(v):
        return arm.energy(q, v, loads).kinetic

    by_differences = np.array(
        [[energy(a + b) - energy(a) - energy(b) for b in steps] for a in steps]
    )
    assert np.allclose(by_differences, arm.mass_matrix(q, loads), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize('seed', range(4))
def test_inverse_dynamics_satisfies_lagranges_equations(seed):
    """Inverse dynamics = d/dt dT/dv - dT/dq + dV/dq - Q, from finite differences of energies."""
    arm = full_arm(seed)
    q, v = random_state(arm, seed, 0.5)
    a = np.random.default_rng(seed).normal(size=q.shape) * [5.0, 300.0, 300.0, 300.0]
    fluid = random_loads(arm, seed)
    free = arm.loads(
        (1.0, -5.0, 8.0), added_mass=fluid.added_mass, node_damping=fluid.node_damping
    )
    h = 1e-5

    def momentum(t):
        return arm.mass_matrix(q + t * v + 0.5 * t * t * a, free) @ (v + t * a).ravel()

    rate = (momentum(h) - momentum(-h)) / (2 * h)
    slope = np.empty(q.size)
    for j in range(q.size):
        step = np.zeros(q.size)
        step[j] = h
        ahead = arm.energy(q + step.reshape(q.shape), v, free)
        back = arm.energy(q - step.reshape(q.shape), v, free)
        potential = ahead.elastic + ahead.weight - back.elastic - back.weight
        slope[j] = (potential - (ahead.kinetic - back.kinetic)) / (2 * h)
    lost = np.empty(q.size)
    for j in range(q.size):
        step = np.zeros(q.size)
        step[j] = 1.0
        up = arm.energy(q, v + step.reshape(q.shape), free).loss_W
        down = arm.energy(q, v - step.reshape(q.shape), free).loss_W
        lost[j] = 0.25 * (up - down)  # Rayleigh's function is half the loss
    expected = rate + slope + lost
    found = arm.inverse_dynamics(q, v, a, free).ravel()
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


@quick
@given(seed=seeds, size=sizes)
def test_energy_rate_equals_the_power_of_the_loads_less_losses(seed, size):
    """The loads are drive, cables and wrenches."""
    arm = full_arm(seed)
    q, v = random_state(arm, seed, size)
    loads = random_loads(arm, seed)
    a = arm.forward_dynamics(q, v, loads)
    h = 1e-7

    def total(t):
        return arm.energy(q + t * v + 0.5 * t * t * a, v + t * a, loads).total

    length = arm.body.length[:, None]
    power = (length * loads.drive * v).sum()
    power += (loads.wrench * arm.node_twists(q, v)).sum()
    for offset, tension in zip(loads.cable_offset[0], loads.cable_tension[0]):
        x, y = offset
        along = 1.0 + q[:, 0] + q[:, 1] * y - q[:, 2] * x
        stretched = np.hypot(along, q[:, 3] * np.hypot(x, y))
        rate = along * (v[:, 0] + v[:, 1] * y - v[:, 2] * x)
        rate += q[:, 3] * v[:, 3] * (x * x + y * y)
        power -= tension * (arm.body.length * rate / stretched).sum()
    loss = arm.energy(q, v, loads).loss_W
    change = (total(h) - total(-h)) / (2 * h)
    kinetic = abs(v.ravel() @ arm.mass_matrix(q, loads) @ a.ravel())
    scale = abs(power) + loss + kinetic + abs(total(0.0))
    assert change == pytest.approx(power - loss, abs=2e-6 * scale)


@quick
@given(seed=seeds, angle_deg=sizes.map(lambda x: 100.0 * x))
def test_turning_a_round_arm_and_its_loads_turns_its_accelerations(seed, angle_deg):
    """The arm is turned about its axis."""
    arm = cantilever(4)
    q, v = random_state(arm, seed)
    c, s = np.cos(np.radians(angle_deg)), np.sin(np.radians(angle_deg))
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])

    def turned(x):
        return np.column_stack([x[:, 0], x[:, 1:] @ turn.T])

    gravity, force = np.array([3.0, 4.0, -5.0]), np.array([0.1, -0.2, 0.05])
    a = arm.forward_dynamics(q, v, arm.loads(gravity, tip_force=force))
    loads = arm.loads(turn @ gravity, tip_force=turn @ force)
    b = arm.forward_dynamics(turned(q), turned(v), loads)
    assert np.allclose(turned(a), b, rtol=1e-9, atol=1e-9 * np.abs(b).max())


@pytest.mark.parametrize(
    ('angle_deg', 'segments', 'inertia'),
    [(0.0, 1, 1e-4), (90.0, 1, 0.08), (168.0, 1, 0.3), (168.0, 4, 0.025), (168.0, 16, 0.002)],
)
def test_bent_pieces_have_the_rods_weight_and_nearly_its_inertia(angle_deg, segments, inertia):
    """The reference divides the same circular arc into 400 segments."""
    energies = []
    for count in (segments, 400):
        section = round_section(
            length_m=LENGTH,
            radius_m=RADIUS,
            youngs_modulus_Pa=1e6,
            density_kg_m3=DENSITY,
            segments=count,
        ).model_copy(update={'matched_inertia': False})
        arm = ArmDynamics([section])
        q = np.tile([0.0, np.radians(angle_deg) / LENGTH, 0.0, 0.0], (count, 1))
        v = np.tile([0.0, 1.0, 0.0, 0.0], (count, 1))
        energies.append(arm.energy(q, v, arm.loads((0.0, 1.0, 1.0))))
    assert energies[0].weight == pytest.approx(energies[1].weight, rel=1e-9)
    assert energies[0].kinetic == pytest.approx(energies[1].kinetic, rel=inertia)


def test_straight_piece_has_the_rods_inertia():
    """Inertia per bending rate: m l^4/20 plus the slices'; matched inertia adds m l^4/48."""
    mass = DENSITY * np.pi * RADIUS**2 * LENGTH
    rod = mass * LENGTH**4 / 20.0 + mass * RADIUS**2 / 4.0 * LENGTH**2 / 3.0
    base = cantilever(1, 1).sections[0]
    for matched, expected in ((False, rod), (True, rod + mass * LENGTH**4 / 48.0)):
        arm = ArmDynamics([base.model_copy(update={'matched_inertia': matched})])
        assert arm.mass_matrix(arm.straight)[1, 1] == pytest.approx(expected, rel=1e-12)


def test_mass_lumped_at_the_top_gives_the_papers_weight_moment():
    """One segment: the weight moment about its base is m g l / 3 per rad of bend."""
    section = round_section(
        length_m=0.4, radius_m=0.045, youngs_modulus_Pa=1e5, density_kg_m3=100.0, segments=1
    ).model_copy(update={'mass_at': 'top'})
    arm = ArmDynamics([section])
    mass, length, angle = section.mass_per_length_kg_m * 0.4, 0.4, 1e-4
    loads = arm.loads((0.0, 0.0, 9.81))
    q = np.array([[0.0, angle / length, 0.0, 0.0]])
    bare = arm.loads((0.0, 0.0, 0.0))
    still = np.zeros((1, 4))
    force = arm.inverse_dynamics(q, still, still, loads) - arm.inverse_dynamics(
        q, still, still, bare
    )
    assert force[0, 1] / length == pytest.approx(mass * 9.81 * length / 3.0 * angle, rel=1e-6)


def test_cost_is_linear_in_the_segments():
    """Forward dynamics of 20 and 320 segments: 16 times the work, not 256 times."""
    times = []
    for segments in (20, 320):
        arm = cantilever(segments)
        q, v = random_state(arm, 0, 0.1)
        loads = arm.loads()
        arm.forward_dynamics(q, v, loads)
        best = np.inf
        for _ in range(30):
            begin = time.perf_counter()
            arm.forward_dynamics(q, v, loads)
            best = min(best, time.perf_counter() - begin)
        times.append(best)
    assert times[1] < 40.0 * times[0]


def test_bad_input_is_refused():
    """Errors name the field, the value and the limit."""
    arm = cantilever(2)
    q = arm.straight
    with pytest.raises(ModelError, match=r'strains has shape \(3,\), expected \(2, 4\)'):
        arm.node_poses(np.zeros(3))
    with pytest.raises(ModelError, match='rates holds values that are not finite'):
        arm.forward_dynamics(q, np.full((2, 4), np.nan), arm.loads())
    with pytest.raises(ModelError, match='added_mass is not symmetric'):
        arm.loads(added_mass=np.triu(np.ones((2, 6, 6))))
    with pytest.raises(ModelError, match='must not be below 0'):
        arm.loads(cable_offset_m=np.zeros((2, 1, 2)), cable_tension_N=-np.ones((2, 1)))
    with pytest.raises(ModelError, match='together'):
        arm.loads(cable_tension_N=np.ones((2, 1)))
    with pytest.raises(ModelError, match='at least one'):
        ArmDynamics([])
    with pytest.raises(ValueError, match='eigenvalue'):
        round_section(length_m=0.1, radius_m=0.01, youngs_modulus_Pa=-1.0, density_kg_m3=1000.0)


def test_segment_without_inertia_is_refused():
    """A lumped piece without rotary inertia cannot be twisted by Newton's law."""
    base = round_section(
        length_m=0.1, radius_m=0.01, youngs_modulus_Pa=1e6, density_kg_m3=1000.0, segments=1
    )
    arm = ArmDynamics(
        [base.model_copy(update={'slice_inertia_kg_m': (0.0, 0.0, 0.0), 'mass_at': 'top'})],
        RigidBodyConfig(),
    )
    with pytest.raises(ModelError, match='lacks inertia'):
        arm.forward_dynamics(arm.straight, arm.straight, arm.loads())


@quick
@given(seed=seeds, size=sizes)
def test_statics_are_the_dynamics_at_rest(seed, size):
    """Forces and their tangent; equal, not close: the terms left out are zeros."""
    arm = full_arm(seed)
    q, _ = random_state(arm, seed, size)
    loads, still = random_loads(arm, seed), np.zeros_like(q)
    out = np.empty_like(q)
    place_arm(arm.body, q, arm.scratch)
    static_residual(arm.body, loads, q, still, arm.scratch, out)
    np.testing.assert_array_equal(out, arm.inverse_dynamics(q, still, still, loads))
    n, tangent = arm.segments, np.empty((q.size, q.size))
    zeros = np.zeros((n, 4), np.complex128)
    scratch, column = allocate_scratch(n, np.complex128), zeros.copy()
    static_tangent_into(arm.body, loads, q + 0j, zeros, scratch, column, tangent)
    by_strain, _ = residual_tangents(arm, q, still, still, loads)
    np.testing.assert_array_equal(tangent, by_strain)


@quick
@given(seed=seeds, size=sizes)
def test_replacing_a_segment_places_the_arm(seed, size):
    arm = full_arm(seed)
    q, change = random_state(arm, seed, size)
    moved = q.copy()
    first = seed % arm.segments
    moved[first] += change[first]
    changed, whole = allocate_scratch(arm.segments), allocate_scratch(arm.segments)
    place_arm(arm.body, q, changed)
    replace_segment(arm.body, moved, first, changed)
    place_arm(arm.body, moved, whole)
    for found, expected in zip(changed, whole):
        np.testing.assert_array_equal(found, expected)
