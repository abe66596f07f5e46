"""The command `softarm replay`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softarm_ros.cli.options import command_app

app = command_app()


@app.command(
    epilog='Examples:  softarm replay monday   |   softarm replay run1 --rate 4   |   '
    'softarm replay run1 --nodes tracker,markers   |   softarm replay run1 --direct'
)
def replay(
    bag: Annotated[
        Path,
        typer.Argument(
            metavar='BAG',
            help='Bag of `softarm run --bag`, or of `softarm record` for display only.',
        ),
    ],
    rate: Annotated[float, typer.Option(min=0.01, max=100.0, help='Speed; 1 is real time.')] = 1.0,
    nodes: Annotated[
        str | None,
        typer.Option(
            metavar='NAME,...',
            help='Nodes to run live on recorded inputs: tracker (with the estimator, which is '
            'another name for it), inverse_kinematics, supervisor, markers.',
        ),
    ] = None,
    direct: Annotated[
        bool,
        typer.Option(
            '--direct', help="Repeat the tracker's cycles in this process; compare the commands."
        ),
    ] = False,
) -> None:
    """Play a recorded run over topics, with /clock, or repeat the cycles of its tracker."""
    if direct:
        from softarm_ros.cli import replay_direct
        from softarm_ros.cli.cli_errors import UsageError

        if rate != 1.0 or nodes is not None:
            raise UsageError('--direct plays nothing over topics; drop --rate and --nodes')
        for line in replay_direct.describe(replay_direct.replay_direct(bag)):
            typer.echo(line)
        return
    from softarm_ros.cli import replay_command

    live = [] if nodes is None else [name.strip() for name in nodes.split(',')]
    raise typer.Exit(replay_command.replay(bag, rate, live))
