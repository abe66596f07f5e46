"""Many simulated runs on all cores, with results in order; each run can be repeated alone."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.nodes.process import EXIT_FAILED
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
    """
    Run cases on all cores and return their records in order; each can be repeated alone.

    Raises
    ------
    UsageError
        If one of the processes is killed.

    """
    context = multiprocessing.get_context('spawn')
    workers = max(1, min(os.cpu_count() or 1, len(cases)))
    records: list[RunRecord] = []
    with ProcessPoolExecutor(workers, context, _end_with_parent) as pool, _ended_early(pool):
        # The processes start here and inherit the blocked SIGINT: outside a run, Ctrl-C would end
        # each of them with a traceback.
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


@contextmanager
def _ended_early(pool: ProcessPoolExecutor) -> Iterator[None]:
    """End all runs if the block is interrupted: a signal may have come to this process alone."""
    try:
        yield
    except BaseException as error:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()
        if isinstance(error, Exception) and _is_broken(pool):
            raise UsageError(
                'a process that simulated runs was killed, perhaps for lack of memory'
            ) from None
        raise


def _is_broken(pool: ProcessPoolExecutor) -> bool:
    """
    Tell whether a process of a pool that was shut down had been killed.

    The pool closes its pipes then; if it is starting another process, that fails with an error of
    its own (`bad value(s) in fds_to_keep`).
    """
    try:
        pool.submit(os.getpid)
    except BrokenProcessPool:
        return True
    except RuntimeError:  # shut down
        pass
    return False


def _end_with_parent() -> None:
    """End this process when its parent dies: the pool's processes would wait for it for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(EXIT_FAILED)

    threading.Thread(target=follow, name='parent', daemon=True).start()


def _run_interruptibly(case: RunCase) -> RunRecord:
    """Run one case with SIGINT unblocked, so that Ctrl-C ends the run but not the process."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    try:
        return run_case(case)
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
