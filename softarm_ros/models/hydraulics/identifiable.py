"""What can be identified of sections of water chambers."""

from __future__ import annotations

from typing import Any

from softarm_ros.models.identifiable import Parameter


def of_water_chambers(arm: Any) -> tuple[Parameter, ...]:
    """Return stiffnesses, lengths, weight and levers; the first lever stands for the pitch."""
    found = []
    for k, section in enumerate(arm.sections):
        place, name = f'arm.sections[{k}]', section.name
        for field, group, unit, spread in (
            ('bending_stiffness_N_m2', 'stiffness', 'N m^2', 0.3),
            ('axial_stiffness_N', 'stiffness', 'N', 0.3),
            ('length_m', 'lengths', 'm', 0.05),
            ('mass_kg', 'weight', 'kg', 0.1),
        ):
            what = field.rsplit('_', 1)[0] if unit == 'N' else field.split('_N')[0]
            what = what.removesuffix('_m').removesuffix('_kg')
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
    return tuple(found)
