"""The command `softarm excite`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from softarm_ros.cli.options import RigArgument, SetOption, command_app

app = command_app()


@app.command(
    epilog='Examples:  softarm excite cable_arm --csv still.csv   |   '
    'softarm excite trunk --kind sweep --csv sweep.csv   |   '
    'softarm excite cable_arm --live --csv real.csv   |   '
    'softarm excite trunk --kind random --load-kg 0.1 --csv heavy.csv, then '
    'softarm identify trunk heavy.csv --parameters compliance'
)
def excite(
    rig: RigArgument,
    csv: Annotated[
        Path,
        typer.Option('--csv', metavar='FILE.csv', help='File to write, for `softarm identify`.'),
    ],
    kind: Annotated[
        str,
        typer.Option(
            help='quasi-static (one coordinate after the other), actuators (one of them '
            'after the other), random, steps, sweep.'
        ),
    ] = 'quasi-static',
    count: Annotated[int, typer.Option(min=1, max=1000, help='Number of random places.')] = 30,
    amplitude: Annotated[float, typer.Option(help='Share of the range, above 0 to 1.')] = 0.6,
    dwell_s: Annotated[float, typer.Option(help='Time the arm rests at each place.')] = 2.5,
    load_kg: Annotated[
        float | None, typer.Option(min=0.0, help='Weight that hangs on the tip.')
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help='Seed of every random number and of the machine.')
    ] = 0,
    live: Annotated[
        bool,
        typer.Option('--live', help='Move the arm of a running graph (softarm run RIG --goals).'),
    ] = False,
    *,
    settings: SetOption,
) -> None:
    """
    Move an arm for identification, and record commands and poses as CSV.

    By default the arm is simulated in this process; with --live it is the arm of a running graph,
    with any backend and under its supervisor. Places, speeds and accelerations stay within the
    rig's limits.
    """
    from softarm_ros.cli.cli_errors import UsageError
    from softarm_ros.cli.live_excitation import lead
    from softarm_ros.cli.measured_excitation import write_excitation
    from softarm_ros.cli.run_command import EXIT_INCOMPLETE, EXIT_INTERRUPTED
    from softarm_ros.cli.stop_request import stop_on_signals
    from softarm_ros.cli.work_bar import WorkBar
    from softarm_ros.control.excited_rows import ExcitationError
    from softarm_ros.rigs.loader import load_rig
    from softarm_ros.runtime.excite import INTERRUPTED, plan_excitation
    from softarm_ros.runtime.excite import excite as run_excitation
    from softarm_ros.whole_file import require_writable

    chosen = list(settings)
    if live and load_kg is not None:
        raise UsageError(
            '--load-kg hangs a weight on a simulated arm; with --live hang it yourself'
        )
    if live and csv.exists():
        raise UsageError(f'--csv {csv}: exists; a recording of a running arm needs a new file')
    if load_kg is not None:
        chosen.append(f'tip_load_kg={load_kg!r}')
    arm = load_rig(rig, chosen)
    require_writable(csv)
    try:
        plan = plan_excitation(
            arm, kind, count=count, amplitude=amplitude, dwell_s=dwell_s, seed=seed
        )
        with WorkBar() as bar:
            show = partial(bar.show, f'{arm.name}: {len(plan.places)} places')
            if live:
                rows, why = lead(arm, plan, show)
            else:
                rows, why = run_excitation(arm, plan, seed=seed, progress=show), ''
    except ExcitationError as error:
        raise UsageError(str(error)) from None
    if rows is not None:
        with stop_on_signals():  # they come too late to stop anything
            write_excitation(arm, rows, csv)
        read = 'poses at rest' if plan.at_rest else 'rows'
        places = f'{len(plan.places)} places'
        if kind in ('random', 'steps') and len(plan.places) < count:
            places += f' (of {count} drawn; the others are beyond the limits)'
        typer.echo(f'{arm.name}: {places}, {len(rows.commands)} {read}: {csv}')
    if why:
        written = '' if rows is not None else ', nothing was read'
        typer.echo(f'{arm.name}: ended early{written}: {why}', err=True)
        raise typer.Exit(EXIT_INTERRUPTED if why == INTERRUPTED else EXIT_INCOMPLETE)
