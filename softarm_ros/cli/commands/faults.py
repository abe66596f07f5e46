"""The command `softarm faults`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softarm_ros.cli.options import command_app

app = command_app()


@app.command(epilog='Examples:  softarm faults cable_arm   |   softarm faults --clean --seeds 20')
def faults(
    rigs: Annotated[
        list[str] | None, typer.Argument(metavar='[RIG]...', help='Without any: all rigs.')
    ] = None,
    trajectory: Annotated[
        str | None, typer.Option(metavar='NAME|FILE', help='Of the rig; without it, the default.')
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help='Of every random number; the first.')] = 0,
    clean: Annotated[
        bool, typer.Option('--clean', help='No faults: count false alarms, on all paths.')
    ] = False,
    seeds: Annotated[int, typer.Option(min=1, help='Clean runs of every path.')] = 20,
    json_file: Annotated[
        Path | None, typer.Option('--json', metavar='FILE', help='Write the results there.')
    ] = None,
) -> None:
    """
    Break simulated arms in mid-run: who notices, when, and how far the tip has gone.

    Exit status 1 if a bar is missed, or for a false alarm.
    """
    from softarm_ros.cli.faults_command import faults_command
    from softarm_ros.cli.run_command import stdout_console

    console = stdout_console()
    raise typer.Exit(
        faults_command(rigs or (), trajectory, seed, clean, seeds, json_file, console)
    )
