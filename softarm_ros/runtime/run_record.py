"""The record of one run: samples, events, timing and their summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.runtime.events import Event


@dataclass(frozen=True)
class RunInfo:
    """
    Settings of a run.

    `trajectory` is empty if a `task` is run. `rate` is the simulated speed (1: real time), 0 for a
    run in one process. `machine` is the number of the simulated machine (0: nominal, None: no
    machine of the rig), `drawn` has its drawn values by field of `plant`.
    """

    rig: str
    backend: str
    model: str
    controller: str
    trajectory: str
    open_loop: bool
    seed: int
    rate: float
    direct: bool
    arm_length_m: float
    actuator_names: tuple[str, ...]
    actuator_unit: str
    configuration_names: tuple[str, ...]
    effort_unit: str = 'N'
    task: str | None = None
    machine: int | None = None
    drawn: Mapping[str, float] = field(default_factory=dict)

    @property
    def motion(self) -> str:
        """Name of the trajectory or task, without folders."""
        return Path(self.task or self.trajectory).stem


@dataclass(frozen=True)
class LoopTiming:
    """
    Timing of the control loop.

    `latency_ms` runs from the time stamp of a pose to the actuator command computed from it; None
    if everything ran in one process. `holds` counts how often a simulated arm was held because
    something was late. `first_motion_s` runs from the start of the command to the first motion.
    `cpu_percent` (of one processor) and `memory_mb` cover all processes together, in motion.
    """

    rate_hz: float
    cycles: int
    missed: int
    latency_p50_ms: float | None = None
    latency_p99_ms: float | None = None
    compute_p50_ms: float | None = None
    compute_p99_ms: float | None = None
    holds: int = 0
    first_motion_s: float | None = None
    cpu_percent: float | None = None
    memory_mb: float | None = None


@dataclass(frozen=True)
class Samples:
    """
    Time series of a run, one row per control cycle; n rows.

    Attributes
    ----------
    time_s : (n,)
        Time since the start of the run.
    phase : (n,) of str
        Phase of the control loop.
    lap : (n,) of int
        0-based.
    reference, tip : (n, 3)
        Reference and measured tip position [m], both at the time of the measurement (NaN: none).
        With an estimator that predicts, its estimate stands for the measurement.
    configuration : (n, dof)
        Commanded configuration.
    command, position, effort : (n, m)
        Actuator command and position [actuator unit], effort [effort unit].
    true_tip : (n, 3)
        True tip of a simulated arm at the time of the measurement [m], or NaN.

    """

    time_s: Array
    phase: NDArray[np.str_]
    lap: NDArray[np.int64]
    reference: Array
    tip: Array
    configuration: Array
    command: Array
    position: Array
    effort: Array
    true_tip: Array

    @property
    def tracking(self) -> NDArray[np.bool_]:
        """Rows (n,) that count for the tracking error."""
        return (self.phase == 'track') & np.all(np.isfinite(self.tip), axis=1)

    @property
    def true_tip_known(self) -> bool:
        """Whether the arm was simulated, so that its true tip is known."""
        return bool(np.any(np.isfinite(self.true_tip)))

    @property
    def measured_error(self) -> Array:
        """Distance (n,) between reference and measured tip [m]."""
        return np.asarray(np.linalg.norm(self.reference - self.tip, axis=1))

    @property
    def error(self) -> Array:
        """Distance (n,) between reference and tip [m]: the true tip if it is known."""
        if not self.true_tip_known:
            return self.measured_error
        return np.asarray(np.linalg.norm(self.reference - self.true_tip, axis=1))


@dataclass(frozen=True)
class ErrorStatistics:
    """Mean, root mean square and maximum of the tip error [m] over `samples` measurements."""

    mean: float
    rms: float
    max: float
    samples: int

    @staticmethod
    def of(errors: Array) -> ErrorStatistics | None:
        """Return the statistics of errors (n,), ignoring any not finite; None if none is left."""
        errors = errors[np.isfinite(errors)]
        if len(errors) == 0:
            return None
        return ErrorStatistics(
            float(np.mean(errors)),
            float(np.sqrt(np.mean(errors**2))),
            float(np.max(errors)),
            len(errors),
        )


@dataclass(frozen=True)
class RunRecord:
    """
    A finished (or stopped) run.

    Attributes
    ----------
    info, samples, timing
        Settings, time series, timing of the loop.
    events : tuple of Event
        What is worth reporting.
    duration_s : float
        From the start of the loop to its end.
    completed : bool
        Whether the trajectory or task was driven to its end.
    path : (k, 3)
        Points of the path to follow [m], base frame; (0, 3) if there is none.
    devices : mapping
        Last reports of the device nodes, by node; empty in a simulation.

    """

    info: RunInfo
    samples: Samples
    timing: LoopTiming
    events: tuple[Event, ...]
    duration_s: float
    completed: bool
    path: Array = field(default_factory=lambda: np.zeros((0, 3)))
    devices: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def error(self, first_lap: int = 0) -> ErrorStatistics | None:
        """
        Return the tracking error over all laps from `first_lap` (0-based) on.

        It is that of the true tip if the arm was simulated, otherwise of the measured tip.
        """
        rows = self.samples.tracking & (self.samples.lap >= first_lap)
        return ErrorStatistics.of(self.samples.error[rows])

    def measured_error(self) -> ErrorStatistics | None:
        """Return the error of the measured tip, over all tracking samples."""
        return ErrorStatistics.of(self.samples.measured_error[self.samples.tracking])

    def lap_errors(self) -> list[ErrorStatistics]:
        """Return the tracking error of each lap."""
        rows = self.samples.tracking
        laps = sorted(set(self.samples.lap[rows].tolist()))
        each = [
            ErrorStatistics.of(self.samples.error[rows & (self.samples.lap == k)]) for k in laps
        ]
        return [e for e in each if e is not None]

    def summary(self) -> dict[str, Any]:
        """Return the object that `--json` writes."""
        error, after = self.error(), self.error(first_lap=1)

        def plain(e: ErrorStatistics | None) -> dict[str, float] | None:
            return None if e is None else {'mean': e.mean, 'rms': e.rms, 'max': e.max}

        t = self.timing
        return {
            'rig': self.info.rig,
            'backend': self.info.backend,
            'model': self.info.model,
            'controller': self.info.controller,
            'trajectory': self.info.trajectory,
            'task': self.info.task,
            'open_loop': self.info.open_loop,
            'direct': self.info.direct,
            'rate': self.info.rate,
            'seed': self.info.seed,
            'machine': self.info.machine,
            'drawn': dict(self.info.drawn),
            'tracking_error_m': plain(error),
            'tracking_error_of': 'true tip' if self.samples.true_tip_known else 'measured tip',
            'measured_error_m': plain(self.measured_error()),
            'tracking_error_after_first_lap_m': plain(after),
            'laps': [plain(e) for e in self.lap_errors()],
            'normalised_error_percent': (
                None if error is None else 100.0 * error.mean / self.info.arm_length_m
            ),
            'loop': {
                'rate_hz': t.rate_hz,
                'cycles': t.cycles,
                'missed': t.missed,
                'holds': t.holds,
                'latency_ms': {'p50': t.latency_p50_ms, 'p99': t.latency_p99_ms},
                'compute_ms': {'p50': t.compute_p50_ms, 'p99': t.compute_p99_ms},
                'first_motion_s': t.first_motion_s,
                'cpu_percent': t.cpu_percent,
                'memory_mb': t.memory_mb,
            },
            'duration_s': self.duration_s,
            'completed': self.completed,
            'devices': {name: dict(values) for name, values in self.devices.items()},
            'events': [
                {'time_s': e.time_s, 'level': e.level, 'source': e.source, 'message': e.message}
                for e in self.events
            ],
        }


class SampleLog:
    """Collects rows during a run; `finish` turns them into arrays."""

    def __init__(self, dof: int, actuators: int) -> None:
        self._dof, self._actuators = dof, actuators
        self._rows: list[tuple[Any, ...]] = []

    def add(
        self,
        time_s: float,
        phase: str,
        lap: int,
        reference: Array,
        tip: Array,
        configuration: Array,
        command: Array,
        position: Array,
        effort: Array,
    ) -> None:
        """Append one row; see `Samples` for the meaning of each value."""
        self._rows.append(
            (time_s, phase, lap, reference, tip, configuration, command, position, effort)
        )

    def finish(self, true_tip: Array | None = None) -> Samples:
        """Return all rows as arrays; `true_tip` (n, 3) holds the true tips if they are known."""
        columns = list(zip(*self._rows)) if self._rows else [() for _ in range(9)]
        widths = [0, 0, 0, 3, 3, self._dof, self._actuators, self._actuators, self._actuators]
        arrays = [
            np.array(column, dtype=float).reshape(len(self._rows), width)
            for column, width in zip(columns[3:], widths[3:])
        ]
        unknown = np.full((len(self._rows), 3), np.nan)
        arrays.append(unknown if true_tip is None else true_tip)
        return Samples(
            np.array(columns[0], dtype=float),
            np.array(columns[1], dtype=np.str_),
            np.array(columns[2], dtype=np.int64),
            *arrays,
        )
