"""Arm of parallel muscle modules on an elastic backbone: muscle lengths <-> shape."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from softarm_ros.geometry.arrays import Array, finite_array, real_array, real_rows
from softarm_ros.models.actuation_range import ActuationRange
from softarm_ros.models.arm_model import (
    ZERO3,
    InverseSolution,
    ModelError,
    Posture,
    Shape,
    Vector3,
)
from softarm_ros.models.inverse import find_pose, pose_target
from softarm_ros.models.minimum_energy.config import BackboneConfig, ParallelModulesConfig
from softarm_ros.models.minimum_energy.inverse import LengthProblem, commands_of_held
from softarm_ros.models.minimum_energy.muscled_rod import MuscledRod
from softarm_ros.models.minimum_energy.muscles import (
    muscle_lengths,
    muscle_names,
)
from softarm_ros.models.minimum_energy.rod import RodEquilibrium
from softarm_ros.models.minimum_energy.statics import MuscleState, MuscleStatics
from softarm_ros.models.posture import PlainPosture

_STRETCHED = 1e-6  # of the length: a straighter held rod has no direction in which to bend


@dataclass(frozen=True)
class MusclePosture(PlainPosture):
    """A `PlainPosture` that solves its equilibrium once."""

    model: MinimumEnergyArm

    @cached_property
    def _equilibrium(self) -> MuscleState:
        return self.model.equilibrium(self.configuration)

    @cached_property
    def _tip_and_jacobian(self) -> tuple[Array, Array]:
        return self.tip, self.model.statics.jacobian(self._equilibrium)[:3]

    @cached_property
    def tip(self) -> Array:
        """Tip position (3,) [m], without the Jacobian: an approach needs none."""
        return self._equilibrium.positions[-1].copy()

    @cached_property
    def section_tips(self) -> Array:
        """Poses of all module disks (modules, 4, 4) [m]."""
        return self.model.statics.shape(self._equilibrium, self.configuration).section_tips

    @cached_property
    def preferred(self) -> Array:
        """Configuration (dof,) that the tracker's null space pulls to from here."""
        return self.model.preferred_from(self.tip, self.configuration)


class MinimumEnergyArm:
    """
    Arm whose muscles are springs of commanded rest length around an elastic backbone.

    Implements `ArmModel`; actuation and configuration are both the commanded lengths (3 modules,)
    [m], module by module from the base. The backbone takes the shape of least total energy: its
    elastic energy, that of weight and tip load, and that of every muscle, which is
    k (l - l_commanded)^2 / 2 for linear springs.

    The paper commands the lengths of a rod held only at its tip (`lengths_of_held_tip`). Muscles
    cannot exert that wrench exactly: a module has three forces for six components. `inverse`
    starts from these lengths and corrects them until this forward model reaches the target.
    """

    name: str = 'minimum_energy'

    def __init__(
        self,
        backbone: BackboneConfig,
        modules: ParallelModulesConfig,
        intervals: int = 40,
        gravity: Vector3 = (0.0, 0.0, 9.81),
        tip_load_kg: float = 0.0,
        commands_m: tuple[float, float] | None = None,
        within: ActuationRange | None = None,
    ) -> None:
        self.within = within
        self.modules = modules
        self.commands_m = commands_m or modules.command_range_m
        self.muscled = MuscledRod(backbone, modules, intervals, gravity, tip_load_kg)
        self.statics: MuscleStatics = self.muscled
        self.rod = self.muscled.rod
        self._command_range_m = modules.command_range_m

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of the muscles, three per module from base to tip."""
        return muscle_names(self.modules.modules)

    @property
    def configuration_names(self) -> tuple[str, ...]:
        """Names of the muscles: configuration and actuation are the same."""
        return self.actuator_names

    @property
    def rest_length_m(self) -> float:
        """Length of the backbone [m]."""
        return self.rod.backbone.length_m

    @property
    def rest_configuration(self) -> Array:
        """Commanded lengths (3 modules,) [m] of the straight arm, within the limits."""
        return np.full(3 * self.modules.modules, self.neutral_command())

    @property
    def configuration_scale(self) -> Array:
        """
        Scale (3 modules,) [m] of each muscle: 3/2 of the anchor radius.

        A muscle of the base module that shortens by d rotates the arm by d / (3/2 radius).
        """
        return np.full(3 * self.modules.modules, 1.5 * self.modules.anchor_radius_m)

    def preferred_configuration(self, configuration: Array) -> Array:
        """
        Return lengths (3 modules,) [m] with the same tip that depend on the tip alone.

        They are the lengths of the rod held at its tip, corrected as in `inverse`, so muscles do
        not pull against each other. If that search fails, the configuration itself is returned.
        """
        return self.preferred_from(self.equilibrium(configuration).positions[-1], configuration)

    def preferred_from(self, tip: Array, configuration: Array) -> Array:
        """Return `preferred_configuration` from a solved tip (3,) [m]."""
        if np.linalg.norm(tip) >= (1.0 - _STRETCHED) * self.rest_length_m:
            return self.rest_configuration
        # Not a command, so the range of the actuators does not apply.
        target = pose_target(tip, None, self.rest_length_m)
        solution = find_pose(LengthProblem(self, ZERO3), target)
        arrived = solution.residual <= _STRETCHED * self.rest_length_m
        return solution.actuation if arrived else np.array(configuration, dtype=np.float64)

    def observed_configuration(self, section_tips: Array) -> Array | None:
        """Return None: the muscle lengths do not follow from disk poses."""
        return None

    def equilibrium(
        self,
        actuation: Array,
        tip_force: Vector3 = ZERO3,
        guess: MuscleState | None = None,
    ) -> MuscleState:
        """
        Return the equilibrium under commanded lengths (3 modules,) [m] and a tip load [N].

        `guess` is a neighbouring equilibrium to start from.

        Raises
        ------
        ValueError
            For a wrong shape or a value that is not finite.
        ModelError
            For a length beyond the limits, or if no equilibrium is found.

        """
        return self.statics.equilibrium(self.checked_lengths(actuation), tip_force, guess)

    def forward(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """
        Return the shape under commanded lengths (3 modules,) [m] and a force at the tip [N].

        Raises
        ------
        ValueError, ModelError
            As `equilibrium`; also for a length outside the range of its actuator, and for a moment
            at the tip, which has no potential.

        """
        if np.any(finite_array(tip_moment, (3,), 'tip_moment')):
            raise ModelError(
                f'tip_moment = {np.asarray(tip_moment).tolist()}: the minimum-energy model takes '
                f'forces only, a moment fixed in space has no potential energy'
            )
        state = self.equilibrium(self._commanded(actuation), tip_force)
        return self.statics.shape(state, np.array(actuation))

    def inverse(
        self,
        position: Vector3,
        orientation: Array | None = None,
        guess: Array | None = None,
        tip_force: Vector3 = ZERO3,
    ) -> InverseSolution:
        """
        Return muscle lengths that bring the tip to a position (3,) [m] and optional orientation.

        The search starts from the lengths of the rod held only at its tip, or from `guess`, and
        removes the remaining error with the smallest changes of length. It keeps to the limits of
        the actuators; without a range (`within`) it may then go on to the limits of the muscles.
        `converged` is False, with the reason in the message, if an error remains or a muscle would
        have to pull too hard.

        Raises
        ------
        ValueError
            As `MinimumEnergyRod.reach`.

        """
        target = pose_target(position, orientation, self.rest_length_m)
        start = None if guess is None else self.checked_lengths(guess).ravel()
        return find_pose(LengthProblem(self, tip_force, self.within), target, start, self.within)

    def jacobian(self, actuation: Array, tip_force: Vector3 = ZERO3) -> Array:
        """Return the tip twist per length (6, 3 modules), base frame, linear rows first."""
        state = self.equilibrium(self._commanded(actuation), tip_force)
        return self.statics.jacobian(state)

    def shape_of(self, configuration: Array) -> Shape:
        """Return the shape without tip load under lengths (3 modules,) [m]."""
        return self.statics.shape(self.equilibrium(configuration), np.array(configuration))

    def tips_of(self, configurations: Array) -> Array:
        """Return the tip positions (n, 3) [m] under many lengths (n, 3 modules) [m]."""
        rows = real_rows(configurations, 'configurations', len(self.actuator_names))
        tips = [self.equilibrium(lengths).positions[-1] for lengths in rows]
        return np.array(tips).reshape(-1, 3)

    def tip_and_jacobian(self, configuration: Array) -> tuple[Array, Array]:
        """Return the tip position (3,) [m] and its derivative (3, 3 modules) by the lengths."""
        state = self.equilibrium(configuration)
        return state.positions[-1].copy(), self.statics.jacobian(state)[:3]

    def muscle_tensions(self, actuation: Array) -> Array:
        """
        Return the muscle forces (3 modules,) [N], positive pulling, under commanded lengths.

        Forces beyond the largest pull of a muscle, in either direction, are clipped to it.
        """
        limit = self.modules.max_pull_N
        return np.clip(self.equilibrium(actuation).tensions, -limit, limit)

    def actuation_of(self, configuration: Array) -> Array:
        """Return the configuration: both are the commanded lengths [m]."""
        return self.checked_lengths(configuration).ravel()

    def actuation_jacobian(self, configuration: Array) -> Array:
        """Return the identity (3 modules, 3 modules)."""
        return np.eye(self.checked_lengths(configuration).size)

    def configuration_of(self, actuation: Array) -> Array:
        """Return the actuation: both are the commanded lengths [m]."""
        return self.checked_lengths(actuation).ravel()

    def lengths_of_held_tip(
        self,
        position: Vector3,
        orientation: Array | None = None,
        tip_force: Vector3 = ZERO3,
        guess: RodEquilibrium | None = None,
    ) -> tuple[Array, RodEquilibrium]:
        """Return the paper's open-loop lengths [m]: those of the rod held only at its tip."""
        rod = self.rod.reach(position, orientation, tip_force, guess)
        return muscle_lengths(rod, self.modules), rod

    def commands_of_held_tip(
        self,
        position: Vector3,
        tip_force: Vector3 = ZERO3,
        guess: RodEquilibrium | None = None,
    ) -> tuple[Array, RodEquilibrium]:
        """Return commands (3 modules,) [m] for nearly the rod held at its tip, and the rod."""
        rod = self.rod.reach(position, None, tip_force, guess)
        return commands_of_held(rod, self.modules), rod

    def _commanded(self, actuation: Array) -> Array:
        """Return the lengths (3 modules,) [m], checked against the range of the actuators."""
        lengths = self.checked_lengths(actuation).ravel()
        if self.within is not None:
            self.within.check(lengths)
        return lengths

    def checked_lengths(self, actuation: Array) -> Array:
        """Return the lengths (modules, 3) [m]; raise for a wrong shape or a length off limits."""
        config = self.modules
        lengths = real_array(actuation, 'actuation')
        if lengths.shape != (3 * config.modules,):
            raise ValueError(
                f'actuation has shape {lengths.shape}, expected ({3 * config.modules},)'
            )
        slack, (low, high) = 1e-12, self._command_range_m
        inside = (low - slack <= lengths) & (lengths <= high + slack)  # false for NaN
        if inside.all():
            return lengths.reshape(config.modules, 3)
        for name, value in zip(self.actuator_names, lengths):
            if not low - slack <= value <= high + slack:  # true for NaN too
                raise ModelError(
                    f'{name}: length {value:.6g} m is outside {low:.6g} to {high:.6g} m'
                )
        return lengths.reshape(config.modules, 3)

    def neutral_length(self) -> float:
        """Return the length [m] of a muscle in the straight arm, within the limits."""
        config = self.modules
        neutral = self.rest_length_m / config.modules
        return min(max(neutral, config.min_length_m), config.max_length_m)

    def neutral_command(self) -> float:
        """Return the command [m] at which the muscles of the straight arm are vented."""
        law, length = self.modules.gas_springs, self.neutral_length()
        return length if law is None else float(law.vented(length))

    def posture_of(self, configuration: Array, near: Posture | None = None) -> Posture:
        """Return the posture under lengths (3 modules,) [m]."""
        return MusclePosture(self, np.array(configuration, dtype=float))
