"""Moves the simulated arm through an excitation and reads what was commanded and seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from softarm_ros.control.excitation import Excitation, excitation
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import build_plant, build_pretension
from softarm_ros.runtime.configuration_move import ConfigurationMove, plan_move

INTERRUPTED = 'interrupted'
READ_S = 0.5  # poses of the end of a dwell are averaged
ROWS_PER_S = 10.0  # kept of poses that are read all along
_MOST_DRAWS = 40  # batches of random configurations, until enough are within the actuators' limits


class ExcitationError(ValueError):
    """An arm cannot be moved through an excitation."""


@dataclass(frozen=True)
class ExcitedRows:
    """
    What was commanded and measured.

    Attributes
    ----------
    time_s : (n,)
        Of the measurements [s]; NaN of poses at rest.
    commands : (n, m)
        In effect, in the actuators' SI unit, less the pretension that no model knows.
    section_tips : (n, sections, 4, 4)
        Measured, in the base frame.

    """

    time_s: Array
    commands: Array
    section_tips: Array


def plan_excitation(
    rig: Rig, kind: str, *, count: int, amplitude: float, dwell_s: float, seed: int
) -> Excitation:
    """
    Return an excitation of which every place is within what the actuators may do.

    Raises
    ------
    ExcitationError
        If there is no such kind, a number cannot be, or too few places are within the limits.

    """
    model = rig.physics()
    limits = build_pretension(rig).room(rig.actuator_limits())
    rng = np.random.default_rng(seed)
    drawn: list[Array] = []
    if kind in ('random', 'steps'):
        for _ in range(_MOST_DRAWS):
            for place in rig.sample_configurations(rng, count):
                if len(drawn) < count and limits.hold(model.actuation_of(place)):
                    drawn.append(place)
        if len(drawn) < count:
            raise ExcitationError(
                f'{rig.name}: {len(drawn)} of {count} random places are within the limits of the '
                'actuators; ask for fewer (--count)'
            )
    rest = np.asarray(model.rest_configuration)
    try:
        plan = excitation(
            kind, rig.configuration_limits(), rest, np.array(drawn).reshape(-1, len(rest)),
            amplitude=amplitude, dwell_s=dwell_s,
        )  # fmt: skip
    except ValueError as error:
        raise ExcitationError(f'{rig.name}: {error}') from None
    kept = [i for i, place in enumerate(plan.places) if limits.hold(model.actuation_of(place))]
    if not kept:
        raise ExcitationError(
            f'{rig.name}: no place is within the limits of the actuators; expected a smaller '
            f'amplitude than {amplitude:g}'
        )
    return Excitation(plan.places[kept], plan.least_s[kept], plan.dwell_s, plan.at_rest)


def excite(
    rig: Rig,
    plan: Excitation,
    *,
    seed: int = 0,
    progress: Callable[[float], None] = lambda _: None,
) -> ExcitedRows:
    """
    Move the simulated arm through a plan, in one process; exactly repeatable for a seed.

    Speeds and accelerations stay within 70 % of the limits, every command is checked.

    Raises
    ------
    LimitError
        If a command is beyond a limit on the way between two places.
    ExcitationError
        If no pose was measured while the arm stood.

    """
    model, plant = rig.physics(), build_plant(rig, seed)
    pretension, limits = build_pretension(rig), rig.actuator_limits()
    room, period = pretension.room(limits), 1.0 / rig.tracker.rate_hz
    stamps, commands, tips = list[float](), list[Array](), list[Array]()
    given: list[tuple[float, Array]] = []

    def drive(
        duration_s: float, at: Callable[[float], Array], wound: Callable[[float], float]
    ) -> None:
        for i in range(1, max(1, round(duration_s / period)) + 1):
            command = limits.check(at(i * period) + wound(i * period))
            given.append((plant.time_s, command - pretension.amount))
            plant.step(command, period)
            if not plan.at_rest:
                follow()

    def follow() -> None:
        for pose in plant.poll_poses():
            if stamps and pose.stamp_s - stamps[-1] < 1.0 / ROWS_PER_S - 1e-9:
                continue
            stamps.append(pose.stamp_s)
            tips.append(pose.section_tips)
            commands.append(_in_effect(given, pose.stamp_s))

    def wound(_: float) -> float:
        return pretension.amount

    place = np.asarray(model.rest_configuration)
    start = model.actuation_of(place)
    drive(max(pretension.duration_s, READ_S), partial(_standing, start), pretension.wound)
    for i, goal in enumerate(plan.places):
        move = plan_move(model, room, place, goal, float(plan.least_s[i]))
        drive(move.duration_s, partial(_on_the_way, model, move), wound)
        place, stands = goal, model.actuation_of(goal)
        if plan.at_rest:
            drive(plan.dwell_s, partial(_standing, stands), wound)
            plant.poll_poses()
            drive(READ_S, partial(_standing, stands), wound)
            seen = [pose.section_tips for pose in plant.poll_poses()]
            if not seen:
                raise ExcitationError(f'{rig.name}: no pose was measured at place {i}')
            stamps.append(np.nan)
            tips.append(mean_pose(np.array(seen)))
            commands.append(stands)
        elif plan.dwell_s > 0.0:
            drive(plan.dwell_s, partial(_standing, stands), wound)
        progress((i + 1) / len(plan.places))
    return ExcitedRows(np.array(stamps), np.array(commands), np.array(tips))


def _on_the_way(model: ArmModel, move: ConfigurationMove, time_s: float) -> Array:
    return model.actuation_of(move.at(time_s))


def _standing(command: Array, _: float) -> Array:
    return command


def _in_effect(given: list[tuple[float, Array]], at: float) -> Array:
    times = [time for time, _ in given[-2000:]]
    index = int(np.searchsorted(times, at, side='right')) - 1
    return given[-2000:][max(index, 0)][1]


def mean_pose(frames: Array) -> Array:
    """Return the mean pose (sections, 4, 4) of frames (n, sections, 4, 4) close to each other."""
    mean = frames.mean(axis=0)
    for frame in mean:
        u, _, v = np.linalg.svd(frame[:3, :3])
        frame[:3, :3] = u @ v
    return np.asarray(mean)
