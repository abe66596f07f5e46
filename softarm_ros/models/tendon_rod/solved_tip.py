"""The solved tip of a tendon-driven rod under given tensions, and the posture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ZERO3
from softarm_ros.models.cosserat.state import RodStart

if TYPE_CHECKING:
    from softarm_ros.models.tendon_rod.arm import TendonRodModel


@dataclass(frozen=True)
class SolvedTip:
    """Tip (4, 4), its twist by tension (6, cables), and a start for a nearby search."""

    tip: Array
    twist: Array
    start: RodStart | None = None


@dataclass(frozen=True)
class TensionPosture:
    """
    A `Posture` of tensions (cables,) [N], which are configuration and actuation.

    The tip is solved on its first request, starting from `start`, so a request for the actuation
    alone does not wait for it.
    """

    model: TendonRodModel
    configuration: Array
    start: SolvedTip | None

    @cached_property
    def solved(self) -> SolvedTip:
        """The tip and its derivative."""
        return self.model.solve_tip(self.configuration, ZERO3, self.start)

    @property
    def known(self) -> SolvedTip | None:
        """The solved tip of this posture, or its start if the tip is not solved yet."""
        return self.solved if 'solved' in self.__dict__ else self.start

    @property
    def tip(self) -> Array:
        """Tip position (3,) [m]."""
        return self.solved.tip[:3, 3]

    @property
    def tip_jacobian(self) -> Array:
        """Derivative of the tip by the tensions (3, cables) [m/N]."""
        return self.solved.twist[:3]

    @cached_property
    def section_tips(self) -> Array:
        """Poses of all section tips (sections, 4, 4) [m]."""
        return self.model.section_tips_near(self.configuration, self.solved)

    @property
    def actuation(self) -> Array:
        """The tensions themselves (cables,) [N]."""
        return self.configuration

    @property
    def actuation_jacobian(self) -> Array:
        """The identity (cables, cables)."""
        return np.eye(len(self.configuration))

    @cached_property
    def preferred(self) -> Array:
        """Tensions (cables,) nearest to the pretension with the same tip."""
        return self.model.preferred_from(self.configuration, self.solved)
