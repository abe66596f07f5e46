"""Hysteresis and creep: rate independence, wiping out, congruency, closed forms, energy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid

from softarm_ros.plant.hysteresis import (
    CreepConfig,
    HysteresisConfig,
    KelvinVoigtCreep,
    PrandtlIshlinskii,
)

quick = settings(deadline=None, max_examples=80)
configs = st.builds(
    HysteresisConfig,
    stiffness=st.floats(0.1, 10.0),
    lost_share=st.floats(0.0, 0.95),
    saturation=st.floats(0.1, 3.0),
    stops=st.integers(1, 12),
)
paths = st.lists(st.floats(-5.0, 5.0), min_size=1, max_size=12)


def element(**changes):
    values = {'stiffness': 2.0, 'lost_share': 0.6, 'saturation': 1.0, 'stops': 6} | changes
    return PrandtlIshlinskii(HysteresisConfig(**values))


@given(configs, paths, st.integers(2, 7))
@quick
def test_output_does_not_depend_on_rate_or_step_size(config, path, pieces):
    coarse, fine = PrandtlIshlinskii(config), PrandtlIshlinskii(config)
    ends = coarse.follow(path)
    before = 0.0
    for target, end in zip(path, ends):
        steps = [fine.step(before + (target - before) * k / pieces) for k in range(1, pieces + 1)]
        before = target
        assert steps[-1].output == pytest.approx(end, abs=1e-9)
    assert coarse.stored == pytest.approx(fine.stored, abs=1e-9)


@given(configs, st.floats(-5.0, 5.0))
@quick
def test_first_loading_follows_the_virgin_curve(config, position):
    play = PrandtlIshlinskii(config)
    assert play.step(position).output == pytest.approx(play.virgin(position), abs=1e-10)
    assert play.virgin(1e-9) == pytest.approx(1e-9 * config.stiffness)
    slope = (play.virgin(9.0) - play.virgin(8.0)) / config.stiffness
    assert slope == pytest.approx(1.0 - config.lost_share)


@given(configs, st.floats(0.01, 4.0))
@quick
def test_work_of_a_loop_equals_its_closed_form_area(config, amplitude):
    play = PrandtlIshlinskii(config)
    play.step(amplitude)
    turns = [play.step(-amplitude), play.step(amplitude)]
    area = play.loop_area(amplitude)
    assert sum(turn.dissipated for turn in turns) == pytest.approx(area, abs=1e-9)
    assert sum(turn.work for turn in turns) == pytest.approx(area, abs=1e-9)
    # The area between the branches, by quadrature of the outputs.
    down = play.follow(np.linspace(amplitude, -amplitude, 4001))
    up = play.follow(np.linspace(-amplitude, amplitude, 4001))
    gap = trapezoid(up - down[::-1], dx=2.0 * amplitude / 4000)
    assert gap == pytest.approx(area, rel=1e-3, abs=1e-5)


def test_loop_area_grows_with_the_cube_of_small_amplitudes():
    # Many stops: sum 4 w r (A - r) goes to (2/3) stiffness lost_share A^3 / saturation.
    play = element(stops=1000)
    for amplitude in (0.2, 0.5):
        expected = 2.0 / 3.0 * 2.0 * 0.6 * amplitude**3
        assert play.loop_area(amplitude) == pytest.approx(expected, rel=1e-3)


@given(configs, paths)
@quick
def test_no_step_gains_energy_and_work_equals_stored_plus_lost_energy(config, path):
    play = PrandtlIshlinskii(config)
    work = 0.0
    for target in path:
        step = play.step(target)
        assert step.dissipated >= 0.0
        work += step.work
    assert work == pytest.approx(play.stored + _lost(config, path), abs=1e-8)
    assert play.stored >= 0.0


def _lost(config, path):
    play = PrandtlIshlinskii(config)
    return sum(play.step(target).dissipated for target in path)


def test_work_is_the_integral_of_the_output():
    play = element()
    path = np.concatenate([np.linspace(0, 1.7, 5001), np.linspace(1.7, -0.6, 5001)])
    integral = trapezoid(element().follow(path), path)
    work = play.step(1.7).work + play.step(-0.6).work
    assert work == pytest.approx(integral, abs=1e-6)


@given(configs, st.floats(0.5, 4.0), st.lists(st.floats(-1.0, 1.0), max_size=8))
@quick
def test_larger_extremum_wipes_out_the_earlier_history(config, largest, shares):
    played, fresh = PrandtlIshlinskii(config), PrandtlIshlinskii(config)
    played.follow([share * largest for share in shares])
    for play in (played, fresh):
        play.follow([-largest, largest])
    probe = [0.3 * largest, 0.8 * largest, -0.1 * largest]
    np.testing.assert_allclose(played.follow(probe), fresh.follow(probe), atol=1e-10)


@given(configs, st.floats(-3.0, 3.0), st.floats(0.05, 1.0), paths)
@quick
def test_loops_between_the_same_inputs_are_congruent(config, low, width, history):
    shapes = []
    for before in ([], history):
        play = PrandtlIshlinskii(config)
        play.follow([*before, low, low + width, low])
        base = play.output
        shapes.append(play.follow(low + width * np.array([0.3, 0.7, 1.0, 0.6, 0.0])) - base)
    np.testing.assert_allclose(shapes[0], shapes[1], atol=1e-9)
    assert shapes[0][-1] == pytest.approx(0.0, abs=1e-9)  # the loop closes


def test_reset_clears_the_state_and_bad_input_is_refused():
    play = element()
    play.follow([1.0, -2.0])
    play.reset(0.4)
    assert play.output == 0.0 and play.stored == 0.0
    assert play.step(0.5).output == pytest.approx(0.2)
    with pytest.raises(ValueError, match='position = nan'):
        play.step(math.nan)
    with pytest.raises(ValueError, match='finite numbers in a row'):
        play.follow([[1.0]])
    with pytest.raises(ValueError, match='lost_share'):
        element(lost_share=1.0)
    with pytest.raises(ValueError, match='2 shares but 1 lags_s'):
        CreepConfig(shares=(0.1, 0.2), lags_s=(1.0,))
    with pytest.raises(ValueError, match='dt = 0'):
        KelvinVoigtCreep(CreepConfig(shares=(0.1,), lags_s=(1.0,))).step(1.0, 0.0)


CREEP = CreepConfig(shares=(0.1, 0.05), lags_s=(0.7, 8.0))


def test_creep_after_a_jump_matches_the_closed_form():
    creep = KelvinVoigtCreep(CREEP)
    assert creep.jump(2.0) == 2.0
    for dt in (0.01, 0.3, 2.0, 5.0):
        creep.step(2.0, dt)
    time = 7.31
    grown = 0.1 * (1 - math.exp(-time / 0.7)) + 0.05 * (1 - math.exp(-time / 8.0))
    assert creep.output == pytest.approx(2.0 * (1.0 + grown), abs=1e-14)
    creep.step(2.0, 1e4)
    assert creep.output == pytest.approx(creep.settled(2.0)) == 2.3


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(1e-3, 5.0)), max_size=6), st.integers(2, 9))
@quick
def test_creep_does_not_depend_on_the_step(moves, pieces):
    coarse, fine = KelvinVoigtCreep(CREEP), KelvinVoigtCreep(CREEP)
    before = 0.0
    for value, dt in moves:
        coarse.step(value, dt)
        for k in range(1, pieces + 1):
            fine.step(before + (value - before) * k / pieces, dt / pieces)
        before = value
        assert fine.output == pytest.approx(coarse.output, abs=1e-11)


def test_creep_loss_in_a_cycle_matches_the_closed_form():
    # Input u is a force, output a displacement: the work over a cycle is the loss, positive, and
    # for a sine the closed form pi share omega lag / (1 + (omega lag)^2) per element.
    creep, omega, count = KelvinVoigtCreep(CREEP), 1.3, 4000
    period = 2.0 * math.pi / omega
    dt = period / count
    for k in range(20 * count):
        creep.step(math.sin(omega * (k + 1) * dt), dt)
    force, position = [math.sin(0.0)], [creep.output]
    for k in range(count):
        force.append(math.sin(omega * (k + 1) * dt))
        position.append(creep.step(force[-1], dt))
    loss = trapezoid(force, position)
    expected = sum(
        math.pi * share * omega * lag / (1.0 + (omega * lag) ** 2)
        for share, lag in zip(CREEP.shares, CREEP.lags_s)
    )
    assert loss == pytest.approx(expected, rel=1e-4)
