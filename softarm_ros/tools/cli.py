"""
The command line `softarm`.

Signatures and help live here; the work is in the `*_command` modules and imported when a command
runs, so that `softarm --help` stays quick.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from softarm_ros import __version__
from softarm_ros.tools.cli_errors import SoftarmGroup

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

RigArgument = Annotated[
    str, typer.Argument(metavar='RIG', help='Name of a built-in rig, or a .yaml file.')
]
ModelOption = Annotated[
    str | None,
    typer.Option('--model', metavar='NAME', help="Arm model; the rig's default without it."),
]


class Direction(str, Enum):
    """Which way a model is asked."""

    FORWARD = 'forward'
    INVERSE = 'inverse'


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


@app.command()
def rigs() -> None:
    """List the rigs that come with the package."""
    from softarm_ros.rigs.loader import list_rigs

    known = list_rigs()
    width = max((len(rig.name) for rig in known), default=0)
    for rig in known:
        typer.echo(f'{rig.name:<{width}}  {rig.description}')


@app.command(epilog='Example:  softarm check my_arm.yaml other_arm.yaml')
def check(
    files: Annotated[
        list[str], typer.Argument(metavar='FILE...', help='Rig files, or names of built-in rigs.')
    ],
) -> None:
    """
    Check rig files: everything that is wrong, with field and line, or a summary.

    Exit status 1 if a file has problems.
    """
    from softarm_ros.rigs.loader import RigError, load_rig
    from softarm_ros.tools.check_command import summary, warnings

    failed = False
    for name in files:
        try:
            rig = load_rig(name)
        except RigError as error:
            failed = True
            count = len(error.problems)
            typer.echo(str(error), err=True)
            typer.echo(f'FAILED {name}: {count} problem{"s" if count != 1 else ""}', err=True)
            continue
        typer.echo(f'OK {name}: {rig.name}')
        for line in summary(rig):
            typer.echo(f'  {line}')
        for line in warnings(rig):
            typer.echo(f'  warning: {line}')
    if failed:
        raise typer.Exit(1)


@app.command(
    epilog='Examples:  softarm model cable_arm_single forward --contraction-mm 12,-6,-6  |  '
    'softarm model cable_arm inverse --position-m 0.08,0.02,0.20'
)
def model(
    rig: RigArgument,
    direction: Annotated[Direction, typer.Argument(help='What to compute.')],
    contraction_mm: Annotated[
        str | None,
        typer.Option(metavar='C1,C2,...', help='Contraction of each cable in mm (forward).'),
    ] = None,
    position_m: Annotated[
        str | None,
        typer.Option(metavar='X,Y,Z', help='Tip position in m, base frame (inverse).'),
    ] = None,
    model_name: ModelOption = None,
) -> None:
    """
    Compute shape from contractions (forward) or contractions from a tip position (inverse).

    Exit status 1 if the position is out of reach; the nearest found is printed.
    """
    from softarm_ros.rigs.loader import load_rig
    from softarm_ros.tools import model_command

    arm = load_rig(rig)
    trouble = None
    if direction is Direction.FORWARD:
        text = model_command.require(contraction_mm, '--contraction-mm', direction.value)
        lines = list(model_command.forward_report(arm, text, model_name))
    else:
        text = model_command.require(position_m, '--position-m', direction.value)
        lines, trouble = model_command.inverse_report(arm, text, model_name)
    for line in lines:
        typer.echo(line)
    if trouble is not None:
        typer.echo(f'softarm: {trouble}', err=True)
        raise typer.Exit(1)


@app.command(epilog='Example:  softarm urdf cable_arm --links 8 --output cable_arm.urdf')
def urdf(
    rig: RigArgument,
    links: Annotated[
        int, typer.Option(min=1, max=99, help='Rigid links that stand for one section.')
    ] = 8,
    output: Annotated[
        Path | None, typer.Option(metavar='FILE', help='File to write; printed without it.')
    ] = None,
) -> None:
    """Print the URDF of a rig, generated from its file."""
    from softarm_ros.rigs.loader import load_rig
    from softarm_ros.rigs.urdf import build_urdf
    from softarm_ros.tools.cli_errors import UsageError

    text = build_urdf(load_rig(rig), links)
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding='utf-8')
    except OSError as error:
        raise UsageError(f'--output {output}: cannot be written ({error.strerror})') from None


@app.command()
def bench() -> None:
    """Time the compiled kernels beside plain numpy in the same run."""
    from softarm_ros.tools.bench import main as run_benchmark

    run_benchmark()


# Further commands go here: the signature with its help, and inside the function the import of the
# module that does the work.


def main() -> None:
    """Entry point of `softarm`."""
    app()


if __name__ == '__main__':
    main()
