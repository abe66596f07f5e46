"""The command `softarm workspace`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from softarm_ros.cli.options import RigArgument, SetOption, command_app

app = command_app()

_LONG_S = 30.0


@app.command(epilog='Example:  softarm workspace cable_arm --image workspace.png')
def workspace(
    rig: RigArgument,
    samples: Annotated[int, typer.Option(min=1, help='Number of configurations.')] = 200_000,
    seed: Annotated[int, typer.Option(min=0, help='Seed of the random configurations.')] = 0,
    image: Annotated[
        Path | None, typer.Option(metavar='FILE.png', help='Picture to write.')
    ] = None,
    *,
    settings: SetOption,
) -> None:
    """Show the workspace of an arm: tip positions within its limits."""
    from softarm_ros.cli.cli_errors import UsageError
    from softarm_ros.cli.work_bar import WorkBar
    from softarm_ros.cli.workspace import describe, draw_workspace, expected_s, sample_workspace
    from softarm_ros.rigs.loader import load_rig
    from softarm_ros.whole_file import require_writable

    if image is not None:
        if image.suffix.lower() != '.png':
            raise UsageError(f'--image {image}: expected a name that ends in .png')
        require_writable(image)
    arm = load_rig(rig, settings)
    if (seconds := expected_s(arm, samples)) > _LONG_S:
        told = f'{samples} configurations take about {seconds:.0f} s; --samples draws fewer'
        typer.echo(f'{arm.name}: {told}', err=True)
    with WorkBar() as bar:
        found = sample_workspace(
            arm, samples, seed, partial(bar.show, f'{arm.name}: configurations')
        )
    for line in describe(arm, found):
        typer.echo(line)
    if image is not None:
        typer.echo(f'picture: {draw_workspace(arm, found, image)}')
