"""Fixtures for the tests of nodes; importing node_bench isolates their ROS graph."""

import gc

import pytest
from node_bench import CIRCLE, SHORT_CIRCLE


@pytest.fixture(scope='session', autouse=True)
def compiled():
    """Compile the kernels first: these tests time a running arm, not a compiler."""
    from softarm_ros.rigs.loader import load_rig
    from softarm_ros.runtime.warm_up import prepare

    for name in ('cable_arm', 'cable_arm_single'):
        prepare(load_rig(name))


@pytest.fixture
def context():
    """Yield a ROS context that leaves the graph, with its nodes, at the end of the test."""
    import rclpy
    from rclpy.context import Context

    context = Context()
    rclpy.init(context=context)
    yield context
    context.try_shutdown()
    gc.collect()  # a refused node, and a lifecycle node, stays in the graph as long as its object


@pytest.fixture
def circle(tmp_path):
    """Return a function that writes a circle file and returns its path; few laps: a short one."""

    def write(speed=0.03, laps=20):
        path = tmp_path / 'circle.yaml'
        text = SHORT_CIRCLE if laps <= 2 else CIRCLE
        path.write_text(text.format(speed=speed, laps=laps))
        return str(path)

    return write
