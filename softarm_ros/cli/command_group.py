"""The commands of `softarm`, including those of other packages, and their exit status."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from softarm_ros.cli.cli_errors import EXIT_BAD_INPUT, UsageError, is_user_error
from softarm_ros.cli.commands import SUMMARIES
from softarm_ros.home_path import expand_home

# Entry points of this group are commands of other packages: a name, and a Typer with one command.
PROVIDED = 'softarm.commands'
# Commands of other packages in this repository: (package, folder), for a hint to install them.
ELSEWHERE = {
    'bench': ('softarm_reproduction', './reproduction'),
    'reproduce': ('softarm_reproduction', './reproduction'),
}


class LazyCommand(TyperCommand):
    """A command that is imported only when it is called; before, it has a name and a summary."""

    def __init__(self, name: str, summary: str, load: Callable[[], typer.Typer]) -> None:
        super().__init__(name, help=summary)
        self._load = load

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Import the command and parse its arguments."""
        context = self.imported().make_context(info_name, args, parent, **extra)
        for parameter in context.command.params:
            if parameter.name in context.params:
                named = f'{max(parameter.opts, key=len)} ' if parameter.opts[0][0] == '-' else ''
                value = context.params[parameter.name]
                context.params[parameter.name] = _expand_paths(value, named)
        return context

    def imported(self) -> Any:
        """Return the command itself, with its parameters."""
        return get_command(self._load())


def _expand_paths(value: Any, named: str) -> Any:
    """Replace ~ in paths and lists of them; no shell replaces that of `--bag=~/monday`."""
    if isinstance(value, list):
        return [_expand_paths(each, named) for each in value]
    return expand_home(value, named) if isinstance(value, Path) else value


def own_commands() -> list[LazyCommand]:
    """Return the commands of this package without importing them."""
    return [
        LazyCommand(name, summary, partial(_own_app, name)) for name, summary in SUMMARIES.items()
    ]


def _own_app(name: str) -> typer.Typer:
    app: typer.Typer = import_module(f'softarm_ros.cli.commands.{name}').app
    return app


def provided_commands() -> dict[str, LazyCommand]:
    """Return the commands that other installed packages add, without importing them."""
    from importlib.metadata import entry_points  # as slow to import as the rest of this module

    return {
        entry.name: LazyCommand(
            entry.name, f'From the package {entry.dist.name if entry.dist else "?"}.', entry.load
        )
        for entry in sorted(entry_points(group=PROVIDED), key=lambda entry: entry.name)
    }


class SoftarmGroup(TyperGroup):
    """
    The commands; a user error becomes a message on stderr and exit status 2.

    If another package has a command of the same name, the one of this package is run.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for command in own_commands():
            self.add_command(command)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, ours first."""
        ours = super().list_commands(ctx)
        return [*ours, *(name for name in provided_commands() if name not in ours)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """
        Return a command, or None if it does not exist.

        Raises
        ------
        UsageError
            If the command belongs to a package that is not installed.

        """
        found = super().get_command(ctx, cmd_name) or provided_commands().get(cmd_name)
        if found is None and cmd_name in ELSEWHERE:
            package, folder = ELSEWHERE[cmd_name]
            raise UsageError(
                f'the command {cmd_name!r} belongs to the package {package}, which is not '
                f'installed: pip install {folder}  (in the repository of softarm_ros)'
            )
        return found

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except (Exception, SystemExit) as error:
            if not is_user_error(error):
                if isinstance(error, (typer.Exit, typer.Abort)) or not _of_another(error):
                    raise
                if isinstance(error, SystemExit) and ctx.invoked_subcommand not in self.commands:
                    raise  # a command of another package may end itself
                from softarm_ros.runtime.part_failure import failure_text

                print(f'softarm: {failure_text(error)}', file=sys.stderr)
                raise typer.Exit(EXIT_BAD_INPUT) from None
            print(f'softarm: {error}', file=sys.stderr)
            raise typer.Exit(EXIT_BAD_INPUT) from None


def _of_another(error: BaseException) -> bool:
    """Return whether a part of another package has failed; the message then names this part."""
    if 'softarm_ros.rigs.part_registry' not in sys.modules:
        return False  # no part has been loaded
    from softarm_ros.runtime.part_failure import part_at_fault

    return bool(part_at_fault(error))
