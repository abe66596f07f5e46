"""Move the simulated arm through an excitation; record commands and measured poses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from softarm_ros.control.excitation import Excitation, excitation, steps_of_actuators
from softarm_ros.control.excited_rows import READ_S, ExcitationError, ExcitedRows, RowCollector
from softarm_ros.control.winding import Winding
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel, ModelError
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.arm_assembly import build_plant
from softarm_ros.runtime.assembly import build_pretension
from softarm_ros.runtime.configuration_move import ConfigurationMove, plan_move

INTERRUPTED = 'interrupted'
_MOST_DRAWS = 40  # most batches of random configurations drawn to find enough within the limits


def plan_excitation(
    rig: Rig, kind: str, *, count: int, amplitude: float, dwell_s: float, seed: int
) -> Excitation:
    """
    Return an excitation with every configuration within the actuator limits.

    Raises
    ------
    ExcitationError
        If the kind is unknown, a number is invalid, or too few configurations are within limits.

    """
    model = rig.physics()
    limits = build_pretension(rig).room(rig.actuator_limits())
    rng = np.random.default_rng(seed)
    rest = np.asarray(model.rest_configuration)
    drawn = np.empty((0, len(rest)))
    if kind in ('random', 'steps'):
        drawn = rig.arm.sample_held(
            rig.model(), rng, count, batches=_MOST_DRAWS, physics=model, limits=limits
        )
        if len(drawn) < count:
            raise ExcitationError(
                f'{rig.name}: {len(drawn)} of {count} random places are within the limits of the '
                'actuators; ask for fewer (--count)'
            )
    if kind == 'actuators':
        drawn = np.array(_led_to(rig, amplitude)).reshape(-1, len(rest))
    try:
        plan = excitation(
            kind, rig.configuration_limits(), rest, drawn, amplitude=amplitude, dwell_s=dwell_s,
        )  # fmt: skip
    except ValueError as error:
        raise ExcitationError(f'{rig.name}: {error}') from None
    kept = [i for i, place in enumerate(plan.places) if limits.hold(model.actuation_of(place))]
    if not kept:
        raise ExcitationError(
            f'{rig.name}: no place is within the limits of the actuators; expected a smaller '
            f'amplitude than {amplitude:g}'
        )
    return plan.kept(kept)


def _led_to(rig: Rig, amplitude: float) -> list[Array]:
    """Return the configurations that single actuators lead to, clipped to the limits."""
    model, limits = rig.physics(), rig.actuator_limits()
    rest = model.actuation_of(np.asarray(model.rest_configuration))
    room = rig.configuration_limits()
    try:
        return [
            room.clipped(model.configuration_of(commands))
            for commands in steps_of_actuators(
                rest, limits.position_min, limits.position_max, amplitude
            )
        ]
    except ModelError as error:
        raise ExcitationError(f'{rig.name}: {error}; ask for a smaller amplitude') from None


def excite(
    rig: Rig,
    plan: Excitation,
    *,
    seed: int = 0,
    progress: Callable[[float], None] = lambda _: None,
) -> ExcitedRows:
    """
    Move the simulated arm through a plan, in one process; exactly repeatable for a seed.

    Speeds and accelerations stay within 70 % of their limits, and every command is checked.

    Raises
    ------
    LimitError
        If a command between two configurations is beyond a limit.
    ExcitationError
        If no pose was measured, or none while the arm stood still.

    """
    model, plant = rig.physics(), build_plant(rig, seed)
    pretension, limits = build_pretension(rig), rig.actuator_limits()
    room, period = pretension.room(limits), 1.0 / rig.tracker.rate_hz
    collected, winding = RowCollector(), Winding(pretension)

    def drive(duration_s: float, at: Callable[[float], Array]) -> None:
        for i in range(1, max(1, round(duration_s / period)) + 1):
            winding.advance(period)
            command = limits.check(at(i * period) + winding.wound)
            collected.command(plant.time_s, command - pretension.amount)
            plant.step(command, period)
            if not plan.at_rest:
                follow()

    def follow() -> None:
        for pose in plant.poll_poses():
            if collected.due(pose.stamp_s):
                collected.on_the_way(pose.stamp_s, pose.section_tips)

    place = np.asarray(model.rest_configuration)
    start = model.actuation_of(place)
    drive(max(pretension.duration_s(pretension.amount), READ_S), partial(_standing, start))
    for i, goal in enumerate(plan.places):
        move = plan_move(model, room, place, goal, float(plan.least_s[i]))
        drive(move.duration_s, partial(_on_the_way, model, move))
        place, stands = goal, model.actuation_of(goal)
        if plan.at_rest and plan.read[i]:
            drive(plan.dwell_s, partial(_standing, stands))
            plant.poll_poses()
            drive(READ_S, partial(_standing, stands))
            seen = [pose.section_tips for pose in plant.poll_poses()]
            if not seen:
                raise ExcitationError(f'{rig.name}: no pose was measured at place {i}')
            collected.at_rest(stands, seen)
        elif plan.read[i] and plan.dwell_s > 0.0:
            drive(plan.dwell_s, partial(_standing, stands))
        progress((i + 1) / len(plan.places))
    rows = collected.rows
    if rows is None:
        raise ExcitationError(f'{rig.name}: no pose was measured')
    return rows


def _on_the_way(model: ArmModel, move: ConfigurationMove, time_s: float) -> Array:
    return model.actuation_of(move.at(time_s))


def _standing(command: Array, _: float) -> Array:
    return command
