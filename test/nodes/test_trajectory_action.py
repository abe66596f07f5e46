"""The action FollowJointTrajectory on a running arm, with an ordinary action client."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('control_msgs', reason='needs the ROS package control_msgs')

from node_bench import client_until, waiting
from trajectory_client import ABORTED, CANCELED, SUCCEEDED, Trajectories, tolerance

pytestmark = [pytest.mark.ros, pytest.mark.graphs, pytest.mark.timeout(300)]
BENT = [0.4, 0.0, 0.3, 0.0]
STRAIGHT = [0.0, 0.0, 0.0, 0.0]


@pytest.fixture(scope='module')
def rig():
    from softarm_ros.rigs.loader import load_rig

    return load_rig('cable_arm')


@pytest.fixture(scope='module')
def bench(rig):
    with waiting(rig) as running:
        yield running


@pytest.fixture
def client(bench, rig):
    from softarm_ros.nodes.goal_client import GoalClient

    bench.spin(0.2)  # the bench has not spun since the last test
    if bench.state != 'running':
        bench.call('supervisor/reset')
        bench.call('supervisor/start')
        bench.until(lambda: bench.state == 'running', 5.0, 'running')
    with GoalClient(rig) as running:
        assert running.wait_until_heard(20.0) is None
        yield running


@pytest.fixture
def arm(client, rig):
    arm = Trajectories(client, rig)
    yield arm
    arm.action.destroy()


def test_trajectory_is_followed_to_its_end_with_measured_feedback(arm):
    wide = [tolerance(name, 0.05) for name in arm.names]
    goal = arm.goal((4.0, BENT), (8.0, STRAIGHT), path_tolerance=wide, goal_tolerance=wide)
    _, future, heard = arm.send(goal)
    assert arm.end(future)[:2] == (SUCCEEDED, 0)
    assert arm.states() == ['planning', 'active', 'reached']
    feedback = [message.feedback for message in heard]
    assert 0.5 < len(feedback) / 80.0 < 1.5  # ten a second
    assert list(feedback[0].joint_names) == arm.names
    desired = np.array([f.desired.positions for f in feedback])
    actual = np.array([f.actual.positions for f in feedback])
    error = np.array([f.error.positions for f in feedback])
    np.testing.assert_allclose(error, desired - actual, atol=1e-12)
    assert 0.35 < desired[:, 0].max() <= 0.4 + 1e-9
    assert 1e-4 < np.abs(error).max() < 0.05  # measured, not a copy of the command
    if hasattr(feedback[0], 'index'):
        assert [f.index for f in feedback] == sorted(f.index for f in feedback)
        assert feedback[-1].index == 1
    stamps = [f.header.stamp.sec + 1e-9 * f.header.stamp.nanosec for f in feedback]
    assert np.all(np.diff(stamps) > 0.0)


def invalid_goals(arm):
    """Return invalid goals, each with its error code and a part of the reason."""
    from builtin_interfaces.msg import Duration
    from control_msgs.msg import JointComponentTolerance

    named = arm.goal((4.0, BENT))
    named.trajectory.joint_names = ['elbow', *arm.names[1:]]
    planar = arm.goal((4.0, BENT))
    planar.multi_dof_trajectory.joint_names = ['base']
    first = arm.names[0]
    return [
        (named, -2, 'joint_names are [elbow'),
        (arm.goal((4.0, BENT), path_tolerance=[tolerance('elbow', 0.1)]), -2, 'path_tolerance[0]'),
        (arm.goal((4.0, BENT), stamp_s=-60.0), -3, 'in the past, and the trajectory lasts 4 s'),
        (arm.goal((4.0, BENT), stamp_s=60.0), -1, 'in the future; expected 0 or now'),
        (arm.goal(), -1, 'points has 0 entries'),
        (arm.goal((4.0, BENT[:2])), -1, 'points[0].positions has 2 values; expected 4'),
        (arm.goal((4.0, [float('nan'), 0.0, 0.0, 0.0])), -1, f'{first} = nan'),
        (arm.goal((4.0, BENT), (3.0, STRAIGHT)), -1, 'points[1].time_from_start = 3 s'),
        (arm.goal((0.1, [-2.4, 0.0, 2.4, 0.0])), -1, 'limit'),  # too fast for an actuator
        (arm.goal((4.0, [50.0, 0.0, 0.0, 0.0])), -1, 'points[0].positions'),
        (
            arm.goal((4.0, BENT), goal_tolerance=[tolerance(first, 0.1, velocity=0.1)]),
            -1,
            'goal_tolerance[0].velocity = 0.1',
        ),
        (
            arm.goal((4.0, BENT), component_path_tolerance=[JointComponentTolerance()]),
            -1,
            'component_path_tolerance has 1 entries',
        ),
        (planar, -1, 'multi_dof_trajectory.joint_names has 1 entries'),
        (
            arm.goal(
                (4.0, BENT),
                goal_time_tolerance=Duration(sec=1),
                path_tolerance=[tolerance(first, float('inf'))],
            ),
            -1,
            'path_tolerance[0].position = inf',
        ),
    ]


def test_invalid_goals_are_aborted_with_the_reason_and_the_active_goal_goes_on(arm):
    _, going, _ = arm.send(arm.goal((4.0, BENT), (40.0, STRAIGHT)))
    arm.until('active')
    for goal, code, words in invalid_goals(arm):
        _, future, heard = arm.send(goal)
        status, said, text = arm.end(future)
        assert (status, said) == (ABORTED, code), text
        assert words in text
        assert arm.states()[-1] == 'refused'
        assert heard == []
    assert not going.done()
    assert arm.client.call('goal/cancel', 5.0)[0]
    status, code, text = arm.end(going)
    assert (status, code) == (ABORTED, -1)  # not cancelled by its own client
    assert 'on request' in text


def test_new_goal_of_the_action_or_a_topic_preempts_the_active_one(arm, bench):
    _, first, _ = arm.send(arm.goal((20.0, BENT)))
    arm.until('active')
    _, second, _ = arm.send(arm.goal((20.0, STRAIGHT)))
    status, code, text = arm.end(first)
    assert (status, code) == (ABORTED, -1)
    assert 'preempted: by goal' in text
    arm.until('active')
    stamp = arm.client.send.pose((0.02, 0.0, 0.24))
    assert arm.end(second)[:2] == (ABORTED, -1)
    arm.until('active')
    assert arm.client.reports[-1].values['stamp_ns'] == str(stamp)
    _, third, _ = arm.send(arm.goal((0.0, STRAIGHT)))
    assert arm.end(third)[:2] == (SUCCEEDED, 0)
    assert [r.values['state'] for r in arm.client.of_stamp(stamp)][-1] == 'preempted'


def test_cancel_brings_the_arm_to_rest(arm, bench):
    handle, future, _ = arm.send(arm.goal((6.0, BENT)))
    arm.until('active')
    arm.client.spin(2.0)
    cancelled = handle.cancel_goal_async()
    client_until(arm.client, cancelled.done, 5.0, 'an answer')
    assert len(cancelled.result().goals_canceling) == 1
    status, code, text = arm.end(future)
    assert (status, code) == (CANCELED, 0)
    assert text == 'cancelled: on request'
    assert arm.states()[-1] == 'cancelled'
    began = bench.now_s()
    bench.spin(3.0)
    assert bench.moved_at < began + 2.0  # filter windows of the reference, swing of the body
    again = handle.cancel_goal_async()
    client_until(arm.client, again.done, 5.0, 'an answer')
    assert again.result().goals_canceling == []


def test_slipped_cable_aborts_the_goal_by_its_path_tolerance(arm, bench):
    narrow = [tolerance(name, 0.03) for name in arm.names]
    goal = arm.goal((5.0, BENT), (30.0, STRAIGHT), path_tolerance=narrow)
    _, future, _ = arm.send(goal)
    arm.until('active')
    arm.client.spin(2.0)
    assert not future.done()
    bench.inject('cable slip proximal_1 0.6', 'plant')
    status, code, text = arm.end(future, 5.0)
    bench.inject('cable slip proximal_1 -0.6', 'plant')
    assert (status, code) == (ABORTED, -4)
    assert 'path_tolerance: proximal_bend_x is measured at' in text
    assert text.endswith('tolerance 0.03')
    assert arm.states()[-1] == 'strayed'


def test_goal_is_aborted_if_its_goal_tolerance_is_not_met_in_time(arm):
    from builtin_interfaces.msg import Duration

    narrow = [tolerance(name, 1e-6) for name in arm.names]
    allowed = Duration(nanosec=400_000_000)
    goal = arm.goal((4.0, STRAIGHT), goal_tolerance=narrow, goal_time_tolerance=allowed)
    status, code, text = arm.end(arm.send(goal)[1])
    assert (status, code) == (ABORTED, -5)
    assert 'goal_tolerance: ' in text
    assert arm.states()[-1] == 'missed'


def test_emergency_stop_aborts_the_goal_and_new_goals(arm, bench):
    _, future, _ = arm.send(arm.goal((10.0, BENT)))
    arm.until('active')
    bench.spin(0.1)
    bench.call('supervisor/estop')
    status, code, text = arm.end(future, 5.0)
    assert (status, code) == (ABORTED, -1)
    assert 'held' in text
    status, code, text = arm.end(arm.send(arm.goal((10.0, BENT)))[1], 5.0)
    assert (status, code) == (ABORTED, -1)
    assert 'may not move' in text


def test_goal_of_a_killed_client_goes_on_to_its_end(arm, bench, rig):
    """joint_trajectory_controller does the same."""
    script = f"""
import rclpy
from builtin_interfaces.msg import Duration
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionClient
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

rclpy.init()
node = rclpy.create_node('other')
action = ActionClient(
    node, FollowJointTrajectory, '/{rig.name}/configuration/follow_joint_trajectory'
)
assert action.wait_for_server(20.0)
goal = FollowJointTrajectory.Goal()
goal.trajectory = JointTrajectory(joint_names={arm.names})
goal.trajectory.points = [
    JointTrajectoryPoint(positions={BENT}, time_from_start=Duration(sec=6))
]
sent = action.send_goal_async(goal)
rclpy.spin_until_future_complete(node, sent)
sent.result().get_result_async()
print('sent', flush=True)
rclpy.spin(node)
"""
    other = subprocess.Popen([sys.executable, '-c', script], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == 'sent\n'
        arm.until('active')
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    arm.until('reached')
    # The server still accepts the next goal.
    assert arm.end(arm.send(arm.goal((0.0, STRAIGHT)))[1])[:2] == (SUCCEEDED, 0)
    assert bench.processes.ended() == []


def test_internal_topics_of_the_action_are_not_recorded(arm, tmp_path):
    from rosbags.highlevel import AnyReader

    bag = tmp_path / 'bag'
    command = [sys.executable, '-m', 'softarm_ros.cli', 'record', 'cable_arm']
    with subprocess.Popen([*command, '--bag', str(bag), '--duration', '4']) as recorder:
        client_until(arm.client, lambda: recorder.poll() is not None, 60.0, 'its end')
    assert recorder.returncode == 0
    assert arm.client.value('recorder', 'skipped', 'never heard') == ''
    with AnyReader([bag]) as reader:
        topics = {c.topic for c in reader.connections}
    assert '/cable_arm/configuration/command' in topics
    assert not [topic for topic in topics if '/_action/' in topic]


def test_ending_tracker_sends_the_result_of_the_active_goal(arm, bench):
    """Ctrl-C in `ros2 launch` ends all nodes at once, without a stop of the supervisor before."""
    _, future, _ = arm.send(arm.goal((10.0, BENT)))
    arm.until('active')
    nodes = bench.together('tracker')
    os.kill(bench.processes.pid('tracker'), signal.SIGTERM)
    assert arm.end(future, 10.0) == (ABORTED, -1, 'cancelled: the tracker has ended')
    client_until(arm.client, bench.processes.ended, 20.0, 'the end of the process')
    bench.restart(nodes)
