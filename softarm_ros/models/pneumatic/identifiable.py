"""Identifiable parameters of sections with air chambers."""

from __future__ import annotations

from typing import Any

from softarm_ros.models.identifiable import Parameter


def of_air_chambers(arm: Any) -> tuple[Parameter, ...]:
    """Return radii, curves, masses, the give under load and its growth with elongation."""
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
            for i in range(1, len(curve.pressure_Pa)):
                # A larger gain before a knot shifts all later knots, so curves stay monotone.
                gain = curve.extension_m[i] - curve.extension_m[i - 1]
                later = range(i, len(curve.pressure_Pa))
                found.append(
                    Parameter(
                        f'{name} curve {j + 1} at {curve.pressure_Pa[i] / 1e3:g} kPa',
                        'curves',
                        tuple(f'{place}.curves[{j}].extension_m[{n}]' for n in later),
                        'shift',
                        0.2 * gain,
                        'm',
                        curve.extension_m[i] - 0.9 * gain,
                    )
                )
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
