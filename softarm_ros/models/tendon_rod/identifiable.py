"""Identifiable parameters of elastic rods with tendons."""

from __future__ import annotations

from typing import Any

from softarm_ros.models.identifiable import Parameter


def of_rod_cables(arm: Any) -> tuple[Parameter, ...]:
    """Return stiffnesses, weight, rest curvatures and tendon routes; a radius is also a gain."""
    places = [f'arm.segments[{k}].profile' for k in range(len(arm.segments))]
    found = []
    for name, field, unit, spread in (
        ('young_modulus', 'young_modulus_Pa', 'Pa', 0.3),
        ('density', 'density_kg_m3', 'kg/m^3', 0.1),
        ('bending_stiffness', 'bending_stiffness_N_m2', 'N m^2', 0.3),
        ('mass_per_length', 'mass_per_length_kg_m', 'kg/m', 0.1),
    ):
        fields = tuple(
            f'{place}.{field}'
            for place, segment in zip(places, arm.segments)
            if isinstance(getattr(segment.profile, field, None), float)
        )
        if fields:
            group = 'weight' if name in ('density', 'mass_per_length') else 'stiffness'
            found.append(Parameter(name, group, fields, 'factor', spread, unit, 1e-12))
    found += [
        Parameter(
            f'{segment.name} young_modulus', 'stiffness_profile', (f'{place}.young_modulus_Pa',),
            'factor', 0.1, 'Pa', 1.0,
        )
        for place, segment in zip(places, arm.segments)
        if isinstance(getattr(segment.profile, 'young_modulus_Pa', None), float)
    ]  # fmt: skip
    found += [
        Parameter(
            f'{segment.name} rest_curvature_{axis}', 'rest_curvature',
            (f'arm.segments[{k}].rest_curvature_1_m[{i}]',), 'shift', 0.5, '1/m', -50.0, 50.0,
        )
        for k, segment in enumerate(arm.segments)
        for i, axis in enumerate('xy')
    ]  # fmt: skip
    for j, actuator in enumerate(arm.actuators):
        routes = [f'arm.actuators[{j}].routes[{i}]' for i in range(len(actuator.routes))]
        angles = tuple(f'{route}.angle_deg' for route in routes)
        found += [
            Parameter(
                f'{actuator.name} radius in {route.segment}', 'radii_profile',
                (f'{place}.radius_m',), 'factor', 0.1, 'm',
            )
            for place, route in zip(routes, actuator.routes)
        ]  # fmt: skip
        radii = tuple(f'{route}.radius_m' for route in routes)
        ends = tuple(
            f'{place}.end_radius_m'
            for place, route in zip(routes, actuator.routes)
            if route.end_radius_m is not None
        )
        found += [
            Parameter(f'{actuator.name} angle', 'angles', angles, 'shift', 5.0, 'deg'),
            Parameter(f'{actuator.name} radius', 'radii', radii + ends, 'factor', 0.1, 'm'),
        ]
    return tuple(found)
