"""Beams against closed forms and an independent static solver."""

import numpy as np
import pytest
from dynamics_cases import DENSITY, LENGTH, RADIUS, YOUNG, cantilever, full_arm, seeds
from hypothesis import given, settings
from scipy.integrate import solve_bvp
from scipy.linalg import block_diag, eigh

from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.config import RigidBodyConfig, round_section
from softarm_ros.models.dynamics.drive import CableDrive, Chamber, ChamberDrive
from softarm_ros.models.dynamics.tangents import equilibrium, linearise, residual_tangents

AREA, SECOND = np.pi * RADIUS**2, np.pi * RADIUS**4 / 4.0


def _frequencies(segments, radius_m=0.0005):
    arm = cantilever(segments, 1, radius_m)
    stiffness = block_diag(*(arm.body.length[:, None, None] * arm.body.stiffness))
    return np.sqrt(eigh(stiffness, arm.mass_matrix(arm.straight), eigvals_only=True))


def _bending(segments):
    radius = 0.0005
    unit = np.sqrt(YOUNG * radius**2 / 4.0 / DENSITY) / LENGTH**2
    exact = unit * np.array([1.8751040687, 4.6940911330, 7.8547574382]) ** 2
    return _frequencies(segments)[:6:2] / exact - 1.0


def test_bending_frequencies_match_a_clamped_euler_bernoulli_beam():
    """First three modes at 20 segments; required 0.5 %, reached 0.02 %."""
    assert np.abs(_bending(20)).max() < 2e-4


def test_bending_frequencies_converge_with_order_four():
    """Segments of half the length make the error 16 times smaller."""
    error = [_bending(n)[2] - _bending(80)[2] for n in (10, 20)]
    assert 3.4 < np.log2(error[0] / error[1]) < 4.6


def test_axial_and_torsional_frequencies_match_quarter_waves():
    """First axial and torsional mode of a clamped rod."""
    frequencies = _frequencies(20)
    for modulus in (YOUNG, YOUNG / 3.0):
        quarter = np.sqrt(modulus / DENSITY) * np.pi / 2.0 / LENGTH
        assert np.abs(frequencies / quarter - 1.0).min() < 1e-5


def _independent_statics(tip_force=(0.0, 0.0)):
    """Return tip (x, z) of the cantilever under sideways weight, by collocation (scipy)."""
    per_length = DENSITY * AREA * 9.81

    def force(s):
        return tip_force[0] + per_length * (LENGTH - s), tip_force[1] + 0.0 * s

    def slopes(s, y):
        angle, moment = y[2], y[3]
        fx, fz = force(s)
        stretch = 1.0 + (fx * np.sin(angle) + fz * np.cos(angle)) / (YOUNG * AREA)
        dx, dz = stretch * np.sin(angle), stretch * np.cos(angle)
        return np.array([dx, dz, moment / (YOUNG * SECOND), -(fx * dz - fz * dx)])

    def ends(base, tip):
        return np.array([base[0], base[1], base[2], tip[3]])

    s = np.linspace(0.0, LENGTH, 60)
    guess = np.array([0.0 * s, s, 0.0 * s, 0.0 * s])
    solution = solve_bvp(slopes, ends, s, guess, tol=1e-10, max_nodes=100_000)
    assert solution.success
    return solution.y[:2, -1]


@pytest.mark.parametrize('tip_force', [(0.0, 0.0), (0.5, 0.0), (-1.0, 0.3), (0.3, -0.2)])
def test_equilibrium_converges_to_an_independent_static_solution(tip_force):
    """Tip under weight and tip force; the reference is a collocation solution."""
    exact = _independent_statics(tip_force)
    errors = []
    for segments in (20, 40, 80):
        arm = cantilever(segments)
        loads = arm.loads((9.81, 0.0, 0.0), tip_force=(tip_force[0], 0.0, tip_force[1]))
        found = equilibrium(arm, loads)
        assert found.converged and found.stable
        tip = arm.node_poses(found.strains)[-1, :3, 3]
        errors.append(np.hypot(tip[0] - exact[0], tip[2] - exact[1]))
    assert errors[0] < 2e-4
    assert errors[2] < 1.3e-5
    assert 1.8 < np.log2(errors[1] / errors[2]) < 2.2


def test_tip_moment_bends_the_arm_into_a_circle():
    """Any number of segments is exact under a tip moment."""
    for segments in (2, 20):
        arm = cantilever(segments)
        moment = YOUNG * SECOND * np.pi / LENGTH
        found = equilibrium(arm, arm.loads((0, 0, 0), tip_moment=(0.0, moment, 0.0)))
        tip = arm.node_poses(found.strains)[-1, :3, 3]
        assert found.converged
        assert np.allclose(tip, (2.0 * LENGTH / np.pi, 0.0, 0.0), atol=1e-12)


def test_straight_column_is_reported_unstable_above_the_euler_load():
    arm = cantilever(20)
    euler = np.pi**2 * YOUNG * SECOND / (4.0 * LENGTH**2)
    for factor, stable in ((0.98, True), (1.05, False)):
        found = equilibrium(arm, arm.loads((0, 0, 0), tip_force=(0.0, 0.0, -factor * euler)))
        assert found.converged
        assert found.stable is stable
        assert ('unstable' in found.message) is not stable


def test_missing_equilibrium_is_reported():
    """A drive of twice the axial stiffness has no equilibrium before eps = -1."""
    arm = cantilever(4)
    found = equilibrium(
        arm, arm.loads((0, 0, 0), drive=np.tile([-2.0 * YOUNG * AREA, 0, 0, 0], (4, 1)))
    )
    assert not found.converged
    assert 'followed the loads to' in found.message


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
def test_equilibrium_has_zero_acceleration_and_needs_no_iterations_as_warm_start(seed):
    arm = full_arm(seed)
    rng = np.random.default_rng(seed)
    loads = arm.loads(rng.normal(scale=3.0, size=3), tip_force=rng.normal(scale=0.05, size=3))
    found = equilibrium(arm, loads)
    assert found.converged
    again = equilibrium(arm, loads, found.strains)
    assert again.iterations == 0
    still = 0.0 * found.strains
    assert np.abs(arm.inverse_dynamics(found.strains, still, still, loads)).max() < 1e-9


@settings(deadline=None, max_examples=15)
@given(seed=seeds)
def test_linear_model_matches_finite_differences(seed):
    """A and B about moving states with all loads."""
    from dynamics_cases import random_loads, random_state

    arm = full_arm(seed)
    q, v = random_state(arm, seed, 0.5)
    loads = random_loads(arm, seed)
    inputs = np.random.default_rng(seed).normal(size=(arm.segments, 4, 3)) * 0.01
    model = linearise(arm, q, v, loads, inputs)
    rng = np.random.default_rng(seed + 1)
    dq, dv, du = rng.normal(size=q.shape), rng.normal(size=q.shape), rng.normal(size=3)
    h = 1e-6

    def slope(t):
        drive = loads.drive + inputs @ (t * du)
        a = arm.forward_dynamics(q + t * dq, v + t * dv, loads._replace(drive=drive))
        return np.concatenate([(v + t * dv).ravel(), a.ravel()])

    by_differences = (slope(h) - slope(-h)) / (2 * h)
    expected = model.a @ np.concatenate([dq.ravel(), dv.ravel()]) + model.b @ du
    scale = np.abs(model.a).max() + np.abs(expected).max()
    assert np.allclose(by_differences, expected, rtol=1e-5, atol=1e-7 * scale)
    assert np.allclose(model.drift, slope(0.0))


def test_tangent_of_conservative_loads_is_symmetric():
    arm = full_arm(2)
    loads = arm.loads((1.0, 2.0, 9.0), tip_force=(0.1, 0.2, 0.3))
    still = 0.0 * arm.straight
    tangent, _ = residual_tangents(arm, arm.straight, still, still, loads)
    assert np.allclose(tangent, tangent.T, rtol=1e-10, atol=1e-12)


def _two_sections():
    section = round_section(
        length_m=0.4, radius_m=0.04, youngs_modulus_Pa=1e5, density_kg_m3=100.0, segments=3
    )
    return ArmDynamics([section, section], RigidBodyConfig(mass_kg=0.1))


def test_chamber_power_equals_pressure_times_volume_flow():
    """Generalised force = pressure times d volume / d strain; eq. 20, 21 for three chambers."""
    arm = _two_sections()
    area, pitch = 1.131e-4, 0.03
    drive = ChamberDrive(
        arm, [Chamber(s, area, pitch, a) for s in (0, 1) for a in (0.0, 120.0, 240.0)]
    )
    pressures = np.array([1e5, 2e5, 0.0, 0.0, 3e5, 1e5])
    resultants = drive.drive(pressures)
    assert np.allclose(resultants[0, 0], area * 3e5)
    assert np.allclose(
        resultants[0, 1:3],
        area * pitch * np.array([2e5 * np.sin(2 * np.pi / 3), -1e5 + 2e5 * 0.5]),
    )
    still = 0.0 * arm.straight
    free, driven = arm.loads((0, 0, 0)), arm.loads((0, 0, 0), drive=resultants)
    force = arm.inverse_dynamics(still, still, still, free) - arm.inverse_dynamics(
        still, still, still, driven
    )
    rng = np.random.default_rng(0)
    v = rng.normal(size=still.shape)
    assert (force * v).sum() == pytest.approx(pressures @ drive.volume_flow(v), rel=1e-12)
    with pytest.raises(ModelError, match='section 2'):
        ChamberDrive(arm, [Chamber(2, area, pitch, 0.0)])


def test_cable_power_equals_tension_times_shortening_rate():
    """Generalised force = -tension times d length / d strain, twisted and bent."""
    arm = _two_sections()
    cables = CableDrive(arm, [[0.03, 0.0], [0.0, 0.02], [-0.02, -0.01]], [0, 1, 1])
    tensions = np.array([3.0, 5.0, 1.0])
    rng = np.random.default_rng(1)
    q = rng.normal(size=(6, 4)) * [0.05, 3.0, 3.0, 10.0]
    loads = arm.loads(
        (0, 0, 0), cable_offset_m=cables.offset, cable_tension_N=cables.tensions(tensions)
    )
    still = 0.0 * q
    free = arm.loads((0, 0, 0))
    force = arm.inverse_dynamics(q, still, still, free) - arm.inverse_dynamics(
        q, still, still, loads
    )
    h, v = 1e-6, rng.normal(size=q.shape)
    rate = (cables.lengths(q + h * v) - cables.lengths(q - h * v)) / (2 * h)
    assert (force * v).sum() == pytest.approx(-tensions @ rate, rel=1e-7)
    assert np.allclose(cables.lengths(still), [0.4, 0.8, 0.8])
