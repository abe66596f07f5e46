"""`--set`: one option, read in the same way by every command that has it."""

from importlib import import_module

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from softarm_ros.cli import commands
from softarm_ros.cli.commands import SUMMARIES
from softarm_ros.cli.main import app


def test_every_command_with_a_rig_has_the_option():
    lacking = []
    for name in SUMMARIES:
        command = get_command(import_module(f'{commands.__name__}.{name}').app)
        of_rig = any('RIG' in (option.metavar or '').upper() for option in command.params)
        if of_rig and not any('--set' in option.opts for option in command.params):
            lacking.append(name)
    assert not lacking


@pytest.mark.parametrize(
    'words',
    [
        ('check', 'cable_arm'),
        ('model', 'cable_arm', 'forward', '--actuation', '0,0,0,0,0,0'),
        ('urdf', 'cable_arm'),
        ('rviz', 'cable_arm'),
        ('workspace', 'cable_arm', '--samples', '10'),
    ],
)
def test_settings_reach_the_commands_that_show_a_rig(words):
    def shown(length_m):
        setting = f'arm.sections[0].length_m={length_m}'
        return CliRunner().invoke(app, [*words, '--set', setting])

    short, long = shown(0.08), shown(0.12)
    assert (short.exit_code, long.exit_code) == (0, 0), short.output + long.output
    assert short.stdout != long.stdout
    wrong = shown(-1)
    assert wrong.exit_code in (1, 2)
    assert 'arm.sections[0].length_m = -1' in wrong.stderr + str(wrong.exception)


def test_every_set_option_takes_several_values_in_one_argument():
    taken = {}
    for name in SUMMARIES:
        command = get_command(import_module(f'{commands.__name__}.{name}').app)
        if any('--set' in option.opts for option in command.params):
            words = ['--set', 'a=1; b.c=[2, 3]', '--set', ' d=4;']
            for asked in ([], words):
                context = command.make_context(name, asked, resilient_parsing=True)
                taken.setdefault(name, []).append(list(context.params['settings']))
    assert {'run', 'machines', 'jog', 'score', 'faults'} < set(taken)
    assert all(found == [[], ['a=1', 'b.c=[2, 3]', 'd=4']] for found in taken.values()), taken
