"""What all models of a tendon-driven rod share: the tensions are configuration and actuation."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from softarm_ros.geometry.arrays import Array, real_array
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

ROUNDING_N = 1e-6  # by how much a tension may leave its range: rounding of sums


class TendonRodModel(ABC):
    """
    `ArmModel` of a rod whose shape follows from the tensions of its cables.

    Statics cannot be split into a shape and what holds it (weight bends the arm wherever it is),
    so the configuration is the actuation: tensions (cables,) [N].

    Parameters
    ----------
    config
        Segments, cables with the largest tension of each, gravity.
    pretension_N : float
        Least tension of every cable that the inverse and the null space ask for.

    Raises
    ------
    ModelError
        If there is no cable, or the pretension is above a cable's largest tension.

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

    # -- what a model has to say ------------------------------------------------------------

    @abstractmethod
    def forward(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """Return the static shape under tensions (cables,) [N] and a load at the tip."""

    @abstractmethod
    def solve_tip(
        self, tensions: Array, tip_force: Vector3, near: SolvedTip | None = None
    ) -> SolvedTip:
        """Return the tip under tensions (cables,) [N], from that under similar ones if given."""

    def section_tips_near(self, tensions: Array, solved: SolvedTip) -> Array:
        """Return the section tips (sections, 4, 4) under tensions whose tip is solved."""
        return self.shape_of(tensions).section_tips

    # -- what follows from it ---------------------------------------------------------------

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
        """Tension (cables,) [N] that moves the tip by its length, at the best cable's gain."""
        return self._scale.copy()

    def preferred_configuration(self, configuration: Array) -> Array:
        """Return the tensions (cables,) of least size over the pretension with the same tip."""
        tensions = self._within_range(configuration)
        return self.preferred_from(tensions, self.solve_tip(tensions, ZERO3))

    def preferred_from(self, tensions: Array, solved: SolvedTip) -> Array:
        """Return `preferred_configuration` where the tip is solved already."""
        gains = solved.twist[:3]
        return easiest_tensions(gains, tensions, self.pretension_N, self.max_tension_N)

    def posture_of(self, configuration: Array, near: Posture | None = None) -> Posture:
        """Return the posture of tensions (cables,) [N], from that of similar ones if given."""
        tensions = self._within_range(configuration)
        return TensionPosture(
            self, tensions, near.known if isinstance(near, TensionPosture) else None
        )

    def observed_configuration(self, section_tips: Array) -> Array | None:
        """Return None: poses do not determine tensions (antagonists may pull each other)."""
        return None

    def inverse(
        self,
        position: Vector3,
        orientation: Array | None = None,
        guess: Array | None = None,
        tip_force: Vector3 = ZERO3,
    ) -> InverseSolution:
        """
        Return the tensions for a tip position (3,) [m] and maybe a rotation (3, 3).

        Of all such tensions near the guess, the least that keep the pretension are approached
        (an arm that bends the other way may do with less). Where the target is out of reach so,
        cables may be looser than the pretension, down to 0. What is out of reach even so is not
        converged; the tensions are then those of the nearest point found.

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
        """Return the shape for tensions (cables,) [N]."""
        return self.forward(configuration)

    def tips_of(self, configurations: Array) -> Array:
        """Return the tip positions (n, 3) [m] for tensions (n, cables)."""
        rows = np.atleast_2d(real_array(configurations, 'configurations'))
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
        """Return guessed tensions (cables,), which the search brings into their range."""
        tensions = self._tensions(guess)
        for name, tension in zip(self.actuator_names, tensions):
            if not math.isfinite(tension):
                raise ValueError(f'guess of {name} is {tension} N, expected a finite number')
        return tensions

    def _within_range(self, values: Array) -> Array:
        """
        Return tensions (cables,) as a new array, rounded into their range.

        Raises
        ------
        ValueError
            If the number of tensions is wrong.
        ModelError
            If one is not finite or out of its range.

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
