"""Compare a supervised run with a fault to the same run without it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.plant.faults import ACTUATOR
from softarm_ros.runtime.arm_assembly import build_plant
from softarm_ros.runtime.supervised_run import SupervisedRun, run_supervised

if TYPE_CHECKING:
    from softarm_ros.rigs.schema import Rig

AT_REST_S, START_S = 0.25, 0.5  # time of a fault before the motion; time of the start then
INTO_TRACKING_S = 2.0  # time from the begin of tracking to a fault in motion
HORIZON_S = 6.0  # how long a fault that is not noticed is observed
HELD_S = 0.3  # how long the run goes on after the supervisor's stop; the actuators stand by then
_MOVED_M = 5e-4  # motion has begun once the reference has moved this far
CAMERA_FAULTS = ('freeze', 'room', 'mislabel', 'stuck', 'future', 'old')
AT_REST_FAULTS = ('freeze', 'room', 'mislabel')


@dataclass(frozen=True)
class FaultCase:
    """
    One fault to try: text to inject, whether before the motion, and a machine-independent name.

    Which actuator has the largest effort differs between machines; the name says 'most loaded'.
    """

    fault: str
    at_rest: bool
    name: str


@dataclass(frozen=True)
class Trial:
    """
    One fault and its consequences.

    Attributes
    ----------
    fault : str
        Text that was injected.
    at_rest : bool
        Whether the fault was injected before the motion.
    noticed_by : str
        The supervisor's reason; empty if it did not notice within the horizon.
    reaction_s : float or None
        From the fault to the stop; None if not noticed, or if the motion was not allowed to begin.
    after_motion_s : float or None
        From the fault or the begin of the motion, whichever is later, to the stop.
    deviation_m : float
        Largest distance of the true tip from its path without the fault, until it is held.
    error_m : float
        Largest distance of the true tip from the reference, until the stop.

    """

    fault: str
    at_rest: bool
    noticed_by: str
    reaction_s: float | None
    after_motion_s: float | None
    deviation_m: float
    error_m: float

    @property
    def noticed(self) -> bool:
        """Whether the supervisor noticed the fault."""
        return bool(self.noticed_by)


class NoTrackingError(RuntimeError):
    """A run without a fault never tracks its trajectory: there is nothing to compare with."""


class FaultTrials:
    """
    Trials of one rig on one trajectory, all compared with the same run without a fault.

    Parameters
    ----------
    rig : Rig
        Rig to drive.
    trajectory : str, optional
        Name or file; None: the rig's default.
    seed : int
        Seed of every random number.

    Raises
    ------
    NoTrackingError
        If the run without a fault never tracks; the message gives the reason.

    """

    def __init__(self, rig: Rig, trajectory: str | None = None, seed: int = 0) -> None:
        self.rig, self.trajectory, self.seed = rig, trajectory, seed
        probe = self._run(until_tracking_s=INTO_TRACKING_S + HORIZON_S)
        if probe.tracking_s is None:
            why = probe.reason or 'the trajectory was not reached'
            raise NoTrackingError(f'{rig.name}: the run without a fault never tracks: {why}')
        self.clean = probe
        self.in_motion_s = probe.tracking_s + INTO_TRACKING_S
        away = np.linalg.norm(probe.reference - probe.reference[0], axis=1)
        self._moving_s = float(probe.time_s[int(np.argmax(away > _MOVED_M))])

    def cases(self) -> list[FaultCase]:
        """Return the faults to try."""
        cameras = [FaultCase(f'cameras {k}', False, f'cameras {k}') for k in CAMERA_FAULTS]
        at_rest = [
            FaultCase(f'cameras {k}', True, f'cameras {k} (at rest)') for k in AT_REST_FAULTS
        ]
        return [*cameras, *at_rest, *self._mechanical()]

    def trials(self) -> Iterator[Trial]:
        """Try all faults."""
        for case in self.cases():
            yield self.trial(case.fault, at_rest=case.at_rest)

    def trial(self, fault: str, *, at_rest: bool = False) -> Trial:
        """Try one fault; raises ValueError if the plant has no such fault."""
        begun = AT_REST_S if at_rest else self.in_motion_s
        later = max(begun, self._moving_s)
        run = self._run(fault, begun, later + HORIZON_S)
        stopped = run.faulted_s
        if run.started_s is None:
            return Trial(fault, at_rest, f'no start: {run.reason}', None, None, 0.0, 0.0)
        # After the stop the held loop's reference is out of date.
        until = np.inf if stopped is None else stopped
        rows = (run.time_s >= begun) & (run.time_s <= until)
        error = np.linalg.norm(run.tip - run.reference, axis=1)[rows]
        return Trial(
            fault,
            at_rest,
            run.reason,
            None if stopped is None else stopped - begun,
            None if stopped is None else max(stopped - later, 0.0),
            self._deviation(run, begun),
            float(np.max(error)),
        )

    def _run(
        self,
        fault: str | None = None,
        fault_s: float = np.inf,
        until_s: float = np.inf,
        until_tracking_s: float | None = None,
    ) -> SupervisedRun:
        return run_supervised(
            self.rig,
            self.trajectory,
            seed=self.seed,
            start_s=START_S,
            fault=fault,
            fault_s=fault_s,
            until_s=until_s,
            until_tracking_s=until_tracking_s,
            after_fault_s=HELD_S,
        )

    def _deviation(self, run: SupervisedRun, begun_s: float) -> float:
        """Return how far [m] the tip left the clean path: at equal times, then from the path."""
        clean, count = self.clean, min(len(run.time_s), len(self.clean.time_s))
        held = count if run.faulted_s is None else int(np.searchsorted(run.time_s, run.faulted_s))
        first = int(np.searchsorted(run.time_s, begun_s))
        apart = [
            float(np.linalg.norm(run.tip[k] - clean.tip[k]))
            for k in range(first, min(held + 1, count))
        ]
        # The clean arm moves on while this one stands: compare with its path, not its position.
        for k in range(held + 1, count):
            way = clean.tip[held : k + 1]
            apart.append(float(np.min(np.linalg.norm(way - run.tip[k], axis=1))))
        return max(apart, default=0.0)

    def _mechanical(self) -> list[FaultCase]:
        """Return the mechanical faults, at the actuators with most and least effort."""
        k = int(np.searchsorted(self.clean.time_s, self.in_motion_s))
        effort = self.clean.effort[min(k, len(self.clean.effort) - 1)]
        names = self.rig.actuator_names
        ends = {names[int(np.argmin(effort))]: 'least', names[int(np.argmax(effort))]: 'most'}
        kinds = sorted(
            {
                kind
                for kind, fault in build_plant(self.rig, self.seed).faults().items()
                if [word for word, _ in fault.arguments] == [ACTUATOR]
            }
        )
        return [
            FaultCase(f'{kind} {name}', False, f'{kind}, {load} loaded')
            for kind in kinds
            for name, load in reversed(ends.items())
        ]
