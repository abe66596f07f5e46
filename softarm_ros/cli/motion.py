"""Motion of an arm for drawing: the body over time, from a simulated run or a bag."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.viewer.bag_states import BagStates
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError
from softarm_ros.nodes.bag_repair import about_of
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.arm_assembly import build_plant
from softarm_ros.runtime.direct import run_direct
from softarm_ros.runtime.loop import CycleOutput, Phase
from softarm_ros.runtime.view_state import ViewState, drawn_configuration

POINTS = 60
_BAG_STEP_S = 0.04


@dataclass(frozen=True)
class Motion:
    """
    Body and tip of an arm while it tracks.

    Attributes
    ----------
    times_s : (n,)
        Times since the start of tracking [s].
    bodies : (n, points, 3)
        Centrelines [m], base frame: of the simulated body, or for a bag of the model at the
        measured configuration (if not measured: at the commanded one, adjusted to the tip).
    tips : (n, 3)
        Tip positions [m]: of the simulated body, or as measured.
    errors_m : (n,)
        Distance of the measured tip from its reference [m]; NaN if unknown.
    loop : str
        Closed loop or open loop; empty if a bag does not state it.
    notes : tuple of str
        Notes about missing parts of a bag.
    path : (p, 3)
        Reference path [m]; empty if there is none.

    """

    times_s: Array
    bodies: Array
    tips: Array
    errors_m: Array
    path: Array
    loop: str = 'closed loop'
    notes: tuple[str, ...] = ()

    def at(self, count: int) -> NDArray[np.intp]:
        """Return the indices of `count` moments, evenly spread in time, including the last one."""
        wanted = np.linspace(self.times_s[0], self.times_s[-1], count + 1)[1:]
        return np.minimum(np.searchsorted(self.times_s, wanted), len(self.times_s) - 1)


def film(
    rig: Rig, trajectory: str | None, seed: int, should_stop: Callable[[], bool] = lambda: False
) -> Motion:
    """
    Run a trajectory once in closed loop and keep the true shape of the body.

    Raises
    ------
    UsageError
        If the trajectory is never reached.

    """
    plant = build_plant(rig, seed)
    kept: dict[int, Array] = {}
    cycles = 0

    def keep(output: CycleOutput) -> None:
        nonlocal cycles
        if output.phase is Phase.TRACK:
            kept[cycles] = plant.true_centerline(POINTS)
        cycles += 1

    record = run_direct(
        rig, trajectory, seed=seed, laps=1, plant=plant, progress=keep, should_stop=should_stop
    )
    last = record.events[-1] if record.events else None
    if last is not None and last.level == 'error' and not record.completed:
        raise UsageError(f'{rig.name}: {last.message}')
    if len(kept) < 2:
        raise UsageError(f'{rig.name}: the trajectory was not reached')
    rows, bodies = np.array(list(kept)), np.array(list(kept.values()))
    times = record.samples.time_s[rows]
    return Motion(times - times[0], bodies, bodies[:, -1], record.samples.error[rows], record.path)


def film_of_bag(bag: Path, rig: Rig) -> Motion:
    """
    Return the motion of a recorded run of a rig.

    Raises
    ------
    UsageError
        If the bag cannot be read, or holds neither configurations nor tips.

    """
    states = BagStates.read(bag, rig)
    model = rig.model()
    moments = [states.at(t) for t in np.arange(0.0, states.duration_s, _BAG_STEP_S)]
    # Of an arm that takes goals, all: it follows configurations in other phases.
    tracked = [m for m in moments if m.phase == Phase.TRACK.value or m.goal is not None]
    tracked = tracked or moments
    times, bodies, tips, errors = [], [], [], []
    for moment in tracked:
        configuration = drawn_configuration(model, moment)
        if configuration is None or moment.tip is None:
            continue
        try:
            body = model.shape_of(configuration).centerline(POINTS)
        except ModelError:
            continue  # a measurement outside the model's domain
        times.append(moment.time_s)
        bodies.append(body)
        tips.append(moment.tip)
        errors.append(np.nan if moment.error_m is None else moment.error_m)
    if len(times) < 2:
        raise UsageError(f'{bag}: {_missing(tracked, rig)}')
    path = _reference(states, tracked)
    at = np.array(times) - times[0]
    open_loop = about_of(bag).get('open_loop')
    loop = {'true': 'open loop', 'false': 'closed loop'}.get(open_loop or '', '')
    notes = tuple(states.notes)
    return Motion(at, np.array(bodies), np.array(tips), np.array(errors), path, loop, notes)


def _reference(states: BagStates, moments: Sequence[ViewState]) -> Array:
    """Return the reference (p, 3) [m]: its path, or its positions if there were several goals."""
    path = states.path_at(0.0)
    if states.paths > 1:
        path = np.array([m.reference for m in moments if m.reference is not None])
    return np.zeros((0, 3)) if path is None else path.reshape(-1, 3)


def _missing(moments: Sequence[ViewState], rig: Rig) -> str:
    """Return the reason why moments of a bag cannot be drawn."""
    topics = {
        'configurations on configuration/state or configuration/command': 'configuration',
        f'measured tips on {rig.feedback.pose_topic}': 'tip',
    }
    lacking = [
        what
        for what, name in topics.items()
        if all(getattr(moment, name) is None for moment in moments)
    ]
    if lacking and moments:
        return f'no {" and no ".join(lacking)} to draw'
    return 'less than two moments with a configuration and a measured tip to draw'
