"""The command `softarm demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softarm_ros.cli.options import command_app
from softarm_ros.nodes.process import LARGEST_SEED

app = command_app()


@app.command(epilog='Example:  softarm demo --report demo-report')
def demo(
    report: Annotated[Path, typer.Option(metavar='DIR', help='Folder of the report.')] = Path(
        'demo-report'
    ),
    seed: Annotated[
        int, typer.Option(min=0, max=LARGEST_SEED, help='Seed of every random number.')
    ] = 0,
) -> None:
    """Run a circle over topics, shown in a browser; then compare models with the paper."""
    from softarm_ros.cli.consoles import stdout_console
    from softarm_ros.cli.demo import run_demo

    raise typer.Exit(run_demo(report, stdout_console(), seed))
