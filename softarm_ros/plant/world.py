"""What a simulated arm hangs in and carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class World:
    """Gravity (base frame), medium and payload; the payload's density gives what it displaces."""

    gravity_m_s2: tuple[float, float, float]
    medium: Literal['air', 'water'] = 'air'
    tip_load_kg: float = 0.0
    tip_load_density_kg_m3: float = 7850.0
