"""Water hydraulics against closed forms, matrix exponentials, event-driven integration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from water_cases import run

from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.hydraulics.axes import WaterHydraulics, linear_system
from softarm_ros.models.hydraulics.config import HydraulicAxisConfig

PAPER_DAMPING = HydraulicAxisConfig(piston_damping_N_s_m=400.0)


def test_set_b_axis_has_the_expected_constants_and_eigenvalues():
    axis = PAPER_DAMPING
    assert 2.5 * axis.pressure_per_torque_Pa_Nm == pytest.approx(1e6, rel=1e-12)
    assert 1.0 / axis.line_resistance_Pa_s_m3 == pytest.approx(1.590e-8, rel=1e-3)
    assert axis.chamber_capacity_m3_Pa == pytest.approx(6.95e-13, rel=1e-3)
    values = np.linalg.eigvals(linear_system(axis)[0])
    values = values[np.argsort(values.real)]
    assert values[0].real == pytest.approx(-1.557e5, rel=1e-3)
    assert values[1].real == pytest.approx(-118.0, abs=0.5)
    assert abs(values[1].imag) == pytest.approx(978.0, abs=1.0)


@pytest.mark.parametrize(
    ('damping', 'peak', 'settling'),
    [(400.0, 1.68, 0.033), (1000.0, 1.41, None), (2000.0, 1.14, 0.008), (4000.0, 1.00, 0.006)],
)
def test_step_response_has_the_expected_peak_and_settling_time(damping, peak, settling):
    hydraulics = WaterHydraulics([HydraulicAxisConfig(piston_damping_N_s_m=damping)])
    dt = 2e-5
    pressure = run(hydraulics, 2.5, dt, 5000)[:, 0, -1]
    assert pressure[-1] == pytest.approx(1e6, rel=2e-4)
    assert pressure.max() / 1e6 == pytest.approx(peak, abs=0.006)
    if settling is not None:
        outside = np.flatnonzero(np.abs(pressure - 1e6) > 0.02e6)
        assert dt * (outside[-1] + 1) == pytest.approx(settling, rel=0.1)


def exact_linear(axis, torque, flow, time):
    """Return [v, P_a, P_c] from rest, by the exponential of the augmented matrix."""
    a, b = linear_system(axis)
    augmented = np.zeros((4, 4))
    augmented[:3, :3], augmented[:3, 3] = a, b @ [torque, 0.0, flow]
    return (expm(augmented * time) @ [0.0, 0.0, 0.0, 1.0])[:3]


def test_steps_converge_with_order_two_to_the_matrix_exponential():
    hydraulics = WaterHydraulics([PAPER_DAMPING])
    time, errors = 4e-3, []
    truth = exact_linear(PAPER_DAMPING, 1.5, 2e-5, time)
    for steps in (80, 160, 320, 640):
        last = run(hydraulics, 1.5, time / steps, steps, flow=np.array([2e-5]))[-1, 0]
        scale = np.abs(truth)
        errors.append(np.abs((last[[0, 4, 2]] - truth) / scale).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all((orders > 1.85) & (orders < 2.2)), (errors, orders)
    assert errors[-1] < 1e-4


@pytest.mark.parametrize('cells', [0, 1, 8])
def test_any_step_is_stable_and_l_stable(cells):
    """A step of 0.5 s, 8e4 times the fastest time constant, reaches the steady state at once."""
    axis = HydraulicAxisConfig(line_cells=cells)
    hydraulics = WaterHydraulics([axis])
    states = run(hydraulics, 1.5, 0.5, 8)
    steady = hydraulics.steady_state(0, 1.5)
    assert steady.lowest_Pa == steady.highest_Pa == pytest.approx(0.6e6, rel=1e-12)
    assert hydraulics.chamber_pressure(states[1])[0] == pytest.approx(0.6e6, rel=0.1)
    assert hydraulics.chamber_pressure(states[-1])[0] == pytest.approx(0.6e6, rel=1e-6)
    assert hydraulics.piston_position(states[-1])[0] == pytest.approx(
        steady.position_low_m, rel=1e-6
    )


SEALS = HydraulicAxisConfig(coulomb_friction_N=120.0, static_friction_N=200.0)


def test_piston_moves_only_beyond_the_breakaway_force_and_sticks_again():
    hydraulics = WaterHydraulics([SEALS])
    gain = SEALS.force_per_torque
    held = run(hydraulics, 0.999 * 200.0 / gain, 1e-3, 200)
    assert np.all(held == 0.0), 'below the breakaway force nothing moves, to the last bit'
    moved = run(hydraulics, 1.001 * 200.0 / gain, 1e-3, 200)
    assert moved[-1, 0, 1] > 1e-6
    assert moved[-1, 0, 0] == 0.0, 'and it sticks again'
    steady = hydraulics.steady_state(0, 1.001 * 200.0 / gain)
    assert steady.lowest_Pa < hydraulics.chamber_pressure(moved[-1])[0] < steady.highest_Pa


def test_stopped_piston_stays_while_the_torque_changes_within_the_friction_band():
    hydraulics = WaterHydraulics([SEALS])
    reached = run(hydraulics, 2.0, 1e-3, 200)[-1]
    assert hydraulics.is_stuck(reached).all()
    # From the slipping end of the band the drive may fall by f + f_s before the piston turns.
    load = SEALS.force_per_torque * 2.0 - SEALS.piston_area_m2 * reached[0, 2]
    down = (load + 200.0) / SEALS.force_per_torque
    still = run(hydraulics, 2.0 - 0.999 * down, 1e-3, 100, state=reached)
    np.testing.assert_allclose(still[-1, 0, 1], reached[0, 1], rtol=0.0, atol=0.0)
    back = run(hydraulics, 2.0 - 1.01 * down, 1e-3, 100, state=reached)
    assert back[-1, 0, 1] < reached[0, 1]


def stick_slip_by_events(axis, torque_of, end):
    """Integrate the same law with scipy, switching branches at located events."""
    a, b = linear_system(axis)
    mass, f_c = axis.piston_mass_kg, axis.coulomb_friction_N
    f_s = axis.static_friction_N
    gain, area = axis.force_per_torque, axis.piston_area_m2

    def drive(t, y):
        return gain * torque_of(t) - area * y[3]

    t, y, mode, slips = 0.0, np.zeros(4), 0, 0  # y = x, v, P_a, P_c
    while t < end:

        def rhs(time, z, mode=mode):
            rate = a @ z[1:] + b[:, 0] * torque_of(time) - b[:, 1] * -mode * f_c
            if mode == 0:
                rate[0] = 0.0
            return np.concatenate(([z[1]], rate))

        def breaks(time, z):
            return abs(drive(time, z)) - f_s

        def stops(time, z):
            return z[1]

        event = breaks if mode == 0 else stops
        event.terminal = True
        event.direction = 1.0 if mode == 0 else -float(mode)
        solution = solve_ivp(
            rhs, (t, end), y, method='Radau', events=event, rtol=1e-9, atol=1e-13, max_step=2e-3
        )
        t, y = solution.t[-1], solution.y[:, -1].copy()
        if solution.status != 1:
            break
        force = drive(t, y)
        if mode == 0:
            mode, slips = int(np.sign(force)), slips + 1
        else:
            y[1] = 0.0
            mode = 0 if abs(force) <= f_s else int(np.sign(force))
    assert mass > 0
    return y, slips


def count_slips(states):
    moving = states[:, 0, 0] != 0.0
    return int(np.sum(moving[1:] & ~moving[:-1]))


def test_stick_slip_matches_event_driven_integration():
    """A slow ramp up and down: the piston creeps in many separate slips, then rests."""
    axis = HydraulicAxisConfig(
        coulomb_friction_N=120.0, static_friction_N=200.0, piston_damping_N_s_m=1500.0
    )

    def torque_of(t):
        return 8.0 * t if t < 0.25 else 2.0 - 5.0 * (t - 0.25)

    truth, slips = stick_slip_by_events(axis, torque_of, 0.5)
    hydraulics = WaterHydraulics([axis])
    errors = []
    for steps in (5000, 20000):
        dt = 0.5 / steps
        states = run(hydraulics, lambda t, dt=dt: torque_of(t + 0.5 * dt), dt, steps)
        errors.append(abs(states[-1, 0, 1] - truth[0]))
        assert count_slips(states) == slips

    assert slips >= 8
    assert errors[-1] < 1e-3 * abs(truth[0])


def test_convergence_order_across_stops_and_starts():
    """The run has one start, one reversal and one stop; the error still falls with order two."""
    axis = HydraulicAxisConfig(coulomb_friction_N=150.0, piston_damping_N_s_m=800.0)

    def torque_of(t):
        return 2.0 if t < 0.016 else 1.2

    axis_s = axis.model_copy(update={'static_friction_N': 150.0})
    truth, _ = stick_slip_by_events_piecewise(axis_s, torque_of, (0.0, 0.016, 0.032))
    errors = []
    hydraulics = WaterHydraulics([axis])
    counts = np.array([320, 640, 1280, 2560, 5120])
    for steps in counts:
        dt = 0.032 / steps
        states = run(hydraulics, lambda t, dt=dt: torque_of(t + 0.5 * dt), dt, steps)
        errors.append(abs(states[-1, 0, 1] - truth[0]) / abs(truth[0]))
    slope = np.polyfit(np.log(0.032 / np.array([320, 640, 1280, 2560, 5120])), np.log(errors), 1)[
        0
    ]

    assert slope > 1.8
    assert errors[-1] < 1e-5


def stick_slip_by_events_piecewise(axis, torque_of, times):
    """Like `stick_slip_by_events` for a torque with jumps: restart at each of `times`."""
    a, b = linear_system(axis)
    y, mode, slips = np.zeros(4), 0, 0
    for start, stop in itertools.pairwise(times):
        torque = torque_of(0.5 * (start + stop))
        t = start
        force = axis.force_per_torque * torque - axis.piston_area_m2 * y[3]
        if mode == 0 and abs(force) > axis.static_friction_N:
            mode, slips = int(np.sign(force)), slips + 1
        while t < stop and mode != 0:

            def rhs(time, z, mode=mode, torque=torque):
                return np.concatenate(
                    (
                        [z[1]],
                        a @ z[1:] + b[:, 0] * torque + b[:, 1] * mode * axis.coulomb_friction_N,
                    )
                )

            def stops(time, z):
                return z[1]

            stops.terminal, stops.direction = True, -float(mode)
            solution = solve_ivp(
                rhs, (t, stop), y, method='Radau', events=stops, rtol=1e-10, atol=1e-14
            )
            t, y = solution.t[-1], solution.y[:, -1].copy()
            if solution.status == 1:
                y[1] = 0.0
                force = axis.force_per_torque * torque - axis.piston_area_m2 * y[3]
                stuck = abs(force) <= axis.static_friction_N
                mode = 0 if stuck else int(np.sign(force))
        if t < stop:  # stuck: only the pressures even out
            stuck_a = a.copy()
            stuck_a[0] = 0.0
            y[1:] = expm(stuck_a * (stop - t)) @ y[1:]
    return y, slips


@settings(max_examples=40, deadline=None)
@given(
    dt=st.floats(1e-6, 0.2),
    friction=st.floats(0.0, 400.0),
    extra=st.floats(0.0, 200.0),
    cells=st.integers(0, 4),
    turbulent=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_axis_without_drive_loses_energy_and_conserves_water(
    dt, friction, extra, cells, turbulent, seed
):
    axis = HydraulicAxisConfig(
        coulomb_friction_N=friction,
        static_friction_N=friction + extra,
        line_cells=cells,
        turbulent_line=turbulent,
        stroke_min_m=-10.0,
        stroke_max_m=10.0,
    )
    hydraulics = WaterHydraulics([axis])
    rng = np.random.default_rng(seed)
    state = hydraulics.rest_state()
    state[0, 0] = rng.normal(0.0, 0.3)
    state[0, 2::2] = rng.normal(0.0, 5e5, state[0, 2::2].shape)
    if cells:
        state[0, 3::2] = rng.normal(0.0, 1e-4, state[0, 3::2].shape)
    balance = axis.piston_area_m2 * state[0, 1] - hydraulics.stored_water(state)[0]
    energy = hydraulics.stored_energy(state)[0]
    for _ in range(30):
        result = hydraulics.step(state, np.zeros(1), dt)
        assert result.converged
        state = result.state
        after = hydraulics.stored_energy(state)[0]
        assert after <= energy * (1.0 + 1e-9) + 1e-12
        energy = after
        water = axis.piston_area_m2 * state[0, 1] - hydraulics.stored_water(state)[0]
        assert water == pytest.approx(balance, abs=1e-15 + 1e-9 * abs(balance))


def test_volume_balance_includes_chamber_flow_and_relief():
    axis = HydraulicAxisConfig(relief_pressure_Pa=0.8e6, stroke_max_m=0.03)
    hydraulics = WaterHydraulics([axis])
    state, relieved, swept = hydraulics.rest_state(), 0.0, 0.0
    pressures = []
    for k in range(1200):
        flow = 2e-6 * math.sin(0.05 * k)
        result = hydraulics.step(state, np.array([2.5]), 1e-3, np.array([flow]))
        state = result.state
        relieved += result.relieved_m3[0]
        swept += 1e-3 * flow
        pressures.append(hydraulics.chamber_pressure(state)[0])
        assert state[0, 1] <= 0.03
    water = hydraulics.stored_water(state)[0] + swept + relieved
    assert axis.piston_area_m2 * state[0, 1] == pytest.approx(water, rel=1e-10)
    assert relieved > 1e-5
    assert max(pressures) < 1.0e6
    assert state[0, 1] == 0.03 and state[0, 0] == 0.0, 'ran against its end'
    assert hydraulics.steady_state(0, 2.5).reason == 'relief'


def test_end_stop_limits_the_pressure():
    axis = HydraulicAxisConfig(stroke_max_m=2e-4)
    hydraulics = WaterHydraulics([axis])
    state = run(hydraulics, 2.5, 1e-3, 100)[-1]
    steady = hydraulics.steady_state(0, 2.5)
    assert steady.reason == 'end stop'
    assert hydraulics.chamber_pressure(state)[0] == pytest.approx(steady.lowest_Pa, rel=1e-6)
    assert state[0, 1] == 2e-4 and state[0, 0] == 0.0


def test_cavitation_is_reported():
    hydraulics = WaterHydraulics([HydraulicAxisConfig(name='a'), HydraulicAxisConfig(name='b')])
    state = hydraulics.rest_state()
    for _ in range(50):
        result = hydraulics.step(state, np.array([0.1, -1.0]), 1e-3)
        state = result.state
    assert list(result.cavitated) == [False, True]
    assert 'cavitation in b' in result.message


def test_bad_input_is_refused():
    with pytest.raises(ModelError, match='at least one'):
        WaterHydraulics([])
    with pytest.raises(ModelError, match='not unique'):
        WaterHydraulics([HydraulicAxisConfig(), HydraulicAxisConfig()])
    with pytest.raises(ValidationError, match='below coulomb_friction_N'):
        HydraulicAxisConfig(coulomb_friction_N=5.0, static_friction_N=4.0)
    with pytest.raises(ValidationError, match='stroke_min_m'):
        HydraulicAxisConfig(stroke_min_m=0.3)
    hydraulics = WaterHydraulics([HydraulicAxisConfig()])
    with pytest.raises(ModelError, match='dt_s = 0 s'):
        hydraulics.step(hydraulics.rest_state(), np.zeros(1), 0.0)
    with pytest.raises(ModelError, match=r'torque = \[nan\]: finite numbers \(1,\) needed'):
        hydraulics.step(hydraulics.rest_state(), np.array([np.nan]), 1e-3)
    for axis in (-1, 1):
        with pytest.raises(ModelError, match=f'axis = {axis}: expected 0 to 0'):
            hydraulics.steady_state(axis, 1.0)
    with pytest.raises(ModelError, match='torque = nan: expected a finite number'):
        hydraulics.steady_state(0, np.nan)
    with pytest.raises(ModelError, match='chamber_gain_m3 = inf'):
        hydraulics.steady_state(0, 1.0, np.inf)
