"""`--set`: one option, read in the same way by every command that has it."""

from importlib import import_module

from typer.main import get_command

from softarm_ros.cli import commands
from softarm_ros.cli.commands import SUMMARIES


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
