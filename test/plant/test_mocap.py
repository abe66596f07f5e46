"""Motion capture: noise, delay, drop-outs, and independence of their random streams."""

import numpy as np
import pytest
from plant_cases import MOCAP
from scipy.spatial.transform import Rotation

from softarm_ros.plant.config import MocapConfig
from softarm_ros.plant.mocap import FUTURE_S, Mocap

PERIOD = 0.01
TIPS = np.tile(np.eye(4), (2, 1, 1))
TIPS[:, :3, :3] = Rotation.from_rotvec([[0.3, -0.2, 0.5], [1.0, 2.0, -0.5]]).as_matrix()
TIPS[:, :3, 3] = [[0.01, 0.02, 0.12], [0.05, -0.08, 0.2]]


def mocap(seed=0, **fields):
    return Mocap(MocapConfig.model_validate(MOCAP | fields), seed)


def record(camera, frames, poses=TIPS):
    """Return all frames of a resting arm, by stamp."""
    for k in range(frames):
        camera.capture(k * PERIOD, poses)
    return camera.poll(np.inf)


def test_noise_has_the_stated_deviation_and_no_bias():
    frames = record(mocap(), 5000)
    assert len(frames) == 5000
    measured = np.array([f.section_tips for f in frames])
    shift = (measured[:, :, :3, 3] - TIPS[:, :3, 3]).reshape(-1, 3)
    relative = np.swapaxes(TIPS[:, :3, :3], 1, 2) @ measured[:, :, :3, :3]
    tilt = Rotation.from_matrix(relative.reshape(-1, 3, 3)).as_rotvec()
    for noise, sigma in ((shift, 2e-4), (tilt, 2e-3)):
        np.testing.assert_allclose(noise.std(axis=0), sigma, rtol=0.03)
        assert np.abs(noise.mean(axis=0)).max() < 4 * sigma / np.sqrt(len(noise))
        # White: no correlation between axes, sections or frames.
        mixed = np.corrcoef(noise.reshape(-1, 6).T) - np.eye(6)
        assert np.abs(mixed).max() < 0.06
        assert abs(np.corrcoef(noise[:-2, 0], noise[2:, 0])[0, 1]) < 0.06
    np.testing.assert_allclose(
        measured[:, :, :3, :3] @ np.swapaxes(measured[:, :, :3, :3], 2, 3),
        np.broadcast_to(np.eye(3), (5000, 2, 3, 3)),
        atol=1e-12,
    )


def test_camera_without_imperfections_shows_the_true_poses():
    camera = mocap(position_noise_m=0.0, orientation_noise_rad=0.0, delay_s=0.0)
    camera.capture(0.0, TIPS)
    (frame,) = camera.poll(0.0)
    assert frame.stamp_s == 0.0
    np.testing.assert_array_equal(frame.section_tips, TIPS)
    assert frame.section_tips is not TIPS


def test_frames_arrive_late_with_the_stamp_of_the_measurement():
    camera = mocap(delay_s=0.025)
    for k in range(4):
        camera.capture(k * PERIOD, TIPS)
    assert camera.poll(0.0249) == []
    assert [f.stamp_s for f in camera.poll(0.025)] == [0.0]
    assert [f.stamp_s for f in camera.poll(0.046)] == [0.01, 0.02]
    assert [f.stamp_s for f in camera.poll(1.0)] == [0.03]
    assert camera.poll(1.0) == []


def test_drop_outs_come_in_bursts_of_the_stated_frequency_and_length():
    p, duration, frames = 0.02, 0.03, 60000
    camera = mocap(dropout_probability=p, dropout_duration_s=duration)
    seen = np.zeros(frames, dtype=bool)
    seen[[round(f.stamp_s / PERIOD) for f in record(camera, frames)]] = True
    edges = np.diff(np.concatenate([[1], seen.astype(int), [1]]))
    starts, ends = np.flatnonzero(edges == -1), np.flatnonzero(edges == 1)
    lengths = ends - starts
    # A burst loses its first frame and those within an exponential time; bursts may touch.
    decay = np.exp(-PERIOD / duration)
    burst = 1.0 + decay / (1.0 - decay)
    lost = burst / (burst + (1.0 - p) / p)
    assert 1.0 - seen.mean() == pytest.approx(lost, rel=0.1)
    assert lengths.mean() == pytest.approx(burst / (1.0 - p), rel=0.1)
    assert lengths.max() > 8


def test_switching_one_imperfection_off_does_not_change_the_others():
    plain = record(mocap(3), 400)
    lossy = record(mocap(3, dropout_probability=0.1), 400)
    assert 100 < len(lossy) < 400
    by_stamp = {f.stamp_s: f.section_tips for f in plain}
    for frame in lossy:
        np.testing.assert_array_equal(frame.section_tips, by_stamp[frame.stamp_s])
    steady = record(mocap(3, orientation_noise_rad=0.0), 400)
    for a, b in zip(plain, steady):
        np.testing.assert_array_equal(a.section_tips[:, :3, 3], b.section_tips[:, :3, 3])
        np.testing.assert_array_equal(b.section_tips[:, :3, :3], TIPS[:, :3, :3])
    still = record(mocap(3, position_noise_m=0.0, dropout_probability=0.1), 400)
    assert [f.stamp_s for f in still] == [f.stamp_s for f in lossy]


def test_disabled_cameras_see_nothing_and_then_resume_the_same_stream():
    whole, interrupted = mocap(5), mocap(5)
    reference = {f.stamp_s: f.section_tips for f in record(whole, 30)}
    for k in range(30):
        interrupted.enabled = not 10 <= k < 20
        interrupted.capture(k * PERIOD, TIPS)
    frames = interrupted.poll(np.inf)
    assert [round(f.stamp_s / PERIOD) for f in frames] == [*range(10), *range(20, 30)]
    for frame in frames:
        np.testing.assert_array_equal(frame.section_tips, reference[frame.stamp_s])


def test_seed_determines_all_frames():
    a, b, c = (record(mocap(s, dropout_probability=0.1), 100) for s in (1, 1, 2))
    assert [f.stamp_s for f in a] == [f.stamp_s for f in b]
    assert all(np.array_equal(x.section_tips, y.section_tips) for x, y in zip(a, b))
    assert not np.array_equal(a[0].section_tips, c[0].section_tips)


EXACT = {'position_noise_m': 0.0, 'orientation_noise_rad': 0.0, 'dropout_probability': 0.0}


def test_wrongly_calibrated_base_frame_shifts_and_turns_all_poses():
    camera = mocap(**EXACT, frame_turn_deg=(0.0, 0.0, 90.0), frame_shift_m=(0.1, 0.0, 0.0))
    (frame,) = record(camera, 1)
    x, y, z = TIPS[1, :3, 3]
    np.testing.assert_allclose(frame.section_tips[1, :3, 3], [0.1 - y, x, z], atol=1e-12)
    turned = Rotation.from_matrix(frame.section_tips[1, :3, :3] @ TIPS[1, :3, :3].T)
    np.testing.assert_allclose(turned.as_rotvec(degrees=True), [0.0, 0.0, 90.0], atol=1e-9)


def test_marker_offset_turns_with_the_tip():
    (frame,) = record(mocap(**EXACT, marker_offset_m=(0.001, 0.002, 0.0)), 1)
    seen = frame.section_tips[:, :3, 3] - TIPS[:, :3, 3]
    np.testing.assert_allclose(seen, TIPS[:, :3, :3] @ [0.001, 0.002, 0.0], atol=1e-12)


def test_drift_has_the_stated_deviation_and_correlation_time():
    camera = mocap(**EXACT, drift_m=1e-3, drift_time_s=0.5)
    frames = record(camera, 20_000)
    seen = np.array([f.section_tips[:, :3, 3] for f in frames]) - TIPS[:, :3, 3]
    np.testing.assert_allclose(seen[:, 0], seen[:, 1], atol=1e-12)  # the tips share one drift
    # 400 correlation times of three coordinates: a statistical error of 4 %.
    np.testing.assert_allclose(seen.std(), 1e-3, rtol=0.1)
    later = np.mean(seen[:-50] * seen[50:]) / np.mean(seen**2)
    np.testing.assert_allclose(later, np.exp(-1.0), atol=0.08)


def test_frames_arrive_in_order_late_by_the_delay_plus_at_most_the_jitter():
    camera = mocap(**EXACT, delay_s=0.01, jitter_s=0.03)
    lateness, stamps = [], []
    for k in range(500):
        now = k * PERIOD
        camera.capture(now, TIPS)
        frames = camera.poll(now)
        lateness += [now - frame.stamp_s for frame in frames]
        stamps += [frame.stamp_s for frame in frames]
    assert stamps == [k * PERIOD for k in range(len(stamps))]
    assert len(stamps) > 490
    assert 0.01 <= min(lateness) < 0.02
    assert 0.03 < max(lateness) <= 0.05 + 1e-9  # polled once per period


def test_flips_turn_single_tips_and_keep_their_positions():
    frames = record(mocap(**EXACT, flip_probability=0.05), 4000)
    tips = np.array([f.section_tips for f in frames])
    np.testing.assert_allclose(tips[..., :3, 3], np.tile(TIPS[:, :3, 3], (4000, 1, 1)))
    flipped = np.sum(tips[..., 0] * TIPS[:, :, 0], axis=-1) < 0.0  # x axes opposed
    np.testing.assert_allclose(flipped.mean(axis=0), 0.05, atol=0.015)
    assert 0 < np.sum(flipped.all(axis=1)) < 40


def test_drift_jitter_and_flips_do_not_change_the_other_random_streams():
    plain, worse = mocap(seed=3), mocap(seed=3, drift_m=1e-3, jitter_s=0.01, flip_probability=0.1)
    first, second = record(plain, 200), record(worse, 200)
    assert [f.stamp_s for f in first] == [f.stamp_s for f in second]
    moved = second[-1].section_tips[:, :3, 3] - first[-1].section_tips[:, :3, 3]
    np.testing.assert_allclose(moved[0], moved[1], atol=1e-15)  # by the drift alone


def test_camera_faults_accumulate_until_they_are_mended():
    camera = mocap(delay_s=0.0)
    faults = camera.faults()

    def frame(k):
        camera.capture(k * PERIOD, TIPS)
        (found,) = camera.poll(np.inf)
        return found

    frame(0)
    faults['cameras future'].work()
    last = frame(1)
    faults['cameras freeze'].work()
    both = frame(2)
    assert both.stamp_s == pytest.approx(2 * PERIOD + FUTURE_S)
    np.testing.assert_array_equal(both.section_tips, last.section_tips)
    faults['cameras mend'].work()
    sound = frame(3)
    assert sound.stamp_s == pytest.approx(3 * PERIOD)
    assert not np.array_equal(sound.section_tips, last.section_tips)
