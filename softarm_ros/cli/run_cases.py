"""Many simulated runs on all cores, in order and each repeatable by itself."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.direct import run_direct
from softarm_ros.runtime.run_record import RunRecord


@dataclass(frozen=True)
class RunCase:
    """One simulated run of a study."""

    rig: Rig
    trajectory: str
    model: str
    open_loop: bool
    laps: int
    seed: int


def run_case(case: RunCase) -> RunRecord:
    """Run one case in this process."""
    return run_direct(
        case.rig,
        case.trajectory,
        model=case.model,
        open_loop=case.open_loop,
        laps=case.laps,
        seed=case.seed,
    )


def run_cases(
    cases: Sequence[RunCase], progress: Callable[[int], None] | None = None
) -> list[RunRecord]:
    """Run cases on all cores, in order; each is repeatable by itself."""
    context = multiprocessing.get_context('spawn')
    workers = max(1, min(os.cpu_count() or 1, len(cases)))
    records: list[RunRecord] = []
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        for record in pool.map(run_case, cases):
            records.append(record)
            if progress is not None:
                progress(len(records))
    return records
