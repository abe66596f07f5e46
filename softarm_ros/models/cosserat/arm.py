"""The Cosserat rod as an arm model: actuation is cable tension [N]."""

from __future__ import annotations

from softarm_ros.geometry.arrays import Array, finite_array
from softarm_ros.models.arm_model import ZERO3, InverseSolution, ModelError, Shape, Vector3
from softarm_ros.models.cosserat.config import CosseratConfig
from softarm_ros.models.cosserat.inverse import (
    LeastTensions,
    TensionSolution,
    tensions_of_lengths,
)
from softarm_ros.models.cosserat.rod import CosseratRod
from softarm_ros.models.cosserat.shape import shape_of_state
from softarm_ros.models.cosserat.state import RodState
from softarm_ros.models.inverse import find_pose, pose_target


class CosseratArm:
    """
    Forward, inverse, Jacobian and centreline of `ArmModel`, for any `CosseratConfig`.

    A rod has no finite set of configuration coordinates from which its shape follows without
    the loads; the configuration-space methods of `ArmModel` therefore do not exist here.
    `Shape.configuration` holds the rotation vector [rad] of every segment's tip against its base.

    Only stable equilibria are returned; everything else raises `ModelError`.
    """

    name = 'cosserat_rod'

    def __init__(self, config: CosseratConfig) -> None:
        self.config = config
        self.rod = CosseratRod(config)

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of the cables."""
        return tuple(cable.name for cable in self.config.cables)

    @property
    def configuration_names(self) -> tuple[str, ...]:
        """Names of the entries of `Shape.configuration`."""
        return tuple(f'{s.name}_turn_{axis}' for s in self.config.segments for axis in 'xyz')

    @property
    def rest_length_m(self) -> float:
        """Length of the arm at rest, base to tip [m]."""
        return self.rod.rest_length_m

    def forward(
        self,
        actuation: Array,
        tip_force: Vector3 = ZERO3,
        tip_moment: Vector3 = ZERO3,
    ) -> Shape:
        """Return the shape of `equilibrium`; its configuration holds the segments' rotations."""
        return shape_of_state(self.equilibrium(actuation, tip_force, tip_moment))

    def equilibrium(
        self,
        actuation: Array,
        tip_force: Vector3 = ZERO3,
        tip_moment: Vector3 = ZERO3,
    ) -> RodState:
        """
        Return the stable state under tensions (cables,) [N] and a load at the tip, base frame.

        Raises
        ------
        ModelError
            If a tension is out of limits, or if there is no equilibrium or only an unstable one.

        """
        state = self.rod.solve(actuation, tip_force, tip_moment)
        if not state.stable:
            raise ModelError(
                f'tensions {_values(actuation)} N, tip force {_values(tip_force)} N, '
                f'tip moment {_values(tip_moment)} N m: {state.message}'
            )
        return state

    def inverse(
        self,
        position: Vector3,
        orientation: Array | None = None,
        guess: Array | None = None,
        tip_force: Vector3 = ZERO3,
    ) -> InverseSolution:
        """Return the least-norm tensions for a tip position (3,) [m] and optional rotation."""
        target = pose_target(position, orientation, self.rest_length_m)
        start = None if guess is None else finite_array(guess, (len(self.config.cables),), 'guess')
        return find_pose(LeastTensions(self.rod, tip_force), target, start)

    def forward_lengths(
        self,
        contractions: Array,
        guess: Array | None = None,
        tip_force: Vector3 = ZERO3,
        tip_moment: Vector3 = ZERO3,
    ) -> InverseSolution:
        """Return tensions and shape for cables wound up by (cables,) [m]; some may be slack."""
        return _inverse_solution(
            tensions_of_lengths(self.rod, contractions, guess, tip_force, tip_moment)
        )

    def jacobian(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Array:
        """Return the tip twist per tension (6, cables) [m/N, rad/N], base frame."""
        self.forward(actuation, tip_force, tip_moment)
        return self.rod.derivatives().tip_by_tension

    def compliance(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Array:
        """Return the tip twist per tip force and moment (6, 6), base frame."""
        self.forward(actuation, tip_force, tip_moment)
        return self.rod.derivatives().compliance


def _inverse_solution(solution: TensionSolution) -> InverseSolution:
    return InverseSolution(
        solution.tensions,
        shape_of_state(solution.state),
        solution.residual,
        solution.converged,
        solution.message,
    )


def _values(vector: Vector3) -> str:
    return '[' + ', '.join(f'{float(value):.6g}' for value in vector) + ']'
