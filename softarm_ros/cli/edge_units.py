"""Units shown to people for the SI units inside."""

from __future__ import annotations

import math

_EDGE_UNITS = {'m': ('mm', 1e3), 'Pa': ('kPa', 1e-3), 'rad': ('deg', 180.0 / math.pi)}


def edge_unit(unit: str) -> tuple[str, float]:
    """Return the unit shown to people for an SI unit, and the factor to it."""
    return _EDGE_UNITS.get(unit, (unit, 1.0))
