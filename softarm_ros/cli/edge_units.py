"""Display units for the SI units used internally."""

from __future__ import annotations

import math

_EDGE_UNITS = {'m': ('mm', 1e3), 'Pa': ('kPa', 1e-3), 'rad': ('deg', 180.0 / math.pi)}


def edge_unit(unit: str) -> tuple[str, float]:
    """Return the display unit for an SI unit, and the factor to convert to it."""
    return _EDGE_UNITS.get(unit, (unit, 1.0))
