"""Values given to parameters that no node has: what looks like one that a node has is refused."""

import pytest

rclpy = pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
from rclpy.node import Node
from rclpy.parameter import Parameter

from softarm_ros.nodes.node_base import RefusedError, check_overrides

pytestmark = pytest.mark.ros


@pytest.fixture
def group(context):
    """Return two nodes; both are given a value of each, and the first has `laps` alone."""
    made = []

    def of(*given):
        overrides = [Parameter(name, value=1) for name in given]
        for name in ('tracker', 'plant'):
            made.append(Node(name, context=context, parameter_overrides=overrides))
        made[0].declare_parameter('laps', 2)
        return made

    yield of
    for node in made:
        node.destroy_node()


def test_a_typing_error_is_refused(group):
    with pytest.raises(RefusedError, match=r"lasp is unknown \(did you mean 'laps'\?\)"):
        check_overrides(group('lasp'))


def test_the_node_that_has_what_was_meant_is_named(group):
    with pytest.raises(RefusedError) as refusal:
        check_overrides(group('lasp'))
    assert refusal.value.node == 'tracker'  # not the last one built


def test_what_another_node_of_the_process_has_and_what_is_for_others_is_not(group, capfd):
    check_overrides(group('laps', 'fleet_colour', 'qos_overrides./tip.publisher.depth'))
    assert "ignored unknown parameters: 'fleet_colour'" in capfd.readouterr().err
