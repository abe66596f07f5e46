"""Constant curvature of every segment: the rod under the moments of its cables alone."""

from __future__ import annotations

from functools import partial

import numpy as np

from softarm_ros.geometry.arrays import Array, finite_array
from softarm_ros.geometry.poses import pose
from softarm_ros.geometry.rotations import exp_so3, hat
from softarm_ros.models.arm_model import ZERO3, ModelError, Shape, Vector3
from softarm_ros.models.cosserat.config import CosseratConfig
from softarm_ros.models.tendon_rod.arm import TendonRodModel
from softarm_ros.models.tendon_rod.solved_tip import SolvedTip

_SERIES_TERMS = 40  # of the tangent map; for angles up to 2 pi the remainder is below 1e-16
_MAX_TURN_RAD = 2.0 * np.pi


class ConstantCurvatureTendonRod(TendonRodModel):
    """
    Each segment is an arc: theta = T r L / (E I), summed over its own cables as vectors.

    It has no weight, load or stretch; the lever of a cable is that at the middle of the segment.
    The model is for comparison with the Cosserat rod.
    """

    name = 'constant_curvature'

    def __init__(self, config: CosseratConfig, pretension_N: float) -> None:
        cables = config.cables
        self._turn_by_tension = np.zeros((len(config.segments), 3, len(cables)))
        self._rest_turn = np.zeros((len(config.segments), 3))
        self._connectors = []
        for k, segment in enumerate(config.segments):
            bending = segment.profile.stiffness(0.5)[:3, :3]
            for i, cable in enumerate(cables):
                for route in cable.routes:
                    if route.segment == segment.name:
                        x, y, _ = route.offset(0.5, segment.length_m)[:3]
                        turn = segment.length_m * np.linalg.solve(bending, [-y, x, 0.0])
                        self._turn_by_tension[k, :, i] = turn
            self._rest_turn[k] = segment.length_m * np.array(segment.rest_curvature_1_m)
            connector = segment.connector
            turn = exp_so3(np.radians(connector.rotation_vector_deg))
            self._connectors.append(pose(turn, (0.0, 0.0, connector.length_m)))
        super().__init__(config, pretension_N)

    def forward(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """
        Return the shape under tensions (cables,) [N].

        Raises
        ------
        ModelError
            For a tension out of range, a segment bent by more than 2 pi, or a load at the tip,
            which this model does not support.

        """
        _refuse_load(tip_force, tip_moment)
        tensions = self._within_range(actuation)
        twists = self._twists(tensions)
        base, tips = np.eye(4), []
        for twist, connector in zip(twists, self._connectors):
            base = base @ _exponential(twist)[0] @ connector
            tips.append(base)
        return Shape(base.copy(), np.array(tips), tensions, partial(self._centerline, twists))

    def solve_tip(
        self, tensions: Array, tip_force: Vector3, near: SolvedTip | None = None
    ) -> SolvedTip:
        """Return the tip under tensions (cables,) [N], in closed form."""
        _refuse_load(tip_force, ZERO3)
        base = np.eye(4)
        columns = np.zeros((6, len(tensions)))  # twists at the base's origin, base frame
        for k, twist in enumerate(self._twists(tensions)):
            arc, tangent = _exponential(twist)
            turn = self._turn_by_tension[k]
            inside = tangent[:, 3:] @ turn
            R, p = base[:3, :3], base[:3, 3]
            angular = R @ inside[3:]
            columns[3:] += angular
            columns[:3] += R @ inside[:3] + np.cross(p, angular, axisb=0, axisc=0)
            base = base @ arc @ self._connectors[k]
        linear = columns[:3] + np.cross(columns[3:], base[:3, 3], axisa=0, axisc=0)
        return SolvedTip(base, np.vstack([linear, columns[3:]]))

    def _twists(self, tensions: Array) -> list[Array]:
        """Return the twist (6,) from base to end of every segment, linear first."""
        turns = self._rest_turn + self._turn_by_tension @ tensions
        for segment, turn in zip(self.config.segments, turns):
            size = float(np.linalg.norm(turn))
            if size > _MAX_TURN_RAD:
                raise ModelError(
                    f'segment {segment.name}: bent by {np.degrees(size):.0f} deg; at most 360 deg'
                )
        return [
            np.concatenate([[0.0, 0.0, segment.length_m], turn])
            for segment, turn in zip(self.config.segments, turns)
        ]

    def _centerline(self, twists: list[Array], n: int) -> Array:
        """Return points (n, 3) [m], evenly spaced along arcs and connectors."""
        flexible = [segment.length_m for segment in self.config.segments]
        rigid = [segment.connector.length_m for segment in self.config.segments]
        ends = np.cumsum(np.add(flexible, rigid))
        bases = [np.eye(4)]
        for twist, connector in zip(twists, self._connectors):
            bases.append(bases[-1] @ _exponential(twist)[0] @ connector)
        points = np.empty((n, 3))
        for i, s in enumerate(np.linspace(0.0, ends[-1], n)):
            k = min(int(np.searchsorted(ends, s)), len(ends) - 1)
            inside = s - (ends[k] - flexible[k] - rigid[k])
            share = min(inside / flexible[k], 1.0)
            place = bases[k] @ _exponential(share * twists[k])[0]
            points[i] = place[:3, 3] + max(inside - flexible[k], 0.0) * place[:3, 2]
        return points


def _exponential(twist: Array) -> tuple[Array, Array]:
    """
    Return exp (4, 4) of a twist (6,), linear first, and its left tangent map (6, 6).

    The tangent map is the sum of ad^n / (n + 1)!; its upper left block gives the translation.
    """
    linear, turn = twist[:3], twist[3:]
    ad = np.zeros((6, 6))
    ad[:3, :3] = ad[3:, 3:] = hat(turn)
    ad[:3, 3:] = hat(linear)
    tangent, term = np.eye(6), np.eye(6)
    for n in range(1, _SERIES_TERMS):
        term = term @ ad / (n + 1.0)
        tangent += term
        if float(np.abs(term).max()) < 1e-17:
            break
    return pose(exp_so3(turn), tangent[:3, :3] @ linear), tangent


def _refuse_load(tip_force: Vector3, tip_moment: Vector3) -> None:
    force = finite_array(tip_force, (3,), 'tip_force')
    moment = finite_array(tip_moment, (3,), 'tip_moment')
    if np.any(force) or np.any(moment):
        raise ModelError(
            f'constant_curvature does not support a tip load: tip_force {force.tolist()} N, '
            f'tip_moment {moment.tolist()} N m'
        )
