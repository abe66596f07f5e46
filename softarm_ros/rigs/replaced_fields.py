"""Fields that rig files had once, and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping

from softarm_ros.rigs.errors import FieldPath

REPLACED: Mapping[tuple[str, ...], str] = {
    ('feedback', 'kind'): (
        'nothing read it; delete it. What the sensor does is said by rate_hz, delay_s and '
        'position_noise_m'
    ),
}


def instead_of(path: FieldPath) -> str | None:
    """Return what to write instead of a field, or None if there never was such a field."""
    return REPLACED.get(tuple(part for part in path if isinstance(part, str)))
