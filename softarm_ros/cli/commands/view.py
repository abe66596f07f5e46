"""The command `softarm view`."""

from __future__ import annotations

from typing import Annotated

import typer

from softarm_ros.cli.options import SetOption, command_app

app = command_app()


@app.command(
    epilog='Examples:  softarm view cable_arm   |   softarm view run_bag   |   '
    'softarm view monday_bag --rig my_arm.yaml'
)
def view(
    what: Annotated[
        str, typer.Argument(metavar='RIG|BAG', help='Rig, or folder of a recorded bag.')
    ],
    rig: Annotated[
        str | None,
        typer.Option(metavar='RIG', help='Rig for the bag, instead of the recorded one.'),
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help='Port for browsers.')] = 8080,
    host: Annotated[
        str,
        typer.Option(
            metavar='ADDRESS',
            help='Address of this computer for browsers; 0.0.0.0: all. By default, only this '
            'computer can connect.',
        ),
    ] = '127.0.0.1',
    opened: Annotated[
        bool, typer.Option('--open', help='Open the page in a browser, if there is a desktop.')
    ] = False,
    runs: Annotated[
        bool | None,
        typer.Option(
            '--runs/--no-runs', help='Offer controls to start simulated runs; by default yes.'
        ),
    ] = None,
    *,
    settings: SetOption,
) -> None:
    """Show a running arm or a recorded run in a browser."""
    from softarm_ros.cli.cli_errors import UsageError
    from softarm_ros.cli.consoles import stdout_console
    from softarm_ros.cli.recorded_rig import rig_of_bag, rig_without_bag
    from softarm_ros.cli.stop_request import stop_on_signals
    from softarm_ros.cli.viewer.app import view_bag, view_graph
    from softarm_ros.home_path import expand_home
    from softarm_ros.nodes.bag_messages import is_bag

    console, folder = stdout_console(), expand_home(what, '')
    with stop_on_signals() as stopped:
        if is_bag(folder):
            if runs is not None:
                option = '--runs' if runs else '--no-runs'
                raise UsageError(f'{option}: a bag has no controls to start runs; drop {option}')
            arm, which = rig_of_bag(folder, rig, settings)
            console.print(f'rig: {which}', markup=False)
            view_bag(folder, arm, port, console, stopped, host=host, opened=opened)
        else:
            arm = rig_without_bag(what, rig, settings)
            view_graph(
                arm, port, console, stopped, host=host, opened=opened, runs=runs is not False
            )
