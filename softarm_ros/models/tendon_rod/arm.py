"""Common base of tendon-driven rod models: the tensions are configuration and actuation."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from softarm_ros.geometry.arrays import Array, real_array, real_rows
from softarm_ros.models.arm_model import (
    ZERO3,
    InverseSolution,
    ModelError,
    Posture,
    Shape,
    Vector3,
)
from softarm_ros.models.cosserat.config import CosseratConfig
from softarm_ros.models.inverse import find_pose, pose_target
from softarm_ros.models.tendon_rod.inverse import TensionProblem
from softarm_ros.models.tendon_rod.solved_tip import SolvedTip, TensionPosture
from softarm_ros.models.tendon_rod.tension_choice import easiest_tensions

ROUNDING_N = 1e-6  # margin for a tension outside its range: rounding of sums


class TendonRodModel(ABC):
    """
    `ArmModel` of a rod whose shape follows from the tensions of its cables.

    The statics cannot be split into a shape and the tensions that hold it, because weight bends
    the arm in every pose. So the configuration is the actuation: tensions (cables,) [N].

    Parameters
    ----------
    config
        Segments, cables with their largest tensions, gravity.
    pretension_N : float
        Least tension of every cable in the inverse and in the preferred configuration.

    Raises
    ------
    ModelError
        If there is no cable, no cable moves the tip, or the pretension is not below the largest
        tension of a cable.

    """

    name: str

    def __init__(self, config: CosseratConfig, pretension_N: float) -> None:
        if not config.cables:
            raise ModelError('cables: a tendon-driven rod needs at least one')
        self.config = config
        self.max_tension_N = np.array([cable.max_tension_N for cable in config.cables])
        for cable in config.cables:
            if not 0.0 <= pretension_N < cable.max_tension_N:
                raise ModelError(
                    f'pretension_N = {pretension_N:g}; expected 0 to below the largest tension '
                    f'of {cable.name}, {cable.max_tension_N:g} N'
                )
        self.pretension_N = np.full(len(config.cables), float(pretension_N))
        twist = self.solve_tip(self.pretension_N, ZERO3).twist
        gain = float(np.max(np.linalg.norm(twist[:3], axis=0)))
        if gain == 0.0:
            raise ModelError('no cable moves the tip')
        self._scale = np.full(len(config.cables), self.rest_length_m / gain)

    # -- methods of the subclasses ----------------------------------------------------------

    @abstractmethod
    def forward(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """Return the static shape under tensions (cables,) [N] and a load at the tip [N, N m]."""

    @abstractmethod
    def solve_tip(
        self, tensions: Array, tip_force: Vector3, near: SolvedTip | None = None
    ) -> SolvedTip:
        """Return the tip under tensions (cables,) [N]; `near` is a tip under similar tensions."""

    def section_tips_near(self, tensions: Array, solved: SolvedTip) -> Array:
        """Return the section tips (sections, 4, 4) under tensions with a solved tip."""
        return self.shape_of(tensions).section_tips

    # -- methods common to all models -------------------------------------------------------

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of the cables."""
        return tuple(cable.name for cable in self.config.cables)

    @property
    def configuration_names(self) -> tuple[str, ...]:
        """Names of the tensions."""
        return tuple(f'{cable.name}_tension' for cable in self.config.cables)

    @property
    def rest_length_m(self) -> float:
        """Length of the unloaded arm with its connectors [m]."""
        return sum(s.length_m + s.connector.length_m for s in self.config.segments)

    @property
    def rest_configuration(self) -> Array:
        """Pretension (cables,) [N] in every cable."""
        return self.pretension_N.copy()

    @property
    def configuration_scale(self) -> Array:
        """Tension (cables,) [N] at which the most effective cable moves the tip by the length."""
        return self._scale.copy()

    def preferred_configuration(self, configuration: Array) -> Array:
        """Return the tensions (cables,) nearest to the pretension with the same tip."""
        tensions = self._within_range(configuration)
        return self.preferred_from(tensions, self.solve_tip(tensions, ZERO3))

    def preferred_from(self, tensions: Array, solved: SolvedTip) -> Array:
        """Return `preferred_configuration` from a solved tip."""
        gains = solved.twist[:3]
        return easiest_tensions(gains, tensions, self.pretension_N, self.max_tension_N)

    def posture_of(self, configuration: Array, near: Posture | None = None) -> Posture:
        """Return the posture under tensions (cables,) [N]; `near` is one under similar ones."""
        tensions = self._within_range(configuration)
        return TensionPosture(
            self, tensions, near.known if isinstance(near, TensionPosture) else None
        )

    def observed_configuration(self, section_tips: Array) -> Array | None:
        """Return None: poses do not determine tensions (antagonists may pull together)."""
        return None

    def inverse(
        self,
        position: Vector3,
        orientation: Array | None = None,
        guess: Array | None = None,
        tip_force: Vector3 = ZERO3,
    ) -> InverseSolution:
        """
        Return the tensions for a tip position (3,) [m] and optional rotation (3, 3).

        Among such tensions near the guess, the search approaches the least ones that keep the
        pretension (an arm that bends the other way may need less). If the target is out of reach
        with pretension, cables may be looser, down to 0 N. If it is still out of reach,
        `converged` is False and the tensions are those of the nearest point found.

        Raises
        ------
        ValueError
            If the target is not finite or the guess has the wrong shape.
        ModelError
            If there is no equilibrium to start from.

        """
        target = pose_target(position, orientation, self.rest_length_m)
        start = None if guess is None else self._guessed(guess)
        return find_pose(TensionProblem(self, tip_force), target, start)

    def jacobian(self, actuation: Array) -> Array:
        """Return the tip twist per tension (6, cables) [m/N, rad/N], base frame."""
        return self.solve_tip(self._within_range(actuation), ZERO3).twist

    def shape_of(self, configuration: Array) -> Shape:
        """Return the shape under tensions (cables,) [N]."""
        return self.forward(configuration)

    def tips_of(self, configurations: Array) -> Array:
        """Return the tip positions (n, 3) [m] under tensions (n, cables) [N]."""
        rows = real_rows(configurations, 'configurations', len(self.configuration_names))
        tips = [self.solve_tip(self._within_range(row), ZERO3).tip for row in rows]
        return np.array([tip[:3, 3] for tip in tips]).reshape(-1, 3)

    def tip_and_jacobian(self, configuration: Array) -> tuple[Array, Array]:
        """Return the tip position (3,) [m] and its derivative (3, cables) [m/N]."""
        solved = self.solve_tip(self._within_range(configuration), ZERO3)
        return solved.tip[:3, 3], solved.twist[:3]

    def actuation_of(self, configuration: Array) -> Array:
        """Return the tensions themselves (cables,) [N]."""
        return self._within_range(configuration)

    def actuation_jacobian(self, configuration: Array) -> Array:
        """Return the identity (cables, cables)."""
        return np.eye(len(self.config.cables))

    def configuration_of(self, actuation: Array) -> Array:
        """Return the tensions themselves (cables,) [N]."""
        return self._within_range(actuation)

    def _tensions(self, values: Array) -> Array:
        tensions = real_array(values, 'tensions')
        if tensions.shape != self.max_tension_N.shape:
            raise ValueError(
                f'tensions have shape {tensions.shape}; expected {self.max_tension_N.shape} for '
                f'{", ".join(self.actuator_names)}'
            )
        return tensions

    def _guessed(self, guess: Array) -> Array:
        """Return checked tensions (cables,) of a guess; the search clips them to their range."""
        tensions = self._tensions(guess)
        for name, tension in zip(self.actuator_names, tensions):
            if not math.isfinite(tension):
                raise ValueError(f'guess of {name} is {tension} N, expected a finite number')
        return tensions

    def _within_range(self, values: Array) -> Array:
        """
        Return the tensions (cables,) as a new array, with rounding errors clipped to the range.

        Raises
        ------
        ValueError
            If the number of tensions is wrong.
        ModelError
            If a tension is not finite or out of its range.

        """
        tensions = self._tensions(values)
        rounding = ROUNDING_N * np.maximum(1.0, self.max_tension_N)
        inside = (tensions >= -rounding) & (tensions <= self.max_tension_N + rounding)
        for i in np.flatnonzero(~inside):
            raise ModelError(
                f'tension of {self.actuator_names[i]} is {tensions[i]:.6g} N, allowed are 0 to '
                f'{self.max_tension_N[i]:g} N'
            )
        return np.clip(tensions, 0.0, self.max_tension_N)
