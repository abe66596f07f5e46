"""Arm and water hydraulics as one system: balances, an independent integration, order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.dynamics.tangents import equilibrium
from softarm_ros.models.hydraulics.arm import HydraulicArm, HydraulicArmState
from softarm_ros.models.hydraulics.axes import WaterHydraulics, linear_system
from softarm_ros.models.hydraulics.config import HydraulicAxisConfig
from softarm_ros.models.hydraulics.identified_arm import HANGING_M_S2 as HANGING
from softarm_ros.models.hydraulics.identified_arm import SET_B, build_body


def build(segments=1, sections=1, drag=2.0, **axis):
    """Return the identified arm of one segment, cut into `segments`, with given axis fields."""
    values = replace(SET_B[1], segments=segments, drag_N_s_m=drag, turning_drag_N_m_s=0.025 * drag)
    base = {'chamber_compliance_m3_Pa': 0.0} | axis
    axes = [HydraulicAxisConfig(name=f'a{i}', **base) for i in range(3 * sections)]
    return HydraulicArm(build_body(values, sections), WaterHydraulics(axes))


def run(system, state, torque, dt, steps, gravity=HANGING):
    loads = system.arm.loads(gravity)
    for _ in range(steps):
        step = system.step(state, torque, dt, loads)
        assert step.converged, step.message
        state = step.state
    return state


TORQUE = np.array([1.5, 0.0, 0.4])


def test_arm_and_hydraulics_converge_with_order_two_to_an_independent_solution():
    """Scipy's Radau on the explicit equations: forward dynamics and the paper's matrix (36)."""
    # A soft wall, so that the explicit equations are not too stiff for numerical Jacobians.
    system = build(chamber_compliance_m3_Pa=5e-12)
    loads = system.arm.loads(HANGING)
    a, b = linear_system(system.hydraulics.axes[0])
    volume = system.volume.reshape(3, 4)

    def rate(_, z):
        q, v, axes = z[:4], z[4:8], z[8:].reshape(3, 3)
        pressure = axes[:, 1]
        drive = (system.drive.map @ pressure).reshape(1, 4)
        accel = system.arm.forward_dynamics(q[None], v[None], loads._replace(drive=drive)).ravel()
        flow = volume @ v
        inputs = np.stack([TORQUE, np.zeros(3), flow], axis=1)
        return np.concatenate((v, accel, (axes @ a.T + inputs @ b.T).ravel()))

    end = 0.08
    truth = solve_ivp(rate, (0, end), np.zeros(17), method='Radau', rtol=1e-9, atol=1e-11)
    expected = truth.y[:4, -1]
    errors = []
    for steps in (20, 40, 80):
        state = run(system, system.rest_state(), TORQUE, end / steps, steps)
        errors.append(np.abs(state.strains[0] - expected)[1:3].max())
        flow_expected = truth.y[8:, -1].reshape(3, 3)[:, 1]
    pressure = system.hydraulics.chamber_pressure(state.axes)
    np.testing.assert_allclose(pressure, flow_expected, rtol=2e-3, atol=2e3)
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(orders > 1.7), (errors, orders)
    assert errors[-1] < 2e-3 * np.abs(expected[1:3]).max()


@pytest.mark.parametrize(('segments', 'friction'), [(1, 0.0), (3, 0.0), (2, 80.0)])
def test_energy_only_falls_without_motor_torque(segments, friction):
    """The arm starts bent and under pressure; the time steps differ widely."""
    system = build(segments, 2, coulomb_friction_N=friction)
    rng = np.random.default_rng(5)
    q = rng.normal(0.0, 1.5, (2 * segments, 4)) * np.array([1e-3, 1.0, 1.0, 0.3])
    axes = system.hydraulics.rest_state()
    axes[:, [2, 4]] = 2e5
    loads = system.arm.loads(HANGING)
    for dt in (2e-4, 2e-3, 1e-2):
        state = HydraulicArmState(q, np.zeros_like(q), axes)
        energy = start = system.energy(state, loads)
        for _ in range(120):
            step = system.step(state, np.zeros(6), dt, loads)
            assert step.converged, step.message
            state = step.state
            after = system.energy(state, loads)
            assert after <= energy + 1e-6 * abs(start)
            energy = after
        assert energy < start


def test_motor_work_equals_the_energy_gained_without_losses():
    """Equal up to the order of the method."""
    system = build(2, 1, drag=0.0, piston_damping_N_s_m=0.0, viscosity_Pa_s=1e-9)
    body = system.arm.body
    body.damping[:] = 0.0
    loads = system.arm.loads(HANGING)
    gaps = []
    for dt in (4e-4, 2e-4):
        state = system.rest_state()
        # A soft start does not excite the fast modes of the water.
        work, steps = 0.0, round(0.12 / dt)
        for k in range(steps):
            ramp = min((k + 0.5) * dt / 0.1, 1.0)
            torque = TORQUE * ramp**3 * (10 - 15 * ramp + 6 * ramp**2)
            step = system.step(state, torque, dt, loads)
            moved = step.state.axes[:, 1] - state.axes[:, 1]
            work += float(system.hydraulics.force_per_torque * torque @ moved)
            state = step.state
        gained = system.energy(state, loads) - system.energy(system.rest_state(), loads)
        gaps.append(abs(gained - work) / work)
    assert gaps[1] < 2e-3
    assert gaps[0] / gaps[1] > 3.0


def test_water_is_conserved():
    system = build(2, 2, relief_pressure_Pa=0.5e6)
    loads = system.arm.loads(HANGING)
    state = system.rest_state()
    torque, relieved = np.array([1.5, 0, 0, 0, 1.0, 1.0]), np.zeros(6)
    for _ in range(300):
        step = system.step(state, torque, 2e-3, loads)
        state, relieved = step.state, relieved + step.relieved_m3
    hydraulics = system.hydraulics
    swept = hydraulics.axes[0].piston_area_m2 * hydraulics.piston_position(state.axes)
    held = system.drive.volume_change(state.strains) + hydraulics.stored_water(state.axes)
    np.testing.assert_allclose(swept, held + relieved, rtol=1e-9, atol=1e-15)
    assert relieved[0] > 1e-6


@pytest.mark.parametrize('segments', [1, 5])
def test_arm_at_constant_torque_settles_at_the_static_equilibrium(segments):
    system = build(segments, 2)
    torque = np.array([1.0, 0, 0, 0, 0.5, 0.5])
    state = run(system, system.rest_state(), torque, 0.02, 400)
    pressure = [system.hydraulics.steady_state(i, t).lowest_Pa for i, t in enumerate(torque)]
    rest = equilibrium(system.arm, system.arm.loads(HANGING, drive=system.drive.drive(pressure)))
    assert rest.converged
    np.testing.assert_allclose(state.strains, rest.strains, rtol=1e-5, atol=1e-6)


def test_locked_pistons_hold_the_arm():
    """High dry friction locks the pistons: the stiffness of the water then holds the arm."""
    free, locked = build(), build(coulomb_friction_N=1e5)
    push = free.arm.loads(HANGING, tip_force=(3.0, 0.0, 0.0))
    bends = []
    for system in (free, locked):
        state = system.rest_state()
        for _ in range(600):
            state = system.step(state, np.zeros(3), 5e-3, push).state
        bends.append(abs(state.strains[0, 2]))
        pistons = system.hydraulics.piston_position(state.axes)
    assert np.all(pistons == 0.0)
    assert bends[1] < 0.02 * bends[0]


def test_steps_of_50_ms_settle_at_the_shape_of_small_steps():
    system = build(2, 2)
    torque = np.array([1.0, 0, 0, 0, 0.5, 0.5])
    coarse = run(system, system.rest_state(), torque, 0.05, 60)
    fine = run(system, system.rest_state(), torque, 0.002, 1500)
    np.testing.assert_allclose(coarse.strains, fine.strains, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize('seed', range(12))
def test_random_arms_converge_at_every_step_and_are_passive(seed):
    """Jumping torques, seal friction, relief valves, end stops, steps from 0.1 to 100 ms."""
    rng = np.random.default_rng(seed)
    friction = float(rng.choice([0.0, 20.0, 300.0]))
    sections = int(rng.integers(1, 3))
    system = build(
        int(rng.integers(1, 4)),
        sections,
        coulomb_friction_N=friction,
        static_friction_N=friction + float(rng.choice([0.0, 50.0])),
        line_cells=int(rng.integers(0, 4)),
        turbulent_line=bool(rng.integers(0, 2)),
        relief_pressure_Pa=(None, 0.5e6)[int(rng.integers(0, 2))],
        stroke_min_m=-0.003,
        stroke_max_m=0.003,
    )
    loads = system.arm.loads(HANGING)
    dt, state = float(10.0 ** rng.uniform(-4.0, -1.0)), system.rest_state()
    for k in range(60):
        if k % 15 == 0:
            torque = rng.uniform(0.0, 2.5, 3 * sections) * (rng.random(3 * sections) < 0.5)
        step = system.step(state, torque, dt, loads)
        assert step.converged, step.message
        state = step.state
        assert np.isfinite(state.strains).all() and np.isfinite(state.axes).all()
    energy = system.energy(state, loads)
    for _ in range(30):
        state = system.step(state, np.zeros(3 * sections), dt, loads).state
        after = system.energy(state, loads)
        assert after <= energy + 1e-5 * (1.0 + abs(energy))
        energy = after


def test_bad_input_is_refused():
    system = build()
    with pytest.raises(ModelError, match=r'torque = \[0.0, 0.0\]: finite numbers \(3,\) needed'):
        system.step(system.rest_state(), np.zeros(2), 1e-3, system.arm.loads(HANGING))
    with pytest.raises(ModelError, match='dt_s'):
        system.step(system.rest_state(), np.zeros(3), -1.0, system.arm.loads(HANGING))
    with pytest.raises(ModelError, match='3 chambers but 1'):
        HydraulicArm(system.drive, WaterHydraulics([HydraulicAxisConfig()]))
