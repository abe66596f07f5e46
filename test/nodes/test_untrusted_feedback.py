"""Cameras that lie, on the running graph: the supervisor sees it and the arm is held."""

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')

pytestmark = [pytest.mark.ros, pytest.mark.timeout(180)]
NOTICED_S = 0.5
FAULTS = {
    'cameras freeze': ('repeats itself',),
    'cameras room': ("frame 'room'",),
    'cameras mislabel': ('jumped by', 'and model part by', 'from its reference'),
    'cameras stuck': ('does not advance', 'ms old (limit'),
    'cameras old': ('ms old (limit',),
    'cameras future': ('in the future',),
}


@pytest.fixture(scope='module')
def bench(tmp_path_factory):
    from node_bench import circling

    with circling(tmp_path_factory.mktemp('feedback'), speed=0.015) as running:
        yield running


@pytest.mark.parametrize('fault', FAULTS)
def test_a_pose_that_is_not_to_be_believed_holds_the_arm(bench, fault):
    bench.run()
    began = bench.inject(fault, 'plant')
    bench.until(lambda: bench.reasons(began), 5.0, 'fault')
    (delay, message), *_ = bench.reasons(began)
    print(f'{fault}: {1e3 * delay:.0f} ms, {message}')
    bench.inject('cameras mend', 'plant')
    assert any(reason in message for reason in FAULTS[fault])
    assert delay <= NOTICED_S
    assert bench.hold_time(began + delay, 0.3) <= 0.2
