"""The whole simulated muscle arm: contract of a plant, repeatability, load, speed."""

import time

import numpy as np
import pytest

from softarm_ros import load_rig
from softarm_ros.control.swing_filter import DAMPINGS, FREQUENCIES, SwingConfig
from softarm_ros.models.minimum_energy.muscles import muscle_names
from softarm_ros.runtime.arm_assembly import build_plant

RIG = load_rig('pam_arm')
HOME = RIG.model().rest_configuration
BENT = RIG.model().inverse((0.12, 0.06, 0.95)).actuation


def driven(plant, seconds, period=0.05):
    steps = round(seconds / period)
    for k in range(steps):
        share = min(1.0, 2.0 * k / steps)
        plant.step(HOME + share * (BENT - HOME), period)
    return plant


def test_plants_are_equal_for_equal_seeds_and_differ_otherwise():
    first, second, other = (driven(build_plant(RIG, s), 3.0) for s in (1, 1, 2))
    assert np.array_equal(first.true_section_tips(), second.true_section_tips())
    assert first.drives.board.log == second.drives.board.log
    for a, b in zip(first.poll_poses(), second.poll_poses()):
        assert a.stamp_s == b.stamp_s and np.array_equal(a.section_tips, b.section_tips)
    assert not np.array_equal(first.true_section_tips(), other.true_section_tips())


def test_arm_starts_at_rest_and_stays_there():
    plant = build_plant(RIG, 0)
    start = plant.true_section_tips()[0, :3, 3]
    assert abs(start[2] - RIG.plant.backbone.length_m) < 2e-3
    for _ in range(40):
        plant.step(None, 0.05)
    # Only the leak moves the arm.
    assert np.linalg.norm(plant.true_section_tips()[0, :3, 3] - start) < 1e-3
    assert plant.drives.board.log == []
    assert plant.time_s == pytest.approx(2.0)


def test_arm_bends_to_the_commanded_tip_within_its_errors():
    plant = driven(build_plant(RIG, 0), 20.0)
    tip, state = plant.true_section_tips()[0, :3, 3], plant.actuator_state()
    assert 1e-3 < np.linalg.norm(tip - [0.12, 0.06, 0.95]) < 0.03
    np.testing.assert_allclose(state.position, BENT, atol=2e-4)
    # The driver knows the amounts of gas only from its table, and the gas bends the arm: muscles
    # are longer or shorter than the driver wants.
    folds = RIG.plant.skeleton_stiffness_N_m
    empty = RIG.plant.full_length_m - RIG.plant.pneumatics.max_pull_N / folds
    gas = 0.5 * (empty + np.sqrt(empty**2 + 4.0 * plant.drives.gas / folds))
    assert 1e-4 < np.abs(state.position - gas).max() < 5e-3
    assert np.abs(state.position - plant.body.muscle_lengths()).max() > 0.01
    most = folds * (plant.body.muscle_lengths().max() - empty)
    assert 5.0 < state.effort.max() < most and state.effort.min() > -12.8
    line = plant.true_centerline(101)
    np.testing.assert_allclose(line[-1], tip, atol=1e-12)
    assert np.sum(np.linalg.norm(np.diff(line, axis=0), axis=1)) == pytest.approx(0.998, abs=1e-3)
    np.testing.assert_allclose(plant.body.disks()[-1], plant.true_section_tips()[0])


@pytest.mark.parametrize(
    ('command', 'message'),
    [
        (HOME[:-1], r'shape \(29,\); expected \(30,\)'),
        (np.where(np.arange(30) == 4, np.nan, HOME), 'module_2_muscle_2 = nan'),
        (np.where(np.arange(30) == 29, 0.14, HOME), r'module_10_muscle_3 = 0\.14 m outside'),
    ],
)
def test_bad_commands_are_refused_and_nothing_moves(command, message):
    plant = build_plant(RIG, 0)
    before = plant.true_centerline(20)
    with pytest.raises(ValueError, match=message):
        plant.step(command, 0.05)
    with pytest.raises(ValueError, match='duration_s'):
        plant.step(HOME, 0.0)
    assert plant.time_s == 0.0 and plant.drives.board.log == []
    assert np.array_equal(before, plant.true_centerline(20))


def test_hold_closes_all_valves_within_their_delays():
    plant = driven(build_plant(RIG, 0), 2.0)
    plant.hold()
    latest = 0.02 + 1e-3 + 0.015 + 2e-3 + 3 * 5e-4
    assert plant.drives.relays.close_s.max() <= plant.time_s + latest
    plant.step(None, 1.0)
    still = plant.true_section_tips()[0, :3, 3]
    plant.step(None, 0.5)
    assert np.linalg.norm(plant.true_section_tips()[0, :3, 3] - still) < 2e-3


def test_cameras_report_only_the_tip_with_delay_and_noise():
    plant = build_plant(RIG, 0)
    plant.step(None, 0.019)
    assert plant.poll_poses() == []
    plant.step(None, 10.0)
    frames = plant.poll_poses()
    assert 780 <= len(frames) <= 801
    assert frames[0].section_tips.shape == (1, 4, 4)
    seen = np.array([f.section_tips[0, :3, 3] for f in frames])
    # From frame to frame the arm hardly moves.
    noise = np.diff(seen, axis=0).std(axis=0) / np.sqrt(2.0)
    assert noise == pytest.approx([7e-4] * 3, rel=0.1)
    plant.mocap_enabled = False
    plant.poll_poses()
    plant.step(None, 1.0)
    assert len(plant.poll_poses()) <= 2  # they were under way


def test_swing_of_the_bent_arm_is_within_the_range_of_the_swing_filter():
    """0.72 Hz, damping 0.068: plain feedback with a gain of 0.61 1/s would sustain the swing."""
    plant = build_plant(RIG, 0)
    bent = RIG.model().inverse((0.16, 0.0, 0.9)).actuation
    for k in range(1600):
        share = min(1.0, k / 1200.0) ** 2 * (3.0 - 2.0 * min(1.0, k / 1200.0))
        plant.step(HOME + share * (bent - HOME), 0.05)
    plant.body.state.velocity[:, :2] += np.array([0.1, -0.1])
    swing = []
    for _ in range(600):
        plant.step(None, 0.02)
        swing.append(plant.true_section_tips()[0, 1, 3])
    swing -= np.mean(swing[-70:])
    inner = swing[1:-1]
    peaks = np.flatnonzero((inner > swing[:-2]) & (inner > swing[2:]) & (inner > 1e-3))
    frequency = 1.0 / (0.02 * np.diff(peaks).mean())
    decay = -np.polyfit(np.arange(len(peaks)), np.log(inner[peaks]), 1)[0]
    damping = decay / np.hypot(decay, 2.0 * np.pi)
    assert len(peaks) >= 5
    assert frequency == pytest.approx(0.72, abs=0.02)
    assert damping == pytest.approx(0.068, abs=0.006)
    stated = SwingConfig.model_validate(RIG.tracker.of_part['swing'])
    assert FREQUENCIES[0] < frequency / stated.frequency_hz < FREQUENCIES[-1]
    assert DAMPINGS[0] < damping / stated.damping < DAMPINGS[-1]


def test_payload_pulls_the_bent_arm_down():
    heavy = build_plant(RIG.model_copy(update={'tip_load_kg': 0.05}), 0)
    light = build_plant(RIG, 0)
    drop = driven(heavy, 6.0).true_section_tips() - driven(light, 6.0).true_section_tips()
    assert drop[0, 2, 3] > 3e-4


def test_plant_runs_five_times_faster_than_real_time():
    plant = driven(build_plant(RIG, 0), 1.0)
    best = np.inf
    for _ in range(3):
        start = time.process_time()
        driven(plant, 2.0)
        best = min(best, time.process_time() - start)
    assert 2.0 / best > 5.0


def test_actuator_names_of_rig_and_model_are_equal():
    assert RIG.actuator_names == muscle_names(10) == RIG.model().actuator_names
