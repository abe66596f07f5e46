"""Consistency of tendon-driven rods: segments, cables and their simulated plant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from softarm_ros.rigs.checks import as_many, check, checks_in, duplicates
from softarm_ros.rigs.errors import Problem, did_you_mean, listed

MAX_FACTOR = 3.0  # between the controller's values and the plant's


@check('medium')
def _medium(rig: Any) -> Iterator[Problem]:
    if rig.medium != 'air':
        message = 'this kind of arm has no model of water; expected air'
        yield Problem(('medium',), message, repr(rig.medium))


@check('segments')
def _segments(rig: Any) -> Iterator[Problem]:
    yield from duplicates(rig.segments, 'segments')


@check('segments', 'actuators')
def _routes(rig: Any) -> Iterator[Problem]:
    names = [segment.name for segment in rig.segments]
    for i, cable in enumerate(rig.actuators):
        unknown = False
        for j, route in enumerate(cable.routes):
            if route.segment not in names:
                unknown = True
                hint = did_you_mean(route.segment, names)
                yield Problem(
                    ('arm', 'actuators', i, 'routes', j, 'segment'),
                    f'no such segment{hint}; known: {listed(names)}',
                    repr(route.segment),
                )
        if unknown:
            continue
        places = [names.index(route.segment) for route in cable.routes]
        if places != list(range(places[0], places[0] + len(places))):
            yield Problem(
                ('arm', 'actuators', i, 'routes'),
                'expected routes through neighbouring segments from base to tip',
                listed([route.segment for route in cable.routes]),
            )


@check('actuators', 'plant')
def _straight_in_plant(rig: Any) -> Iterator[Problem]:
    for i, cable in enumerate(rig.actuators):
        for j, route in enumerate(cable.routes):
            path = ('arm', 'actuators', i, 'routes', j)
            if route.turns != 0.0:
                message = 'the simulated arm has cables parallel to the rod only; expected 0'
                yield Problem((*path, 'turns'), message, f'{route.turns:g}')
            if route.end_radius_m is not None and route.end_radius_m != route.radius_m:
                yield Problem(
                    (*path, 'end_radius_m'),
                    'the simulated arm has cables parallel to the rod only; expected radius_m = '
                    f'{route.radius_m:g}',
                    f'{route.end_radius_m:g}',
                )


@check('actuators', 'pretension_N')
def _pretension(rig: Any) -> Iterator[Problem]:
    lowest = min(cable.tension_max_N for cable in rig.actuators)
    if rig.pretension_N >= lowest:
        yield Problem(
            ('arm', 'pretension_N'),
            f'expected less than the smallest tension_max_N = {lowest:g}',
            f'{rig.pretension_N:g}',
        )


@check('tracker')
def _no_winding(rig: Any) -> Iterator[Problem]:
    if rig.tracker.pretension_m != 0.0:
        yield Problem(
            ('controller', 'pretension_m'),
            'commands of this kind are tensions, not lengths; expected 0, and pretension_N',
            f'{rig.tracker.pretension_m:g}',
        )


@check('segments', 'plant')
def _plant_segments(rig: Any) -> Iterator[Problem]:
    wanted = 'as many as segments of the arm', len(rig.segments)
    yield from as_many(('plant', 'segments'), len(rig.plant.segments), 'segment', *wanted)
    for i, (known, real) in enumerate(zip(rig.segments, rig.plant.segments)):
        yield from _near(('plant', 'segments', i, 'length_m'), real.length_m, known.length_m)
        laws = (real.profile.stiffness(0.5), known.profile.stiffness(0.5))
        for axis, name in enumerate(('x', 'y')):
            value, reference = (float(law[axis, axis]) for law in laws)
            if not reference / MAX_FACTOR <= value <= reference * MAX_FACTOR:
                yield Problem(
                    ('plant', 'segments', i, 'profile'),
                    f'expected a bending stiffness about {name} within a factor {MAX_FACTOR:g} of '
                    f"the controller's {reference:g} N m^2 (the plant is the same arm, with "
                    'stated errors)',
                    f'{value:g}',
                )
        turns = [np.array(segment.connector.rotation_vector_deg) for segment in (known, real)]
        if float(np.linalg.norm(turns[0] - turns[1])) > 10.0:
            yield Problem(
                ('plant', 'segments', i, 'connector'),
                f'expected rotation_vector_deg within 10 deg of {turns[0].tolist()}',
                f'{turns[1].tolist()}',
            )


def _near(path: tuple[Any, ...], value: float, reference: float) -> Iterator[Problem]:
    if not reference / MAX_FACTOR <= value <= reference * MAX_FACTOR:
        yield Problem(
            path,
            f"expected within a factor {MAX_FACTOR:g} of the controller's {reference:g}",
            f'{value:g}',
        )


@check('actuators', 'plant')
def _winch_is_fast_enough(rig: Any) -> Iterator[Problem]:
    fastest = max(cable.max_rate_N_s for cable in rig.actuators)
    if rig.plant.winch.max_tension_rate_N_s < fastest:
        yield Problem(
            ('plant', 'winch', 'max_tension_rate_N_s'),
            f'expected at least the largest max_rate_N_s of the actuators, {fastest:g}',
            f'{rig.plant.winch.max_tension_rate_N_s:g}',
        )


CHECKS = checks_in(globals())
