"""Identifiable parameters of sections with water chambers."""

from __future__ import annotations

from typing import Any

from softarm_ros.models.identifiable import Parameter

REST_BEND_SPREAD_DEG = 1.0  # hoses of unequal length, sensors with an offset
TILT_SPREAD_DEG = 0.5  # mounted by hand


def of_water_chambers(arm: Any) -> tuple[Parameter, ...]:
    """
    Return stiffnesses, lengths, weights, levers, bends at rest, and the tilt of the mount.

    Each lever of a section is the pitch radius times a factor; the first factor keeps its value
    in the file.
    """
    found = []
    for k, section in enumerate(arm.sections):
        place, name = f'arm.sections[{k}]', section.name
        for field, group, unit, spread in (
            ('bending_stiffness_N_m2', 'stiffness', 'N m^2', 0.3),
            ('axial_stiffness_N', 'stiffness', 'N', 0.3),
            ('length_m', 'lengths', 'm', 0.05),
            ('mass_kg', 'weight', 'kg', 0.1),
            ('torsion_stiffness_N_m2', 'torsion', 'N m^2', 0.3),
            ('chamber_pitch_radius_m', 'radii', 'm', 0.05),
        ):
            what = field.rsplit('_', 1)[0] if unit == 'N' else field.split('_N')[0]
            what = what.removesuffix('_m').removesuffix('_kg').removeprefix('chamber_')
            found.append(
                Parameter(
                    f'{name} {what}', group, (f'{place}.{field}',), 'factor', spread, unit, 1e-9
                )
            )
        found += [
            Parameter(
                f'{name} lever_{i + 1}', 'levers', (f'{place}.lever_factors[{i}]',), 'factor', 0.3,
                '1', 1e-3,
            )
            for i in (1, 2)
        ]  # fmt: skip
        found += [
            Parameter(
                f'{name} rest_bend_{axis}', 'rest_curvature', (f'{place}.rest_bend_deg[{i}]',),
                'shift', REST_BEND_SPREAD_DEG, 'deg',
            )
            for i, axis in enumerate('xy')
        ]  # fmt: skip
    found += [
        Parameter(
            f'base_tilt_{axis}', 'tilt', (f'arm.base_tilt_deg[{i}]',), 'shift',
            TILT_SPREAD_DEG, 'deg',
        )
        for i, axis in enumerate('xy')
    ]  # fmt: skip
    return tuple(found)
