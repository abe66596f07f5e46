"""
The commands that this package adds to `softarm`: `bench` and `reproduce`.

The entry points of the group `softarm.commands` refer to this module. It holds only signatures and
help; each command imports its implementation when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

bench_app = typer.Typer(add_completion=False)
reproduce_app = typer.Typer(add_completion=False)


@bench_app.command(
    epilog='Examples:  softarm bench   |   softarm bench cosserat   |   softarm bench start'
)
def bench(
    topics: Annotated[
        list[str] | None,
        typer.Argument(metavar='[TOPIC]...', help='Default: all topics but compile and start.'),
    ] = None,
    long: Annotated[
        bool, typer.Option('--long', help='Command the steppers for 60 s instead of 5 s.')
    ] = False,
    repeats: Annotated[
        int, typer.Option(min=1, help='Runs for each median; latencies use more samples.')
    ] = 15,
) -> None:
    """Time the compiled models and drivers against references in the same run."""
    from softarm_reproduction.bench import main as run_benchmark

    run_benchmark(topics or (), long, repeats)


@reproduce_app.command(
    epilog='Examples:  softarm reproduce   |   softarm reproduce pam_arm --report study --seeds 3'
)
def reproduce(
    arms: Annotated[
        list[str] | None, typer.Argument(metavar='[ARM]...', help='Default: all arms.')
    ] = None,
    report: Annotated[Path, typer.Option(metavar='DIR', help='Folder for the pages.')] = Path(
        'study'
    ),
    seeds: Annotated[int, typer.Option(min=1, help='Closed-loop runs per path.')] = 5,
    seed: Annotated[int, typer.Option(min=0, help='First seed.')] = 0,
) -> None:
    """Repeat the experiments of the arms' papers in simulation; write one page per arm."""
    from softarm_reproduction.reproduce import reproduce as run_studies
    from softarm_ros.cli.consoles import stdout_console

    run_studies(arms or (), report, stdout_console(), seeds=seeds, seed=seed)
