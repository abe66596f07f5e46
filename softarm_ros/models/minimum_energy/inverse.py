"""Inverse model of an arm of parallel muscles: muscle lengths within limits for a tip pose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.actuation_range import ActuationRange
from softarm_ros.models.arm_model import ModelError, Vector3
from softarm_ros.models.inverse import TOLERANCE, End, Outcome, PoseTarget, values_at_limits
from softarm_ros.models.minimum_energy.muscles import (
    clamp_lengths,
    muscle_anchors,
    muscle_lengths,
)
from softarm_ros.models.minimum_energy.rod import RodEquilibrium, node_poses
from softarm_ros.models.stepped_search import Place, SteppedProblem

if TYPE_CHECKING:
    from softarm_ros.models.minimum_energy.arm import MinimumEnergyArm
    from softarm_ros.models.minimum_energy.config import ParallelModulesConfig
    from softarm_ros.models.minimum_energy.statics import MuscleState


def commands_of_held(held: RodEquilibrium, config: ParallelModulesConfig) -> Array:
    """
    Return the commands (3 modules,) [m] that bend a rod approximately as a force at its tip does.

    For linear springs they are the lengths of the muscles on the rod. For gas springs the muscles
    produce the moment of that force in the middle of each module; their common pull corresponds to
    a pressure halfway between vacuum and supply.
    """
    law, anchors = config.gas_springs, muscle_anchors(config)
    lengths = muscle_lengths(held, config, anchors)
    if law is None:
        return lengths
    stride = (len(held.nodes) - 1) // config.modules
    middle = np.arange(config.modules) * stride + stride // 2
    poses = node_poses(held.nodes[middle], held.positions[middle])
    lever, force = held.positions[-1] - poses[:, :3, 3], held.tip_wrench[:3]
    moment = lever[:, [1, 2, 0]] * force[[2, 0, 1]] - lever[:, [2, 0, 1]] * force[[1, 2, 0]]
    local = np.einsum('tji,tj->ti', poses[:, :3, :3], moment)
    turned = local[:, :1] * anchors[:, :, 1] - local[:, 1:2] * anchors[:, :, 0]
    share = 2.0 / (3.0 * config.anchor_radius_m**2) * turned.ravel()
    return law.free(law.middle_pull(lengths.mean(keepdims=True)) - share, lengths)


class LengthProblem(SteppedProblem):
    """
    Search for commanded lengths (3 modules,) [m] with the least changes from the held rod's.

    The search keeps to the range `within`; without one, to the limits of the actuators and then to
    those of the muscles.
    """

    def __init__(
        self, arm: MinimumEnergyArm, tip_force: Vector3, within: ActuationRange | None = None
    ) -> None:
        self._arm, self._tip_force = arm, tip_force
        config, count = arm.modules, 3 * arm.modules.modules
        self.scale = arm.configuration_scale
        self.max_step = np.full(count, np.inf)
        if within is not None:
            self.ranges: tuple[tuple[Array, Array], ...] = ((within.low, within.high),)
            return
        self.ranges = tuple(
            (np.full(count, low), np.full(count, high))
            for low, high in (arm.commands_m, config.command_range_m)
        )

    def starts(self, target: PoseTarget) -> Iterable[Array]:
        """Return the lengths of the rod held only at its tip, or those of the straight arm."""
        arm = self._arm
        if float(np.linalg.norm(target.position)) >= arm.rest_length_m:  # beyond the rod's length
            return [arm.rest_configuration]
        orientation = target.rotation if target.with_orientation else None
        held = arm.rod.reach(target.position, orientation, self._tip_force)
        if held.converged:
            return [clamp_lengths(commands_of_held(held, arm.modules), arm.modules)[0]]
        return [arm.rest_configuration]

    def ranges_from(self, near: bool) -> tuple[tuple[Array, Array], ...]:
        """Return the limits of the actuators only for a guess; the held rod may reach further."""
        return self.ranges[:1] if near else self.ranges

    def look(self, unknowns: Array, near: Place | None) -> Place:
        """Return the place at lengths (3 modules,) [m]."""
        arm, force = self._arm, self._tip_force
        state = arm.equilibrium(unknowns, force, None if near is None else near.state)
        return Place(unknowns, state.tip, lambda: arm.statics.jacobian(state), state=state)

    def effort(self, end: End) -> float:
        """Return 0: with a single start there is nothing to compare."""
        return 0.0

    def outcome(self, end: End) -> Outcome:
        """
        Return the shape that the arm takes by itself under the lengths.

        It is refused if its tip is not the one the search followed, or if a muscle would have to
        pull too hard.
        """
        arm, lengths = self._arm, end.unknowns
        followed: MuscleState = end.place.state
        try:
            alone = arm.equilibrium(lengths, self._tip_force)
        except ModelError as error:
            return Outcome(lengths, arm.statics.shape(followed, lengths), str(error))
        shape = arm.statics.shape(alone, lengths)
        apart = float(np.linalg.norm(alone.positions[-1] - followed.positions[-1]))
        if apart > TOLERANCE * arm.rest_length_m:
            snaps = f'the arm takes a shape whose tip is {1e3 * apart:.1f} mm off'
            return Outcome(lengths, shape, f'under these lengths {snaps}')
        return Outcome(lengths, shape, self._overload(alone))

    def limits_met(self, end: End) -> list[str]:
        """Return texts of the muscles at their shortest or longest length."""
        names = self._arm.actuator_names
        return values_at_limits(names, end.unknowns, self.ranges[-1], 'mm', 1e3)

    def _overload(self, state: MuscleState) -> str:
        """Return a text of the muscles that would have to pull harder than they can, or ''."""
        limit = self._arm.modules.max_pull_N
        if not (state.tensions > limit).any():
            return ''
        return '; '.join(
            f'{name} would have to pull {tension:.1f} N, {limit:g} N at most'
            for name, tension in zip(self._arm.actuator_names, state.tensions)
            if tension > limit
        )
