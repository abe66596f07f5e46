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
        list[str] | None, typer.Argument(metavar='[RIG]...', help='Rigs to test; by default all.')
    ] = None,
    trajectory: Annotated[
        str | None,
        typer.Option(metavar='NAME|FILE', help='Trajectory of the rig; its default if not given.'),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help='First seed of all random numbers. 0: nominal machine.')
    ] = 0,
    clean: Annotated[
        bool,
        typer.Option('--clean', help='Run without faults on all paths, and count false alarms.'),
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help='Number of machines, each with its own seed; default 1, with --clean 20. '
            'Several: whatever plant.machine.number is.',
        ),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option('--json', metavar='FILE', help='Write the results to this file.')
    ] = None,
    *,
    settings: SetOption,
) -> None:
    """
    Inject faults into simulated runs: who notices, when, and how far the tip goes.

    Exit status 1 if a bar is missed, for a false alarm, or if a run without a fault never tracks;
    130 after Ctrl-C.
    """
    from softarm_ros.cli.consoles import table_console
    from softarm_ros.cli.faults_command import faults_command

    machines = range(seed, seed + (seeds or (CLEAN_RUNS if clean else 1)))
    raise typer.Exit(
        faults_command(
            rigs or (), settings, trajectory, machines, clean, json_file, table_console()
        )
    )
