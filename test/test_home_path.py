"""Paths from a home folder: replaced in every option, and refused by name if there is no such."""

import re

import pytest
from typer.testing import CliRunner

from softarm_ros.cli.command_group import own_commands
from softarm_ros.cli.main import app
from softarm_ros.home_path import HomeFolderError, expand_home
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.task_file import locate_task
from softarm_ros.rigs.trajectory_file import locate_trajectory

NOBODY = '~nosuchuser/x'
WHY = re.escape("this computer has no user 'nosuchuser'; expected another path")


def test_home_is_replaced(monkeypatch):
    monkeypatch.setenv('HOME', '/home/lab')
    assert str(expand_home('~/bags', '--bag ')) == '/home/lab/bags'
    assert str(expand_home('bags/~x', '--bag ')) == 'bags/~x'


def test_unknown_user_is_named():
    with pytest.raises(HomeFolderError, match=rf'^--bag {NOBODY}: {WHY}$'):
        expand_home(NOBODY, '--bag ')


@pytest.mark.parametrize(
    'arguments',
    [
        ['run', 'cable_arm', f'--bag={NOBODY}'],
        ['run', 'cable_arm', '--direct', f'--json={NOBODY}'],
        ['run', 'cable_arm', '--direct', f'--report={NOBODY}'],
        ['run', 'cable_arm', '--direct', '--trajectory', f'{NOBODY}.yaml'],
        ['view', NOBODY],
        ['render', NOBODY, '--output', 'x.png'],
        ['replay', NOBODY],
        ['record', 'cable_arm', '--bag', NOBODY],
        ['score', 'cable_arm', NOBODY],
        ['urdf', f'{NOBODY}.yaml'],
    ],
    ids=' '.join,
)
def test_every_option_refuses_an_unknown_user(arguments):
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 2, ended.output
    assert re.search(rf'{NOBODY}(\.yaml)?: {WHY}', ended.output), ended.output
    named = [word.split('=')[0] for word in arguments if word.startswith('--') and '=' in word]
    assert all(f'{option} {NOBODY}' in ended.output for option in named)


def test_no_folder_named_tilde_is_made(tmp_path, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(app, ['urdf', 'cable_arm', '--output=~/arm.urdf'])
    assert ended.exit_code == 0, ended.output
    assert [made.name for made in tmp_path.iterdir()] == ['arm.urdf']


def test_lists_of_files_are_replaced(monkeypatch):
    monkeypatch.setenv('HOME', '/home/lab')
    score = next(command for command in own_commands() if command.name == 'score')
    context = score.make_context('score', ['cable_arm', '~/a.csv', '~/b.csv'])
    assert [str(file) for file in context.params['data']] == [
        '/home/lab/a.csv',
        '/home/lab/b.csv',
    ]


def test_names_of_rig_files_say_what_they_are():
    with pytest.raises(RigError, match=rf'rig = {NOBODY}.yaml: {WHY}'):
        load_rig(f'{NOBODY}.yaml')
    with pytest.raises(RigError, match=rf'task = {NOBODY}.yaml: {WHY}'):
        locate_task(f'{NOBODY}.yaml')
    with pytest.raises(RigError, match=rf'trajectory = {NOBODY}.yaml: {WHY}'):
        locate_trajectory(load_rig('cable_arm'), f'{NOBODY}.yaml')


def test_calibration_files_are_refused_by_field():
    field = 'sensors.stereo_cameras.base_calibration'
    with pytest.raises(RigError, match=rf"{field} = '{NOBODY}': {WHY}"):
        load_rig('pneumatic_arm', [f'{field}={NOBODY}'])
