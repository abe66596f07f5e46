"""Values for unknown parameters: a name that resembles a declared one is refused."""

import pytest

rclpy = pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
from rclpy.node import Node
from rclpy.parameter import Parameter

from softarm_ros.nodes.node_errors import RefusedError
from softarm_ros.nodes.node_parameters import check_overrides

pytestmark = pytest.mark.ros


@pytest.fixture
def group(context):
    """Return a function that gives two nodes overrides; only the first declares `laps`."""
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


def test_mistyped_parameter_is_refused_with_a_suggestion(group):
    with pytest.raises(RefusedError, match=r"lasp is unknown \(did you mean 'laps'\?\)"):
        check_overrides(group('lasp'))


def test_refusal_names_the_node_that_declares_the_suggested_parameter(group):
    with pytest.raises(RefusedError) as refusal:
        check_overrides(group('lasp'))
    assert refusal.value.node == 'tracker'  # not the last one built


def test_parameters_of_another_node_are_accepted_and_unknown_ones_logged(group, capfd):
    check_overrides(group('laps', 'fleet_colour', 'qos_overrides./tip.publisher.depth'))
    assert "ignored unknown parameters: 'fleet_colour'" in capfd.readouterr().err
