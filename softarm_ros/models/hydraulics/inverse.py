"""Inverse model of sections with water chambers: pressures within range for a tip pose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError, Vector3
from softarm_ros.models.bending_limits import clipped_bends
from softarm_ros.models.bounded_least_squares import Rows
from softarm_ros.models.inverse import TOLERANCE, End, Outcome, PoseTarget, values_at_limits
from softarm_ros.models.stepped_search import Place, SteppedProblem

if TYPE_CHECKING:
    from softarm_ros.models.hydraulics.held_sections import HeldSections

_MAX_BEND_STEP_RAD = 0.4
_RANGE_TOLERANCE = 1e-6  # of the pressure range: margin for rounding
_STARTS = 3


class HeldShapeProblem(SteppedProblem):
    """Search for a configuration (3 s,) with pressures within range, near the preferred one."""

    def __init__(
        self, model: HeldSections[Any], tip_force: Vector3, with_orientation: bool
    ) -> None:
        self._model = model
        self._tip_force = tip_force
        self._max_bend = np.radians([s.max_bending_angle_deg for s in model.sections])
        # With an orientation, six conditions for six unknowns leave no room for a preference.
        self._alone = with_orientation
        sections, length = len(model.sections), model.rest_length_m
        # With an orientation, or near the border of the workspace, bends alone approach the
        # target too slowly: elongation must be as free as the bends.
        self.reach_scale = np.tile([1.0, 1.0, length], sections)
        self.scale = self.reach_scale if with_orientation else model.configuration_scale
        self.max_step = np.tile([_MAX_BEND_STEP_RAD, _MAX_BEND_STEP_RAD, np.inf], sections)
        anywhere = np.full(3 * sections, np.inf)
        self.ranges = ((-anywhere, anywhere),)

    def starts(self, target: PoseTarget) -> Iterable[Array]:
        """Return starts with sections bent alike or opposite, the most promising first."""
        model = self._model
        towards = target.position[:2]
        distance = float(np.linalg.norm(towards))
        towards = towards / distance if distance > 1e-9 else np.array([1.0, 0.0])
        ranked = []
        held = None
        for outer in (1.0, 2.0, 0.5, -1.0):  # bend of later sections relative to the first
            for angle in np.linspace(0.05, 0.9, 8):
                configuration = model.rest_configuration.reshape(-1, 3)
                for k, most in enumerate(self._max_bend):
                    bend = angle * most * (1.0 if k == 0 else outer)
                    configuration[k, :2] = min(max(bend, -most), most) * towards
                one = configuration.ravel()
                try:
                    held = model.held(one, held)
                except ModelError:
                    continue
                tip = model.tip_of(held)[:3, 3]
                miss = float(np.linalg.norm(tip - target.position))
                # One radian of bend costs a quarter of the arm's length: prefer small bends.
                bending = float(np.linalg.norm(configuration[:, :2]))
                ranked.append((miss + 0.25 * bending * model.rest_length_m, one))
        ranked.sort(key=lambda pair: pair[0])
        return [one for _, one in ranked[:_STARTS]]

    def look(self, unknowns: Array, near: Place | None) -> Place:
        """Return the place at a configuration (3 s,), with the bends clipped to their limits."""
        model = self._model
        q = unknowns.copy()
        bends = q.reshape(-1, 3)[:, :2]
        bends[:] = clipped_bends(bends, self._max_bend)
        held = model.balance(q, self._tip_force, None if near is None else near.state)
        wish = None
        if not self._alone:
            wish = model.preferred_from(q, held)
        rows = self._rows(q, held)
        return Place(q, model.tip_of(held), lambda: model.twists_of(held), wish, rows, held)

    def effort(self, end: End) -> float:
        """Return the sum of the squared bends."""
        return float(np.sum(end.unknowns.reshape(-1, 3)[:, :2] ** 2))

    def outcome(self, end: End) -> Outcome:
        """Return pressures and shape; refuse a shape the arm does not take by itself in range."""
        model, held = self._model, end.place.state
        pressures, shape, refusals = model.pressures_of(held), model.shape_of_held(held), []
        low, high = model.pressure_min, model.pressure_max
        outside = self._outside(pressures)
        refusals += [
            f'{model.actuator_names[i]} at {pressures[i]:.6g} Pa is outside '
            f'[{low[i]:.6g}, {high[i]:.6g}] Pa'
            for i in np.flatnonzero(outside)
        ]
        if not model.is_stable(held):
            refusals.append('the shape found is not stable')
        if not refusals:
            refusals += self._other_shape(pressures, shape.tip)
        if not outside.any():
            pressures = np.clip(pressures, low, high)
        return Outcome(pressures, shape, '; '.join(refusals))

    def _outside(self, pressures: Array) -> NDArray[np.bool_]:
        """Return which pressures (m,) are outside their ranges by more than the tolerance."""
        low, high = self._model.pressure_min, self._model.pressure_max
        slack = _RANGE_TOLERANCE * (high - low)
        return np.asarray((pressures < low - slack) | (pressures > high + slack))

    def _other_shape(self, pressures: Array, tip: Array) -> list[str]:
        """Return a text if the arm, loaded from rest, takes a shape with another tip (4, 4)."""
        try:
            alone = self._model.forward(pressures, self._tip_force).tip
        except ModelError as error:
            return [f'loaded from rest: {error}']
        away = float(np.linalg.norm(alone[:3, 3] - tip[:3, 3]))
        if away <= TOLERANCE * self._model.rest_length_m:
            return []
        return [
            'these pressures have several shapes: loaded from rest, the arm has its tip '
            f'{1e3 * away:.3g} mm off'
        ]

    def limits_met(self, end: End) -> list[str]:
        """
        Return texts of the chambers at an end of their range and the sections at a limit.

        Chambers outside their range are left out: the refusal in `outcome` gives their pressures.
        """
        model = self._model
        pressures = model.pressures_of(end.place.state)
        inside = np.flatnonzero(~self._outside(pressures))
        names = [model.actuator_names[int(i)] for i in inside]
        bounds = model.pressure_min[inside], model.pressure_max[inside]
        met = values_at_limits(names, pressures[inside], bounds, 'kPa', 1e-3)
        bends = np.linalg.norm(end.unknowns.reshape(-1, 3)[:, :2], axis=1)
        return met + [
            f'{section.name} at its {section.max_bending_angle_deg:g} deg bending limit'
            for section, bend, most in zip(model.sections, bends, self._max_bend)
            if bend > most - 1e-6
        ]

    def _rows(self, q: Array, held: Any) -> Rows:
        """Return bounds on pressures, in shares of their ranges, and on bends [rad]."""
        model = self._model
        unit = 1.0 / (model.pressure_max - model.pressure_min)
        pressures = model.pressures_of(held)
        sides = [model.pressure_rates_of(held) * unit[:, None]]
        low = [(model.pressure_min - pressures) * unit]
        high = [(model.pressure_max - pressures) * unit]
        for k, most in enumerate(self._max_bend):
            bend = q[3 * k : 3 * k + 2]
            size = float(np.linalg.norm(bend))
            if size > 1e-6:
                row = np.zeros((1, len(q)))
                row[0, 3 * k : 3 * k + 2] = bend / size
                sides.append(row)
                low.append(np.array([-np.inf]))
                high.append(np.array([max(most - size, 0.0)]))
        return Rows(np.vstack(sides), np.concatenate(low), np.concatenate(high))
