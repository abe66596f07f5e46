"""Consistency of cable-driven rigs: sections, cables and their simulated plant."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from softarm_ros.rigs.checks import (
    actuator_sections,
    check,
    checks_in,
    duplicates,
    only_in_air,
    plant_sections,
)
from softarm_ros.rigs.common_checks import (
    STABLE_GAIN_TIMES_DELAY,
    feedback_gain_1_s,
    pose_to_command_s,
    too_large_gain,
)
from softarm_ros.rigs.errors import Problem

MIN_CABLE_SEPARATION_DEG = 1.0


@check('sections')
def _unique_sections(rig: Any) -> Iterator[Problem]:
    yield from duplicates(rig.sections, 'sections')


@check('sections')
def _section_geometry(rig: Any) -> Iterator[Problem]:
    for i, s in enumerate(rig.sections):
        bend = math.radians(s.max_bending_angle_deg)
        shortest = s.length_m - s.cable_radius_m * bend
        if shortest <= 0.0:
            yield Problem(
                ('arm', 'sections', i, 'cable_radius_m'),
                f'expected less than {s.length_m / bend:.4g} m (length_m / bending angle), '
                'else the inner cable has no length left when fully bent',
                f'{s.cable_radius_m:g}',
            )


@check('sections', 'actuators')
def _actuator_sections(rig: Any) -> Iterator[Problem]:
    yield from actuator_sections(rig)


@check('actuators')
def _actuator_ranges(rig: Any) -> Iterator[Problem]:
    for i, a in enumerate(rig.actuators):
        if a.position_min_m >= 0.0:
            yield Problem(
                ('arm', 'actuators', i, 'position_min_m'),
                'expected a number < 0: the cable must pay out when the arm bends away from it',
                f'{a.position_min_m:g}',
            )
        if a.position_max_m <= 0.0:
            yield Problem(
                ('arm', 'actuators', i, 'position_max_m'),
                'expected a number > 0: the cable must pull in to bend the arm',
                f'{a.position_max_m:g}',
            )


@check('sections', 'actuators')
def _ranges_of_an_arm(rig: Any) -> Iterator[Problem]:
    longest = sum(s.length_m + 2.0 * s.endcap_length_m for s in rig.sections)
    for i, a in enumerate(rig.actuators):
        for field in ('position_min_m', 'position_max_m'):
            value = getattr(a, field)
            if abs(value) > longest:
                yield Problem(
                    ('arm', 'actuators', i, field),
                    f'expected at most the length of the arm, {longest:.4g} m, to either side '
                    '(was it given in millimetres?)',
                    f'{value:g}',
                )


@check('sections', 'actuators')
def _cable_angles(rig: Any) -> Iterator[Problem]:
    if any(a.section not in {s.name for s in rig.sections} for a in rig.actuators):
        return  # another check reports the wrong section name
    for i, section in enumerate(rig.sections):
        own = [(j, a) for j, a in enumerate(rig.actuators) if a.section == section.name]
        angles = sorted(
            ((a.angle_deg + turn) % 360.0, j)
            for j, a in own
            for turn in ((0.0, 180.0) if a.pair else (0.0,))
        )
        gaps = [
            (low, (high - low) % 360.0, *sorted((j, k)))
            for (low, j), (high, k) in zip(angles, angles[1:] + angles[:1])
        ]
        path = ('arm', 'sections', i, 'name')
        placed = ', '.join(f'{angle:g}' for angle, _ in angles)
        if len(angles) < 3:
            cables = 'cable' if len(angles) == 1 else 'cables'
            found = f'{len(angles)} {cables} (at {placed} deg)' if angles else 'no cables'
            message = f'has {found} in actuators; expected at least 3, not all on one side'
            yield Problem(path, message, repr(section.name))
            continue
        close = [g for g in gaps if g[1] < MIN_CABLE_SEPARATION_DEG]
        for _, gap, first, second in close:
            yield Problem(
                ('arm', 'actuators', second, 'angle_deg'),
                f'expected at least {MIN_CABLE_SEPARATION_DEG:g} deg between cables of a '
                f'section; {rig.actuators[first].name!r} is {gap:g} deg away',
                f'{rig.actuators[second].angle_deg:g}',
            )
        for low, gap, _, _ in [] if close else gaps:
            if gap >= 180.0 - 1e-9:
                yield Problem(
                    path,
                    f'cables at {placed} deg leave no way to bend towards '
                    f'{low:g} to {low + gap:g} deg; expected gaps below 180 deg',
                    repr(section.name),
                )


@check('sections', 'plant')
def _plant_sections(rig: Any) -> Iterator[Problem]:
    factors = {
        'length_m': 2.0,
        'cable_radius_m': 2.0,
        'bending_stiffness_N_m2': 20.0,
        'cutting_in_stiffness_N_m2': 20.0,
    }
    yield from plant_sections(rig, factors)


@check('plant')
def _plant_geometry(rig: Any) -> Iterator[Problem]:
    for i, s in enumerate(rig.plant.sections):
        if s.cable_radius_m >= s.outer_radius_m:
            yield Problem(
                ('plant', 'sections', i, 'cable_radius_m'),
                f'expected less than outer_radius_m = {s.outer_radius_m:g} '
                '(cables run inside the body)',
                f'{s.cable_radius_m:g}',
            )


@check('feedback', 'tracker', 'plant')
def _loop_gain_with_late_motors(rig: Any) -> Iterator[Problem]:
    late, delay = rig.plant.stepper.delay_s, pose_to_command_s(rig)
    if late > 0.0 and feedback_gain_1_s(rig.tracker) < STABLE_GAIN_TIMES_DELAY / delay:
        yield from too_large_gain(
            rig,
            STABLE_GAIN_TIMES_DELAY / (delay + late),
            f'motors start plant.stepper.delay_s = {late:g} s after a command, and the loop '
            'oscillates',
        )


@check('medium')
def _medium(rig: Any) -> Iterator[Problem]:
    yield from only_in_air(rig, 'cable-driven arms')


CHECKS = checks_in(globals())
