"""Filling of the simulated muscles: closed forms, limits of force, play, leak."""

import math

import numpy as np
import pytest

from softarm_ros.plant.hysteresis import HysteresisConfig, PrandtlIshlinskii
from softarm_ros.plant.pam_arm.muscle_kernels import fill_muscles, muscle_state_into

LOW, FULL, PULL, PUSH = 0.05, 0.11, 22.7, 13.5
SKELETON = PULL / (FULL - LOW)
NEVER = 1e12


def run(start, seconds, inflate, tension=0.0, times=(10.0, 8.0), play=0.0, leak=NEVER, h=1e-3,
        opened=(0.0, NEVER)):  # fmt: skip
    gas, free = np.array([start]), np.array([start])
    limits = np.array([LOW, FULL, PULL, PUSH, leak, play])
    open_s, close_s = np.full((1, 2), -1.0), np.full((1, 2), -1.0)
    open_s[0, int(inflate)], close_s[0, int(inflate)] = opened
    for k in range(round(seconds / h)):
        fill_muscles(
            gas, free, np.array([tension]), open_s, close_s, np.array([times]), limits, k * h, h
        )
    return gas[0], free[0]


def test_emptying_and_filling_without_load_are_exponential():
    gas, free = run(0.1, 2.0, False)
    assert gas == pytest.approx(LOW + 0.05 * math.exp(-0.2), rel=1e-4)
    assert free == gas
    supply = FULL + PUSH / SKELETON
    gas, _ = run(0.07, 1.5, True)
    assert gas == pytest.approx(supply - (supply - 0.07) * math.exp(-1.5 / 8.0), rel=1e-4)
    assert run(0.1, 30.0, True)[0] == FULL


def test_a_muscle_pulls_no_more_than_its_vacuum_and_pushes_no_more_than_its_supply():
    pull = 15.0
    assert run(0.1, 120.0, False, pull)[0] == pytest.approx(LOW + pull / SKELETON, rel=1e-4)
    assert run(0.1, 5.0, False, 0.99 * SKELETON * 0.05)[0] == pytest.approx(0.1, abs=3e-4)
    assert run(0.1, 5.0, False, 1.01 * SKELETON * 0.05)[0] == pytest.approx(0.1, abs=1e-9)
    push = -(PUSH + SKELETON * (FULL - 0.1))
    assert run(0.1, 5.0, True, 1.01 * push)[0] == pytest.approx(0.1, abs=1e-9)
    assert run(0.1, 5.0, True, 0.5 * push)[0] > 0.105


def test_only_while_the_valve_is_open_whatever_the_step():
    for h in (1e-3, 5e-3):
        gas, _ = run(0.1, 0.1, False, opened=(0.0123, 0.0456), h=h)
        assert gas - 0.1 == pytest.approx(-0.05 * 0.0333 / 10.0, rel=3e-3)
    assert run(0.1, 0.1, False, opened=(0.03, 0.02))[0] == pytest.approx(0.1, abs=1e-9)


def test_play_is_what_a_stop_leaves_of_its_input():
    play = 2e-4
    limits = np.array([LOW, FULL, PULL, PUSH, NEVER, play])
    gas, free = np.array([0.1]), np.array([0.1])
    stop = PrandtlIshlinskii(
        HysteresisConfig(stiffness=1.0, lost_share=0.999999, saturation=play, stops=1)
    )
    stop.reset(0.1)
    for k in range(4000):
        open_s, close_s = np.zeros((1, 2)), np.full((1, 2), -1.0)
        close_s[0, int(math.sin(0.01 * k) > 0.2)] = NEVER
        times = np.array([[10.0, 8.0]])
        fill_muscles(gas, free, np.zeros(1), open_s, close_s, times, limits, 0.0, 1e-3)
        held = stop.step(float(gas[0])).output
        assert gas[0] - free[0] == pytest.approx(held, abs=1e-8)


def test_a_leak_brings_the_pressure_inside_to_that_outside():
    gas, _ = run(0.09, 900.0, False, leak=300.0, opened=(0.0, -1.0), h=0.01)
    assert gas == pytest.approx(FULL - 0.02 * math.exp(-3.0), rel=1e-4)
    gas, _ = run(0.11, 3000.0, False, tension=-3.0, leak=300.0, opened=(0.0, -1.0), h=0.01)
    assert gas == pytest.approx(FULL - 3.0 / SKELETON, rel=1e-4)


def test_short_muscles_are_softer():
    acting, stiffness = np.empty(3), np.empty(3)
    limits = np.array([LOW, FULL, PULL, PUSH, NEVER, 0.0])
    free, offset = np.array([FULL, LOW, 0.08]), np.array([1e-4, 0.0, -1e-4])
    muscle_state_into(free, offset, np.full(3, 8e4), 0.5, limits, acting, stiffness)
    np.testing.assert_allclose(stiffness, [8e4, 4e4, 6e4])
    np.testing.assert_allclose(acting, free + offset)
