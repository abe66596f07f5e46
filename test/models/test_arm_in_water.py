"""Water around a moving arm: mass matrix, energy, steady shape in a current."""

from __future__ import annotations

import numpy as np
import pytest

from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.config import round_section
from softarm_ros.models.dynamics.simulation import ArmIntegrator
from softarm_ros.models.dynamics.tangents import equilibrium
from softarm_ros.models.hydraulics.identified_arm import (
    HANGING_M_S2,
    SET_B,
    build_hydraulic_arm,
)
from softarm_ros.models.hydrodynamics.arm_in_water import ArmInWater
from softarm_ros.models.hydrodynamics.morison import WaterConfig

WATER = WaterConfig(drag_along=0.02, added_mass_along=0.1)


@pytest.fixture(scope='module')
def arm():
    section = round_section(
        length_m=0.135, radius_m=0.017, youngs_modulus_Pa=2e5, density_kg_m3=1024.0, segments=4
    )
    return ArmDynamics([section, section])


@pytest.fixture(scope='module')
def immersed(arm):
    return ArmInWater(arm, WATER, 0.034)


def bent(arm):
    return arm.straight + np.random.default_rng(2).normal(0.0, 2.0, (8, 4)) * [0.01, 1, 1, 0.2]


def test_added_mass_of_the_nodes_enters_the_mass_matrix(arm, immersed):
    """M grows by the sum of J' A J over the nodes, J from the nodes' velocities."""
    q = bent(arm)
    expected = arm.mass_matrix(q)
    poses = arm.node_poses(q)[1:]
    jacobian = np.empty((8, 6, 32))
    for j in range(32):
        unit = np.zeros(32)
        unit[j] = 1.0
        jacobian[:, :, j] = arm.node_twists(q, unit.reshape(8, 4))
    for pose, J, A in zip(poses, jacobian, immersed.added_mass):
        turned = np.kron(np.eye(2), pose[:3, :3]) @ A @ np.kron(np.eye(2), pose[:3, :3]).T
        expected = expected + J.T @ turned @ J
    np.testing.assert_allclose(immersed.mass_matrix(q), expected, rtol=1e-9, atol=1e-15)


def test_arm_and_water_lose_the_energy_that_drag_dissipates(arm, immersed):
    """A bent arm is released under water; the drag power is integrated over time."""
    still = arm.loads((0.0, 0.0, 0.0))
    run = ArmIntegrator(arm, tolerance_m=1e-6)
    q = np.zeros((8, 4))
    q[:, 2] = 5.0
    state = run.start(immersed.immersed(still, q, 0 * q), q)
    dt, lost = 5e-4, 0.0

    def energy(state):
        loads = immersed.immersed(still, state.strains, state.rates)
        v = state.rates.ravel()
        water = arm.energy(state.strains, state.rates, loads)
        kinetic = 0.5 * v @ immersed.mass_matrix(state.strains) @ v
        return water.elastic + kinetic

    start = energy(state)
    for _ in range(600):
        before = immersed.water_loads(state.strains, state.rates, (0, 0, 0)).drag_power_W
        loads = immersed.immersed(still, state.strains, state.rates)
        state = run.advance(state, loads, dt).state
        after = immersed.water_loads(state.strains, state.rates, (0, 0, 0)).drag_power_W
        lost += 0.5 * dt * (before + after)
    assert lost > 0.3 * start
    assert energy(state) == pytest.approx(start - lost, abs=0.02 * start)


def test_drag_held_over_long_intervals_lets_the_arm_come_to_rest(arm, immersed):
    """Drag is held over 0.1 s, twice the time in which it stops a node at 1 m/s."""
    still = arm.loads((0.0, 0.0, 0.0))
    run = ArmIntegrator(arm, tolerance_m=1e-4)
    q = np.zeros((8, 4))
    q[:, 2] = 12.0
    state = run.start(still, q)
    for _ in range(100):
        loads = immersed.immersed(still, state.strains, state.rates)
        state = run.advance(state, loads, 0.1).state
        assert np.abs(state.strains[:, 1:]).max() < 30.0
    assert np.abs(state.strains[:, 1:]).max() < 0.5


def test_current_bends_the_arm_downstream(arm, immersed):
    """In a weak current the tip deflects as a cantilever under uniform load, q L^4 / (8 E I)."""
    speed, length = 0.02, 0.27
    still = arm.loads((0.0, 0.0, 0.0))
    q, zero = np.zeros((8, 4)), np.zeros((8, 4))
    for _ in range(4):
        rest = equilibrium(arm, immersed.immersed(still, q, zero, (speed, 0.0, 0.0)), q)
        assert rest.converged
        q = rest.strains
    stiffness = arm.body.stiffness[0, 2, 2]
    load = 0.5 * 998.0 * 1.2 * 0.034 * speed**2
    tip = arm.node_poses(q)[-1, :3, 3]
    # Loads act at 8 nodes and bending is constant within a segment, hence some per cent off.
    assert tip[0] == pytest.approx(load * length**4 / (8.0 * stiffness), rel=0.03)


def test_hydraulic_arm_reaches_the_same_rest_under_water_but_more_slowly():
    """The same torque acts in air and under water."""
    system = build_hydraulic_arm(SET_B[1])
    body = system.arm
    around = ArmInWater(body, WATER, 0.09)
    air = body.loads(HANGING_M_S2)
    torque, dt = np.array([1.0, 0, 0, 0, 0.5, 0.5]), 5e-3
    ends, speeds = [], []
    for wet in (False, True):
        state, fastest = system.rest_state(), 0.0
        for _ in range(1200):
            q, v = state.strains, state.rates
            loads = around.immersed(air, q, v) if wet else air
            step = system.step(state, torque, dt, loads)
            assert step.converged, step.message
            state = step.state
            velocity = body.node_twists(state.strains, state.rates)[-1, :3]
            fastest = max(fastest, float(np.linalg.norm(velocity)))
        ends.append(state.strains)
        speeds.append(fastest)
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-2, atol=1e-3)
    assert speeds[1] < 0.5 * speeds[0]
