"""Task files: checked before anything moves, then run step by step."""

import numpy as np
import pytest

from softarm_ros.cli.cli_errors import is_user_error
from softarm_ros.control.reach import Reach
from softarm_ros.control.trajectory import Trajectory
from softarm_ros.control.trajectory_config import LineConfig
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.task_file import load_task
from softarm_ros.runtime.assembly import build_task_loop, build_tracker
from softarm_ros.runtime.control_loop import ControlLoop
from softarm_ros.runtime.direct import run_direct
from softarm_ros.runtime.loop import Phase
from softarm_ros.runtime.task_loop import Stage, TaskLoop
from softarm_ros.runtime.task_plan import TaskError, attitude_configuration

TASK = """\
description: two postures, a line, a rest
speed_m_s: 0.03
steps:
  - attitude_deg: [30, 40, 60, 30]
    duration_s: 2.0
  - dwell_s: 0.5
  - position_m: [0.09, 0.05, 0.19]
  - position_m: [0.09, -0.02, 0.19]
    speed_m_s: 0.02
  - dwell_s: 1.5
"""


@pytest.fixture(scope='module')
def rig():
    return load_rig('cable_arm')


@pytest.fixture
def write(tmp_path):
    def to(text):
        path = tmp_path / 'task.yaml'
        path.write_text(text)
        return str(path)

    return to


def test_task_runs_its_steps_in_order_and_feedback_holds_the_last_position(rig, write):
    record = run_direct(rig, task=write(TASK), seed=3)
    assert record.completed
    told = [e.message for e in record.events if e.message.startswith('step ')]
    assert [m.split(':')[0] for m in told] == [f'step {k} of 5' for k in range(1, 6)]
    s = record.samples
    attitude = s.configuration[(s.lap == 0)][-1].reshape(-1, 2)
    np.testing.assert_allclose(np.degrees(np.hypot(*attitude.T)), [40.0, 30.0], atol=1e-3)
    np.testing.assert_allclose(
        np.degrees(np.arctan2(attitude[:, 1], attitude[:, 0])), [30.0, 60.0], atol=1e-3
    )
    resting = (s.lap == 4) & np.isfinite(s.tip[:, 0])
    away = np.linalg.norm(s.tip[resting] - [0.09, -0.02, 0.19], axis=1)
    assert np.median(away[-30:]) < 1e-3
    assert record.summary()['task'].endswith('task.yaml')


def test_open_loop_task_keeps_the_model_error_that_feedback_removes(rig, write):
    task = write(TASK)
    closed, opened = (run_direct(rig, task=task, open_loop=o).samples for o in (False, True))
    final = [np.linalg.norm(s.reference[-1] - s.tip[-1]) for s in (closed, opened)]
    assert final[0] < 2e-3 < 4e-3 < final[1]


def test_task_commands_respect_the_speed_limits_of_the_actuators(rig, write):
    limits = rig.actuator_limits()
    command = run_direct(rig, task=write(TASK)).samples.command
    speed = np.abs(np.diff(command, axis=0)) * rig.tracker.rate_hz
    assert np.all(speed <= limits.max_speed * (1.0 + 1e-6))


def accelerations(loop, limits):
    """Run a loop, and 0.5 s more; return commanded accelerations as shares of their limits."""
    loop.start(0.0)
    commands, left = [], round(0.5 / loop.period_s)
    while left:
        commands.append(loop.cycle((len(commands) + 1) * loop.period_s, None).actuation)
        left -= loop.phase is Phase.DONE
        assert len(commands) < 3000
    return np.abs(np.diff(commands, 2, axis=0)) / loop.period_s**2 / limits.max_acceleration


# A line of a few millimetres, on which the sections of this arm straighten quickly.
BENT, WAY = np.array([-0.089, -1.193, 0.574, 0.229]), np.array([0.0, 0.0, -3e-3])


@pytest.mark.parametrize('ends', ['attitude', 'position'])
def test_command_brakes_after_a_position(rig, ends):
    tracker = build_tracker(rig, rig.model(), open_loop=True)
    tip = tracker.model.tips_of(BENT[None])[0]
    stages = [
        Stage('attitude', 2.0, configuration=BENT),
        Stage('position', position=tip + WAY, speed=0.03),
        Stage('attitude', 2.0, configuration=BENT),
    ]
    used = tuple(stages if ends == 'attitude' else stages[:2])
    loop = TaskLoop(tracker, used, rig.tracker, open_loop=True)
    assert np.all(accelerations(loop, rig.actuator_limits()) <= 1.001)
    if ends == 'attitude':
        np.testing.assert_allclose(tracker.configuration, BENT, atol=1e-9)


def test_command_brakes_at_the_end_of_a_trajectory(rig):
    tracker = build_tracker(rig, rig.model(), open_loop=True)
    tip, config = tracker.model.tips_of(BENT[None])[0], rig.tracker
    line = LineConfig(type='line', start=tuple(tip), end=tuple(tip + WAY), speed=0.03)
    trajectory = Trajectory(
        line, max_acceleration=config.max_acceleration_m_s2, max_jerk=config.max_jerk_m_s3
    )
    reach = Reach(tip[None], np.zeros(1), tip[None], BENT)
    loop = ControlLoop(tracker, trajectory, reach, config, open_loop=True)
    assert np.all(accelerations(loop, rig.actuator_limits()) <= 1.001)


def test_task_holds_its_command_and_resumes_without_a_jump(rig, write):
    loop = build_task_loop(rig, write(TASK), open_loop=True)
    loop.start(0.0)
    now = 0.0
    for _ in range(100):
        now += loop.period_s
        before = loop.cycle(now, None)
    loop.hold(now)
    for _ in range(50):
        now += loop.period_s
        held = loop.cycle(now, None)
    np.testing.assert_array_equal(held.configuration, before.configuration)
    loop.resume(now)
    now += loop.period_s
    after = loop.cycle(now, None)
    assert 0.0 < np.max(np.abs(after.configuration - before.configuration)) < 0.02


def test_an_attitude_goes_on_after_a_hold_within_the_acceleration_limits(write):
    rig = load_rig('pneumatic_arm')
    loop = build_task_loop(
        rig, write('steps: [{attitude_deg: [30, 50, 60, 50], duration_s: 2.0}]\n'), open_loop=True
    )
    loop.start(0.0)
    commands = [loop.cycle(k * loop.period_s, None) for k in range(100)]
    loop.hold(1.0)
    held = [loop.cycle(1.0 + k * loop.period_s, None).actuation for k in range(3)]
    loop.resume(1.1)
    after = [loop.cycle(1.1 + k * loop.period_s, None) for k in range(200)]
    acceleration = np.diff([*held, *(o.actuation for o in after)], 2, axis=0) / loop.period_s**2
    assert np.all(np.abs(acceleration) <= rig.actuator_limits().max_acceleration)
    assert commands[-1].phase is Phase.TRACK and after[-1].phase is Phase.DONE
    end = attitude_configuration(rig, rig.model(), (30, 50, 60, 50))
    np.testing.assert_allclose(after[-1].configuration, end, atol=1e-12)


@pytest.mark.parametrize(
    ('steps', 'message'),
    [
        ('  - position_m: [0.0, 0.0, 0.6]', r'steps\[0\]: position_m .* out of reach by 354'),
        ('  - attitude_deg: [0, 30]', r'steps\[0\]: attitude_deg has 2 angles; expected 4'),
        ('  - attitude_deg: [0, 30, 0, 160]', 'theta of distal = 160 deg; expected at most 150'),
        ('  - gripper: open', "rig 'cable_arm' has no gripper"),
        ('  - dwell_s: 1.0\n  - gripper: close', r'steps\[1\]: gripper'),
    ],
)
def test_steps_that_the_arm_cannot_do_are_refused_before_motion(rig, write, steps, message):
    with pytest.raises(TaskError, match=message) as caught:
        build_task_loop(rig, write('steps:\n' + steps + '\n'))
    assert is_user_error(caught.value)  # the command line shows the message, not a traceback


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('steps: []\n', 'steps'),
        ('steps:\n  - {}\n', r'steps\[0\]: expected exactly one of .*; found none'),
        ('steps:\n  - dwell_s: 1\n    gripper: open\n', 'found dwell_s and gripper'),
        ('steps:\n  - dwell_s: -1.0\n', r'steps\[0\]\.dwell_s = -1'),
        ('steps:\n  - gripper: opn\n', "did you mean 'open'"),
        ('steps:\n  - positon_m: [0, 0, 0.2]\n', "did you mean 'position_m'"),
        ('steps:\n  - dwell_s: 1.0\n    speed_m_s: 0.1\n', 'speed_m_s belongs to position_m'),
        (
            'steps:\n  - position_m: [0, 0, 0.2]\n    speed_m_s: 1.0e-12\n',
            r'steps\[0\]\.speed_m_s = 1e-12: expected a number >= 1e-06',
        ),
        ('speed_m_s: 1.0e-12\nsteps:\n  - dwell_s: 1\n', 'speed_m_s = 1e-12: expected a number'),
    ],
)
def test_mistakes_in_a_task_file_are_refused_by_field(write, text, message):
    with pytest.raises(RigError, match=message):
        load_task(write(text))


def test_unknown_task_name_is_refused():
    with pytest.raises(RigError, match="unknown task 'pick'"):
        load_task('pick')
