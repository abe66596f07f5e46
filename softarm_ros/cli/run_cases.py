"""Many simulated runs on all cores, in order and each repeatable by itself."""

from __future__ import annotations

import multiprocessing
import os
import signal
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
        # The processes begin here, and inherit that Ctrl-C waits: outside a run, among imports or
        # at rest, it would end them with a traceback each.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            found = pool.map(_run_interruptibly, cases)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for record in found:
            records.append(record)
            if progress is not None:
                progress(len(records))
    return records


def _run_interruptibly(case: RunCase) -> RunRecord:
    """Run one case in a process in which Ctrl-C waits; it ends the run, not the process."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    try:
        return run_case(case)
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
