"""Properties of the fluid around a simulated arm."""

from __future__ import annotations

from dataclasses import dataclass

from softarm_ros.models.hydrodynamics.config import WaterConfig


@dataclass(frozen=True)
class Fluid:
    """
    A fluid that carries and brakes the arm; without a fluid, its density is not used.

    Attributes
    ----------
    properties
        Density, and the coefficients of drag and added mass.
    current_m_s : (3,)
        Velocity of the fluid far from the arm, base frame; uniform and steady.

    """

    properties: WaterConfig
    current_m_s: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @property
    def density_kg_m3(self) -> float:
        """Density [kg/m^3]."""
        return self.properties.density_kg_m3
