"""The whole graph over real topics: after any failure the arm stops within 200 ms."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')

from softarm_ros.rigs.loader import load_rig

pytestmark = [pytest.mark.ros, pytest.mark.graphs, pytest.mark.timeout(180)]
HOLD_S = 0.2
# First reported reason when a node dies.
REASONS = {
    'tracker': 'command stale',
    'inverse_kinematics': 'command stale',
    'plant': 'feedback stale',
}


@pytest.fixture(scope='module')
def bench(tmp_path_factory):
    from node_bench import circling

    # Strict: as with devices, lateness is a fault. Each node alone can be killed.
    options = {'strict': True, 'processes': 'each'}
    with circling(tmp_path_factory.mktemp('safety'), speed=0.03, **options) as running:
        yield running


def assert_held(bench, since, expected, source='supervisor'):
    """Check that motion ended in time and that /diagnostics says why."""
    held = bench.hold_time(since)
    print(f'held after {1e3 * held:.0f} ms')
    assert held <= HOLD_S
    reasons = bench.reasons(since, source)
    assert any(expected in message for _, message in reasons), bench.reasons(since)
    assert min(delay for delay, message in reasons if expected in message) <= 0.5


def test_killed_markers_node_does_not_stop_the_arm(bench):
    bench.run()
    dead, began = bench.kill('markers')
    bench.until(lambda: bench.state_at > began + 1.5, 10.0, 'states')
    assert bench.state == 'running'
    assert bench.moved_at > began + 1.3
    assert [e.name for e in bench.processes.ended()] == dead
    assert dead == ['markers']
    bench.restart(dead)


def test_estop_holds_until_reset_and_start(bench):
    bench.run()
    bench.client('supervisor/estop')
    began = bench.now_s()
    assert bench.call('supervisor/estop').success
    assert_held(bench, began, 'emergency stop')
    refused = bench.call('supervisor/start')
    assert not refused.success
    assert 'emergency stop' in refused.message
    assert bench.call('supervisor/reset').success
    assert bench.state in ('fault', 'ready')
    bench.spin(0.3)
    assert bench.moved_at < began + 0.5  # reset alone moves nothing
    assert bench.call('supervisor/start').success
    started = bench.now_s()
    bench.until(lambda: bench.moved_at > started, 5.0, 'motion')


def test_stop_holds_the_arm_and_start_resumes_motion(bench):
    bench.run()
    assert bench.call('supervisor/stop').success
    bench.until(lambda: bench.state == 'stopped', 2.0, 'stopped')
    bench.until(lambda: bench.values('tracker')['phase'] == 'held', 2.0, 'held')
    stopped = bench.now_s()
    assert bench.hold_time(stopped + 0.3) == 0.0
    assert bench.call('supervisor/start').success
    bench.until(lambda: bench.moved_at > stopped + 0.9, 5.0, 'motion')


def test_lost_feedback_holds_the_arm_until_it_returns_and_a_reset(bench):
    from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
    from rcl_interfaces.srv import SetParameters

    def cameras(enabled):
        value = ParameterValue(type=ParameterType.PARAMETER_BOOL, bool_value=enabled)
        request = SetParameters.Request(parameters=[Parameter(name='mocap_enabled', value=value)])
        answer = bench.call('plant/set_parameters', SetParameters, request)
        assert answer.results[0].successful

    bench.run()
    try:
        cameras(False)
        # All poses that were on their way have been read.
        bench.until(lambda: bench.now_s() > bench.pose_at + 0.3, 5.0, 'the last pose')
        assert_held(bench, bench.pose_at, 'feedback stale')
        refused = bench.call('supervisor/reset')
        assert not refused.success
        assert 'feedback' in refused.message
    finally:
        cameras(True)
    bench.until(lambda: bench.call('supervisor/reset').success, 5.0, 'reset')
    bench.run()


def test_nan_in_a_pose_holds_the_arm_and_is_reported_by_the_tracker(bench):
    from builtin_interfaces.msg import Time

    from softarm_ros.nodes.conversions import position_message

    bench.run()
    began = bench.now_s()
    for _ in range(5):
        bench.tip.publish(position_message([0.0, np.nan, 0.2], Time(sec=1), 'cable_arm/base'))
        bench.spin(0.003)
    assert_held(bench, began, 'not finite')
    bench.until(
        lambda: any('not finite' in value for value in bench.values('tracker').values()),
        2.0,
        'what the tracker left out',
    )
    bench.run()


def test_command_beyond_the_limits_holds_the_arm(bench):
    from builtin_interfaces.msg import Time
    from sensor_msgs.msg import JointState

    from softarm_ros.nodes.conversions import joint_message
    from softarm_ros.nodes.qos import command_qos

    rig = load_rig('cable_arm')
    publisher = bench.node.create_publisher(JointState, 'actuators/command', command_qos(0.1))
    bench.run()
    began = bench.now_s()
    beyond = np.zeros(len(rig.actuators))
    beyond[2] = 1.0
    publisher.publish(joint_message(rig.actuator_names, beyond, Time(sec=1)))
    assert_held(bench, began, f'{rig.actuator_names[2]} = 1 m outside')
    bench.node.destroy_publisher(publisher)
    bench.run()


@pytest.mark.parametrize('name', ['supervisor', *REASONS])
def test_killing_a_process_holds_the_arm_and_a_restart_recovers(bench, name):
    others = [n for n in ('supervisor', *REASONS) if n in bench.together(name)]
    if others[0] != name:
        pytest.skip(f'dies with {others[0]}')
    bench.run()
    dead, began = bench.kill(name)
    held = bench.hold_time(began)
    print(f'{dead} killed, held after {1e3 * held:.0f} ms')
    ended = bench.processes.ended()
    if name == 'supervisor':
        # Only the plant, whose watchdog held the arm, is left to report it.
        bench.until(
            lambda: 'supervisor silent' in bench.health['plant'].message, 2.0, 'what held the arm'
        )
    bench.restart(dead)

    assert held <= HOLD_S
    assert {e.name for e in ended} <= set(dead)
    assert all('SIGKILL' in e.describe() for e in ended)
    assert ended
    if name != 'supervisor':
        reasons = [message for _, message in bench.reasons(began)]
        assert any(REASONS[name] in m or f'{name} silent' in m for m in reasons), reasons
    bench.run()
