"""The command `softarm faults`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softarm_ros.cli.options import SetOption, command_app

app = command_app()
CLEAN_RUNS = 20


@app.command(epilog='Examples:  softarm faults cable_arm --seeds 20   |   softarm faults --clean')
def faults(
    rigs: Annotated[
        list[str] | None, typer.Argument(metavar='[RIG]...', help='Without any: all rigs.')
    ] = None,
    trajectory: Annotated[
        str | None, typer.Option(metavar='NAME|FILE', help='Of the rig; without it, the default.')
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help='Of every random number; the first. 0: nominal machine.')
    ] = 0,
    clean: Annotated[
        bool, typer.Option('--clean', help='No faults: count false alarms, on all paths.')
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, help='Machines, each with a seed of its own; 1, with --clean 20 of every path.'
        ),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option('--json', metavar='FILE', help='Write the results there.')
    ] = None,
    *,
    settings: SetOption,
) -> None:
    """
    Break simulated arms in mid-run: who notices, when, and how far the tip has gone.

    Exit status 1 if a bar is missed, or for a false alarm; 130 after Ctrl-C.
    """
    from softarm_ros.cli.faults_command import faults_command
    from softarm_ros.cli.run_command import table_console

    machines = range(seed, seed + (seeds or (CLEAN_RUNS if clean else 1)))
    raise typer.Exit(
        faults_command(
            rigs or (), settings, trajectory, machines, clean, json_file, table_console()
        )
    )
