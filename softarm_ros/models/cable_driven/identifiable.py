"""Identifiable parameters of arms of cable-driven sections."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from softarm_ros.models.identifiable import Parameter

LENGTH_SPREAD = 0.05
REST_BEND_SPREAD_DEG = 15.0
GAIN_SPREAD = 0.5  # relative to the largest gain
COMPLIANCE_SPREAD_RAD_N_M = 0.3


def of_pairs(arm: Any) -> tuple[Parameter, ...]:
    """Return lengths, rest bends, the gain of each pair on each section, and give under load."""
    found = []
    for k, section in enumerate(arm.sections):
        place = f'arm.sections[{k}]'
        found.append(
            Parameter(
                f'{section.name} length', 'lengths', (f'{place}.length_m',), 'factor',
                LENGTH_SPREAD, 'm', 1e-3,
            )
        )  # fmt: skip
        found += [
            Parameter(
                f'{section.name} rest_bend_{axis}', 'rest_bends', (f'{place}.rest_bend_deg[{i}]',),
                'shift', REST_BEND_SPREAD_DEG, 'deg', -170.0, 170.0,
            )
            for i, axis in enumerate('xy')
        ]  # fmt: skip
    largest = max(
        1.0 / min(section.cable_radius_m for section in arm.sections),
        *(bend.gain_rad_m for actuator in arm.actuators for bend in actuator.bends),
    )
    for j, actuator in enumerate(arm.actuators):
        for i, bend in enumerate(actuator.bends):
            place = f'arm.actuators[{j}].bends[{i}]'
            fields = (f'{place}.gain_rad_m', f'{place}.angle_deg')
            name = f'{actuator.name} on {bend.section}'
            spread = GAIN_SPREAD * largest
            found += [
                Parameter(f'{name}_x', 'bends', fields, 'polar_x', spread, 'rad/m'),
                Parameter(f'{name}_y', 'bends', fields, 'polar_y', spread, 'rad/m'),
            ]
    found += [
        Parameter(
            f'{section.name} give', 'compliance', (f'arm.sections[{k}].bend_per_moment_rad_N_m',),
            'shift', COMPLIANCE_SPREAD_RAD_N_M, 'rad/(N m)', 0.0,
        )
        for k, section in enumerate(arm.sections)
    ]  # fmt: skip
    return tuple(found)


def of_cables(arm: Any) -> tuple[Parameter, ...]:
    """Return the stiffnesses, lengths and cable radii of sections, and the angles of cables."""
    found = []
    for k, section in enumerate(arm.sections):
        place, name = f'arm.sections[{k}]', section.name
        found += [
            Parameter(
                f'{name} bending_stiffness', 'stiffness', (f'{place}.bending_stiffness_N_m2',),
                'factor', 0.3, 'N m^2', 1e-9,
            ),
            Parameter(
                f'{name} cutting_in_stiffness', 'stiffness',
                (f'{place}.cutting_in_stiffness_N_m2',), 'factor', 1.0, 'N/m^2', 1e-9,
            ),
            Parameter(
                f'{name} length', 'lengths', (f'{place}.length_m',), 'factor', LENGTH_SPREAD, 'm',
                1e-3,
            ),
            Parameter(
                f'{name} cable_radius', 'radii', (f'{place}.cable_radius_m',), 'factor', 0.1, 'm',
                1e-4,
            ),
        ]  # fmt: skip
    found += [
        Parameter(
            f'{actuator.name} angle', 'angles', (f'arm.actuators[{j}].angle_deg',), 'shift', 5.0,
            'deg',
        )
        for j, actuator in enumerate(arm.actuators)
    ]  # fmt: skip
    return tuple(found)


def of_arcs(arm: Any) -> tuple[Parameter, ...]:
    """
    Return the lengths and cable radii of sections of constant curvature.

    Stiffnesses have no effect. With other angles of the cables, the model would refuse the
    commands of a taut arm: they would pull cables against each other.
    """
    return tuple(
        replace(parameter, group='gains') if parameter.group == 'radii' else parameter
        for parameter in of_cables(arm)
        if parameter.group in ('lengths', 'radii')
    )


def of_rod(arm: Any) -> tuple[Parameter, ...]:
    """
    Return the parameters of a Cosserat rod on single cables or pairs.

    Axial stiffness, cable stretch and masses are included only where the rig file states them.
    """
    paired = any(actuator.pair for actuator in arm.actuators)
    found = []
    for k, section in enumerate(arm.sections):
        place, name = f'arm.sections[{k}]', section.name
        given = [
            ('bending_stiffness', 'stiffness', 'bending_stiffness_N_m2', 0.3, 'N m^2', 1e-9),
            ('length', 'lengths', 'length_m', LENGTH_SPREAD, 'm', 1e-3),
            ('cable_radius', 'radii', 'cable_radius_m', 0.1, 'm', 1e-4),
        ]
        if not paired:
            given.append(
                ('cutting_in_stiffness', 'stiffness', 'cutting_in_stiffness_N_m2', 1.0, 'N/m^2',
                 1e-9)
            )  # fmt: skip
        if section.passing_radius_m > 0.0 and k + 1 < len(arm.sections):
            given.append(('passing_radius', 'radii', 'passing_radius_m', 0.3, 'm', 1e-4))
        if section.axial_stiffness_N is not None:
            given.append(('axial_stiffness', 'axial', 'axial_stiffness_N', 1.0, 'N', 1.0))
        if section.body_mass_kg > 0.0:
            given.append(('body_mass', 'weight', 'body_mass_kg', 0.2, 'kg', 1e-6))
        found += [
            Parameter(f'{name} {what}', group, (f'{place}.{field}',), 'factor', spread, unit, low)
            for what, group, field, spread, unit, low in given
        ]
        if paired:
            found += [
                Parameter(
                    f'{name} rest_bend_{axis}', 'rest_bends', (f'{place}.rest_bend_deg[{i}]',),
                    'shift', REST_BEND_SPREAD_DEG, 'deg', -170.0, 170.0,
                )
                for i, axis in enumerate('xy')
            ]  # fmt: skip
    stretched = tuple(
        f'arm.actuators[{j}].stretch_m_N'
        for j, actuator in enumerate(arm.actuators)
        if actuator.stretch_m_N > 0.0
    )
    if stretched:
        found.append(
            Parameter('cable stretch', 'axial', stretched, 'factor', 1.0, 'm/N', 1e-9, 1.0)
        )
    found += [
        Parameter(
            f'{actuator.name} angle', 'angles', (f'arm.actuators[{j}].angle_deg',), 'shift', 5.0,
            'deg',
        )
        for j, actuator in enumerate(arm.actuators)
    ]  # fmt: skip
    return tuple(found)
