"""The command line `softarm`; its commands are in `commands/`."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from softarm_ros import __version__
from softarm_ros.cli.command_group import SoftarmGroup
from softarm_ros.nodes.process import EXIT_FAILED, end_with_parent, leave

# Errors of the output: disk full, quota or size exceeded, or I/O error. No defect of ours.
_NOT_WRITTEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})

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
    """Accept the options that belong to no command."""


def _print_what_can_be() -> None:
    """Print `?` for characters the terminal cannot encode, and for undecodable file names."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors != 'backslashreplace':
            stream.reconfigure(errors='replace')


def _replace_closed_streams() -> None:
    """Open /dev/null for closed standard streams: ROS needs them; sockets take their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, 'w', closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, 'w', closefd=False)  # noqa: SIM115


def _set_home() -> None:
    """Set HOME, which ROS needs for its logs, if a service or cron has left it unset."""
    with contextlib.suppress(RuntimeError):  # a user without an entry
        os.environ.setdefault('HOME', str(Path.home()))


def main() -> None:
    """Entry point of `softarm`."""
    _replace_closed_streams()
    _print_what_can_be()
    _set_home()
    end_with_parent()  # of the viewer of a run, and of a run that a viewer started
    try:
        app()
    except SystemExit as end:
        if isinstance(end.code, str):  # a message, which Python prints
            raise
        leave(end.code or 0)
    except OSError as error:
        if error.errno not in _NOT_WRITTEN:
            raise
        where = 'the output' if error.filename is None else error.filename
        print(f'softarm: {where}: cannot be written ({error.strerror})', file=sys.stderr)
        leave(EXIT_FAILED)
