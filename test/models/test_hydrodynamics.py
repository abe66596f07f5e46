"""Morison loads against closed forms and conservation laws."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.hydrodynamics.morison import (
    Hydrodynamics,
    PieceMotion,
    WaterConfig,
    base_wrench,
    lengths_at_nodes,
)

WATER = WaterConfig(density_kg_m3=998.0, drag_along=0.02, added_mass_along=0.1)


def random_motion(seed, n=7):
    rng = np.random.default_rng(seed)
    tangent = rng.normal(size=(n, 3))
    tangent /= np.linalg.norm(tangent, axis=1)[:, None]
    values = rng.normal(size=(4, n, 3))
    return PieceMotion(values[0], tangent, *values[1:])


def still(n, tangent):
    zero = np.zeros((n, 3))
    return PieceMotion(zero, np.tile(np.asarray(tangent, float), (n, 1)), zero, zero, zero)


@pytest.fixture(scope='module')
def pieces():
    return Hydrodynamics(WATER, np.linspace(0.02, 0.05, 7), 0.034)


def test_uniform_current_loads_a_rigid_cylinder_as_in_closed_form():
    """F = 1/2 rho C_d D L U^2 at L / 2 from the base."""
    n, length, diameter, speed = 40, 0.27, 0.034, 0.3
    cylinder = Hydrodynamics(WATER, np.full(n, length / n), diameter)
    motion = still(n, [0, 0, 1])
    z = (np.arange(n) + 0.5) * length / n
    position = np.stack([0 * z, 0 * z, z], axis=1)
    total = base_wrench(position, cylinder.loads(motion, [speed, 0, 0]).total)
    force = 0.5 * 998.0 * 1.2 * diameter * length * speed**2
    np.testing.assert_allclose(total, [force, 0, 0, 0, force * length / 2, 0], atol=1e-15)


def test_drag_of_a_yawed_cylinder_depends_on_the_cross_flow_only():
    """Independence principle: the load across depends on the velocity across."""
    cylinder = Hydrodynamics(WATER.model_copy(update={'drag_along': 0.0}), [0.3], 0.03)
    flow = np.array([0.4, 0.0, 0.0])
    for angle in (0.0, 0.5, 1.2):
        t = np.array([math.sin(angle), 0.0, math.cos(angle)])
        drag = cylinder.loads(still(1, t), flow).drag[0]
        expected = 0.5 * 998.0 * 1.2 * 0.03 * 0.3 * (0.4 * math.cos(angle)) ** 2
        assert np.linalg.norm(drag) == pytest.approx(expected)
        assert drag @ t == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize('kc', [3.0, 8.0, 20.0])
def test_force_on_an_oscillating_cylinder_has_closed_form_peak_and_phase(kc):
    """
    Peak and phase of Morison's sum for x = A sin(w t), in closed form.

    F = -F_d cos|cos| + F_i sin: inertia dominates up to F_i = 2 F_d, KC = pi^2 C_a / (2 C_d)
    (peak F_i at the turn); beyond, the peak is F_d + F_i^2 / (4 F_d) at sin(w t) = F_i / (2 F_d).
    """
    diameter, omega, c_d, c_a = 0.034, 2.0, 1.2, 1.0
    amplitude = kc * diameter / (2.0 * math.pi)
    drag = 0.5 * 998.0 * c_d * diameter * (amplitude * omega) ** 2
    inertia = 998.0 * c_a * math.pi * diameter**2 / 4.0 * amplitude * omega**2
    assert (inertia / (2.0 * drag) > 1.0) == (kc < math.pi**2 * c_a / (2.0 * c_d))
    phase = np.linspace(0.0, 2.0 * math.pi, 20001)
    # Pieces are independent of one another: each is the cylinder at another time.
    water = WaterConfig(drag_across=c_d, added_mass_across=c_a)
    pieces = Hydrodynamics(water, np.ones(len(phase)), diameter)
    still_pieces = still(len(phase), [0.0, 0.0, 1.0])
    velocity, acceleration = np.zeros((2, len(phase), 3))
    velocity[:, 0] = amplitude * omega * np.cos(phase)
    acceleration[:, 0] = -amplitude * omega**2 * np.sin(phase)
    motion = replace(still_pieces, velocity=velocity, acceleration=acceleration)
    force = pieces.loads(motion).total[:, 0]
    ratio = inertia / (2.0 * drag)
    peak = inertia if ratio > 1.0 else drag + inertia**2 / (4.0 * drag)
    assert np.abs(force).max() == pytest.approx(peak, rel=1e-6)
    # Most negative while the velocity is positive and the cylinder is still coming from the turn.
    expected = math.pi / 2 if ratio > 1.0 else 2.0 * math.pi - math.asin(ratio)
    at = phase[int(np.argmax(force))] if ratio > 1.0 else phase[int(np.argmin(force))]
    assert at == pytest.approx(expected, abs=1e-3)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_drag_dissipates_energy_and_is_galilean_invariant(seed):
    pieces = Hydrodynamics(WATER, np.linspace(0.02, 0.05, 7), 0.034)
    motion = random_motion(seed)
    flow, boost = np.random.default_rng(seed + 1).normal(size=(2, 3))
    loads = pieces.loads(motion, flow)
    relative = motion.velocity - flow
    assert float(np.sum(loads.drag * relative)) == pytest.approx(-loads.drag_power_W)
    assert loads.drag_power_W >= 0.0
    moved = PieceMotion(
        motion.position, motion.tangent, motion.velocity + boost, motion.acceleration, motion.spin
    )
    again = pieces.loads(moved, flow + boost)
    np.testing.assert_allclose(again.drag, loads.drag, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(again.added_mass, loads.added_mass, rtol=1e-9, atol=1e-9)
    assert np.linalg.eigvalsh(loads.damping).min() >= -1e-12


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_drag_damping_matches_finite_differences(seed):
    pieces = Hydrodynamics(WATER, np.linspace(0.02, 0.05, 7), 0.034)
    motion = random_motion(seed)
    loads = pieces.loads(motion)
    for j in range(3):
        step = np.zeros(3)
        step[j] = 1e-6
        up, down = pieces.loads(motion, step).drag, pieces.loads(motion, -step).drag
        np.testing.assert_allclose((up - down) / 2e-6, loads.damping[:, :, j], atol=1e-4)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_base_wrench_turns_with_the_frame(seed):
    pieces = Hydrodynamics(WATER, np.linspace(0.02, 0.05, 7), 0.034)
    motion = random_motion(seed)
    R = Rotation.random(random_state=seed % 10**6).as_matrix()
    turned = PieceMotion(
        *(
            value @ R.T
            for value in (
                motion.position,
                motion.tangent,
                motion.velocity,
                motion.acceleration,
                motion.spin,
            )
        )
    )
    flow = np.array([0.3, -0.2, 0.1])
    here = base_wrench(motion.position, pieces.loads(motion, flow).total)
    there = base_wrench(turned.position, pieces.loads(turned, R @ flow).total)
    np.testing.assert_allclose(there, np.kron(np.eye(2), R) @ here, rtol=1e-9, atol=1e-9)


def tumbling(t):
    """Return tangent, velocity and their rates of one piece on a smooth tumbling motion."""
    spin = np.array([0.7, -1.1, 0.4])
    R = Rotation.from_rotvec(spin * t).as_matrix()
    velocity = np.array([math.sin(2 * t), 0.3 * t, math.cos(t)])
    acceleration = np.array([2 * math.cos(2 * t), 0.3, -math.sin(t)])
    return R @ np.array([0.6, 0.0, 0.8]), velocity, acceleration, spin


def test_added_mass_loads_balance_momentum_and_energy():
    """The impulse equals the loss of A v; the work of force and moment equals the energy lost."""
    piece = Hydrodynamics(WATER, [0.05], 0.034)
    mass = piece.displaced_kg[0]

    def at(t):
        tangent, v, a, spin = tumbling(t)
        motion = PieceMotion(np.zeros((1, 3)), tangent[None], v[None], a[None], spin[None])
        return piece.loads(motion), tangent, v, spin

    def momentum(t):
        _, tangent, v, _ = at(t)
        along = tangent * (tangent @ v)
        return mass * (1.0 * (v - along) + 0.1 * along)

    nodes, weights = np.polynomial.legendre.leggauss(40)
    times = 0.5 + 0.5 * nodes
    impulse = sum(0.5 * w * at(t)[0].added_mass[0, :3] for t, w in zip(times, weights))
    np.testing.assert_allclose(impulse, momentum(0.0) - momentum(1.0), atol=1e-13)
    power = 0.0
    for t, w in zip(times, weights):
        loads, _, v, spin = at(t)
        power += 0.5 * w * (loads.added_mass[0, :3] @ v + loads.added_mass[0, 3:] @ spin)
    lost = at(0.0)[0].added_mass_energy_J - at(1.0)[0].added_mass_energy_J
    assert power == pytest.approx(lost, abs=1e-13)


def test_piece_moving_with_accelerating_water_is_loaded_like_the_displaced_water(pieces):
    motion = random_motion(3)
    rate = np.array([0.4, 0.1, -0.2])
    with_water = PieceMotion(
        motion.position,
        motion.tangent,
        np.tile([0.2, 0.0, 0.1], (7, 1)),
        np.tile(rate, (7, 1)),
        motion.spin,
    )
    loads = pieces.loads(with_water, [0.2, 0.0, 0.1], rate)
    expected = np.zeros((7, 6))
    expected[:, :3] = pieces.displaced_kg[:, None] * rate
    np.testing.assert_allclose(loads.total, expected, atol=1e-15)


def test_buoyancy_and_added_mass_follow_from_the_displaced_water(pieces):
    loads = pieces.loads(still(7, [0, 0, 1]), gravity_m_s2=(0.0, 0.0, -9.81))
    np.testing.assert_allclose(loads.buoyancy[:, 2], 9.81 * pieces.displaced_kg)
    matrix = pieces.added_mass_matrices()
    np.testing.assert_allclose(matrix[:, 0, 0], pieces.displaced_kg)
    np.testing.assert_allclose(matrix[:, 2, 2], 0.1 * pieces.displaced_kg)
    assert np.linalg.eigvalsh(matrix).min() >= 0.0


def test_bad_input_is_refused(pieces):
    with pytest.raises(ModelError, match='length_m'):
        Hydrodynamics(WATER, [0.1, 0.0], 0.03)
    motion = random_motion(1)
    longer = PieceMotion(
        motion.position, 2 * motion.tangent, motion.velocity, motion.acceleration, motion.spin
    )
    with pytest.raises(ModelError, match='tangent'):
        pieces.loads(longer)
    with pytest.raises(ModelError, match='velocity'):
        pieces.loads(
            PieceMotion(
                motion.position,
                motion.tangent,
                motion.velocity[:3],
                motion.acceleration,
                motion.spin,
            )
        )


def test_lengths_at_nodes_are_half_of_the_adjacent_pieces():
    np.testing.assert_allclose(lengths_at_nodes([0.2, 0.4, 0.6]), [0.3, 0.5, 0.3])
