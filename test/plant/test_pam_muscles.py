"""The simulated muscles: gas by closed forms, its energy, limits of force, play, film, leak."""

import math

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp, trapezoid

from softarm_ros.models.minimum_energy.gas_springs import GasSprings
from softarm_ros.plant.hysteresis import HysteresisConfig, PrandtlIshlinskii
from softarm_ros.plant.pam_arm.muscle_kernels import (
    fill_muscles,
    hang_muscles,
    muscle_springs_into,
)

LOW, FULL, AIR, PUSH, FILM = 0.05, 0.11, 22.7, 13.5, 1e4
SKELETON = AIR / (FULL - LOW)
NEVER = 1e12
THROTTLE = 0.017


def limits(leak=0.0, play=0.0):
    return np.array([FULL, AIR, PUSH, leak, play, FILM])


def gas_of(free):
    """Return the gas that holds an unloaded muscle at the length `free` against its skeleton."""
    return np.array([(AIR - SKELETON * (FULL - free)) * free])


def pull(gas, length, folds=None, play=0.0):
    """Return pull [N] and stiffness [N/m] of the spring that is tangent to the law."""
    folds = np.array([length if folds is None else folds])
    acting, stiffness = np.empty(1), np.empty(1)
    muscle_springs_into(
        gas, folds, np.array([length]), np.array([SKELETON]), limits(play=play), acting, stiffness
    )
    return float(stiffness[0] * (length - acting[0])), float(stiffness[0])


def hang(gas, length, seconds, inflate=False, load=0.0, h=1e-3, opened=(0.0, NEVER), leak=0.0):
    """Return gas and length of a muscle that rests under a load while a valve is open."""
    gas, length = gas.copy(), np.array([length])
    open_s, close_s = np.full((1, 2), -1.0), np.full((1, 2), -1.0)
    open_s[0, int(inflate)], close_s[0, int(inflate)] = opened
    hang_muscles(
        gas, length.copy(), length, np.array([load]), open_s, close_s, np.full((1, 2), THROTTLE),
        np.array([SKELETON]), limits(leak), np.empty(1), np.empty(1), 0.0, h, round(seconds / h),
    )  # fmt: skip
    return float(gas[0]), float(length[0])


def free_length_after(seconds, start, push):
    """Integrate the pressure of an unloaded muscle that fills or, if `push` is None, empties."""

    def flow(_, state):
        gas = state[0]
        # Skeleton and gas are in balance: k l^2 - (k full - air) l - gas = 0.
        length = 0.5 * (LOW + math.sqrt(LOW**2 + 4.0 * gas / SKELETON))
        inside = gas / length
        return [-THROTTLE * inside if push is None else THROTTLE * (AIR + push - inside)]

    end = solve_ivp(flow, (0.0, seconds), gas_of(start), rtol=1e-10, atol=1e-12).y[0, -1]
    return 0.5 * (LOW + math.sqrt(LOW**2 + 4.0 * end / SKELETON))


@pytest.mark.parametrize('seconds', [1.0, 4.0, 9.0])
def test_unloaded_muscle_empties_and_fills_as_its_pressure_integrates(seconds):
    _, length = hang(gas_of(0.1), 0.1, seconds)
    assert length == pytest.approx(free_length_after(seconds, 0.1, None), abs=2e-6)
    _, length = hang(gas_of(0.06), 0.06, 0.3 * seconds, inflate=True)
    assert length == pytest.approx(free_length_after(0.3 * seconds, 0.06, PUSH), abs=2e-6)


def test_pull_and_stiffness_are_those_of_enclosed_gas_and_skeleton():
    for free in (0.06, 0.085, 0.105):
        gas = gas_of(free)
        assert pull(gas, free)[0] == pytest.approx(0.0, abs=1e-12)
        for length in (0.07, 0.09, 0.108):
            inside = (AIR - SKELETON * (FULL - free)) * free / length  # Boyle
            by_hand = (AIR - inside) - SKELETON * (FULL - length)
            found, stiffness = pull(gas, length)
            assert found == pytest.approx(by_hand, abs=1e-12)
            h = 1e-7
            slope = (pull(gas, length + h)[0] - pull(gas, length - h)[0]) / (2.0 * h)
            assert stiffness == pytest.approx(slope, rel=1e-6)


def test_stretching_work_equals_the_energy_of_gas_and_skeleton():
    gas, short, long = gas_of(0.08), 0.075, 0.105
    work = quad(lambda length: pull(gas, length)[0], short, long, epsabs=1e-12)[0]
    compressed = -float(gas[0]) * math.log(long / short)  # isothermal
    against_air = AIR * (long - short)
    folds = 0.5 * SKELETON * ((FULL - long) ** 2 - (FULL - short) ** 2)
    assert work == pytest.approx(compressed + against_air + folds, abs=1e-9)
    # A closed path in the steps of the simulation loses nothing.
    way = short + 0.5 * (long - short) * (1.0 - np.cos(np.linspace(0.0, 2.0 * np.pi, 2001)))
    pulls = np.array([pull(gas, length)[0] for length in way])
    assert abs(trapezoid(pulls, way)) < 1e-9


def test_plant_and_model_have_the_same_muscle_law():
    """The model uses free lengths, the plant amounts of gas."""
    law = GasSprings(LOW, FULL, AIR, PUSH)
    for free in (0.06, 0.09, 0.12):
        for length in (0.085, 0.1, 0.108):
            assert float(law.pull(length, free)) == pytest.approx(
                pull(gas_of(free), length)[0], abs=1e-12
            )


def test_muscle_force_is_limited_by_vacuum_and_supply():
    load = 15.0
    gas, length = hang(gas_of(0.09), 0.105, 120.0, load=load)
    assert gas < 1e-3 * AIR * FULL
    assert length == pytest.approx(LOW + load / SKELETON, abs=1e-5)
    gas, length = hang(gas_of(0.09), 0.09, 120.0, inflate=True, load=-15.0)
    assert gas == pytest.approx((AIR + PUSH) * length, rel=1e-4)
    assert pytest.approx(-PUSH - SKELETON * (FULL - length), abs=1e-3) == -15.0


def test_gas_flows_only_while_the_valve_is_open_at_any_step():
    start = gas_of(0.1)
    flow = THROTTLE * float(start[0]) / 0.1
    for h in (1e-3, 5e-3):
        gas, _ = hang(start, 0.1, 0.1, opened=(0.0123, 0.0456), h=h)
        assert gas - start[0] == pytest.approx(-flow * 0.0333, rel=5e-3)
    assert hang(start, 0.1, 0.1, opened=(0.03, 0.02))[0] == start[0]


def test_leak_equalises_the_pressure_with_the_outside():
    leak = (2.0 * FULL - LOW) / 300.0
    gas, length = hang(gas_of(0.109), 0.109, 60.0, opened=(0.0, -1.0), h=0.01, leak=leak)
    assert FULL - length == pytest.approx(1e-3 * math.exp(-60.0 / 300.0), rel=0.01)
    gas, length = hang(gas_of(0.1), 0.1, 3000.0, load=-3.0, opened=(0.0, -1.0), h=0.01, leak=leak)
    assert gas / length == pytest.approx(AIR, rel=1e-4)
    assert length == pytest.approx(FULL - 3.0 / SKELETON, rel=1e-4)


def test_film_limits_the_length_of_an_overfilled_muscle():
    gas, length = hang(gas_of(0.1), 0.1, 60.0, inflate=True)
    assert gas == pytest.approx((AIR + PUSH) * length, rel=1e-3)
    stretched = PUSH / (FILM + SKELETON)
    assert length - FULL == pytest.approx(stretched, rel=0.02)


def test_play_of_the_folds_matches_a_stop_element():
    """The folds follow the length with play: their force lags by stiffness times the stop."""
    play, gas = 2e-4, gas_of(0.09)
    folds, acting, stiffness = np.array([0.1]), np.empty(1), np.empty(1)
    stop = PrandtlIshlinskii(
        HysteresisConfig(stiffness=1.0, lost_share=0.999999, saturation=play, stops=1)
    )
    stop.reset(0.1)
    for k in range(4000):
        length = 0.1 + 1e-3 * math.sin(0.01 * k) * math.cos(0.0031 * k)
        muscle_springs_into(
            gas, folds, np.array([length]), np.array([SKELETON]), limits(play=play),
            acting, stiffness,
        )  # fmt: skip
        lag = float(stiffness[0] * (length - acting[0])) - pull(gas, length)[0]
        assert -lag / SKELETON == pytest.approx(stop.step(length).output, abs=1e-8)


def test_open_valve_fills_its_muscle_by_the_flow_law():
    gas, length = gas_of(0.1), np.array([0.1])
    open_s, close_s = np.zeros((1, 2)), np.full((1, 2), -1.0)
    close_s[0, 1] = NEVER
    before = gas.copy()
    fill_muscles(gas, length, open_s, close_s, np.full((1, 2), THROTTLE), limits(), 0.0, 5e-3)
    head = AIR + PUSH - before[0] / 0.1
    assert gas[0] - before[0] == pytest.approx(5e-3 * THROTTLE * head, rel=1e-12)
