"""The command line `softarm`; its commands are in `commands/`."""

from __future__ import annotations

from typing import Annotated

import typer

from softarm_ros import __version__
from softarm_ros.cli.command_group import SoftarmGroup
from softarm_ros.nodes.process import leave

EXAMPLES = """
Examples:

  softarm rigs

  softarm check my_arm.yaml

  softarm model cable_arm inverse --position-m 0.08,0.02,0.20

  softarm urdf cable_arm --output cable_arm.urdf
"""

app = typer.Typer(
    name='softarm',
    cls=SoftarmGroup,
    help='Real-time control stack for soft continuum arms.',
    epilog=EXAMPLES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={'help_option_names': ['-h', '--help']},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f'softarm_ros {__version__}')
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            '--version', callback=_show_version, is_eager=True, help='Print the version and exit.'
        ),
    ] = False,
) -> None:
    """Take the options that belong to no command."""


def main() -> None:
    """Entry point of `softarm`."""
    try:
        app()
    except SystemExit as end:
        if isinstance(end.code, str):  # words to be printed
            raise
        leave(end.code or 0)
