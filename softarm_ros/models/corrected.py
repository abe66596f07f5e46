"""A model with a residual: the same statics, with section tips moved by learned corrections."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from softarm_ros.geometry.arrays import Array, real_rows
from softarm_ros.geometry.rotation_kernels import stumpff
from softarm_ros.geometry.rotations import exp_so3, hat
from softarm_ros.models.actuation_range import bounds_of
from softarm_ros.models.arm_model import ZERO3, ArmModel, InverseSolution, Shape, Vector3
from softarm_ros.models.inverse import End, Outcome, PoseTarget, find_pose, pose_target
from softarm_ros.models.posture import PlainPostures
from softarm_ros.models.residual import Residual, corrected
from softarm_ros.models.stepped_search import Place, SteppedProblem

_ROUNDS = 20
_REACHED = 1e-7  # of the arm's length


class _TurnedTip(SteppedProblem):
    """Search for the actuation (m,) that brings the corrected tip to a pose."""

    def __init__(self, model: CorrectedModel, orientation: Array, tip_force: Vector3) -> None:
        self._model, self._orientation, self._force = model, orientation, tip_force
        physics = model.physics
        rest = physics.actuation_of(physics.rest_configuration)
        gain = float(np.linalg.norm(physics.jacobian(rest)[:3], 2))
        self.scale = np.full(len(rest), physics.rest_length_m / gain)
        self.max_step = 0.25 * self.scale
        self.ranges = (bounds_of(getattr(physics, 'within', None), len(rest)),)

    def starts(self, target: PoseTarget) -> Iterable[Array]:
        """Return where the physics model comes nearest to the pose, and to the position alone."""
        for turn in (self._orientation, None):
            yield self._model.physics.inverse(
                target.position, turn, tip_force=self._force
            ).actuation

    def look(self, unknowns: Array, near: Place | None) -> Place:
        """Return the place at an actuation (m,)."""
        tip = self._model.forward(unknowns, self._force).tip
        return Place(unknowns, tip, lambda: self._model.jacobian(unknowns))

    def effort(self, end: End) -> float:
        """Return 0: the first start that leads to the pose is used."""
        return 0.0

    def outcome(self, end: End) -> Outcome:
        """Return the actuation and the shape of an end."""
        return Outcome(end.unknowns, self._model.forward(end.unknowns, self._force))

    def limits_met(self, end: End) -> list[str]:
        """Return nothing: the physics model states its limits."""
        return []


class CorrectedModel(PlainPostures):
    """
    Implements `ArmModel` with another model's statics and corrected shapes.

    A model keeps no memory, so the corrections are those of commands held for long. They were
    learned without load but are applied under load as well.
    """

    def __init__(self, model: ArmModel, residual: Residual) -> None:
        self.physics, self.residual = model, residual
        self.name = model.name

    def __getattr__(self, name: str) -> Any:
        """Return an attribute that corrections do not change: names, sizes, statics."""
        if name in ('physics', 'residual') or name.startswith('__'):
            raise AttributeError(name)
        return getattr(self.physics, name)

    @property
    def rest_configuration(self) -> Array:
        """Rest configuration (dof,) of the physics model."""
        return self.physics.rest_configuration

    def preferred_configuration(self, configuration: Array) -> Array:
        """Return the preferred configuration (dof,) of the physics model."""
        return self.physics.preferred_configuration(configuration)

    def actuation_of(self, configuration: Array) -> Array:
        """Return the actuation (m,) of the physics model."""
        return self.physics.actuation_of(configuration)

    def actuation_jacobian(self, configuration: Array) -> Array:
        """Return d actuation / d configuration (m, dof) of the physics model."""
        return self.physics.actuation_jacobian(configuration)

    def forward(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """Return the corrected shape; raises the same errors as the physics model."""
        shape = self.physics.forward(actuation, tip_force, tip_moment)
        return self._moved(shape, np.asarray(actuation, dtype=float))

    def shape_of(self, configuration: Array) -> Shape:
        """Return the corrected shape of a configuration (dof,)."""
        shape = self.physics.shape_of(configuration)
        return self._moved(shape, self.physics.actuation_of(configuration))

    def tips_of(self, configurations: Array) -> Array:
        """Return the corrected tips (n, 3) [m] of configurations (n, dof)."""
        rows = real_rows(configurations, 'configurations', len(self.configuration_names))
        moves = [self.residual.settled(self.physics.actuation_of(row))[-1, :3] for row in rows]
        return self.physics.tips_of(rows) + np.array(moves).reshape(-1, 3)

    def tip_and_jacobian(self, configuration: Array) -> tuple[Array, Array]:
        """Return the corrected tip (3,) [m] and its derivative (3, dof)."""
        tip, jacobian = self.physics.tip_and_jacobian(configuration)
        command = self.physics.actuation_of(configuration)
        slope = self._correction_slope(configuration, command)
        return tip + self.residual.settled(command)[-1, :3], jacobian + slope

    def _correction_slope(self, configuration: Array, actuation: Array) -> Array:
        """Return the derivative (3, dof) of the correction of the tip."""
        slope = self.residual.settled_slope(actuation)[-1, :3]
        return np.asarray(slope @ self.physics.actuation_jacobian(configuration))

    def jacobian(self, actuation: Array) -> Array:
        """Return the tip twist per actuation (6, m)."""
        twist = self.physics.jacobian(actuation)
        slope = self.residual.settled_slope(actuation)[-1]
        turn = self.residual.settled(actuation)[-1, 3:]
        angular = exp_so3(turn) @ twist[3:] + _turning(turn) @ slope[3:]
        return np.vstack([twist[:3] + slope[:3], angular])

    def inverse(
        self,
        position: Vector3,
        orientation: Array | None = None,
        guess: Array | None = None,
        tip_force: Vector3 = ZERO3,
    ) -> InverseSolution:
        """
        Return the actuation that brings the corrected tip to a position and an orientation.

        For a position (3,) [m], the search of the physics model is repeated, each time with the
        goal that a Newton step of the corrected tip leads to: the physics model may reach it even
        if it cannot reach the position. With an orientation (3, 3), the corrected model itself is
        searched. `converged` only if the corrected tip reaches the target; otherwise the nearest
        of the solutions is returned.
        """
        if orientation is not None:
            return self._inverse_of_pose(position, orientation, guess, tip_force)
        goal = np.asarray(position, dtype=float)
        aim, limit = goal, _REACHED * self.physics.rest_length_m
        nearest: InverseSolution | None = None
        for _ in range(_ROUNDS):
            solution = self.physics.inverse(aim, orientation, guess, tip_force)
            shape = self._moved(solution.shape, solution.actuation)
            distance = float(np.linalg.norm(goal - shape.tip[:3, 3]))
            if nearest is None or distance < nearest.residual:
                there = solution.converged and distance < max(10.0 * limit, solution.residual)
                message = '' if there else f'corrected tip {1e3 * distance:.3f} mm from the target'
                message = '; physics model: '.join(filter(None, [message, solution.message]))
                nearest = replace(
                    solution, shape=shape, residual=distance, converged=there, message=message
                )
            elif not solution.converged:
                break
            if distance < limit:
                break
            q = shape.configuration
            _, plain = self.physics.tip_and_jacobian(q)
            slope = plain + self._correction_slope(q, self.physics.actuation_of(q))
            way = plain @ np.linalg.pinv(slope) @ (goal - shape.tip[:3, 3])
            shifted = solution.shape.tip[:3, 3] + way
            if np.linalg.norm(shifted - aim) < limit:
                break
            aim, guess = shifted, solution.actuation
        assert nearest is not None
        return nearest

    def _inverse_of_pose(
        self, position: Vector3, orientation: Array, guess: Array | None, tip_force: Vector3
    ) -> InverseSolution:
        """Return the actuation for a pose of the corrected tip, within the physics' limits."""
        target = pose_target(position, orientation, self.physics.rest_length_m)
        problem = _TurnedTip(self, orientation, tip_force)
        start = None
        if guess is not None:
            self.physics.configuration_of(guess)  # refuses what is not an actuation
            start = np.asarray(guess, dtype=float)
        found = find_pose(problem, target, start)
        # The physics model checks its limits, which the search does not know.
        tip = self.physics.forward(found.actuation, tip_force).tip
        checked = self.physics.inverse(tip[:3, 3], tip[:3, :3], found.actuation, tip_force)
        shape = self._moved(checked.shape, checked.actuation)
        left = float(np.linalg.norm(target.miss_of(shape.tip)))
        there = checked.converged and left <= target.tolerance_m
        message = '' if there else '; '.join(filter(None, [found.message, checked.message]))
        return InverseSolution(checked.actuation, shape, left, there, message)

    def _moved(self, shape: Shape, actuation: Array) -> Shape:
        """Return the shape with corrected section tips and a centreline that moves with them."""
        errors = self.residual.settled(actuation)
        tips = corrected(shape.section_tips, errors)
        knots = np.linspace(0.0, 1.0, len(tips) + 1)
        moves = np.vstack([np.zeros(3), errors[:, :3]])
        tip = corrected(shape.tip[None], errors[-1:])[0]
        sample = partial(_moved_centerline, shape, knots, moves)
        return Shape(tip, tips, shape.configuration, sample)


def _turning(turn: Array) -> Array:
    """Return the angular velocity per rate of a rotation vector (3, 3): left Jacobian of SO(3)."""
    _, c2, c3, _ = stumpff(float(turn @ turn))
    spin = hat(turn)
    return np.asarray(np.eye(3) + c2 * spin + c3 * spin @ spin)


def _moved_centerline(shape: Shape, knots: Array, moves: Array, n: int) -> Array:
    at = np.linspace(0.0, 1.0, n)
    move = np.stack([np.interp(at, knots, column) for column in moves.T], axis=1)
    return shape.centerline(n) + move
