"""The command `softarm run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softarm_ros.cli.options import RigArgument, SetOption, command_app

app = command_app()


@app.command(
    epilog='Examples:  softarm run cable_arm   |   '
    'softarm run cable_arm --trajectory my.yaml --json out.json --report out   |   '
    'softarm run cable_arm --direct --seed 3 --laps 2   |   softarm run cable_arm --goals   |   '
    'softarm run cable_arm --trajectory circle_small --set tip_load_kg=0.01'
)
def run(
    rig: RigArgument,
    backend: Annotated[str, typer.Option(help='sim, emulated or hardware.')] = 'sim',
    trajectory: Annotated[
        str | None,
        typer.Option(metavar='NAME|FILE', help='Trajectory of the rig, or a YAML file.'),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            metavar='NAME|FILE', help='Poses, dwells and gripper actions, instead of a trajectory.'
        ),
    ] = None,
    goals: Annotated[
        bool,
        typer.Option('--goals', help='Wait for goals (softarm goto, teleop, view) until Ctrl-C.'),
    ] = False,
    model: Annotated[str | None, typer.Option(help="Model; by default the rig's.")] = None,
    controller: Annotated[
        str | None,
        typer.Option(metavar='NAME', help='Replace controller.kind; common fields are kept.'),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(metavar='NAME', help='Replace estimator.kind; common fields are kept.'),
    ] = None,
    open_loop: Annotated[bool, typer.Option('--open-loop', help='Do not use feedback.')] = False,
    direct: Annotated[
        bool, typer.Option('--direct', help='One process, no topics, exactly repeatable.')
    ] = False,
    laps: Annotated[
        int | None, typer.Option(help="Number of laps, instead of the trajectory's.")
    ] = None,
    rate: Annotated[float, typer.Option(help='Simulated speed; 1 is real time.')] = 1.0,
    seed: Annotated[int, typer.Option(help='Seed of every random number.')] = 0,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar='nominal|N',
            help='Simulated machine: nominal as in the file, or drawn; by default the seed.',
        ),
    ] = None,
    home: Annotated[
        bool | None,
        typer.Option('--home/--no-home', help='Hardware: the arm is at rest now; home there.'),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            '--strict',
            help='End a simulated run if the computer is late, instead of holding the arm.',
        ),
    ] = False,
    processes: Annotated[
        str,
        typer.Option(
            help='one: the nodes of the loop share a process; each: one process per node.'
        ),
    ] = 'one',
    view: Annotated[
        bool, typer.Option('--view', help='Show the arm in a browser while it runs.')
    ] = False,
    bag: Annotated[
        Path | None,
        typer.Option(metavar='DIR', help='Record a rosbag2 MCAP bag into this folder.'),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar='DIR', help='Write figures and an HTML page into this folder.'),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option('--json', metavar='FILE', help='Write the summary to this file.')
    ] = None,
    *,
    settings: SetOption,
) -> None:
    """Run a trajectory or a task and show the tracking error; Ctrl-C stops the arm."""
    from softarm_ros.cli import run_command
    from softarm_ros.cli.consoles import stdout_console
    from softarm_ros.rigs.arguments import settings_of
    from softarm_ros.rigs.loader import load_rig

    options = run_command.RunOptions(
        backend=backend,
        trajectory=trajectory,
        task=task,
        goals=goals,
        model=model,
        open_loop=open_loop,
        direct=direct,
        laps=laps,
        rate=rate,
        seed=seed,
        home=home,
        strict=strict,
        processes=processes,
        view=view,
        bag=bag,
        report=report,
        json_file=json_file,
    )
    chosen = {'controller': controller, 'estimator': estimator, 'machine': machine}
    arm = load_rig(rig, settings_of(settings, **chosen))
    raise typer.Exit(run_command.run(arm, options, stdout_console()))
