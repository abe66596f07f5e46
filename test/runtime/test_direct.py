"""Runs in one process: tracking, and exact repetition."""

import re
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from softarm_ros.control.controller import Motion
from softarm_ros.control.controllers.resolved_rate import ResolvedRate
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.arm_assembly import build_plant
from softarm_ros.runtime.direct import run_direct

RIG = load_rig('cable_arm')
ZERO = np.zeros(3)
CYCLES = 800  # approach and part of the line


def tips_of_cycles(seed):
    """Return the measured tips (CYCLES, 3) [m] of the beginning of a run."""
    enough = iter([False] * CYCLES + [True]).__next__
    stopped = run_direct(RIG, 'line_small', seed=seed, should_stop=enough)
    assert not stopped.completed
    return stopped.samples.tip


def test_closed_loop_tracks_and_repeats_exactly_for_a_seed():
    first = run_direct(RIG, 'line_small', seed=4)
    error = first.error()
    assert first.completed
    assert 1e-4 < error.mean < 3e-3  # an error of zero would be as wrong as a large one
    first = first.samples.tip[:CYCLES]
    again, other = (tips_of_cycles(seed) for seed in (4, 5))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other, equal_nan=True)


def test_run_interrupted_before_its_first_cycle_gives_an_empty_record():
    stopped = run_direct(RIG, 'line_small', should_stop=lambda: True)
    assert not stopped.completed
    assert stopped.error() is None
    assert stopped.timing.cycles == 0
    assert stopped.timing.compute_p50_ms is None


def test_run_of_another_plant_states_no_machine_and_needs_no_plant_in_the_rig():
    without = RIG.model_copy(update={'plant': None})
    plant = build_plant(RIG, 0)
    record = run_direct(without, 'line_small', seed=3, plant=plant, should_stop=lambda: True)
    assert record.info.machine is None
    assert record.info.drawn == {}


@pytest.mark.parametrize('seed', [-1, 1.0, '1', None, True])
def test_seed_that_is_no_count_is_refused_by_name(seed):
    with pytest.raises(ValueError, match=rf'^seed = {seed!r}: expected a whole number >= 0$'):
        build_plant(RIG, seed)


@pytest.mark.parametrize('laps', [2.0, '2', [2]])
def test_laps_that_are_no_whole_number_are_refused_by_name(laps):
    text = re.escape(f'laps = {laps!r}: expected a whole number, 1 to 1000')
    with pytest.raises(ValueError, match=f'^{text}$'):
        run_direct(RIG, 'line_small', laps=laps)


def test_plant_without_a_rest_position_is_refused_by_rig_file_and_block():
    heavy = load_rig('cable_arm', ['plant.sections[0].body_mass_kg=800'])
    with pytest.raises(RigError, match=r'cable_arm.yaml: plant: .* no rest position: segment 9'):
        build_plant(heavy, 0)


def run_for(rig, cycles):
    """Return the record of the beginning of the line."""
    enough = iter([False] * cycles + [True]).__next__
    return run_direct(rig, 'line_small', should_stop=enough)


def test_excessive_tracking_error_is_reported_once_with_models_that_include_weight():
    limit = 'supervisor.feedback_watch.max_tracking_error_m=1e-6'
    events = run_for(load_rig('cable_arm', [limit]), 900).events
    told = [event.message for event in events if 'beyond' in event.message]
    assert len(told) == 1
    assert 'max_tracking_error_m = 1e-06: its supervisor would hold the arm here; model' in told[0]
    assert 'cable_statics includes no weight, cosserat and heavy_cable_statics do' in told[0]


def test_poses_missing_beyond_the_limit_are_reported_once():
    plant = build_plant(RIG, 0)
    seen = iter([True] * 200 + [False] * 200)

    def stop():
        plant.mocap_enabled = next(seen, False)
        return plant.time_s > 3.5

    run = run_direct(RIG, 'line_small', plant=plant, should_stop=stop)
    told = [event for event in run.events if 'no pose for' in event.message]
    assert [event.level for event in told] == ['warning']
    assert '130 ms (limit 120 ms): its supervisor would hold' in told[0].message


def test_invalid_velocity_of_a_controller_ends_the_run_with_its_record(monkeypatch):
    monkeypatch.setattr(ResolvedRate, 'velocity', lambda *asked: Motion(np.zeros(3), ZERO, False))
    run = run_direct(RIG, 'line_small')
    assert not run.completed
    assert 'returned velocity [0.0, 0.0, 0.0]; expected 4 finite numbers' in run.events[-1].message
    assert len(run.samples.tip) > 10


@pytest.mark.parametrize('kind', ['position', 'effort'])
@pytest.mark.parametrize(
    ('answer', 'why'),
    [
        (lambda value: np.full_like(value, np.nan), '{} is not finite: [nan'),
        (lambda value: value[:-1], 'CableDrives returned {} ['),
        (lambda value: None, 'CableDrives returned {} None; expected 6 numbers'),
    ],
)
def test_invalid_actuator_state_ends_the_run_with_its_record(kind, answer, why):
    plant = build_plant(RIG, 0)
    state, times = plant.drives.state, count()

    def report():
        true = state()
        wrong = {kind: answer(getattr(true, kind))}
        return replace(true, **wrong) if next(times) > 10 else true

    plant.drives.state = report
    run = run_direct(RIG, 'line_small', plant=plant)
    assert not run.completed and len(run.samples.tip) == 11
    assert why.format(kind) in run.events[-1].message


def test_body_that_loses_a_section_tip_ends_the_run():
    plant = build_plant(RIG, 0)
    tips = plant.body.section_tips
    plant.body.section_tips = lambda: tips()[: 2 if plant.time_s < 0.1 else 1]
    run = run_direct(RIG, 'line_small', plant=plant)
    assert not run.completed and 'expected 2 x 4 x 4 numbers' in run.events[-1].message


@pytest.mark.parametrize(
    ('believed_kg', 'model', 'why'),
    [
        (0.02, 'heavy_cable_statics', 'no length left on its inner side for a cable'),
        (0.04, 'cosserat', 'the arm falls aside under its weight and load'),
    ],
)
def test_run_of_an_arm_that_becomes_unstable_ends_with_its_record(believed_kg, model, why):
    masses = [
        f'{whose}.sections[{k}].body_mass_kg={kg}'
        for k in range(2)
        for whose, kg in (('arm', believed_kg), ('plant', 0.06))
    ]
    rig = load_rig('cable_arm', ['gravity_m_s2=[0, 0, -9.81]', f'model={model}', *masses])
    record = run_direct(rig, 'circle')
    assert not record.completed
    assert record.timing.cycles > 100
    assert len(record.samples.time_s) >= record.timing.cycles - 1
    assert any(event.level == 'error' and why in event.message for event in record.events)


def test_a_run_whose_tip_is_lost_for_good_ends_with_the_reason():
    rig = load_rig('cable_arm_single', ['estimator.kind=filter'])
    plant = build_plant(rig, 0)
    plant.mocap_enabled = True
    cycles = count()

    def blind():
        plant.mocap_enabled = next(cycles) < 100
        return plant.time_s > 120.0

    record = run_direct(rig, plant=plant, should_stop=blind)
    assert not record.completed
    assert record.duration_s < 70.0
    last = record.events[-1]
    assert (last.level, last.source) == ('error', 'tracker')
    assert last.message.startswith(
        'the tip has been lost for 60 s, and the arm stands: no pose for'
    )
