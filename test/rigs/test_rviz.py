"""Displays of the rviz files match published topics, their types, QoS, and frames."""

import ast
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from softarm_ros.rigs.graph import BACKENDS, graph_plan
from softarm_ros.rigs.loader import list_rigs, load_rig
from softarm_ros.rigs.rviz import rviz_config
from softarm_ros.rigs.urdf import build_urdf

ROOT = Path(__file__).parents[2]
NODES = ROOT / 'softarm_ros' / 'nodes'
RIGS = [info.name for info in list_rigs()]
# The message that each display of rviz_default_plugins subscribes to.
MESSAGES = {
    'MarkerArray': 'MarkerArray',
    'RobotModel': 'String',
    'Path': 'Path',
    'Pose': 'PoseStamped',
    'PoseArray': 'PoseArray',
    'PoseWithCovariance': 'PoseWithCovarianceStamped',
}
WITHOUT_TOPIC = {'Grid', 'TF', 'InteractiveMarkers'}
# Reliability and durability that publishers offer, as in nodes/qos.py.
OFFERED = {
    'VISUAL': ('Reliable', 'Volatile'),
    'MEASUREMENT': ('Best Effort', 'Volatile'),
    'LATCHED': ('Reliable', 'Transient Local'),
}


@cache
def displays_of(name):
    config = YAML(typ='safe').load(rviz_config(load_rig(name)))['Visualization Manager']
    return config['Displays'], config


@cache
def published():
    """Return message type and quality of service of every topic the nodes publish, from source."""
    found = {}
    for path in NODES.glob('*.py'):
        for call in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
            if not isinstance(call, ast.Call):
                continue
            name = getattr(call.func, 'attr', '')
            if name not in ('create_publisher', 'create_lifecycle_publisher'):
                continue
            kind, topic, qos = (ast.unparse(argument) for argument in call.args[:3])
            found.setdefault(topic.strip("'"), set()).add((kind, qos))
    return found


def test_the_parser_finds_the_publishers():
    assert published()['markers'] == {('MarkerArray', 'VISUAL')}
    assert published()['self.rig.feedback.pose_topic'] == {('PoseStamped', 'MEASUREMENT')}


@pytest.mark.parametrize('name', RIGS)
def test_every_display_shows_a_published_topic_of_matching_type_and_qos(name):
    rig = load_rig(name)
    shown = set()
    for display in displays_of(name)[0]:
        kind = display['Class'].removeprefix('rviz_default_plugins/')
        topics = [display[key] for key in ('Topic', 'Description Topic') if key in display]
        if kind in WITHOUT_TOPIC:
            assert not topics
            continue
        (topic,) = topics
        assert topic['Value'].startswith(f'/{rig.name}/')
        relative = topic['Value'].removeprefix(f'/{rig.name}/')
        shown.add(relative)
        source = (
            'self.rig.feedback.pose_topic' if relative == rig.feedback.pose_topic else relative
        )
        assert source in published(), f'nobody publishes {relative}'
        for message, qos in published()[source]:
            assert message == MESSAGES[kind], relative
            reliability, durability = OFFERED[qos]
            # A subscriber that asks for more than is offered gets nothing.
            assert (topic['Reliability Policy'], reliability) != ('Reliable', 'Best Effort')
            assert (topic['Durability Policy'], durability) != ('Transient Local', 'Volatile')
            if (
                durability == 'Transient Local'
            ):  # a subscriber that asks for less may start too late
                assert topic['Durability Policy'] == durability
    assert {'markers', 'reference/path', 'tip/path', 'robot_description'} <= shown


@pytest.mark.parametrize('name', RIGS)
def test_goal_handle_display_has_the_namespace_of_the_handle(name):
    (handle,) = (d for d in displays_of(name)[0] if d['Class'].endswith('/InteractiveMarkers'))
    assert handle['Interactive Markers Namespace'] == f'/{load_rig(name).name}/goal_handle'
    (markers,) = (n for n in graph_plan(load_rig(name), goals=True) if n.name == 'markers')
    assert markers.parameters['goals'] is True


@pytest.mark.parametrize('name', RIGS)
def test_frames_of_rviz_are_links_of_the_urdf(name):
    rig = load_rig(name)
    displays, config = displays_of(name)
    links = {
        rig.frame_prefix + link.get('name') for link in ET.fromstring(build_urdf(rig)).iter('link')
    }
    assert config['Global Options']['Fixed Frame'] == rig.base_frame
    assert rig.base_frame in links
    (frames,) = (d['Frames'] for d in displays if d['Class'].endswith('/TF'))
    assert set(frames) - {'All Enabled'} <= links
    assert len(frames) == 1 + 2 + len(rig.section_names)
    (model,) = (d for d in displays if d['Class'].endswith('/RobotModel'))
    assert f'{model["TF Prefix"]}/' == rig.frame_prefix


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('name', RIGS)
def test_markers_node_with_transforms_runs_in_every_backend(name, backend, tmp_path):
    rig = load_rig(name)
    if backend != 'sim' and rig.devices is None:
        pytest.skip(f'{name} has no drives')
    folder = tmp_path if backend == 'emulated' else None
    try:
        plan = graph_plan(rig, backend, devices_folder=folder)
    except ValueError as error:
        assert backend == 'emulated' and 'is not emulated' in str(error)
        pytest.skip(str(error))
    (markers,) = (node for node in plan if node.name == 'markers')
    assert markers.parameters['transforms'] is True


def test_absolute_pose_topic_is_shown_without_a_namespace():
    rig = load_rig('cable_arm', ['sensors.pose_topic.topic=/vrpn/tip/pose'])
    topics = [
        display['Topic']['Value']
        for display in YAML(typ='safe').load(rviz_config(rig))['Visualization Manager']['Displays']
        if display['Name'] == 'Measured tip'
    ]
    assert topics == ['/vrpn/tip/pose']


@pytest.mark.parametrize('name', RIGS)
def test_committed_rviz_files_match_the_generator(name):
    path = ROOT / 'config' / 'rviz' / f'{name}.rviz'
    assert path.read_text(encoding='utf-8') == rviz_config(load_rig(name))


@pytest.mark.parametrize('size', [0.03, 0.3, 1.0, 3.0])
def test_the_grid_is_as_large_as_the_arm(size):
    settings = ['plant=null', 'drives=null']
    for k, section in enumerate(load_rig('cable_arm').arm.sections):
        for field in ('length_m', 'endcap_length_m', 'cable_radius_m'):
            settings.append(f'arm.sections[{k}].{field}={size * getattr(section, field)}')
    for k in range(6):
        settings.append(f'arm.actuators[{k}].position_min_m={-0.045 * size}')
        settings.append(f'arm.actuators[{k}].position_max_m={0.055 * size}')
    rig = load_rig('cable_arm', [*settings, 'controller.pretension_m=0.0'])
    displays = YAML(typ='safe').load(rviz_config(rig))['Visualization Manager']['Displays']
    (grid,) = [shown for shown in displays if shown['Name'] == 'Grid']
    length = rig.model().rest_length_m
    assert 1.5 * length < grid['Cell Size'] * grid['Plane Cell Count'] < 3.9 * length
