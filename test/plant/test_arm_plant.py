"""The whole simulated arm: motors, body and cameras."""

import numpy as np
import pytest
from plant_cases import ENDCAP, GRAVITY, LENGTH, STEPPER, bend_angle, plant_config, ring

from softarm_ros.plant.arm_plant import ArmPlant
from softarm_ros.plant.errors import PlantError
from softarm_ros.plant.mocap import Mocap, PoseMeasurement

REST_LENGTH = LENGTH + 2 * ENDCAP
SWING = np.array([0.015, -0.02, -0.005, -0.02, 0.012, 0.004])


def plant(sections=2, seed=0, gravity=GRAVITY, **fields):
    arm = ArmPlant(plant_config(sections, **fields), ring(sections), gravity)
    arm.look_with(Mocap(arm.config.mocap, seed))
    return arm


def test_arm_starts_hanging_at_rest_with_zero_contraction():
    arm = plant()
    assert arm.time_s == 0.0
    before = arm.true_section_tips()
    assert before[1, 2, 3] == pytest.approx(2 * REST_LENGTH, abs=5e-4)
    np.testing.assert_allclose(before[:, :2, 3], 0.0, atol=1e-9)
    state = arm.actuator_state()
    assert np.all(state.position == 0.0) and np.all(state.velocity == 0.0)
    assert np.all(state.effort > 0.0)
    arm.step(np.zeros(6), 1.0)
    np.testing.assert_allclose(arm.true_section_tips(), before, atol=1e-9)
    assert arm.time_s == 1.0


def test_body_alone_carries_its_weight_on_slack_cables():
    arm = plant(stepper={'slack_m': 0.002})
    assert np.all(arm.actuator_state().effort == 0.0)
    held = plant()
    assert arm.true_section_tips()[1, 2, 3] > held.true_section_tips()[1, 2, 3] + 1e-4


def test_arm_bends_towards_the_pulled_cable():
    arm = plant(1)
    arm.step((0.012, -0.02, -0.02), 3.0)
    tip = arm.true_section_tips()[-1]
    assert tip[0, 3] > 0.02 and abs(tip[1, 3]) < 1e-4
    assert 0.5 < bend_angle(tip) < 1.0
    state = arm.actuator_state()
    assert state.effort[0] > 0.5
    np.testing.assert_array_equal(state.effort[1:], 0.0)
    np.testing.assert_allclose(state.position, (0.012, -0.02, -0.02), atol=1.5e-5)


def test_motors_respect_their_speed_and_acceleration_limits():
    arm = plant(1)
    speeds = []
    for _ in range(50):
        arm.step((0.02, -0.02, -0.02), 0.01)
        speeds.append(arm.actuator_state().velocity)
    speeds = np.array(speeds)
    assert np.abs(speeds).max() == pytest.approx(0.02)
    assert np.abs(np.diff(speeds, axis=0)).max() <= 0.1 * 0.01 * (1 + 1e-9)


def test_hold_stops_the_motors_and_no_command_keeps_them_stopped():
    arm = plant(1)
    arm.step((0.02, -0.02, -0.02), 0.5)
    arm.hold()
    arm.step(None, 0.3)
    rest = arm.actuator_state().position
    assert np.all(arm.actuator_state().velocity == 0.0)
    arm.step(None, 0.5)
    np.testing.assert_array_equal(arm.actuator_state().position, rest)
    assert rest[0] == pytest.approx(0.008 + 0.002, abs=2 * STEPPER['step_m'])


def test_motion_ends_in_the_static_equilibrium():
    arm = plant(stepper={'backlash_m': 0.0})
    expected = arm.drives.static_equilibrium(
        np.round(SWING / STEPPER['step_m']) * STEPPER['step_m']
    )
    assert arm.time_s == 0.0
    np.testing.assert_allclose(arm.true_section_tips()[:, :2, 3], 0.0, atol=1e-9)
    arm.step(SWING, 20.0)
    np.testing.assert_allclose(arm.true_section_tips(), expected.section_tips, atol=1e-5)
    np.testing.assert_allclose(arm.actuator_state().effort, expected.tension, atol=1e-3)


def test_measured_frames_show_the_true_tips_at_their_stamps():
    quiet = {'position_noise_m': 0.0, 'orientation_noise_rad': 0.0, 'delay_s': 0.013}
    arm = plant(mocap=quiet)
    truth, frames, arrivals = {0.0: arm.true_section_tips()}, [], []
    for _ in range(500):
        arm.step(SWING, 0.002)
        truth[round(arm.time_s, 6)] = arm.true_section_tips()
        for frame in arm.poll_poses():
            frames.append(frame)
            arrivals.append(arm.time_s)
    stamps = np.array([f.stamp_s for f in frames])
    np.testing.assert_allclose(stamps, 0.01 * np.arange(len(stamps)), atol=1e-9)
    delays = np.array(arrivals) - stamps
    assert delays.min() >= 0.013 - 1e-9 and delays.max() <= 0.015 + 1e-9
    assert len(frames) == 99
    for frame in frames:
        np.testing.assert_array_equal(frame.section_tips, truth[round(frame.stamp_s, 6)])


@pytest.mark.parametrize('rate', [60.0, 100.0, 240.0])
def test_frame_rate_holds_if_frames_do_not_fall_on_time_steps(rate):
    arm = plant(1, mocap={'rate_hz': rate})
    arm.step(np.zeros(3), 5.0)
    stamps = np.array([f.stamp_s for f in arm.poll_poses()])
    expected = np.arange(len(stamps)) / rate
    assert len(stamps) == pytest.approx(5.0 * rate, abs=4)
    assert np.all(stamps - expected > -1e-9) and np.all(stamps - expected < 0.002 + 1e-9)


def test_cameras_can_be_switched_off_and_on():
    arm = plant(1)
    assert arm.mocap_enabled
    arm.step(None, 0.1)
    assert len(arm.poll_poses()) == 10
    arm.mocap_enabled = False
    arm.step(None, 0.1)
    assert len(arm.poll_poses()) == 1  # it was under way
    arm.step(None, 0.1)
    assert arm.poll_poses() == []
    arm.mocap_enabled = True
    arm.step(None, 0.1)
    assert len(arm.poll_poses()) == 9


def test_same_seed_gives_the_same_run():
    def run(seed, chunk):
        arm = plant(seed=seed, mocap={'dropout_probability': 0.05})
        frames = []
        for k in range(round(1.0 / chunk)):
            arm.step(SWING if k * chunk < 0.6 - 1e-9 else None, chunk)
            frames += arm.poll_poses()
        return arm.true_section_tips(), np.array([f.section_tips for f in frames])

    tips, measured = run(4, 0.01)
    again, measured_again = run(4, 0.01)
    np.testing.assert_array_equal(again, tips)
    np.testing.assert_array_equal(measured_again, measured)
    # The division of the time into calls does not matter.
    fine, measured_fine = run(4, 0.002)
    np.testing.assert_allclose(fine, tips, atol=1e-12)
    np.testing.assert_allclose(measured_fine, measured, atol=1e-12)
    other, measured_other = run(5, 0.01)
    np.testing.assert_array_equal(other, tips)
    assert measured_other.shape != measured.shape or not np.allclose(measured_other, measured)


def test_time_advances_exactly_by_odd_durations():
    arm = plant(1)
    for _ in range(30):
        arm.step(None, 1.0 / 30.0)
    assert arm.time_s == pytest.approx(1.0, abs=1e-12)
    arm.step(None, 1e-4)
    assert arm.time_s == pytest.approx(1.0001, abs=1e-12)


def test_centreline_runs_from_base_to_tip():
    arm = plant()
    arm.step(SWING, 2.0)
    points = arm.true_centerline(40)
    np.testing.assert_array_equal(points[0], 0.0)
    np.testing.assert_allclose(points[-1], arm.true_section_tips()[-1, :3, 3], atol=1e-12)
    gaps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    np.testing.assert_allclose(gaps, gaps.mean(), rtol=5e-3)


@pytest.mark.parametrize(
    ('command', 'message'),
    [
        ((0.0,) * 5, r'command has shape \(5,\), expected \(6,\)'),
        ((0.0, 0.0, np.nan, 0.0, 0.0, 0.0), 'command of 2 = nan is not finite'),
        ((0.0, 0.0, 0.0, 0.0, 0.0, np.inf), 'command of 5 = inf is not finite'),
    ],
)
def test_bad_commands_are_refused_and_nothing_moves(command, message):
    arm = plant()
    before = arm.true_section_tips()
    with pytest.raises(ValueError, match=message):
        arm.step(command, 0.01)
    assert arm.time_s == 0.0
    np.testing.assert_array_equal(arm.true_section_tips(), before)


@pytest.mark.parametrize('duration', [0.0, -0.01, np.nan, np.inf])
def test_bad_durations_are_refused(duration):
    with pytest.raises(ValueError, match='duration_s'):
        plant(1).step(None, duration)


def test_full_speed_reversals_stay_finite_and_the_arm_returns_to_rest():
    arm = plant()
    side = np.array([1.0, -0.5, -0.5, -1.0, 0.5, 0.5])
    for k in range(12):
        arm.step((0.03 if k % 2 == 0 else -0.03) * side, 1.5)
        assert np.isfinite(arm.true_section_tips()).all()
        assert np.isfinite(arm.actuator_state().effort).all()
    arm.step(np.zeros(6), 25.0)
    tip = arm.true_section_tips()[-1]
    np.testing.assert_allclose(tip[:3, 3], [0.0, 0.0, 2 * REST_LENGTH], atol=2e-3)


def test_strong_co_contraction_raises_a_buckling_error():
    arm = plant()
    with pytest.raises(PlantError, match=r'of section 0 .* the arm has buckled'):
        arm.step(np.full(6, 0.04), 6.0)


def test_slight_co_contraction_compresses_the_arm():
    arm = plant()
    rest = arm.true_section_tips()[:, 2, 3]
    arm.step(np.full(6, 0.002), 5.0)
    shorter = rest - arm.true_section_tips()[:, 2, 3]
    effort = arm.actuator_state().effort
    assert np.all(effort[:3] > 2.0) and np.all(effort[3:] > 0.1)
    # The distal cables run through the proximal section: its shortening takes them up as well.
    np.testing.assert_allclose(shorter, 0.002, atol=2.5e-4)
    np.testing.assert_allclose(arm.true_section_tips()[:, :2, 3], 0.0, atol=1e-6)


def test_payload_hangs_at_the_tip_from_the_start():
    sideways = (9.81, 0.0, 0.0)
    light = plant(gravity=sideways)
    heavy = ArmPlant(plant_config(2), ring(2), sideways, tip_load_kg=0.005)
    sag = heavy.true_section_tips()[-1, 0, 3] - light.true_section_tips()[-1, 0, 3]
    asked = light.drives.static_equilibrium(tip_force=(0.005 * 9.81, 0.0, 0.0)).section_tips[
        -1, 0, 3
    ]
    assert sag > 0.001
    assert heavy.true_section_tips()[-1, 0, 3] == pytest.approx(asked, abs=1e-5)
    heavy.step(None, 0.5)
    assert heavy.true_section_tips()[-1, 0, 3] == pytest.approx(asked, abs=1e-3)


def test_motors_turned_by_a_board_reach_its_position_beyond_their_own_limits():
    arm = plant(1)
    far = np.array([0.004, -0.002, 0.0])  # in 10 ms: 20 times the speed limit of commands
    with arm.drives.turning(far, 0.01):
        arm.advance(0.01)
    state = arm.actuator_state()
    np.testing.assert_allclose(state.position, far, atol=STEPPER['step_m'])
    np.testing.assert_allclose(state.velocity, far / 0.01, rtol=1e-9)
    with arm.drives.turning(far, 1.0):
        arm.advance(1.0)
    assert bend_angle(arm.true_section_tips()[0]) > 0.1
    for position, duration, message in (
        (np.zeros(2), 0.01, r'position has shape \(2,\)'),
        ([0.0, np.nan, 0.0], 0.01, 'position of 1 = nan'),
        (far, 0.0, 'duration_s = 0.0'),
    ):
        with pytest.raises(ValueError, match=message), arm.drives.turning(position, duration):
            arm.advance(1.0)
    assert arm.time_s == pytest.approx(1.01)


def test_poses_arrive_at_next_poses_s_or_at_most_one_step_later():
    arm, longest = plant(1), 0.002
    arm.step(np.zeros(3), 0.1)
    arm.poll_poses()
    for _ in range(20):
        due = arm.next_poses_s
        assert arm.time_s < due < arm.time_s + 0.02
        arm.step(np.zeros(3), due - arm.time_s - 1e-6)
        assert arm.poll_poses() == []
        arm.step(np.zeros(3), longest + 1e-6)
        assert len(arm.poll_poses()) == 1


class Answering(Mocap):
    """A pose sensor of another package that answers wrongly."""

    def __init__(self, config, answer):
        super().__init__(config, 0)
        self.answer = answer

    def poll(self, now_s):
        return self.answer


@pytest.mark.parametrize(
    ('answer', 'said'),
    [
        (None, r'None; expected a list of poses'),
        ([np.eye(4)], r'\[\[1.0, .*; expected a PoseMeasurement'),
        ([PoseMeasurement(np.nan, np.eye(4)[None])], r'stamp_s nan .*; expected a time \[s\]'),
        ([PoseMeasurement(None, np.eye(4)[None])], r'stamp_s None; expected a time \[s\]'),
        ([PoseMeasurement(0.0, np.eye(4)[None], 7)], r'frame_id 7 \(int\); expected a name'),
        ([PoseMeasurement(0.0, np.zeros((2, 4, 4)))], r'section tips .*; expected 1 x 4 x 4'),
    ],
)
def test_a_sensor_that_answers_wrongly_is_named_with_its_answer(answer, said):
    arm = plant(1)
    arm.look_with(Answering(arm.config.mocap, answer))
    with pytest.raises(PlantError, match=f'^sensor Answering returned {said}'):
        arm.poll_poses()


@pytest.mark.parametrize('name', ['next_frame_s', 'next_arrival_s'])
@pytest.mark.parametrize('time_s', [None, np.nan, 'soon'])
def test_a_sensor_that_states_no_time_of_its_next_frame_is_named(name, time_s):
    arm = plant(1)
    sensor = type('Vague', (Mocap,), {name: time_s, 'due': lambda *given: False})(
        arm.config.mocap, 0
    )
    with pytest.raises(PlantError, match=rf'^sensor Vague returned {name} .*a time \[s\]$'):
        arm.look_with(sensor)
        arm.step(np.zeros(3), 0.1)
        _ = arm.next_poses_s
