"""The life of nodes that own devices, and of the simulated arm, in this process."""

from collections import Counter

import pytest

rclpy = pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('pymodbus', reason='needs the extra hardware')
pytest.importorskip('nidaqmx', reason='needs the extra hardware')

from rclpy.context import Context
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter

from softarm_ros.nodes.actuator_node import ActuatorNode
from softarm_ros.nodes.daq_nodes import DaqSensorsNode
from softarm_ros.nodes.emulator_node import EmulatorNode
from softarm_ros.nodes.plant_node import PlantNode

pytestmark = pytest.mark.ros
RIG = 'hydraulic_arm'
SUCCESS = TransitionCallbackReturn.SUCCESS


@pytest.fixture
def made(tmp_path):
    """Return what makes a node with parameters; it does not start by itself."""
    context, nodes = Context(), []
    rclpy.init(context=context)

    def make(kind, *names, **parameters):
        values = {'rig': RIG, 'twin_check_s': 0.0, 'autostart': False, **parameters}
        if kind is not PlantNode:
            values = {'devices_folder': str(tmp_path), **values}
        overrides = [Parameter(name, value=value) for name, value in values.items()]
        node = kind(*names, context=context, namespace=f'/{RIG}', parameter_overrides=overrides)
        nodes.append(node)
        return node

    yield make
    for node in reversed(nodes):
        getattr(node, 'close', lambda: None)()
        node.destroy_node()
    context.try_shutdown()


def topics(node):
    """Return how often a node listens to a topic, and publishes on one."""
    listens = Counter(subscription.topic_name for subscription in node.subscriptions)
    return listens, Counter(publisher.topic_name for publisher in node.publishers)


@pytest.mark.parametrize(
    ('kind', 'names', 'topic'),
    [
        (PlantNode, (), 'plant/inject'),
        (EmulatorNode, (), 'emulator/inject'),
        (ActuatorNode, ('servo',), 'chambers/pressure'),
        (DaqSensorsNode, (), 'supervisor/permit'),
    ],
)
def test_a_node_configured_twice_has_each_topic_once(made, kind, names, topic):
    if kind in (ActuatorNode, DaqSensorsNode):
        assert made(EmulatorNode).trigger_configure() is SUCCESS  # whose devices it reaches
    node = made(kind, *names)
    assert node.trigger_configure() is SUCCESS
    once = topics(node)
    assert once[0][f'/{RIG}/{topic}'] == 1
    assert node.trigger_cleanup() is SUCCESS
    assert node.trigger_configure() is SUCCESS
    assert topics(node) == once
    assert set(once[0].values()) | set(once[1].values()) == {1}
