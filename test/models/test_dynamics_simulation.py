"""Integrator: energy, damping, order, accuracy, failure."""

from itertools import pairwise

import numpy as np
import pytest
from dynamics_cases import SIDEWAYS, cantilever, full_arm, random_loads
from scipy.integrate import solve_ivp, trapezoid

from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.dynamics.integrator_kernels import advance
from softarm_ros.models.dynamics.simulation import ArmIntegrator
from softarm_ros.models.dynamics.tangents import equilibrium


def test_undamped_arm_keeps_its_energy():
    """Ten seconds of falling and swinging by 120 mm: drift below 0.1 % of the kinetic energy."""
    arm = cantilever(20)
    loads = arm.loads(SIDEWAYS)
    run = ArmIntegrator(arm, tolerance_m=1e-7, spectral_radius=1.0)
    state = run.start(loads)
    begin = arm.energy(state.strains, state.rates, loads).total
    drift, kinetic, low = 0.0, 0.0, 0.0
    for _ in range(100):
        result = run.advance(state, loads, 0.1)
        assert result.converged
        state = result.state
        energy = arm.energy(state.strains, state.rates, loads)
        drift = max(drift, abs(energy.total - begin))
        kinetic = max(kinetic, energy.kinetic)
        low = max(low, arm.node_poses(state.strains)[-1, 0, 3])
    assert low > 0.11
    assert drift < 1e-3 * kinetic


def test_tip_agrees_with_an_independent_integrator():
    """The reference is scipy's explicit eighth-order method on the same accelerations."""
    arm = cantilever(4, 2, air_drag_1_s=3.0)
    loads = arm.loads(SIDEWAYS, drive=np.tile([0.5, 0.0, 0.003, 0.002], (4, 1)))
    size = arm.segments * 4

    def slope(_, x):
        q, v = x[:size].reshape(-1, 4), x[size:].reshape(-1, 4)
        return np.concatenate([x[size:], arm.forward_dynamics(q, v, loads).ravel()])

    exact = solve_ivp(slope, (0.0, 0.4), np.zeros(2 * size), 'DOP853', rtol=1e-9, atol=1e-9)
    tip = arm.node_poses(exact.y[:size, -1].reshape(-1, 4))[-1, :3, 3]
    run = ArmIntegrator(arm, tolerance_m=1e-9, spectral_radius=1.0)
    state = run.advance(run.start(loads), loads, 0.4).state
    assert np.allclose(arm.node_poses(state.strains)[-1, :3, 3], tip, atol=5e-6)


@pytest.mark.parametrize('radius', [1.0, 0.9, 0.5])
def test_integrator_converges_with_order_two(radius):
    """Halving a fixed step makes the error four times smaller."""
    arm = cantilever(4, 2, air_drag_1_s=3.0, damping_time_s=0.01)
    loads = arm.loads(SIDEWAYS)
    tips = []
    for step in (4e-3, 2e-3, 1e-3, 5e-4):
        run = ArmIntegrator(arm, spectral_radius=radius)
        memory = run.start(loads).memory.copy()
        for _ in range(round(0.2 / step)):
            # A loose tolerance and one step per call fix the step size.
            status, *_ = advance(
                arm.body, loads, memory, step, step, step, 1e-3, radius, -1.0,
                *run._scratch, run._work, run._twists, 10,
            )  # fmt: skip
            assert status == 0
        tips.append(arm.node_poses(memory[0])[-1, :3, 3])
    errors = [np.linalg.norm(a - b) for a, b in pairwise(tips)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders[-1] == pytest.approx(2.0, abs=0.35)


def test_error_falls_with_the_tolerance():
    """Damped fall over two seconds; required 0.5 mm at a tolerance of 1e-5 m."""
    arm = cantilever(20, 2, air_drag_1_s=3.0)
    loads = arm.loads(SIDEWAYS)
    times = np.linspace(0.0, 2.0, 21)
    tips = []
    for tolerance in (1e-8, 1e-6, 1e-5):
        run = ArmIntegrator(arm, tolerance_m=tolerance)
        motion = run.simulate(run.start(loads), loads, times)
        assert motion.converged
        tips.append(motion.tips[:, :3, 3])
    tight, loose = (np.linalg.norm(x - tips[0], axis=1).max() for x in tips[1:])
    assert tight < loose < 5e-4
    assert tight < 1.5e-4


@pytest.mark.parametrize('seed', range(6))
def test_random_arms_reach_0_5_mm_with_the_default_tolerance(seed):
    """Arms with all features under a sudden load; the reference has a tolerance of 1e-8 m."""
    arm = full_arm(seed, segments=3)
    loads, times, tips = random_loads(arm, seed), np.linspace(0.0, 1.0, 11), []
    for tolerance in (1e-5, 1e-8):
        run = ArmIntegrator(arm, tolerance_m=tolerance)
        motion = run.simulate(run.start(arm.loads((0.0, 0.0, 0.0))), loads, times)
        assert motion.converged
        tips.append(motion.tips[:, :3, 3])
    assert np.linalg.norm(tips[0] - tips[1], axis=1).max() < 5e-4


def test_damped_motion_ends_in_equilibrium():
    """The arm has drive, added mass and rigid bodies."""
    arm = full_arm(3)
    loads = arm.loads(
        (0.0, 3.0, -2.0),
        drive=np.tile([0.5, 0.01, 0.0, 0.002], (4, 1)),
        added_mass=np.tile(0.01 * np.diag([1.0, 1.0, 0.1, 0.0, 0.0, 0.0]), (4, 1, 1)),
    )
    run = ArmIntegrator(arm, tolerance_m=1e-5)
    result = run.advance(run.start(loads), loads, 30.0)
    rest = equilibrium(arm, loads, result.state.strains)
    assert result.converged and rest.converged
    here = arm.node_poses(result.state.strains)[-1]
    there = arm.node_poses(rest.strains)[-1]
    assert np.allclose(here[:3, 3], there[:3, 3], atol=1e-5)
    assert np.allclose(here, there, atol=1e-3)


def test_energy_loss_equals_the_integrated_loss_power():
    """With material damping and drag."""
    arm = cantilever(10, 2, air_drag_1_s=2.0, damping_time_s=0.003)
    loads = arm.loads(SIDEWAYS)
    run = ArmIntegrator(arm, tolerance_m=1e-7)
    times = np.linspace(0.0, 0.5, 501)
    motion = run.simulate(run.start(loads), loads, times)
    energies = [arm.energy(q, v, loads) for q, v in zip(motion.strains, motion.rates)]
    power = np.array([e.loss_W for e in energies])
    lost = energies[0].total - energies[-1].total
    assert lost == pytest.approx(trapezoid(power, times), rel=2e-3)
    assert lost > 1e-3


def test_arm_follows_a_ramped_drive_into_its_equilibrium():
    """The drive is given as a function of time."""
    arm = cantilever(10, 2, air_drag_1_s=10.0, damping_time_s=0.02)
    full = np.tile([0.0, 0.0, 0.01, 0.0], (10, 1))

    def loads(t):
        return arm.loads((0, 0, 0), drive=min(t, 1.0) * full)

    run = ArmIntegrator(arm, tolerance_m=1e-5)
    motion = run.simulate(run.start(loads(0.0)), loads, np.linspace(0.0, 3.0, 301))
    rest = equilibrium(arm, loads(2.0))
    assert motion.converged
    assert np.allclose(motion.strains[-1], rest.strains, atol=2e-2)


def test_integrator_reports_too_few_steps_and_refuses_invalid_settings():
    """With too few steps the result is the last good state and the reason, not a wrong pose."""
    arm = cantilever(4)
    loads = arm.loads(SIDEWAYS)
    run = ArmIntegrator(arm, max_steps=3)
    result = run.advance(run.start(loads), loads, 1.0)
    assert not result.converged
    assert 'too many steps' in result.message
    assert result.state.time_s < 1.0
    motion = run.simulate(run.start(loads), loads, [0.0, 1.0])
    assert not motion.converged and motion.time_s.size == 1
    with pytest.raises(ModelError, match='spectral_radius 2'):
        ArmIntegrator(arm, spectral_radius=2.0)
    with pytest.raises(ModelError, match='tolerance_m 0'):
        ArmIntegrator(arm, tolerance_m=0.0)
    with pytest.raises(ModelError, match='duration_s'):
        run.advance(run.start(loads), loads, 0.0)
    with pytest.raises(ModelError, match='increase'):
        run.simulate(run.start(loads), loads, [0.0, 0.0])


def _drag_loads(arm, state, coefficient):
    """Return weight and quadratic drag of every node, linearised about the present twists."""
    velocity = arm.node_twists(state.strains, state.rates)[:, :3]
    speed = np.linalg.norm(velocity, axis=1)[:, None, None]
    along = velocity[:, :, None] * velocity[:, None, :] / np.maximum(speed, 1e-12)
    slope = coefficient * (speed * np.eye(3) + along)
    force = -coefficient * speed[:, 0] * velocity
    wrench, damping = np.zeros((arm.segments, 6)), np.zeros((arm.segments, 6, 6))
    wrench[:, :3] = force + np.einsum('kij,kj->ki', slope, velocity)
    turn = arm.node_poses(state.strains)[1:, :3, :3]
    damping[:, :3, :3] = np.einsum('kji,kjl,klm->kim', turn, slope, turn)
    damping = 0.5 * (damping + damping.transpose(0, 2, 1))
    return arm.loads(SIDEWAYS, node_wrenches=wrench, node_damping=damping)


def test_stiff_drag_through_node_damping_is_accurate_at_coarse_intervals():
    """Heavy quadratic drag is given by value and slope; the reference couples more finely."""
    arm = cantilever(10)
    tips = []
    for interval in (1e-2, 2e-3):
        run = ArmIntegrator(arm)
        state = run.start(arm.loads(SIDEWAYS))
        path = []
        for i in range(round(0.4 / interval)):
            state = run.advance(state, _drag_loads(arm, state, 2.0), interval).state
            if (i + 1) % round(1e-2 / interval) == 0:
                path.append(arm.node_poses(state.strains)[-1, :3, 3])
        tips.append(np.array(path))
    assert tips[1][-1, 0] > 0.05
    assert np.linalg.norm(tips[0] - tips[1], axis=1).max() < 1e-3
