"""Cameras that lie, on the running graph: the supervisor sees it and the arm is held."""

from dataclasses import replace

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')

from softarm_ros.rigs.graph import graph_plan
from softarm_ros.rigs.loader import load_rig

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
    from node_bench import CIRCLE, READY_S, Bench

    circle = tmp_path_factory.mktemp('feedback') / 'circle.yaml'
    circle.write_text(CIRCLE.format(speed=0.015, laps=100))
    rig = load_rig('cable_arm')
    plan = [
        replace(spec, parameters={**spec.parameters, 'twin_check_s': 0.0})
        for spec in graph_plan(rig, trajectory=str(circle))
    ]
    with Bench(rig, plan) as running:
        running.until(lambda: running.state == 'running', READY_S, 'running')
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
