import copy
import importlib
import json
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from ruamel.yaml import YAML

from softarm_ros.nodes import executables
from softarm_ros.nodes.sharing import SHARING
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.graph import (
    REAL_TIME_PRIORITY,
    SUPERVISED_NODES,
    NodeSpec,
    check_backend,
    graph_plan,
    parameter_file,
    process_command,
    processes_of,
)
from softarm_ros.rigs.loader import list_rigs, load_rig, validate_rig
from softarm_ros.rigs.yaml_document import YamlDocument, read_yaml
from softarm_ros.runtime.arm_assembly import build_emulated_sensor

REPOSITORY = Path(__file__).parents[2]
RIGS = [info.name for info in list_rigs()]
WITHIN = {'name': '7', 'section': 'distal', 'fraction': 0.5}


@pytest.fixture(scope='module')
def rig():
    return load_rig('cable_arm')


def by_name(plan):
    assert len({spec.name for spec in plan}) == len(plan)
    return {spec.name: spec for spec in plan}


@pytest.mark.parametrize('name', RIGS)
def test_sim_plan_has_every_node_once_in_the_namespace_of_the_rig(name):
    plan = by_name(graph_plan(load_rig(name), 'sim'))
    assert set(plan) == {'plant', 'inverse_kinematics', 'tracker', 'markers', 'supervisor'}
    assert {spec.namespace for spec in plan.values()} == {f'/{name}'}
    for spec in plan.values():
        assert spec.executable == f'{spec.name}_node'
        assert spec.module == f'softarm_ros.nodes.{spec.name}_node'
        assert load_rig(spec.parameters['rig']).name == name


@pytest.mark.parametrize(
    ('sensor', 'why'),
    [
        (
            {'natnet': {'server': '127.0.0.1', 'points': (WITHIN,)}},
            "backend 'emulated': sensors.natnet.points[0].fraction = 0.5 (7, section distal): "
            'expected 1',
        ),
        ({'tf': {'frame': 'map'}}, "sensor 'tf' is not emulated"),
    ],
)
def test_a_sensor_that_is_not_emulated_leaves_the_other_backends(sensor, why):
    bodies = ({'name': 'base', 'section': 'base'}, {'name': 'tip', 'section': 'distal'})
    ((kind, fields),) = sensor.items()
    given = {'rate_hz': 100.0, 'bodies': bodies, **fields}
    data = copy.deepcopy(read_yaml(REPOSITORY / 'config/rigs/cable_arm.yaml').data)
    data['sensors'] = {'pose_topic': data['sensors']['pose_topic'], kind: given}
    other = validate_rig(YamlDocument('rig.yaml', data, {}))
    for backend in ('sim', 'hardware'):
        check_backend(other, backend)
    for refuse in (
        lambda: check_backend(other, 'emulated'),
        lambda: build_emulated_sensor(other, kind, 0),
    ):
        with pytest.raises(RigError) as refused:
            refuse()
        assert why in str(refused.value)


def test_executables_and_modules_of_the_plan_are_installed(rig, tmp_path):
    entry_points = (REPOSITORY / 'setup.py').read_text()
    for spec in graph_plan(rig, 'sim', bag=tmp_path / 'bag'):
        name = spec.executable
        assert f"'{name} = softarm_ros.nodes.executables:{name}'" in entry_points
        assert callable(getattr(executables, name))
        assert callable(importlib.import_module(spec.module).main)


def test_defaults_of_the_plan_come_from_the_rig(rig):
    plan = by_name(graph_plan(rig))
    tracker = plan['tracker'].parameters
    assert tracker['trajectory'] == rig.default_trajectory
    assert tracker['model'] == plan['inverse_kinematics'].parameters['model'] == rig.default_model
    assert tracker['laps'] == rig.trajectories[rig.default_trajectory].laps
    assert tracker['open_loop'] is False
    assert plan['plant'].parameters['seed'] == 0
    assert plan['supervisor'].parameters['autostart'] is True
    assert plan['supervisor'].parameters['feedback_required'] is True
    for spec in plan.values():
        assert spec.parameters['use_sim_time'] is False
        assert spec.parameters['time_scale'] == 1.0


def test_nodes_of_the_loop_have_real_time_priority_in_real_time_only(rig):
    loop = ('plant', 'inverse_kinematics', 'tracker', 'supervisor')
    real, fast = by_name(graph_plan(rig)), by_name(graph_plan(rig, rate=4.0))
    assert {real[name].parameters['real_time_priority'] for name in loop} == {REAL_TIME_PRIORITY}
    assert {fast[name].parameters['real_time_priority'] for name in loop} == {0}
    assert 'real_time_priority' not in real['markers'].parameters


def test_only_the_nodes_of_the_control_loop_share_a_process(rig):
    spread = {
        name: [s.name for s in nodes] for name, nodes in processes_of(graph_plan(rig)).items()
    }
    assert spread == {
        'control': ['plant', 'inverse_kinematics', 'tracker', 'supervisor'],
        'markers': ['markers'],
    }
    devices = processes_of(graph_plan(rig, 'emulated', devices_folder='d'))
    assert [s.name for s in devices['control']] == ['inverse_kinematics', 'tracker', 'supervisor']
    assert set(devices) == {'emulator', 'steppers', 'natnet', 'control', 'markers'}
    alone = graph_plan(rig, processes='each')
    assert list(processes_of(alone)) == [spec.name for spec in alone]
    assert {spec.executable for spec in processes_of(graph_plan(rig))['control']} <= set(SHARING)
    with pytest.raises(RigError, match="unknown processes 'ech'"):
        graph_plan(rig, processes='ech')


def test_process_has_a_command_and_a_parameter_file_by_full_node_names(rig, tmp_path):
    nodes = processes_of(graph_plan(rig))['control']
    parameters = json.loads(parameter_file(nodes))
    assert list(parameters) == [f'/cable_arm/{spec.name}' for spec in nodes]
    for spec, given in zip(nodes, parameters.values()):
        assert given == {'ros__parameters': spec.parameters}
    command = process_command(nodes, tmp_path / 'p')
    assert command[:5] == ['softarm_ros.nodes.node_group', *(spec.executable for spec in nodes)]
    assert '__node' not in ' '.join(command)  # it would rename all of them
    (alone,) = processes_of(graph_plan(rig))['markers']
    command = process_command([alone], tmp_path / 'p')
    assert command[0] == 'softarm_ros.nodes.markers_node'
    assert '__node:=markers' in command


def test_file_names_of_any_character_reach_ros_and_others_are_refused():
    def of(bag):
        given = {'bag': bag, 'live': ['']}
        return parameter_file([NodeSpec('recorder_node', 'module', 'recorder', '/arm', given)])

    bag = '/tmp/oct \U0001f419 "ü" \u2028 \\ud83d'
    text = of(bag)
    assert text.isascii()
    assert '\\U0001f419' in text  # libyaml, the parser of ROS, refuses the escapes of JSON
    assert YAML(typ='safe').load(text)['/arm/recorder']['ros__parameters']['bag'] == bag
    with pytest.raises(RigError, match=r"bag of node recorder: '/tmp/\?' is not UTF-8"):
        of('/tmp/\udcff')


def test_supervisor_watches_nodes_that_exist_and_are_required(rig):
    plan = by_name(graph_plan(rig))
    watched = plan['supervisor'].parameters['required_nodes']
    assert watched == [*SUPERVISED_NODES, 'plant']
    assert all(plan[name].required for name in watched)
    assert plan['supervisor'].required


@pytest.mark.parametrize(
    ('backend', 'arm'),
    [
        ('emulated', ['emulator', 'daq', 'servo', 'stereo_cameras']),
        ('hardware', ['daq', 'servo', 'stereo_cameras']),
    ],
)
def test_device_nodes_replace_the_plant_in_emulated_and_hardware_plans(backend, arm):
    rig = load_rig('hydraulic_arm')
    plan = by_name(graph_plan(rig, backend, devices_folder='links'))
    assert set(plan) == {*arm, 'inverse_kinematics', 'tracker', 'markers', 'supervisor'}
    watched = plan['supervisor'].parameters['required_nodes']
    assert watched == ['tracker', 'inverse_kinematics', *arm]
    folders = {plan[name].parameters['devices_folder'] for name in arm}
    assert folders == {'links' if backend == 'emulated' else ''}
    assert plan['servo'].parameters['home'] is (backend == 'emulated')
    at_rest = by_name(graph_plan(rig, backend, home=True, devices_folder='links'))
    assert at_rest['servo'].parameters['home'] is True
    assert 'home' not in at_rest['daq'].parameters  # it only measures, and would warn
    with pytest.raises(RigError, match='real time'):
        graph_plan(rig, backend, rate=2.0)
    with pytest.raises(RigError, match='home'):
        graph_plan(rig, 'sim', home=True)


def test_options_reach_the_parameters_of_their_nodes(rig, tmp_path):
    options = dict(
        trajectory='line',
        model='constant_curvature',
        open_loop=True,
        laps=4,
        rate=5,
        seed=7,
        bag=tmp_path / 'bag',
        autostart=False,
    )
    plan = by_name(graph_plan(rig, 'sim', **options))
    tracker = plan['tracker'].parameters
    assert (tracker['trajectory'], tracker['laps'], tracker['open_loop']) == ('line', 4, True)
    assert tracker['model'] == plan['inverse_kinematics'].parameters['model']
    assert tracker['model'] == 'constant_curvature'
    assert plan['plant'].parameters['seed'] == 7
    assert plan['supervisor'].parameters['autostart'] is False
    assert plan['supervisor'].parameters['feedback_required'] is False
    assert plan['recorder'].parameters['bag'] == str(tmp_path / 'bag')
    assert not plan['recorder'].required
    about = dict(parse_qsl(plan['recorder'].parameters['about']))
    assert (about['seed'], about['laps'], about['open_loop']) == ('7', '4', 'true')
    assert YAML(typ='safe').load(plan['recorder'].parameters['about']).startswith('backend=sim')
    for spec in plan.values():
        assert spec.parameters['use_sim_time'] is True
        assert spec.parameters['time_scale'] == 5.0


def test_node_parameters_have_types_of_ros(rig, tmp_path):
    """ROS has no null, distinguishes 1 from 1.0, and needs non-empty lists of one type."""
    for spec in graph_plan(rig, rate=2, bag=tmp_path / 'b'):
        for name, value in spec.parameters.items():
            assert type(value) in (bool, int, float, str, list), (spec.name, name, value)
            if isinstance(value, list):
                assert value and {type(item) for item in value} == {str}
        assert type(spec.parameters['time_scale']) is float


def test_trajectory_file_is_passed_as_absolute_path(rig, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / 'mine.yaml'
    path.write_text('type: line\nstart: [0.1, 0, 0.2]\nend: [0.1, 0.05, 0.2]\nlaps: 3\n')
    tracker = by_name(graph_plan(rig, trajectory='mine.yaml'))['tracker'].parameters
    assert (tracker['trajectory'], tracker['laps']) == (str(path), 3)


def test_rig_is_passed_by_name_or_absolute_path(rig, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert graph_plan(rig, rig_source='cable_arm')[0].parameters['rig'] == 'cable_arm'
    relative = graph_plan(rig, rig_source='some.yaml')[0].parameters['rig']
    assert relative == str(tmp_path / 'some.yaml')
    with pytest.raises(RigError, match='pass rig_source'):
        graph_plan(rig.with_source(None))


@pytest.mark.parametrize('backend', ['emulated', 'hardware'])
def test_backend_that_needs_devices_is_refused_without_them(backend):
    with pytest.raises(RigError, match=f"'trunk' declares no devices for backend '{backend}'"):
        graph_plan(load_rig('trunk').model_copy(update={'devices': None}), backend)


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'backend': 'simm'}, "unknown backend 'simm' (did you mean 'sim'?); known: 'sim', "),
        ({'trajectory': 'cirle'}, "unknown trajectory 'cirle' (did you mean 'circle'?); known: "),
        ({'model': 'cable'}, "unknown model 'cable'"),
        ({'laps': 0}, 'laps = 0: expected 1 to 1000'),
        ({'laps': 1001}, 'laps = 1001: expected 1 to 1000'),
        ({'rate': 0.0}, 'rate = 0: expected a number > 0'),
        ({'rate': float('nan')}, 'rate = nan: expected a number > 0'),
        ({'seed': -1}, 'seed = -1: expected a whole number >= 0'),
        ({'trajectory': 'missing.yaml'}, 'missing.yaml: no such file'),
        ({'task': 'touch', 'laps': 2}, 'task: it runs once through its own motions; leave out'),
        ({'task': 'touch', 'trajectory': 'circle'}, 'leave out trajectory and laps'),
    ],
)
def test_invalid_plan_arguments_are_refused(rig, options, message):
    with pytest.raises(RigError) as error:
        graph_plan(rig, **options)
    assert message in str(error.value)
