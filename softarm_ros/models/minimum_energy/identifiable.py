"""Identifiable parameters of a backbone with muscles."""

from __future__ import annotations

from typing import Any

from softarm_ros.models.identifiable import Parameter


def of_muscles(arm: Any) -> tuple[Parameter, ...]:
    """Return the backbone's stiffness, length and weight, and the muscles' pull and radius."""
    rows = (
        ('youngs_modulus', 'stiffness', 'arm.backbone.youngs_modulus_Pa', 0.3, 'Pa'),
        ('shear_modulus', 'stiffness', 'arm.backbone.shear_modulus_Pa', 0.3, 'Pa'),
        ('max_pull', 'stiffness', 'arm.modules.max_pull_N', 0.1, 'N'),
        ('mass_per_length', 'weight', 'arm.backbone.mass_per_length_kg_m', 0.1, 'kg/m'),
        ('length', 'lengths', 'arm.backbone.length_m', 0.02, 'm'),
        ('anchor_radius', 'radii', 'arm.modules.anchor_radius_m', 0.1, 'm'),
    )
    return tuple(
        Parameter(name, group, (field,), 'factor', spread, unit, 1e-12)
        for name, group, field, spread, unit in rows
    )
