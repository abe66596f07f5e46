"""What an arm of muscles needs to know of the statics of its backbone."""

from __future__ import annotations

from typing import Any, Protocol

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import Shape, Vector3


class MuscleState(Protocol):
    """Equilibrium of a backbone with muscles."""

    @property
    def positions(self) -> Array:
        """Points (n, 3) [m] of the backbone from base to tip, base frame."""
        ...

    @property
    def tip(self) -> Array:
        """Pose (4, 4) [m] of the tip, base frame."""
        ...

    @property
    def lengths(self) -> Array:
        """Actual lengths (3 modules,) [m] of the muscles."""
        ...

    @property
    def tensions(self) -> Array:
        """Forces (3 modules,) [N] of the muscles, positive pulling."""
        ...


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
