"""What an arm of muscles needs to know of the statics of its backbone."""

from __future__ import annotations

from typing import Any, Protocol

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import Shape, Vector3


class MuscleState(Protocol):
    """
    Equilibrium of a backbone with muscles.

    Attributes
    ----------
    positions : (n, 3)
        Points [m] of the backbone from base to tip, base frame.
    tip : (4, 4)
        Pose of the tip, base frame [m].
    lengths, tensions : (3 modules,)
        Actual lengths [m] of the muscles, and their forces [N], positive pulling.

    """

    @property
    def positions(self) -> Array: ...  # noqa: D102

    @property
    def tip(self) -> Array: ...  # noqa: D102

    @property
    def lengths(self) -> Array: ...  # noqa: D102

    @property
    def tensions(self) -> Array: ...  # noqa: D102


class MuscleStatics(Protocol):
    """Equilibria of a backbone with muscles; a state is one that `equilibrium` returned."""

    def equilibrium(self, lengths: Array, tip_force: Vector3 = ..., guess: Any = None) -> Any:
        """
        Return the `MuscleState` under commanded lengths (modules, 3) [m] and a tip load [N].

        `guess` is a neighbouring state to start from.

        Raises
        ------
        ModelError
            If no stable equilibrium is found.

        """
        ...

    def jacobian(self, state: Any) -> Array:
        """Return the tip twist per length (6, 3 modules), base frame, linear rows first."""
        ...

    def shape(self, state: Any, lengths: Array) -> Shape:
        """Return the shape of a state under commanded lengths (3 modules,) [m]."""
        ...
