"""Consistency of cable-driven rigs whose motors wind cable pairs, and of their recordings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from softarm_ros.models.config import CableConfig
from softarm_ros.rigs.checks import as_many, check, checks_in
from softarm_ros.rigs.errors import Problem, did_you_mean, listed

ANGULAR_UNITS = ('deg', 'rad')


def is_paired(rig: Any) -> bool:
    """Return whether the motors of a cable-driven rig wind pairs of cables."""
    return any(actuator.pair for actuator in rig.actuators)


def mechanics_name(rig: Any) -> str:
    """Return the kind of mechanics that models of a cable-driven rig are built on."""
    return 'cable_pairs' if is_paired(rig) else 'cables'


def _cables(rig: Any) -> tuple[CableConfig, ...]:
    return tuple(
        CableConfig(
            name=a.name, section=a.section, angle_deg=a.angle_deg, pair=a.pair, bends=a.bends
        )
        for a in rig.actuators
    )


@check('actuators')
def _all_or_none(rig: Any) -> Iterator[Problem]:
    if not is_paired(rig):
        return
    identified = [a.name for a in rig.actuators if a.bends]
    for i, a in enumerate(rig.actuators):
        if not a.pair:
            yield Problem(
                ('arm', 'actuators', i, 'pair'),
                'expected true: other actuators of this arm are pairs',
                'false',
            )
        if identified and not a.bends:
            yield Problem(
                ('arm', 'actuators', i, 'bends'),
                f'missing; expected for all actuators or none, {identified[0]!r} has them',
            )


@check('sections', 'actuators')
def _bends(rig: Any) -> Iterator[Problem]:
    names = [s.name for s in rig.sections]
    for i, a in enumerate(rig.actuators):
        seen: set[str] = set()
        for k, bend in enumerate(a.bends):
            path = ('arm', 'actuators', i, 'bends', k, 'section')
            if bend.section not in names:
                hint = did_you_mean(bend.section, names)
                yield Problem(
                    path, f'no such section{hint}; known: {listed(names)}', repr(bend.section)
                )
            elif bend.section in seen:
                yield Problem(path, 'expected every section at most once', repr(bend.section))
            seen.add(bend.section)


@check('sections', 'actuators')
def _bends_are_independent(rig: Any) -> Iterator[Problem]:
    names = {s.name for s in rig.sections}
    whole = all(a.section in names for a in rig.actuators) and all(
        a.pair and bool(a.bends) == bool(rig.actuators[0].bends) for a in rig.actuators
    )
    named = all(bend.section in names for a in rig.actuators for bend in a.bends)
    if not (whole and named) or any(
        all(a.section != section for a in rig.actuators) for section in names
    ):
        return  # reported by other checks
    from softarm_ros.models.cable_driven.paired_cables import PairedCablesArm

    try:
        PairedCablesArm(rig.sections, _cables(rig))
    except ValueError as error:
        yield Problem(('arm', 'actuators'), str(error))


@check('actuators', 'tracker')
def _pretension(rig: Any) -> Iterator[Problem]:
    if is_paired(rig) and rig.tracker.pretension_m != 0.0:
        yield Problem(
            ('controller', 'pretension_m'),
            'expected 0: to wind a pair further bends the arm',
            f'{rig.tracker.pretension_m:g}',
        )
        return
    room, name = min((a.position_max_m - a.position_min_m, a.name) for a in rig.actuators)
    if rig.tracker.pretension_m > 0.0 and rig.tracker.pretension_m >= room:
        yield Problem(
            ('controller', 'pretension_m'),
            f'expected 0 to below the range of {name}, {room:g} m',
            f'{rig.tracker.pretension_m:g}',
        )


@check('sections', 'actuators')
def _only_pairs(rig: Any) -> Iterator[Problem]:
    if is_paired(rig):
        return
    for i, s in enumerate(rig.sections):
        if s.passing_radius_m != 0.0:
            yield Problem(
                ('arm', 'sections', i, 'passing_radius_m'),
                'expected 0: single cables run through the centre of the sections before theirs',
                f'{s.passing_radius_m:g}',
            )
        if any(s.rest_bend_deg):
            yield Problem(
                ('arm', 'sections', i, 'rest_bend_deg'),
                'expected [0, 0]: only arms with pairs of cables may be bent at rest',
                f'[{s.rest_bend_deg[0]:g}, {s.rest_bend_deg[1]:g}]',
            )
    for i, a in enumerate(rig.actuators):
        if a.bends:
            yield Problem(('arm', 'actuators', i, 'bends'), 'expected none: only pairs have them')


@check('actuators', 'plant')
def _plant_of_pairs(rig: Any) -> Iterator[Problem]:
    plant = rig.plant
    if plant.zero_offset_m:
        wanted = 'one for each actuator, or none', len(rig.actuators)
        path = ('plant', 'zero_offset_m')
        yield from as_many(path, len(plant.zero_offset_m), 'value', *wanted)
    if is_paired(rig):
        if plant.stepper.slack_m != 0.0:
            yield Problem(
                ('plant', 'stepper', 'slack_m'),
                'expected 0: both cables of a pair cannot be slack on the same side',
                f'{plant.stepper.slack_m:g}',
            )
        return
    if plant.pair_pretension_m != 0.0:
        yield Problem(
            ('plant', 'pair_pretension_m'),
            'expected 0: no actuator is a pair',
            f'{plant.pair_pretension_m:g}',
        )
    for i, s in enumerate(plant.sections):
        if s.passing_radius_m != 0.0:
            yield Problem(
                ('plant', 'sections', i, 'passing_radius_m'),
                'expected 0: single cables run through the centre of the sections before theirs',
                f'{s.passing_radius_m:g}',
            )


@check('plant')
def _passing_inside(rig: Any) -> Iterator[Problem]:
    for i, s in enumerate(rig.plant.sections):
        if s.passing_radius_m >= s.outer_radius_m:
            yield Problem(
                ('plant', 'sections', i, 'passing_radius_m'),
                f'expected less than outer_radius_m = {s.outer_radius_m:g} '
                '(cables run inside the body)',
                f'{s.passing_radius_m:g}',
            )


@check('recording', 'actuators', 'sections')
def _recording(rig: Any) -> Iterator[Problem]:
    recording = rig.recording
    if recording is None:
        return
    if is_paired(rig):
        missing = [s.name for s in rig.sections if s.name not in recording.section_tips]
        if missing:
            yield Problem(('recording', 'section_tips'), f'missing: {", ".join(missing)}')
    if recording.command_unit in ANGULAR_UNITS:
        for i, a in enumerate(rig.actuators):
            if a.pulley_radius_m is None:
                yield Problem(
                    ('arm', 'actuators', i, 'pulley_radius_m'),
                    f'missing; recording.command_unit is {recording.command_unit!r}',
                )


CHECKS = checks_in(globals())
