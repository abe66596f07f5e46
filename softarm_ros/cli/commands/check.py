"""The command `softarm check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from softarm_ros.cli.options import SetOption, command_app

if TYPE_CHECKING:
    from softarm_ros.rigs.schema import Rig

app = command_app()


@app.command(epilog='Example:  softarm check my_arm.yaml other_arm.yaml')
def check(
    files: Annotated[
        list[str], typer.Argument(metavar='FILE...', help='Rig files, or names of built-in rigs.')
    ],
    *,
    settings: SetOption,
) -> None:
    """
    Check rig files: report every mistake with field and line, or print a summary.

    Exit status 1 if a file has problems.
    """
    from softarm_ros.cli.check_command import summary, warnings
    from softarm_ros.cli.work_bar import WorkBar
    from softarm_ros.rigs.loader import RigError, load_rig

    failed = False
    for name in files:
        try:
            rig = load_rig(name, settings)
            _build_model(name, rig)
        except RigError as error:
            failed = True
            count = len(error.problems)
            typer.echo(str(error), err=True)
            typer.echo(f'FAILED {name}: {count} problem{"s" if count != 1 else ""}', err=True)
            continue
        typer.echo(f'OK {name}: {rig.name}')
        with WorkBar() as bar:
            for line in bar.between(summary(rig, bar.show)):
                typer.echo(f'  {line}')
            for line in bar.between(warnings(rig, bar.show)):
                typer.echo(f'  warning: {line}')
    if failed:
        raise typer.Exit(1)


def _build_model(name: str, rig: Rig) -> None:
    """Raise RigError if the default model refuses the arm, or a part of another package fails."""
    from softarm_ros.geometry.parts import PartError
    from softarm_ros.models.arm_model import ModelError
    from softarm_ros.rigs.loader import RigError
    from softarm_ros.runtime.part_failure import FAILURES, failure_text, part_at_fault
    from softarm_ros.runtime.part_trial import try_parts

    try:
        rig.model()
    except ModelError as error:
        raise RigError(name, f'model = {rig.default_model!r}: {error}') from error
    except PartError as error:
        raise RigError(name, str(error)) from error
    except FAILURES as error:
        if isinstance(error, RigError) or not part_at_fault(error):
            raise
        raise RigError(name, failure_text(error)) from error
    try_parts(rig, name)
