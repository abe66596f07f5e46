"""What can be identified of sections of air chambers."""

from __future__ import annotations

from typing import Any

from softarm_ros.models.identifiable import Parameter


def of_air_chambers(arm: Any) -> tuple[Parameter, ...]:
    """Return curves of pressure and extension, radii, give under load and how it softens."""
    found = []
    for k, section in enumerate(arm.sections):
        place, name = f'arm.sections[{k}]', section.name
        found.append(
            Parameter(
                f'{name} chamber_radius', 'radii', (f'{place}.chamber_radius_m',), 'factor', 0.15,
                'm', 1e-4,
            )
        )  # fmt: skip
        for j, curve in enumerate(section.curves):
            found += [
                Parameter(
                    f'{name} curve {j + 1} at {pressure / 1e3:g} kPa', 'curves',
                    (f'{place}.curves[{j}].extension_m[{i}]',), 'factor', 0.15, 'm', 1e-7,
                )
                for i, pressure in enumerate(curve.pressure_Pa)
                if i
            ]  # fmt: skip
        found += [
            Parameter(
                f'{name} give', 'compliance', (f'{place}.bend_per_moment_rad_N_m',), 'shift',
                max(0.5 * section.bend_per_moment_rad_N_m, 1.0), 'rad/(N m)', 0.0,
            ),
            Parameter(
                f'{name} softening', 'softening', (f'{place}.give_growth',), 'shift', 3.0, '1',
                0.0,
            ),
            Parameter(
                f'{name} mass', 'weight', (f'{place}.mass_kg',), 'shift',
                max(0.2 * section.mass_kg, 0.005), 'kg', 0.0,
            ),
        ]  # fmt: skip
    return tuple(found)
