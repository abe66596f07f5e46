"""What muscles can pull and push at the lengths they are commanded to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import Posture

_ROUNDING_N = 0.01  # far below what muscles are known by


@runtime_checkable
class Pulled(Protocol):
    """A posture that knows the forces of its actuators."""

    @property
    def actuation(self) -> Array:
        """Actuation (m,)."""
        ...

    @property
    def tensions(self) -> Array:
        """Force (m,) [N] of every actuator, positive pulling."""
        ...

    @property
    def tension_jacobian(self) -> Array:
        """Derivative of these by the configuration (m, dof)."""
        ...


@dataclass(frozen=True)
class ForceLimits:
    """
    Forces of muscles in whose bags gas stands against a folded skeleton.

    A skeleton of stiffness k takes its share of what vacuum and supply can do: at a commanded
    length l a muscle pulls at most k (l - shortest) and pushes at most k (longest - l) + push
    (`plant/pam_arm/muscle_kernels.py` has the flow of gas). Beyond, the valves may be open for as
    long as they will: the length is not reached, and whoever counts their time does not notice.

    Attributes
    ----------
    shortest_m, longest_m : float
        Lengths of an empty and a full muscle.
    stiffness_N_m : float
        Of the skeleton: what a full muscle pulls by the way to the shortest length.
    push_N : float
        Of the supply on a full muscle.

    """

    shortest_m: float
    longest_m: float
    stiffness_N_m: float
    push_N: float

    def check(self, posture: Posture, names: Sequence[str]) -> None:
        """
        Raise for a posture that muscles (of `names`) cannot hold.

        Raises
        ------
        ValueError
            Naming the muscle, its force and the limit.

        """
        found = self.room(posture)
        if found is None:
            return
        _, down, up = found
        i = int(np.argmin(np.minimum(down, up)))
        if min(down[i], up[i]) >= -_ROUNDING_N:
            return
        word = 'push' if down[i] < up[i] else 'pull'
        force = abs(float(cast(Pulled, posture).tensions[i]))
        least = force + min(float(down[i]), float(up[i]))
        raise ValueError(f'{names[i]} would have to {word} {force:.1f} N; {least:.1f} N at most')

    def room(self, posture: Posture) -> tuple[Array, Array, Array] | None:
        """
        Return rows (m, dof) [N], and how far each may still fall and rise (m,), (m,) [N].

        Negative where a limit is exceeded already. None for a model that knows no forces.
        """
        if not isinstance(posture, Pulled):
            return None
        k = self.stiffness_N_m
        beside = posture.tensions - k * posture.actuation
        rows = posture.tension_jacobian - k * posture.actuation_jacobian
        down = beside + k * self.longest_m + self.push_N
        return np.asarray(rows), np.asarray(down), np.asarray(-k * self.shortest_m - beside)
