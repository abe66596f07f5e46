"""A simulated arm on a computer that is late: held, counted, and on it goes."""

import os
import signal
import time

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')

pytestmark = [pytest.mark.ros, pytest.mark.timeout(180)]


@pytest.fixture(scope='module')
def bench(tmp_path_factory):
    from node_bench import circling

    with circling(tmp_path_factory.mktemp('hold'), speed=0.03, processes='each') as running:
        yield running


def pause(bench, name, seconds):
    """Take a node's processor away for a while, as a busy computer does; return when."""
    pid = bench.processes.pid(name)
    began = time.monotonic()
    os.kill(pid, signal.SIGSTOP)
    try:
        bench.spin(seconds)
    finally:
        os.kill(pid, signal.SIGCONT)
    return began


@pytest.mark.parametrize(
    ('name', 'reason'),
    [
        ('tracker', 'command stale'),
        ('inverse_kinematics', 'command stale'),
        ('plant', 'feedback stale'),
        ('supervisor', 'supervisor late by'),
    ],
)
def test_lateness_is_a_hold_that_is_told_counted_and_left(bench, name, reason):
    bench.run()
    holds = int(bench.values('supervisor')['holds'])
    began = pause(bench, name, 0.5)
    bench.until(
        lambda: int(bench.values('supervisor')['holds']) > holds and bench.state == 'running',
        10.0,
        'held and running again',
    )
    events = [v for k, v in bench.values('supervisor').items() if k.startswith('event ')]
    assert any(reason in e and 'held' in e for e in events), events
    assert any('goes on after a hold' in e for e in events), events
    now = time.monotonic()
    bench.until(lambda: bench.moved_at > now, 10.0, 'motion')
    assert not bench.reasons(began)  # no fault


def test_late_drawing_is_no_reason(bench):
    bench.run()
    holds = bench.values('supervisor')['holds']
    began = pause(bench, 'markers', 1.5)
    assert bench.state == 'running'
    told = [v for k, v in bench.values('supervisor').items() if k.startswith('event ')]
    assert bench.values('supervisor')['holds'] == holds, told
    assert bench.moved_at > began + 1.3
