"""The hydraulic arm at one configuration, with the balance that holds it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from softarm_ros.geometry.arrays import Array

if TYPE_CHECKING:
    from softarm_ros.models.hydraulics.held_sections import HeldSections


@dataclass(frozen=True)
class HeldPosture:
    """A `Posture` that keeps its balance as the start of the search for the next one."""

    model: HeldSections[Any]
    configuration: Array
    held: Any

    @cached_property
    def tip(self) -> Array:
        """Tip position (3,) [m]."""
        return self.model.tip_of(self.held)[:3, 3]

    @cached_property
    def tip_jacobian(self) -> Array:
        """Derivative of the tip by the configuration (3, 3 s)."""
        return self.model.twists_of(self.held)[:3]

    @cached_property
    def section_tips(self) -> Array:
        """Poses of all section tips (s, 4, 4) [m]."""
        return self.model.shape_of_held(self.held).section_tips

    @cached_property
    def actuation(self) -> Array:
        """Pressures (m,) [Pa] that hold the configuration; they may lie out of range."""
        return self.model.pressures_of(self.held)

    @cached_property
    def actuation_jacobian(self) -> Array:
        """Derivative of the pressures by the configuration (m, 3 s)."""
        return self.model.pressure_rates_of(self.held)

    @cached_property
    def preferred(self) -> Array:
        """Configuration (3 s,) of equal bends with the least pressures that fill every chamber."""
        return self.model.preferred_from(self.configuration, self.held)
