"""Consistency of water-hydraulic rigs: chambers, drives and their simulated plant."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from softarm_ros.rigs.checks import (
    actuator_sections,
    as_many,
    check,
    checks_in,
    duplicates,
    plant_sections,
)
from softarm_ros.rigs.errors import Problem

CHAMBERS_PER_SECTION = 3
MIN_SEPARATION_DEG = 10.0


@check('sections')
def _unique_sections(rig: Any) -> Iterator[Problem]:
    yield from duplicates(rig.sections, 'sections')


@check('sections')
def _section_geometry(rig: Any) -> Iterator[Problem]:
    for i, section in enumerate(rig.sections):
        if section.chamber_pitch_radius_m >= section.outer_radius_m:
            yield Problem(
                ('arm', 'sections', i, 'chamber_pitch_radius_m'),
                f'expected less than outer_radius_m = {section.outer_radius_m:g}',
                f'{section.chamber_pitch_radius_m:g}',
            )


@check('sections')
def _rest_bend(rig: Any) -> Iterator[Problem]:
    for i, section in enumerate(rig.sections):
        bend = math.hypot(*section.rest_bend_deg)
        if bend >= section.max_bending_angle_deg:
            yield Problem(
                ('arm', 'sections', i, 'rest_bend_deg'),
                f'a bend of {bend:.4g} deg; expected less than max_bending_angle_deg = '
                f'{section.max_bending_angle_deg:g}',
                f'[{section.rest_bend_deg[0]:g}, {section.rest_bend_deg[1]:g}]',
            )


@check('sections', 'actuators')
def _actuator_sections(rig: Any) -> Iterator[Problem]:
    yield from actuator_sections(rig)


@check('sections', 'actuators')
def _chambers(rig: Any) -> Iterator[Problem]:
    if any(a.section not in {s.name for s in rig.sections} for a in rig.actuators):
        return  # another check reports the wrong section name
    for i, section in enumerate(rig.sections):
        own = [(a.angle_deg % 360.0, j) for j, a in enumerate(rig.actuators)]
        own = [pair for pair in own if rig.actuators[pair[1]].section == section.name]
        if len(own) != CHAMBERS_PER_SECTION:
            message = (
                f'has {len(own)} chambers in actuators; expected exactly '
                f'{CHAMBERS_PER_SECTION}, for two bends and the elongation'
            )
            yield Problem(('arm', 'sections', i, 'name'), message, repr(section.name))
            continue
        own.sort()
        for (angle, j), (following, k) in zip(own, own[1:] + own[:1]):
            gap = (following - angle) % 360.0
            if gap < MIN_SEPARATION_DEG or gap >= 180.0 - 1e-9:
                yield Problem(
                    ('arm', 'actuators', k, 'angle_deg'),
                    f'expected {MIN_SEPARATION_DEG:g} to less than 180 deg after '
                    f'{rig.actuators[j].name!r}, which is at {angle:g} deg: else there are '
                    'directions the section cannot bend to',
                    f'{rig.actuators[k].angle_deg:g}',
                )


@check('actuators', 'preload_Pa')
def _pressures(rig: Any) -> Iterator[Problem]:
    for i, a in enumerate(rig.actuators):
        if a.pressure_max_Pa <= a.pressure_min_Pa:
            yield Problem(
                ('arm', 'actuators', i, 'pressure_max_Pa'),
                f'expected more than pressure_min_Pa = {a.pressure_min_Pa:g}',
                f'{a.pressure_max_Pa:g}',
            )
        elif not a.pressure_min_Pa <= rig.preload_Pa < a.pressure_max_Pa:
            yield Problem(
                ('arm', 'preload_Pa'),
                f'expected within the range of {a.name!r}, {a.pressure_min_Pa:g} to '
                f'{a.pressure_max_Pa:g} Pa',
                f'{rig.preload_Pa:g}',
            )


def missing_torques(rig: Any) -> Iterator[Problem]:
    """Yield a problem for every chamber without the motor torque that servo cylinders need."""
    for i, a in enumerate(rig.actuators):
        if a.torque_per_pressure_N_m_Pa is None:
            path = ('arm', 'actuators', i, 'torque_per_pressure_N_m_Pa')
            yield Problem(path, 'missing; servo cylinders are set by the torque of their motors')


@check('actuators', 'plant')
def _torques(rig: Any) -> Iterator[Problem]:
    missing = list(missing_torques(rig))
    yield from missing
    if missing:
        return
    most = rig.plant.drive.max_torque_N_m
    for i, a in enumerate(rig.actuators):
        torque = a.torque_per_pressure_N_m_Pa * a.pressure_max_Pa
        if torque > most * (1.0 + 1e-9):
            yield Problem(
                ('arm', 'actuators', i, 'pressure_max_Pa'),
                f'takes {torque:g} N m by torque_per_pressure_N_m_Pa; expected at most '
                f'plant.drive.max_torque_N_m = {most:g}',
                f'{a.pressure_max_Pa:g}',
            )


@check('actuators', 'plant')
def _plant_axes(rig: Any) -> Iterator[Problem]:
    count, wanted = len(rig.plant.efficiency_factors), len(rig.actuators)
    path = ('plant', 'efficiency_factors')
    yield from as_many(path, count, 'number', 'one for each actuator', wanted)
    for i, factor in enumerate(rig.plant.efficiency_factors):
        efficiency = factor * rig.plant.axis.transmission_efficiency
        if efficiency > 1.0:
            yield Problem(
                ('plant', 'efficiency_factors', i),
                f'makes an efficiency of {efficiency:g}; expected at most 1',
                f'{factor:g}',
            )


@check('sections', 'plant')
def _plant_sections(rig: Any) -> Iterator[Problem]:
    compared = (
        'length_m',
        'mass_kg',
        'chamber_area_m2',
        'chamber_pitch_radius_m',
        'axial_stiffness_N',
        'bending_stiffness_N_m2',
        'torsion_stiffness_N_m2',
    )
    yield from plant_sections(rig, dict.fromkeys(compared, 2.0))


@check('tracker')
def _no_cables(rig: Any) -> Iterator[Problem]:
    if rig.tracker.pretension_m != 0.0:
        yield Problem(
            ('controller', 'pretension_m'),
            'expected 0: there are no cables; preload_Pa keeps the chambers filled',
            f'{rig.tracker.pretension_m:g}',
        )


CHECKS = checks_in(globals())
