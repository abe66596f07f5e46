"""The posture of models that gain nothing from a neighbouring posture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from softarm_ros.geometry.arrays import Array, real_array
from softarm_ros.models.arm_model import Posture, Shape


class ByConfiguration(Protocol):
    """The methods of `ArmModel` that a plain posture calls."""

    def tip_and_jacobian(self, configuration: Array) -> tuple[Array, Array]:
        """See `ArmModel`."""
        ...

    def shape_of(self, configuration: Array) -> Shape:
        """See `ArmModel`."""
        ...

    def actuation_of(self, configuration: Array) -> Array:
        """See `ArmModel`."""
        ...

    def actuation_jacobian(self, configuration: Array) -> Array:
        """See `ArmModel`."""
        ...

    def preferred_configuration(self, configuration: Array) -> Array:
        """See `ArmModel`."""
        ...


@dataclass(frozen=True)
class PlainPosture:
    """A `Posture` that queries its model at the configuration, once per quantity."""

    model: ByConfiguration
    configuration: Array

    @cached_property
    def _tip_and_jacobian(self) -> tuple[Array, Array]:
        return self.model.tip_and_jacobian(self.configuration)

    @property
    def tip(self) -> Array:
        """Tip position (3,) [m]."""
        return self._tip_and_jacobian[0]

    @property
    def tip_jacobian(self) -> Array:
        """Derivative of the tip by the configuration (3, dof)."""
        return self._tip_and_jacobian[1]

    @cached_property
    def section_tips(self) -> Array:
        """Poses of all section tips (sections, 4, 4) [m]."""
        return self.model.shape_of(self.configuration).section_tips

    @cached_property
    def actuation(self) -> Array:
        """Actuation (m,) that holds the configuration without load."""
        return self.model.actuation_of(self.configuration)

    @cached_property
    def actuation_jacobian(self) -> Array:
        """Derivative of the actuation by the configuration (m, dof)."""
        return self.model.actuation_jacobian(self.configuration)

    @cached_property
    def preferred(self) -> Array:
        """Configuration (dof,) that the tracker's null space pulls to from here."""
        return self.model.preferred_configuration(self.configuration)


class PlainPostures:
    """Gives `posture_of` to a model that gains nothing from a neighbouring posture."""

    def posture_of(
        self: ByConfiguration, configuration: Array, near: Posture | None = None
    ) -> Posture:
        """Return the posture of a configuration (dof,)."""
        return PlainPosture(self, real_array(configuration, 'configuration'))
