"""Checks of the launch file that need no ROS installation."""

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from softarm_ros.cli.commands.run import run
from softarm_ros.rigs.arguments import settings_of
from softarm_ros.rigs.graph import BACKENDS, graph_plan
from softarm_ros.rigs.loader import load_rig

ROOT = Path(__file__).parents[2]
LAUNCH = ROOT / 'launch' / 'arm.launch.py'
# Arguments of the command line only, and of the launch file only.
ONLY_COMMAND_LINE = {'direct', 'report', 'json_file', 'settings', 'view'}
ONLY_LAUNCH = {'rviz', 'autostart', 'set', 'exit_on_done'}


@pytest.fixture(scope='module')
def tree():
    return ast.parse(LAUNCH.read_text(), filename=str(LAUNCH))


def declared_arguments(tree):
    (table,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == 'ARGUMENTS'
    )
    return {row.elts[0].value: row.elts for row in table.elts}


def test_launch_arguments_match_the_options_of_softarm_run(tree):
    command_line = set(inspect.signature(run).parameters) - ONLY_COMMAND_LINE
    assert set(declared_arguments(tree)) - ONLY_LAUNCH == command_line


def test_every_argument_has_a_default_and_a_description(tree):
    for name, (_, default, description, _) in declared_arguments(tree).items():
        assert isinstance(default.value, str), name
        assert len(description.value) > 10, name


def test_graph_plan_gets_all_its_parameters_and_every_argument_is_read(tree):
    (call,) = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, 'id', '') == 'graph_plan'
    )
    passed = {keyword.arg for keyword in call.keywords}
    expected = set(inspect.signature(graph_plan).parameters) - {'rig', 'backend', 'rig_source'}
    assert passed == expected
    assert len(call.args) == 2
    read = {
        node.slice.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and getattr(node.value, 'id', '') == 'text'
    }
    assert read == set(declared_arguments(tree))


def test_controller_estimator_and_machine_arguments_reach_every_node(tree):
    (call,) = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, 'id', '') == 'load_rig'
    )
    assert ast.unparse(call) == (
        "load_rig(text['rig'], settings_of([text['set']], controller=text['controller'], "
        "estimator=text['estimator'], machine=text['machine']))"
    )
    chosen = {'controller': 'damped_inverse', 'estimator': 'filter', 'machine': '3'}
    settings = settings_of(['controller.damping=1e-3'], **chosen)
    rig = load_rig('cable_arm', settings)
    assert (rig.tracker.kind, rig.estimator.kind) == ('damped_inverse', 'filter')
    wanted = (
        'controller.damping=1e-3; controller.kind=damped_inverse; estimator.kind=filter; '
        'plant.machine.number=3'
    )
    assert {spec.parameters['settings'] for spec in graph_plan(rig)} == {wanted}


def test_backend_argument_accepts_exactly_the_known_backends(tree):
    choices = declared_arguments(tree)['backend'][3]
    assert ast.unparse(choices) == 'list(BACKENDS)'
    assert 'sim' in BACKENDS


def test_the_bag_folder_is_checked_before_the_nodes_are_created(tree):
    (function,) = (
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == 'launch_nodes'
    )
    lines = [ast.unparse(statement) for statement in function.body]
    (checked,) = (i for i, line in enumerate(lines) if 'check_bag_folder(' in line)
    (started,) = (i for i, line in enumerate(lines) if line.startswith('nodes = [translate'))
    assert checked < started


def test_rviz_uses_the_configuration_of_the_rig(tree):
    (function,) = (
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == 'rviz'
    )
    assert 'rviz_config(rig)' in ast.unparse(function)


def test_folders_of_a_launch_are_removed_at_its_end(tree, tmp_path):
    parts = [n for n in tree.body if getattr(n, 'name', '') == 'temporary_folder']
    imports = 'import atexit\nimport shutil\nimport tempfile\nfrom pathlib import Path\n'
    script = f"{imports}{ast.unparse(parts[0])}\nprint(temporary_folder('rviz').is_dir())"
    environment = {**os.environ, 'TMPDIR': str(tmp_path)}
    done = subprocess.run(
        [sys.executable, '-c', script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == 'True\n'
    assert not list(tmp_path.iterdir())
    others = ast.Module([n for n in tree.body if n not in parts], [])
    assert 'mkdtemp' not in ast.unparse(others)
