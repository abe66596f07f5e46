"""Parameters of the water around an arm."""

from __future__ import annotations

from pydantic import Field

from softarm_ros.geometry.configs import ConfigBlock, NonNegative, Positive


class WaterConfig(ConfigBlock):
    """
    Water around an arm and the coefficients of its pieces.

    The defaults are those of a long smooth cylinder at Re 1e3..1e5 in cross flow, and of skin
    friction in axial flow. For an oscillating cylinder they depend on the Keulegan-Carpenter
    number.
    """

    density_kg_m3: Positive = 998.0
    drag_across: NonNegative = Field(default=1.2, description='C_d on D ds, flow across')
    drag_along: NonNegative = Field(default=0.01, description='C_d on pi D ds, flow along')
    added_mass_across: NonNegative = Field(default=1.0, description='C_a on the displaced water')
    added_mass_along: NonNegative = 0.0
