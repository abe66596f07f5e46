"""`softarm check`: a summary of a rig file, and warnings about trajectories out of reach."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from softarm_ros.cli.check_calibrations import lacking_calibrations, unseen_at_rest
from softarm_ros.cli.edge_units import edge_unit
from softarm_ros.cli.work_bar import Show, show_nothing
from softarm_ros.cli.workspace import sample_workspace
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel, ModelError
from softarm_ros.rigs.arms.cable_driven import CableArm
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.graph import BACKENDS, check_backend
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import (
    bridge_s,
    build_pretension,
    build_tracker,
    build_trajectory,
    describe_reach,
)
from softarm_ros.runtime.path_reach import path_reach

_REACH_POSES = 4000
_RANDOM_POSES, _REFUSED_OF = 500, 200
# Two pairs 11 degrees apart; errors of cables bend the section ten times as far.
_LEAST_LEVER = 0.1


def summary(rig: Rig, show: Show = show_nothing) -> Iterator[str]:
    """Yield lines about a valid rig: reach, actuators, rates, plant, trajectories."""
    names = rig.section_names
    rest = rig.model().rest_length_m
    yield f'arm           {len(names)} section(s): {", ".join(names)}; {1e3 * rest:.1f} mm at rest'
    show('how far the arm reaches', None)
    yield _reach(rig)
    yield from _actuators(rig)
    yield (
        f'rates         control {rig.tracker.rate_hz:g} Hz, feedback {rig.feedback.rate_hz:g} Hz '
        f'({1e3 * rig.feedback.delay_s:g} ms late, on {rig.feedback.pose_topic})'
    )
    s = rig.supervisor
    yield (
        f'held after    {1e3 * (bridge_s(rig) + s.feedback_timeout_s):g} ms without a pose, '
        f'{1e3 * s.command_timeout_s:g} ms without a command, '
        f'{1e3 * s.heartbeat_timeout_s:g} ms without a heartbeat'
    )
    load = f', {1e3 * rig.tip_load_kg:g} g at the tip' if rig.tip_load_kg else ''
    yield f'arm in        {rig.medium}, gravity {_vector(rig.gravity_m_s2)} m/s^2{load}'
    yield _backends(rig)
    yield f'model         {rig.default_model}'
    yield f'trajectories  {", ".join(rig.trajectories)} (default {rig.default_trajectory})'


def _reach(rig: Rig) -> str:
    tips, how = _tips(rig)
    if len(tips) == 0:
        return f'reach         none: actuators within their ranges hold no configuration ({how})'
    away = np.linalg.norm(tips[:, :2], axis=1)
    return (
        f'reach         up to {1e3 * np.max(away):.1f} mm from the axis, '
        f'z {1e3 * np.min(tips[:, 2]):.1f} to {1e3 * np.max(tips[:, 2]):.1f} mm ({how})'
    )


def _backends(rig: Rig) -> str:
    known = ', '.join(filter(partial(_has_backend, rig), BACKENDS)) or 'none'
    if rig.plant is None:
        return f'backends      {known}; without a plant nothing is simulated'
    return f'backends      {known}; simulated in steps of {1e3 * rig.plant.time_step_s:g} ms'


def _has_backend(rig: Rig, backend: str) -> bool:
    try:
        check_backend(rig, backend)
    except RigError:
        return False
    return True


def _actuators(rig: Rig) -> Iterator[str]:
    limits = rig.actuator_limits()
    unit, factor = edge_unit(limits.unit)
    yield f'actuators     {len(limits.names)}: {", ".join(limits.names)}'
    columns = (limits.position_min, limits.position_max, limits.max_speed, limits.max_acceleration)
    for low, high, speed, acceleration in sorted(set(zip(*(c.tolist() for c in columns)))):
        yield (
            f'              {factor * low:g} to {factor * high:g} {unit}, '
            f'{factor * speed:g} {unit}/s, {factor * acceleration:g} {unit}/s^2'
        )


def warnings(rig: Rig, show: Show = show_nothing) -> Iterator[str]:
    """Yield warnings about weak directions, missing files, refused poses, paths out of reach."""
    yield from _weak_directions(rig)
    yield from lacking_calibrations(rig)
    yield from unseen_at_rest(rig)
    model = rig.model()
    show('random poses', None)
    yield from _refused(rig, model)
    tracker = build_tracker(rig, model)
    for name in rig.trajectories:
        path = build_trajectory(rig, name).path
        solved = partial(show, f'trajectory {name}')
        reach = path_reach(rig, tracker, path, model=None, open_loop=False, progress=solved)
        line = describe_reach(reach)
        if line is not None:
            yield f'trajectory {name!r}: {line}'


def _weak_directions(rig: Rig) -> Iterator[str]:
    """Yield a warning about sections whose cables lie nearly in one plane with the backbone."""
    arm = rig.arm
    # Identified bends replace those that follow from the angles.
    if not isinstance(arm, CableArm) or any(a.bends for a in arm.actuators):
        return
    for section in arm.section_names:
        degrees = [a.angle_deg for a in arm.actuators if a.section == section]
        angles = np.radians(degrees)
        _, levers, axes = np.linalg.svd(np.stack([np.cos(angles), np.sin(angles)], axis=1))
        share = levers[1] / levers[0]
        if share < _LEAST_LEVER:
            towards = math.degrees(math.atan2(axes[1, 1], axes[1, 0])) % 180.0
            yield (
                f'section {section!r}: cables at {", ".join(f"{d:g}" for d in degrees)} deg '
                f'hardly control the bend towards {towards:.0f} deg: their lever there is '
                f'{100.0 * share:.1f} % of that across; expected at least '
                f'{100.0 * _LEAST_LEVER:g} %'
            )


def _refused(rig: Rig, model: ArmModel) -> Iterator[str]:
    """Yield warnings about a rest, and random poses within the limits, that the model refuses."""
    try:
        model.shape_of(model.rest_configuration)
    except ModelError as error:
        yield f'model {model.name} refuses the arm at rest, so no run can start: {error}'
    drawn = rig.arm.sample_configurations(model, np.random.default_rng(0), _REFUSED_OF)
    refused = drawn[np.isnan(model.tips_of(drawn)).any(axis=1)]
    if not len(refused):
        return
    least = refused[np.argmin(np.linalg.norm(refused - model.rest_configuration, axis=1))]
    why = 'no shape'
    try:
        model.shape_of(least)
    except ModelError as error:
        why = str(error)
    yield (
        f'model {model.name} refuses {len(refused)} of {len(drawn)} random poses within the '
        f'limits; nearest to rest: {why}'
    )


def _vector(values: tuple[float, ...]) -> str:
    return '(' + ', '.join(f'{v:g}' for v in values) + ')'


def _shares_in_plane(sections: int) -> Iterator[tuple[float, ...]]:
    """Yield bends of the sections in a plane, as shares of their limits, with the extremes."""
    count = max(3, int(_REACH_POSES ** (1.0 / sections)))
    if count**sections <= 4 * _REACH_POSES:
        yield from itertools.product(np.linspace(-1.0, 1.0, min(count, 181)), repeat=sections)
        return
    # Too many combinations: use arms with one bend up to a section and another one after it, which
    # include the farthest reach to the side and back.
    grid = np.linspace(-1.0, 1.0, 2 * int(math.sqrt(_REACH_POSES / sections)) + 1)
    for first, then, k in itertools.product(grid, grid, range(1, sections + 1)):
        yield (first,) * k + (then,) * (sections - k)


def _tips(rig: Rig) -> tuple[Array, str]:
    """Return tips (n, 3) [m] that span the reach, and a text about how they were found."""
    limits = rig.configuration_limits()
    if 2 * len(limits.bends) < len(limits.lower):
        found = sample_workspace(rig, _RANDOM_POSES, seed=0)
        return found.tips, f'{_RANDOM_POSES} random configurations'
    configurations = []
    for shares in _shares_in_plane(len(limits.bends)):
        configuration = np.zeros(len(limits.lower))
        configuration[limits.bends[:, 0]] = limits.max_bending_rad * shares
        configurations.append(configuration)
    degrees = ', '.join(f'{math.degrees(bend):g}' for bend in limits.max_bending_rad)
    model = rig.model()
    room = build_pretension(rig).room(rig.actuator_limits())
    held = rig.arm.those_held(model, np.array(configurations), room)
    return model.tips_of(held), f'bending up to {degrees} deg'
