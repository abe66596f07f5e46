"""The command `softarm parts`."""

from __future__ import annotations

from typing import Annotated

import typer

from softarm_ros.cli.options import command_app

app = command_app()


@app.command(epilog='Example:  softarm parts model.cosserat')
def parts(
    name: Annotated[
        str | None,
        typer.Argument(metavar='[FAMILY[.KIND]]', help='A family of parts, or one part.'),
    ] = None,
) -> None:
    """
    List the parts that arms are composed of, or the fields of one part.

    The list includes parts of other installed packages; unusable parts are reported on stderr.
    """
    from softarm_ros.cli.parts_command import list_parts, show_part

    if name is not None and '.' in name:
        for line in show_part(name):
            typer.echo(line)
        return
    lines, problems = list_parts(name)
    for line in lines:
        typer.echo(line)
    for problem in problems:
        typer.echo(f'softarm: {problem}', err=True)
