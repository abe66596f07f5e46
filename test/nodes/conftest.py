"""Fixtures of the tests of nodes; importing node_bench sets their ROS graph apart."""

import pytest
from node_bench import CIRCLE


@pytest.fixture(scope='session', autouse=True)
def compiled():
    """Compile the kernels first: what these tests time is a running arm, not a compiler."""
    from softarm_ros.rigs.loader import load_rig
    from softarm_ros.runtime.warm_up import warm_up

    for name in ('cable_arm', 'cable_arm_single'):
        warm_up(load_rig(name))


@pytest.fixture
def circle(tmp_path):
    """Return a function that writes a circle and returns the file's path."""

    def write(speed=0.03, laps=20):
        path = tmp_path / 'circle.yaml'
        path.write_text(CIRCLE.format(speed=speed, laps=laps))
        return str(path)

    return write
