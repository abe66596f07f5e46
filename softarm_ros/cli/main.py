"""
The command line `softarm`.

Signatures and help live here; the work is in the `*_command` modules and imported when a command
runs, so that `softarm --help` stays quick.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from softarm_ros import __version__
from softarm_ros.cli.command_group import SoftarmGroup

EXAMPLES = """
Examples:

  softarm rigs

  softarm check my_arm.yaml

  softarm model cable_arm inverse --position-m 0.08,0.02,0.20

  softarm urdf cable_arm --output cable_arm.urdf
"""

app = typer.Typer(
    name='softarm',
    cls=SoftarmGroup,
    help='Real-time control stack for soft continuum arms.',
    epilog=EXAMPLES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={'help_option_names': ['-h', '--help']},
)

RigArgument = Annotated[
    str, typer.Argument(metavar='RIG', help='Name of a built-in rig, or a .yaml file.')
]
ModelOption = Annotated[
    str | None,
    typer.Option('--model', metavar='NAME', help="Arm model; the rig's default without it."),
]


SetOption = Annotated[
    list[str] | None,
    typer.Option(
        '--set',
        metavar='FIELD=VALUE',
        help='Over a value of the rig file, as medium=water or plant.mocap.delay_s=0.02.',
    ),
]


class Direction(str, Enum):
    """Which way a model is asked."""

    FORWARD = 'forward'
    INVERSE = 'inverse'


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f'softarm_ros {__version__}')
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            '--version', callback=_show_version, is_eager=True, help='Print the version and exit.'
        ),
    ] = False,
) -> None:
    """Take the options that belong to no command."""


@app.command()
def rigs() -> None:
    """List the rigs that come with the package."""
    from softarm_ros.rigs.loader import list_rigs

    known = list_rigs()
    width = max((len(rig.name) for rig in known), default=0)
    for rig in known:
        typer.echo(f'{rig.name:<{width}}  {rig.description}')


@app.command(epilog='Example:  softarm check my_arm.yaml other_arm.yaml')
def check(
    files: Annotated[
        list[str], typer.Argument(metavar='FILE...', help='Rig files, or names of built-in rigs.')
    ],
) -> None:
    """
    Check rig files: everything that is wrong, with field and line, or a summary.

    Exit status 1 if a file has problems.
    """
    from softarm_ros.cli.check_command import summary, warnings
    from softarm_ros.rigs.loader import RigError, load_rig

    failed = False
    for name in files:
        try:
            rig = load_rig(name)
        except RigError as error:
            failed = True
            count = len(error.problems)
            typer.echo(str(error), err=True)
            typer.echo(f'FAILED {name}: {count} problem{"s" if count != 1 else ""}', err=True)
            continue
        typer.echo(f'OK {name}: {rig.name}')
        for line in summary(rig):
            typer.echo(f'  {line}')
        for line in warnings(rig):
            typer.echo(f'  warning: {line}')
    if failed:
        raise typer.Exit(1)


@app.command(
    epilog='Examples:  softarm model cable_arm_single forward --actuation 12,-6,-6  |  '
    'softarm model cable_arm inverse --position-m 0.08,0.02,0.20'
)
def model(
    rig: RigArgument,
    direction: Annotated[Direction, typer.Argument(help='What to compute.')],
    actuation: Annotated[
        str | None,
        typer.Option(
            metavar='A1,A2,...',
            help='Of each actuator, in mm, kPa or N as softarm check shows it (forward).',
        ),
    ] = None,
    position_m: Annotated[
        str | None,
        typer.Option(metavar='X,Y,Z', help='Tip position in m, base frame (inverse).'),
    ] = None,
    model_name: ModelOption = None,
) -> None:
    """
    Compute shape from actuation (forward) or actuation from a tip position (inverse).

    Exit status 1 if the position is out of reach; the nearest found is printed.
    """
    from softarm_ros.cli import model_command
    from softarm_ros.rigs.loader import load_rig

    arm = load_rig(rig)
    trouble = None
    if direction is Direction.FORWARD:
        text = model_command.require(actuation, '--actuation', direction.value)
        lines = list(model_command.forward_report(arm, text, model_name))
    else:
        text = model_command.require(position_m, '--position-m', direction.value)
        lines, trouble = model_command.inverse_report(arm, text, model_name)
    for line in lines:
        typer.echo(line)
    if trouble is not None:
        typer.echo(f'softarm: {trouble}', err=True)
        raise typer.Exit(1)


@app.command(epilog='Example:  softarm urdf cable_arm --links 8 --output cable_arm.urdf')
def urdf(
    rig: RigArgument,
    links: Annotated[
        int, typer.Option(min=1, max=99, help='Rigid links that stand for one section.')
    ] = 8,
    output: Annotated[
        Path | None, typer.Option(metavar='FILE', help='File to write; printed without it.')
    ] = None,
) -> None:
    """Print the URDF of a rig, generated from its file."""
    from softarm_ros.cli.cli_errors import UsageError
    from softarm_ros.rigs.loader import load_rig
    from softarm_ros.rigs.urdf import build_urdf

    text = build_urdf(load_rig(rig), links)
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding='utf-8')
    except OSError as error:
        raise UsageError(f'--output {output}: cannot be written ({error.strerror})') from None


@app.command(
    epilog='Examples:  softarm compare   |   softarm compare cable_arm --trajectory line_small'
)
def compare(
    rigs: Annotated[
        list[str] | None, typer.Argument(metavar='[RIG]...', help='All with devices without one.')
    ] = None,
    trajectory: Annotated[
        str | None, typer.Option(metavar='NAME|FILE', help='Of each rig, or a YAML file.')
    ] = None,
    laps: Annotated[int | None, typer.Option(min=1, help='Overrides the trajectory.')] = None,
    seed: Annotated[int, typer.Option(min=0, help='Of every random number.')] = 0,
) -> None:
    """Run arms simulated and with emulated devices, in real time, and show both errors."""
    from softarm_ros.cli.backend_comparison import compare_backends
    from softarm_ros.cli.run_command import stdout_console

    raise typer.Exit(compare_backends(rigs or (), trajectory, laps, seed, stdout_console()))


@app.command(epilog='Examples:  softarm faults cable_arm   |   softarm faults --clean --seeds 20')
def faults(
    rigs: Annotated[
        list[str] | None, typer.Argument(metavar='[RIG]...', help='All without one.')
    ] = None,
    trajectory: Annotated[
        str | None, typer.Option(metavar='NAME|FILE', help='Of the rig; its default without.')
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


@app.command(epilog='Example:  softarm workspace cable_arm --image workspace.png')
def workspace(
    rig: RigArgument,
    samples: Annotated[int, typer.Option(min=1, help='Configurations to draw.')] = 200_000,
    seed: Annotated[int, typer.Option(help='Of the random configurations.')] = 0,
    image: Annotated[
        Path | None, typer.Option(metavar='FILE.png', help='Picture to write.')
    ] = None,
) -> None:
    """Tell where the tip of an arm can be within its limits."""
    from softarm_ros.cli.workspace import describe, draw_workspace, sample_workspace
    from softarm_ros.rigs.loader import load_rig

    arm = load_rig(rig)
    found = sample_workspace(arm, samples, seed)
    for line in describe(arm, found):
        typer.echo(line)
    if image is not None:
        typer.echo(f'picture: {draw_workspace(arm, found, image)}')


@app.command(epilog='Example:  softarm picture pam_arm --trajectory circle --output pam.png')
def picture(
    rig: RigArgument,
    output: Annotated[Path, typer.Option(metavar='FILE.png', help='Picture to write.')],
    trajectory: Annotated[
        str | None, typer.Option(metavar='NAME|FILE', help='Of the rig, or a YAML file.')
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help='Of every random number.')] = 0,
    settings: SetOption = None,
) -> None:
    """Draw an arm at a few moments of a trajectory, simulated in closed loop."""
    from softarm_ros.cli.arm_picture import render
    from softarm_ros.rigs.loader import load_rig

    typer.echo(f'picture: {render(load_rig(rig, settings or ()), trajectory, output, seed)}')


@app.command(
    epilog='Examples:  softarm run cable_arm   |   '
    'softarm run cable_arm --trajectory my.yaml --json out.json --report out   |   '
    'softarm run cable_arm --direct --seed 3 --laps 2   |   '
    'softarm run cable_arm --set tip_load_kg=0.01'
)
def run(
    rig: RigArgument,
    backend: Annotated[str, typer.Option(help='sim, emulated or hardware.')] = 'sim',
    trajectory: Annotated[
        str | None, typer.Option(metavar='NAME|FILE', help='Of the rig, or a YAML file.')
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(metavar='NAME|FILE', help='Poses, dwells and gripper actions in its place.'),
    ] = None,
    model: Annotated[str | None, typer.Option(help='Of the rig; its default without.')] = None,
    open_loop: Annotated[bool, typer.Option('--open-loop', help='Do not use feedback.')] = False,
    direct: Annotated[
        bool, typer.Option('--direct', help='One process, no topics, exactly repeatable.')
    ] = False,
    laps: Annotated[int | None, typer.Option(help='Overrides the trajectory.')] = None,
    rate: Annotated[float, typer.Option(help='Simulated speed; 1 is real time.')] = 1.0,
    seed: Annotated[int, typer.Option(help='Of every random number.')] = 0,
    home: Annotated[
        bool | None,
        typer.Option('--home/--no-home', help='Hardware: the arm is at rest now, begin there.'),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            '--strict',
            help='End a simulated run when the computer is late, instead of holding the arm.',
        ),
    ] = False,
    bag: Annotated[
        Path | None, typer.Option(metavar='DIR', help='Record a rosbag2 MCAP bag there.')
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar='DIR', help='Write figures and a page there.')
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option('--json', metavar='FILE', help='Write the summary there.')
    ] = None,
    settings: SetOption = None,
) -> None:
    """Run a trajectory or a task on a rig and show the tracking error; Ctrl-C stops the arm."""
    from softarm_ros.cli import run_command
    from softarm_ros.rigs.loader import load_rig

    options = run_command.RunOptions(
        backend=backend,
        trajectory=trajectory,
        task=task,
        model=model,
        open_loop=open_loop,
        direct=direct,
        laps=laps,
        rate=rate,
        seed=seed,
        home=home,
        strict=strict,
        bag=bag,
        report=report,
        json_file=json_file,
    )
    arm = load_rig(rig, settings or ())
    raise typer.Exit(run_command.run(arm, options, run_command.stdout_console()))


@app.command(
    epilog='Examples:  softarm soak   |   softarm soak cable_arm --starts 5 --busy 2   |   '
    'softarm soak hydraulic_arm --backend emulated --starts 1 --whole'
)
def soak(
    rigs: Annotated[
        list[str] | None, typer.Argument(metavar='[RIG...]', help='All of them without.')
    ] = None,
    starts: Annotated[int, typer.Option(min=1, help='Of every rig.')] = 40,
    rate: Annotated[float, typer.Option(help='Simulated speed; 1 is real time.')] = 1.0,
    backend: Annotated[str, typer.Option(help='sim or emulated.')] = 'sim',
    busy: Annotated[int, typer.Option(min=0, help='Processes that keep processors busy.')] = 0,
    whole: Annotated[
        bool, typer.Option('--whole', help='The whole path, not its first 10 mm.')
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help='Of the first run.')] = 0,
) -> None:
    """
    Run rigs over topics again and again; print completion, holds, missed cycles, latency, error.

    Exit status 1 unless every run completed. Nothing is tried again.
    """
    from softarm_ros.cli import soak as soaking
    from softarm_ros.cli.run_command import stdout_console

    options = soaking.SoakOptions(starts, rate, backend, busy, None if whole else 0.01, seed)
    console = stdout_console()
    rows = soaking.soak(rigs or (), options, console)
    console.print(soaking.soak_table(rows, options), width=soaking.TABLE_WIDTH)
    raise typer.Exit(0 if all(row.completed == starts for row in rows) else 1)


@app.command(epilog='Examples:  softarm ports   |   softarm ports cable_arm')
def ports(
    rig: Annotated[
        str | None,
        typer.Argument(metavar='[RIG]', help='Test the devices of this rig; else list ports.'),
    ] = None,
    test: Annotated[
        bool | None,
        typer.Option(
            '--test/--no-test', help='Ask all ports, or none; else those that look like boards.'
        ),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(metavar='DIR', help='Addresses of emulated devices.')
    ] = None,
    settings: SetOption = None,
) -> None:
    """
    List what is plugged in and test it without motion; opening its port resets a Mega.

    Exit status 1 if something is not as it should be.
    """
    from softarm_ros.cli.cli_errors import UsageError
    from softarm_ros.cli.ports_command import show_ports, show_rig

    if rig is None:
        if folder is not None:
            raise UsageError('--folder belongs to the devices of a RIG')
        well = show_ports(test, typer.echo)
    else:
        from softarm_ros.rigs.loader import load_rig

        well = show_rig(load_rig(rig, settings or ()), folder, test, typer.echo)
    if not well:
        raise typer.Exit(1)


@app.command(
    epilog='Examples:  softarm jog cable_arm proximal_1 2 --home   |   '
    'softarm jog pneumatic_arm distal_chamber_1 10 --backend emulated',
    context_settings={'ignore_unknown_options': True},  # AMOUNT may be negative
)
def jog(
    rig: RigArgument,
    actuator: Annotated[str, typer.Argument(metavar='ACTUATOR', help='Of the rig.')],
    amount: Annotated[
        float, typer.Argument(metavar='AMOUNT', help='By how much: mm or kPa, as softarm check.')
    ],
    speed: Annotated[
        float | None, typer.Option(help='mm/s or kPa/s; a tenth of the greatest without.')
    ] = None,
    backend: Annotated[str, typer.Option(help='hardware or emulated.')] = 'hardware',
    home: Annotated[
        bool, typer.Option('--home', help='The arm is at rest now: home all actuators first.')
    ] = False,
    hold_s: Annotated[float, typer.Option(help='Keep the last command so long, then end.')] = 1.0,
    yes: Annotated[bool, typer.Option('--yes', help='Do not ask.')] = False,
    seed: Annotated[int, typer.Option(min=0, help='Of the emulated arm.')] = 0,
    settings: SetOption = None,
) -> None:
    """
    Move one actuator from where it is, slowly and within its limits; Ctrl-C stops it.

    Exit status 1 if it could not be moved.
    """
    from softarm_ros.cli.jog_command import JogOptions, describe, plan_move, run_jog
    from softarm_ros.rigs.loader import load_rig

    options = JogOptions(actuator, amount, speed, backend, home, hold_s, seed)
    arm = load_rig(rig, settings or ())
    move = plan_move(arm, options)
    typer.echo(describe(arm, move, options))
    if backend == 'hardware' and not yes:
        typer.confirm('Nobody within its reach, emergency stop at hand. Move?', abort=True)
    raise typer.Exit(run_jog(arm, move, options, typer.echo))


@app.command(
    epilog='Examples:  softarm identify cable_arm --seed 1   |   '
    'softarm identify my_arm.yaml --data recording.csv --output identified.yaml'
)
def identify(
    rig: RigArgument,
    seed: Annotated[int, typer.Option(help='Of every random number.')] = 0,
    section: Annotated[int, typer.Option(min=0, help='0 is the one at the base.')] = 0,
    data: Annotated[
        Path | None,
        typer.Option(metavar='FILE.csv', help='Recorded commands and section tips of the arm.'),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar='FILE.yaml', help='Rig file to write (with --data).')
    ] = None,
) -> None:
    """
    Identify an arm: with --data its gains, mount and rest shape from a recording.

    Without, the stiffnesses of a section as the paper did, on the simulated arm.
    """
    from softarm_ros.cli import identify as identification
    from softarm_ros.cli.cli_errors import UsageError
    from softarm_ros.rigs.cable_rig import CableRig
    from softarm_ros.rigs.loader import load_rig_of

    if data is not None:
        from softarm_ros.cli import identify_from_data

        for line in identify_from_data.run(rig, data, output):
            typer.echo(line)
        return
    if output is not None:
        raise UsageError('--output is written from --data FILE, which is missing')
    arm = load_rig_of(CableRig, rig)
    if arm.actuators[0].pair:
        raise UsageError(
            f'{arm.name} has pairs of cables: identify it from a recording, --data FILE'
        )
    if section >= len(arm.sections):
        raise UsageError(
            f'--section {section}: {arm.name} has sections 0..{len(arm.sections) - 1}'
        )
    readings = identification.measure_single_cable(arm, seed, section=section)
    result = identification.identify(arm, readings, section=section)
    for line in identification.describe(arm, result, section):
        typer.echo(line)


@app.command(epilog='Example:  softarm demo --report demo-report')
def demo(
    report: Annotated[Path, typer.Option(metavar='DIR', help='Folder of the report.')] = Path(
        'demo-report'
    ),
    seed: Annotated[int, typer.Option(help='Of every random number.')] = 0,
) -> None:
    """Drive the two-section circle three ways and show the errors beside the paper's."""
    from softarm_ros.cli.demo import run_demo
    from softarm_ros.cli.run_command import stdout_console

    run_demo(report, stdout_console(), seed)


def main() -> None:
    """Entry point of `softarm`."""
    app()


if __name__ == '__main__':
    main()
