"""The command `softarm compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from softarm_ros.cli.options import SetOption, command_app

app = command_app()


@app.command(
    epilog='Examples:  softarm compare   |   softarm compare cable_arm --trajectory line_small'
)
def compare(
    rigs: Annotated[
        list[str] | None,
        typer.Argument(metavar='[RIG]...', help='Rigs to run; by default all with devices.'),
    ] = None,
    trajectory: Annotated[
        str | None,
        typer.Option(metavar='NAME|FILE', help='Trajectory of each rig, or a YAML file.'),
    ] = None,
    laps: Annotated[
        int | None, typer.Option(min=1, help="Number of laps, instead of the trajectory's.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help='Seed of every random number.')] = 0,
    *,
    settings: SetOption,
) -> None:
    """Run arms simulated and with emulated devices in real time; compare the errors."""
    from softarm_ros.cli.backend_comparison import compare_backends
    from softarm_ros.cli.consoles import stdout_console

    console = stdout_console()
    raise typer.Exit(compare_backends(rigs or (), settings, trajectory, laps, seed, console))
