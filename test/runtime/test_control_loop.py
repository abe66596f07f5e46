import numpy as np
import pytest

from softarm_ros.control.controller import AnswerError
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.assembly import TrajectoryError, build_control_loop
from softarm_ros.runtime.loop import Phase, PoseSample

PERIOD = 0.01


@pytest.fixture(scope='module')
def rig():
    return load_rig('cable_arm')


@pytest.fixture
def trajectory_file(tmp_path):
    def write(text):
        path = tmp_path / 'path.yaml'
        path.write_text(text)
        return str(path)

    return write


CIRCLE = 'type: circle\ncenter: [0, 0, 0.2]\nradius: 0.09\nspeed: 0.05\nlaps: 1\n'


class LaggingArm:
    """An arm that follows a configuration late and by 10 % too little, unlike any model."""

    def __init__(self, model, delay=0.01, share=0.9):
        self.model, self.delay, self.share = model, delay, share
        self.bend = np.zeros(len(model.configuration_names))
        self.history = []

    def step(self, now, configuration):
        self.bend += (self.share * configuration - self.bend) * PERIOD / 0.05
        self.history.append((now, self.model.shape_of(self.bend).tip[:3, 3]))

    def pose(self, now):
        seen = [h for h in self.history if h[0] <= now - self.delay + 1e-9]
        return PoseSample(*seen[-1]) if seen else None


def drive(loop, arm, seconds, now=0.0, interrupt=None):
    outputs = []
    for _ in range(round(seconds / PERIOD)):
        output = loop.cycle(now, arm.pose(now))
        outputs.append(output)
        if output.phase is Phase.DONE:
            break
        arm.step(now, output.configuration)
        now += PERIOD
        if interrupt is not None:
            interrupt(now, loop)
    return outputs


def test_phases_follow_in_order_and_closed_loop_tracks_better_than_open_loop(rig, trajectory_file):
    mean = {}
    for open_loop in (True, False):
        loop = build_control_loop(rig, trajectory_file(CIRCLE), open_loop=open_loop)
        assert loop.cycle(0.0, None).phase is Phase.IDLE
        loop.start(0.0)
        outputs = drive(loop, LaggingArm(loop.model), 60.0)
        phases = list(dict.fromkeys(o.phase for o in outputs))
        settle = [] if open_loop else [Phase.SETTLE]
        assert phases == [Phase.APPROACH, *settle, Phase.TRACK, Phase.DONE]
        errors = [o.error_m for o in outputs if o.phase is Phase.TRACK]
        mean[open_loop] = np.mean(errors)
    assert mean[False] < 0.25 * mean[True]


def test_commands_respect_the_speed_limit_in_every_cycle(rig, trajectory_file):
    loop = build_control_loop(rig, trajectory_file(CIRCLE))
    loop.start(0.0)
    outputs = drive(loop, LaggingArm(loop.model), 60.0)
    actuation = np.array([o.actuation for o in outputs])
    speed = np.abs(np.diff(actuation, axis=0)).max() / PERIOD
    assert speed <= loop.limits.max_speed.max() * (1 + 1e-6)


def test_coordinates_that_hold_the_arm_back_are_named(rig, trajectory_file):
    loop = build_control_loop(rig, trajectory_file(CIRCLE))
    loop.start(0.0)
    events = [e for o in drive(loop, LaggingArm(loop.model, share=0.4), 60.0) for e in o.events]
    said = [e.message for e in events if e.message.startswith('held back')]
    assert said[0] == (
        'held back for 0.3 s by (distal_bend_x, distal_bend_y) at 150 deg; '
        'the path is not followed closely'
    )


def test_hold_freezes_command_and_progress_and_resume_continues(rig, trajectory_file):
    loop = build_control_loop(rig, trajectory_file(CIRCLE))
    loop.start(0.0)
    arm = LaggingArm(loop.model)
    outputs = drive(loop, arm, 10.0)
    assert outputs[-1].phase is Phase.TRACK
    loop.hold(10.0)
    held = drive(loop, arm, 5.0, now=10.0)
    assert {o.phase for o in held} == {Phase.HELD}
    np.testing.assert_array_equal(held[0].actuation, held[-1].actuation)
    assert held[0].progress == held[-1].progress
    loop.resume(15.0)
    again = drive(loop, arm, 60.0, now=15.0)
    assert again[0].phase is Phase.TRACK
    assert again[-1].phase is Phase.DONE
    step = np.abs(again[0].actuation - held[-1].actuation).max()
    assert step <= loop.limits.max_speed.max() * PERIOD * 5.0


def test_an_approach_goes_on_after_a_hold_within_the_acceleration_limits(rig, trajectory_file):
    """Also the winding of the pretension, which is stopped on the way."""
    loop = build_control_loop(rig, trajectory_file(CIRCLE))
    loop.start(0.0)
    arm = LaggingArm(loop.model)
    moving = drive(loop, arm, 0.5)
    loop.hold(0.5)
    held = drive(loop, arm, 0.2, now=0.5)
    loop.resume(0.7)
    after = drive(loop, arm, 3.0, now=0.7)
    assert moving[-1].phase is after[0].phase is Phase.APPROACH
    approach = [o.actuation for o in after if o.phase is Phase.APPROACH]
    acceleration = np.diff([o.actuation for o in held[-3:]] + approach, 2, axis=0) / PERIOD**2
    assert np.all(np.abs(acceleration) <= loop.limits.max_acceleration)
    assert after[-1].phase is Phase.SETTLE


def test_an_estimate_that_is_not_finite_is_refused_and_not_used(rig, trajectory_file):
    loop = build_control_loop(rig, trajectory_file(CIRCLE))
    loop.start(0.0)
    arm = LaggingArm(loop.model)
    drive(loop, arm, 10.0)
    with pytest.raises(AnswerError, match='tip is not finite'):
        loop.cycle(10.01, PoseSample(10.0, np.array([np.nan, 0.0, 0.2])))
    output = loop.cycle(10.02, None)
    assert np.all(np.isfinite(output.actuation))
    assert np.isfinite(output.error_m)


def test_arm_without_poses_settles_until_the_settle_timeout(rig, trajectory_file):
    loop = build_control_loop(rig, trajectory_file(CIRCLE))
    loop.start(0.0)
    phases = [loop.cycle(PERIOD * i, None).phase for i in range(2000)]
    settling = phases.count(Phase.SETTLE) * PERIOD
    assert settling == pytest.approx(rig.tracker.settle_timeout_s, abs=2 * PERIOD)


def test_unsettled_tip_is_reported_with_its_largest_recent_distance(rig, trajectory_file):
    loop = build_control_loop(rig, trajectory_file(CIRCLE))
    loop.start(0.0)
    said = []
    for k in range(2000):
        # A tip that is at the first point except for 5 mm in every tenth cycle.
        away = np.array([0.005, 0.0, 0.0]) * (k % 10 == 0)
        output = loop.cycle(k * PERIOD, PoseSample(k * PERIOD, np.array([0.09, 0.0, 0.2]) + away))
        said += [e.message for e in output.events if e.message.startswith('first point')]
        if output.phase is Phase.TRACK:
            break
    assert said == [
        'first point not reached within 3 s: up to 5.0 mm away in the last 0.3 s '
        '(tolerance 2.0 mm)'
    ]


def test_missing_poses_do_not_stop_the_loop(rig, trajectory_file):
    loop = build_control_loop(rig, trajectory_file(CIRCLE))
    loop.start(0.0)
    outputs = [loop.cycle(k * PERIOD, None) for k in range(1000)]
    assert all(np.all(np.isfinite(o.actuation)) for o in outputs)
    assert np.isnan(outputs[-1].error_m)


def test_command_does_not_jump_after_a_late_cycle(rig, trajectory_file):
    loop = build_control_loop(rig, trajectory_file(CIRCLE), open_loop=True)
    loop.start(0.0)
    outputs = drive(loop, LaggingArm(loop.model), 12.0)
    assert outputs[-1].phase is Phase.TRACK
    late = loop.cycle(12.0 + 2.0, None)
    jump = np.abs(late.actuation - outputs[-1].actuation).max()
    assert jump <= loop.limits.max_speed.max() * 5.0 * PERIOD * (1 + 1e-6)


def test_a_point_out_of_reach_is_reported_and_approached(rig, trajectory_file):
    file = trajectory_file(
        'type: waypoints\npoints: [[0.08, 0, 0.2], [0.10, 0.05, 0.19], [0.28, 0.0, 0.2]]\n'
        'speed: 0.05\n'
    )
    loop = build_control_loop(rig, file, open_loop=True)
    assert 0 < np.sum(~loop.reach.reachable) < len(loop.reach.points)
    loop.start(0.0)
    outputs = drive(loop, LaggingArm(loop.model), 60.0)
    assert outputs[-1].phase is Phase.DONE
    messages = [e.message for o in outputs for e in o.events]
    assert any('out of reach' in m for m in messages)
    actuation = np.array([o.actuation for o in outputs])
    assert np.abs(np.diff(actuation, axis=0)).max() <= loop.limits.max_speed.max() * PERIOD * 1.001
    end = loop.model.shape_of(outputs[-1].configuration).tip[:3, 3]
    assert np.linalg.norm(end - [0.28, 0, 0.2]) < 0.12


def test_trajectory_entirely_out_of_reach_is_refused_with_numbers(rig, trajectory_file):
    file = trajectory_file('type: line\nstart: [0.5, 0, 0.2]\nend: [0.5, 0.1, 0.2]\n')
    with pytest.raises(TrajectoryError) as error:
        build_control_loop(rig, file)
    assert 'outside the workspace' in str(error.value)
    assert 'mm beyond the nearest reachable' in str(error.value)


def test_first_point_beyond_the_actuator_range_is_approached_within_limits(trajectory_file):
    tight = load_rig('cable_arm', [f'arm.actuators[{i}].position_max_m=0.012' for i in range(6)])
    file = trajectory_file(
        'type: line\nstart: [0.15, 0.0, 0.19]\nend: [0.03, 0.0, 0.23]\nspeed: 0.05\nlaps: 1\n'
    )
    loop = build_control_loop(tight, file)
    assert not loop.reach.reachable[0] and loop.reach.reachable[-1]
    loop.start(0.0)
    outputs = drive(loop, LaggingArm(loop.model), 60.0)
    assert outputs[-1].phase is Phase.DONE
    limits = tight.actuator_limits()
    for output in outputs:
        limits.check(output.actuation)
