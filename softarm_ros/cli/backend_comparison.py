"""`softarm compare`: the same run with a simulated arm and with emulated devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rich import box
from rich.console import Console
from rich.table import Table

from softarm_ros.cli.run_command import RunOptions, compile_kernels, status_of
from softarm_ros.cli.stop_request import stop_on_signals
from softarm_ros.rigs.loader import list_rigs, load_rig
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.trajectory_file import resolve_trajectory
from softarm_ros.runtime.run_record import RunRecord


@dataclass(frozen=True)
class BackendPair:
    """
    Runs of one trajectory on both backends.

    Attributes
    ----------
    rig, trajectory
        Names of the rig and the trajectory.
    sim, emulated
        The runs, both over topics and in real time, with the same seed.

    """

    rig: str
    trajectory: str
    sim: RunRecord
    emulated: RunRecord

    @property
    def ratio(self) -> float | None:
        """Mean error with emulated devices over the simulated one; None if a run has no error."""
        sim, emulated = self.sim.error(), self.emulated.error()
        return None if sim is None or emulated is None else emulated.mean / sim.mean


def rigs_with_devices() -> list[str]:
    """Return the names of the shipped rigs that declare devices."""
    return [info.name for info in list_rigs() if load_rig(info.name).devices is not None]


def compare_backends(
    rigs: Sequence[str],
    settings: Sequence[str],
    trajectory: str | None,
    laps: int | None,
    seed: int,
    console: Console,
) -> int:
    """Run rigs (default: all with devices) on both backends, print a table; return the status."""
    found = [load_rig(name, settings) for name in rigs or rigs_with_devices()]
    for rig in found:
        rig.required_devices('emulated')
        resolve_trajectory(rig, trajectory)
    options = RunOptions(trajectory=trajectory, laps=laps, seed=seed)
    pairs: list[BackendPair] = []
    with stop_on_signals() as stopped:
        for rig in found:
            compile_kernels(rig, console)
            pair = _run_both(rig, options, console, stopped)
            if pair is None:
                break
            pairs.append(pair)
    console.print(comparison_table(pairs))
    for pair in pairs:
        for name, values in pair.emulated.devices.items():
            said = ', '.join(f'{k} {v}' for k, v in values.items() if v not in ('', 'none'))
            console.print(f'{pair.rig}/{name}: {said}', markup=False, highlight=False)
        for event in pair.emulated.events:
            if event.level != 'info':
                console.print(f'{pair.rig}: {event.message}', markup=False)
    complete = len(pairs) == len(found) and all(
        pair.sim.completed and pair.emulated.completed for pair in pairs
    )
    return status_of(complete, stopped())


def _run_both(
    rig: Rig, options: RunOptions, console: Console, stopped: Callable[[], bool]
) -> BackendPair | None:
    from softarm_ros.cli.topic_run import run_topics

    records = []
    for backend in ('sim', 'emulated'):
        console.print(f'{rig.name}: {backend}')
        one = seeing_alike(rig, options.seed) if backend == 'sim' else rig
        records.append(run_topics(one, replace(options, backend=backend), console, stopped))
        if stopped():
            return None
    return BackendPair(rig.name, options.trajectory or rig.default_trajectory, *records)


def seeing_alike(rig: Rig, seed: int) -> Rig:
    """Return the rig, its simulated sensor with the calibration errors of the emulated one."""
    from softarm_ros.runtime.sensor_calibration import calibration_settings

    settings = calibration_settings(rig, seed)
    if not settings or rig.source is None:
        return rig
    return load_rig(rig.source, (*rig.settings, *settings))


def comparison_table(pairs: Sequence[BackendPair]) -> Table:
    """
    Return a table of the errors of both backends and their ratio, one row per pair of runs.

    Missed cycles and latency (50th and 99th percentile) are from the run with emulated devices.
    """
    table = Table(box=box.SIMPLE, title='error of the tip, mm: simulated, with emulated devices')
    table.add_column('', no_wrap=True)
    headings = ('sim mean', 'max', 'emul. mean', 'max', 'ratio', 'missed', 'pose to command, ms')
    for column in headings:
        table.add_column(column, justify='right')
    for pair in pairs:
        cells = [f'{pair.rig} {pair.trajectory}']
        for record in (pair.sim, pair.emulated):
            error = record.error()
            if error is None:
                cells += ['-', '-']
            else:
                cells += [f'{1e3 * error.mean:.2f}', f'{1e3 * error.max:.1f}']
        ratio, timing = pair.ratio, pair.emulated.timing
        cells.append('-' if ratio is None else f'{ratio:.2f}')
        cells.append(f'{timing.missed}/{timing.cycles}')
        if timing.latency_p50_ms is None or timing.latency_p99_ms is None:
            cells.append('-')
        else:
            cells.append(f'{timing.latency_p50_ms:.1f} / {timing.latency_p99_ms:.1f}')
        table.add_row(*cells)
    return table
