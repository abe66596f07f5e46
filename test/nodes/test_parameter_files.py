"""Sections of parameter files: those that reach no node, which ROS ignores."""

import pytest

rclpy = pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
from rclpy.node import Node

from softarm_ros.nodes.node_errors import RefusedError
from softarm_ros.nodes.parameter_files import check_parameter_files

pytestmark = pytest.mark.ros


@pytest.fixture
def check(context, tmp_path, capfd):
    """Return a function that checks a file for two nodes of an arm and returns what they log."""
    nodes = [Node(name, namespace='/cable_arm', context=context) for name in ('tracker', 'plant')]

    def of(text):
        file = tmp_path / 'mine.yaml'
        file.write_text(text)
        check_parameter_files(nodes, ['--ros-args', '--params-file', str(file)])
        return capfd.readouterr().err

    yield of
    for node in nodes:
        node.destroy_node()


def for_node(*names):
    return '\n'.join(f'{name}: {{ros__parameters: {{laps: 2}}}}' for name in names)


@pytest.mark.parametrize(
    ('sections', 'wrong'),
    [
        (['tracker'], '/tracker'),  # a node without a namespace
        (['/cable_arm/trackr'], '/cable_arm/trackr'),
        (['/**', '/cable_arm/plant', '/cable_arm/Trackers'], '/cable_arm/Trackers'),
    ],
)
def test_section_for_a_mistyped_node_is_refused_with_file_and_suggestion(check, sections, wrong):
    with pytest.raises(RefusedError) as refusal:
        check(for_node(*sections))
    said = f"mine.yaml: section {wrong!r} reaches no node (did you mean '/cable_arm/tracker'?)"
    assert said in str(refusal.value)
    assert refusal.value.node == 'tracker'  # not the last one built


@pytest.mark.parametrize(
    'text',
    [
        for_node('/cable_arm/tracker', '/cable_arm/markers'),  # also given to another process
        for_node('/**'),
        for_node('/*/tracker'),
        for_node('/cable_arm/**'),
        for_node('/cable_arm/tracker', 'tracker'),
        'cable_arm: {tracker: {ros__parameters: {laps: 2}}, plant: {ros__parameters: {seed: 1}}}',
    ],
)
def test_file_with_a_section_for_a_node_is_accepted(check, text):
    assert check(text) == ''


def test_file_for_none_of_the_nodes_is_logged(check):
    assert "mine.yaml: its sections are '/trunk/tracker'; exp" in check(for_node('/trunk/tracker'))
