"""The command `softarm soak`."""

from __future__ import annotations

from typing import Annotated

import typer

from softarm_ros.cli.options import SetOption, command_app
from softarm_ros.nodes.process import LARGEST_SEED

app = command_app()


@app.command(
    epilog='Examples:  softarm soak   |   softarm soak cable_arm --starts 5 --busy 2   |   '
    'softarm soak hydraulic_arm --backend emulated --starts 1 --whole'
)
def soak(
    rigs: Annotated[
        list[str] | None, typer.Argument(metavar='[RIG...]', help='Rigs to run; by default all.')
    ] = None,
    starts: Annotated[int, typer.Option(min=1, help='Number of runs of every rig.')] = 40,
    rate: Annotated[float, typer.Option(help='Simulated speed; 1 is real time.')] = 1.0,
    backend: Annotated[str, typer.Option(help='sim or emulated.')] = 'sim',
    busy: Annotated[
        int, typer.Option(min=0, help='Number of processes that keep processors busy.')
    ] = 0,
    whole: Annotated[
        bool, typer.Option('--whole', help='Run the whole path, not only its first 10 mm.')
    ] = False,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help='Seed of the first run.')] = 0,
    *,
    settings: SetOption,
) -> None:
    """
    Run rigs over topics many times: completion, holds, missed cycles, latency, error.

    Exit status 1 unless every run completed. Failed runs are not repeated. Ctrl-C stops the arm of
    the present run and prints the table of those before it; exit status 130.
    """
    from softarm_ros.cli import soak as soaking
    from softarm_ros.cli.consoles import table_console
    from softarm_ros.cli.run_command import status_of
    from softarm_ros.cli.stop_request import stop_on_signals

    options = soaking.SoakOptions(starts, rate, backend, busy, None if whole else 0.01, seed)
    console = table_console()
    with stop_on_signals() as stopped:
        rows = soaking.soak(rigs or (), settings, options, console, stopped)
    if rows:
        console.print(soaking.soak_table(rows, options))
    if stopped():
        console.print(f'ended by {stopped.by}', markup=False)
    complete = not stopped() and all(row.completed == starts for row in rows)
    raise typer.Exit(status_of(complete, stopped()))
