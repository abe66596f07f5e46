"""Inverse model of a tendon-driven rod: tensions for a tip pose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import Vector3
from softarm_ros.models.inverse import TOLERANCE, End, Outcome, PoseTarget, values_at_limits
from softarm_ros.models.stepped_search import Place, SteppedProblem

if TYPE_CHECKING:
    from softarm_ros.models.tendon_rod.arm import TendonRodModel


class TensionProblem(SteppedProblem):
    """
    Search for the tensions (cables,) [N] of a pose that are nearest to the pretension.

    If the pose is out of reach with pretension, cables may be looser, down to 0 N.
    """

    def __init__(self, model: TendonRodModel, tip_force: Vector3) -> None:
        self._model, self._tip_force = model, tip_force
        self._rest, most = model.pretension_N, model.max_tension_N
        self.scale = model.configuration_scale
        self.max_step = np.full(len(most), np.inf)
        self.ranges = ((self._rest, most), (np.zeros(len(most)), most))

    def starts(self, target: PoseTarget) -> Iterable[Array]:
        """Return the pretension as the only start."""
        return [self._rest]

    def look(self, unknowns: Array, near: Place | None) -> Place:
        """Return the place at tensions (cables,) [N]."""
        start = None if near is None else near.state
        solved = self._model.solve_tip(unknowns, self._tip_force, start)
        return Place(unknowns, solved.tip, lambda: solved.twist, wish=self._rest, state=solved)

    def effort(self, end: End) -> float:
        """Return the norm of the tensions minus the pretension [N]."""
        return float(np.linalg.norm(end.unknowns - self._rest))

    def outcome(self, end: End) -> Outcome:
        """Return the shape that loading from rest leads to; refuse it if its tip differs."""
        shape = self._model.forward(end.unknowns, self._tip_force)
        away = float(np.linalg.norm(shape.tip[:3, 3] - end.place.tip[:3, 3]))
        if away <= TOLERANCE * self._model.rest_length_m:
            return Outcome(end.unknowns, shape)
        snaps = f'loaded from rest, the arm has its tip {1e3 * away:.3g} mm off'
        return Outcome(end.unknowns, shape, f'these tensions have several shapes: {snaps}')

    def limits_met(self, end: End) -> list[str]:
        """Return texts of the cables at zero or at their largest tension."""
        names = self._model.actuator_names
        return values_at_limits(names, end.unknowns, self.ranges[-1], 'N')
