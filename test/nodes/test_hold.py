"""
Late nodes hold a simulated arm until they recover; implausible poses hold it with a fault.

Tests without ROS check the decisions of the supervisor (test_supervisor.py,
test_feedback_watch.py, test_supervised_run.py); these check the way over topics and the motion.
"""

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')

pytestmark = [pytest.mark.ros, pytest.mark.graphs, pytest.mark.timeout(180)]
LOOP = ('plant', 'inverse_kinematics', 'tracker', 'supervisor')
# Reported reason if a process is paused, by the first of its nodes.
REASONS = {
    'supervisor': 'supervisor late by',
    'plant': 'feedback stale',
    'tracker': 'command stale',
    'inverse_kinematics': 'command stale',
}
NOTICED_S = 0.5
LIES = {
    'cameras freeze': 'repeats itself',  # a value
    'cameras room': "frame 'room'",  # a frame
    'cameras old': 'ms old (limit',  # a stamp
}


@pytest.fixture(scope='module')
def bench(tmp_path_factory):
    from node_bench import HALF_RATES, circling

    # test_safety.py checks the times, at the rates of the rig file.
    folder = tmp_path_factory.mktemp('hold')
    with circling(folder, speed=0.015, settings=HALF_RATES, processes='each') as running:
        yield running


@pytest.mark.parametrize('name', LOOP)
def test_paused_process_causes_a_reported_and_counted_hold_then_the_arm_goes_on(bench, name):
    late = [other for other in REASONS if other in bench.together(name)]
    if late[0] != name:
        pytest.skip(f'in one process with {late[0]}')
    bench.run()
    holds = int(bench.values('supervisor')['holds'])
    began = bench.now_s()
    with bench.paused(name):
        bench.spin(0.5)
    bench.until(
        lambda: int(bench.values('supervisor')['holds']) > holds and bench.state == 'running',
        10.0,
        'held and running again',
    )
    events = [v for k, v in bench.values('supervisor').items() if k.startswith('event ')]
    assert any(REASONS[name] in e and 'held' in e for e in events), events
    assert any('goes on after a hold' in e for e in events), events
    now = bench.now_s()
    bench.until(lambda: bench.moved_at > now, 10.0, 'motion')
    assert not bench.reasons(began)  # no fault


def test_paused_markers_node_does_not_hold_the_arm(bench):
    bench.run()
    began = bench.now_s()
    with bench.paused('markers'):
        bench.until(lambda: bench.moved_at > began + 1.3, 10.0, 'motion beside it')
    assert not bench.reasons(began)  # no fault
    told = [v for k, v in bench.values('supervisor').items() if k.startswith('event ')]
    assert not any('markers' in event for event in told), told


@pytest.mark.parametrize('lie', LIES)
def test_implausible_pose_holds_the_arm_with_a_fault(bench, lie):
    bench.run()
    began = bench.inject(lie, 'plant')
    bench.until(lambda: bench.reasons(began), 5.0, 'fault')
    (delay, message), *_ = bench.reasons(began)
    print(f'{lie}: {1e3 * delay:.0f} ms, {message}')
    bench.inject('cameras mend', 'plant')
    assert LIES[lie] in message
    assert delay <= NOTICED_S
    assert bench.hold_time(began + delay, 0.3) <= 0.2
