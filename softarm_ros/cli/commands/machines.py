"""The command `softarm machines`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softarm_ros.cli.options import SetOption, command_app

app = command_app()


@app.command(
    epilog='Examples:  softarm machines cable_arm   |   '
    'softarm machines --runs --machines 20 --store table   |   '
    'softarm machines cable_arm --runs --trajectory line_small'
)
def machines(
    rigs: Annotated[
        list[str] | None, typer.Argument(metavar='[RIG...]', help='Rigs to use; by default all.')
    ] = None,
    count: Annotated[
        int, typer.Option('--machines', min=1, help='Number of machines: 1, 2, ...')
    ] = 20,
    runs: Annotated[
        bool, typer.Option('--runs', help='Run their paths, in open and closed loop.')
    ] = False,
    trajectory: Annotated[
        list[str] | None,
        typer.Option(metavar='NAME', help='Trajectory of the rigs; by default all.'),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(
            metavar='DIR', help='Folder to keep results in; runs already there are not repeated.'
        ),
    ] = None,
    *,
    settings: SetOption,
) -> None:
    """
    Show the drawn parameters of simulated machines, or run them: true and measured errors.

    Without --runs, show each field that varies, with its range over machines. With --runs, show
    one row for each path and loop: median and 90th percentile over machines of the tip's mean
    error. A `plant.machine.number` of the rig, which selects one of them, does not count here.
    Exit status 1 unless every run completed, 130 after Ctrl-C.
    """
    from softarm_ros.cli import machine_table
    from softarm_ros.cli.all_machines import load_for_machines
    from softarm_ros.cli.cli_errors import UsageError
    from softarm_ros.cli.consoles import table_console
    from softarm_ros.cli.run_command import status_of
    from softarm_ros.cli.stop_request import stop_on_signals
    from softarm_ros.rigs.loader import list_rigs

    for option, value in (('--trajectory', trajectory), ('--store', store)):
        if value and not runs:
            raise UsageError(f'{option} needs --runs')
    names = rigs or [known.name for known in list_rigs()]
    arms = [load_for_machines(name, settings) for name in names]
    for arm in arms:
        if not arm.plant_for('sim').drawn(1):
            raise UsageError(
                f'{arm.name}: no plant.machine.spreads, so all machines are the same '
                '(docs/machines.md)'
            )
    console = table_console()
    if not runs:
        for arm in arms:
            console.print(machine_table.draw_table(arm, count))
        return
    cases = machine_table.cases_of(arms, trajectory or (), count)
    with stop_on_signals() as stopped:
        results = machine_table.run_all(cases, store, console, stopped)
    console.print(machine_table.run_table(results))
    complete = len(results) == len(cases) and all(result.completed for result in results)
    raise typer.Exit(status_of(complete, stopped()))
