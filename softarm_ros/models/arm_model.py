"""The interface of every arm model, whatever its mechanics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.counts import whole_number

Vector3 = Sequence[float] | Array
ZERO3 = (0.0, 0.0, 0.0)


class ModelError(ValueError):
    """A request is outside the validity of a model; the message names the value and the limit."""


@dataclass(frozen=True)
class Shape:
    """
    Static shape of an arm in the base frame.

    Attributes
    ----------
    tip : (4, 4)
        Homogeneous transform, base -> tip [m].
    section_tips : (sections, 4, 4)
        Transform of the outer face of each section's distal endcap [m].
    configuration : (dof,)
        Configuration from which the shape was computed.

    """

    tip: Array
    section_tips: Array
    configuration: Array
    sample_centerline: Callable[[int], Array] = field(repr=False)

    def centerline(self, n: int) -> Array:
        """Return n points (n, 3) [m] from base to tip, evenly spaced; ValueError if n < 2."""
        if whole_number(n, 'n', 'a whole number >= 2') < 2:
            raise ValueError(f'n = {n}: a centreline needs at least 2 points')
        return self.sample_centerline(n)


@dataclass(frozen=True)
class InverseSolution:
    """
    Actuation for a pose, as far as one was found.

    Attributes
    ----------
    actuation : (m,)
        Within the limits if the search converged. Otherwise that of the nearest pose found, which
        may be beyond a limit; the message says so.
    shape : Shape
        Shape under this actuation.
    residual : float
        Distance from the target [m]; a rotation counts as the displacement of a point half an
        arm's length from the tip.
    converged : bool
        Whether the residual is at most 1e-6 of the arm's length, the actuation violates no limit,
        and the arm takes this shape by itself.
    message : str
        The residual, the limits reached and the reason; empty if the search converged.

    """

    actuation: Array
    shape: Shape
    residual: float
    converged: bool
    message: str = ''


class Posture(Protocol):
    """
    A model at one configuration; arrays are shared and must not be written to.

    Models keep no state between calls. A control loop keeps the posture and passes it as `near`
    when it asks for the next one.
    """

    @property
    def configuration(self) -> Array:
        """The configuration (dof,)."""
        ...

    @property
    def tip(self) -> Array:
        """Tip position (3,) [m]."""
        ...

    @property
    def tip_jacobian(self) -> Array:
        """Derivative of the tip by the configuration (3, dof)."""
        ...

    @property
    def section_tips(self) -> Array:
        """Poses of all section tips (sections, 4, 4) [m]."""
        ...

    @property
    def actuation(self) -> Array:
        """Actuation (m,) that holds the configuration without load."""
        ...

    @property
    def actuation_jacobian(self) -> Array:
        """Derivative of the actuation by the configuration (m, dof)."""
        ...

    @property
    def preferred(self) -> Array:
        """Configuration (dof,) that the tracker's null space pulls to from here."""
        ...


class ArmModel(Protocol):
    """
    Mechanics of one arm: actuation <-> configuration <-> shape.

    Results depend on the arguments alone, not on earlier calls. A model is for one thread at a
    time, because its calls share working arrays; each thread makes its own.

    `configuration` of the cable-driven models holds, per section, the bending vector
    (b_x, b_y) = theta (cos phi, sin phi) [rad], which unlike (theta, phi) is smooth through the
    straight pose. Models whose statics cannot be split into a shape and the actuation that holds
    it take the actuation itself as configuration.

    Raises
    ------
    ValueError
        By all methods, for an argument of another shape or with a value that is not finite, if it
        is used and nothing else is stated.
    ModelError
        A ValueError: for an actuation beyond the limits of the actuators (`Rig.model`), and for
        shapes and loads outside the validity of the model.

    """

    name: str

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of the actuators, in the order of every actuation vector."""
        ...

    @property
    def configuration_names(self) -> tuple[str, ...]:
        """Names of the configuration coordinates."""
        ...

    @property
    def rest_length_m(self) -> float:
        """Length of the straight arm, base to tip [m]."""
        ...

    @property
    def rest_configuration(self) -> Array:
        """Configuration (dof,) at the start of a run: the arm is on but not yet driven."""
        ...

    @property
    def configuration_scale(self) -> Array:
        """
        Typical large magnitude (dof,) of each coordinate, in its unit.

        A coordinate that changes by its scale moves the tip by about the length of the arm. The
        tracker weights coordinates of different units with it.
        """
        ...

    def preferred_configuration(self, configuration: Array) -> Array:
        """
        Return the configuration (dof,) that the tracker's null space pulls to from this one.

        It is the one that is easiest to hold among nearby configurations with the same tip.
        """
        ...

    def observed_configuration(self, section_tips: Array) -> Array | None:
        """
        Return the configuration (dof,) for measured section tips (sections, 4, 4).

        Return None if the tips do not determine it (too few are measured, or the model has no
        such relation), and NaN (dof,) if a value is not finite.
        """
        ...

    def forward(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """Return the shape at rest for an actuation (m,) and a tip load [N, N m], base axes."""
        ...

    def inverse(
        self,
        position: Vector3,
        orientation: Array | None = None,
        guess: Array | None = None,
        tip_force: Vector3 = ZERO3,
    ) -> InverseSolution:
        """
        Return the actuation for a tip position (3,) [m] and, if given, rotation (3, 3).

        Position, rotation and load [N] are in the base frame. `guess` is an actuation (m,) to
        start from, such as that of a neighbouring target.
        """
        ...

    def jacobian(self, actuation: Array) -> Array:
        """Return the tip twist per actuation (6, m) [m, rad per unit], base axes, linear first."""
        ...

    def shape_of(self, configuration: Array) -> Shape:
        """Return the shape for a configuration (dof,)."""
        ...

    def tips_of(self, configurations: Array) -> Array:
        """Return the tip positions (n, 3) [m] of many configurations (n, dof) at once."""
        ...

    def tip_and_jacobian(self, configuration: Array) -> tuple[Array, Array]:
        """Return tip position (3,) [m] and its derivative (3, dof) by configuration."""
        ...

    def actuation_of(self, configuration: Array) -> Array:
        """Return the actuation (m,) that holds a configuration without load."""
        ...

    def actuation_jacobian(self, configuration: Array) -> Array:
        """Return d actuation / d configuration (m, dof)."""
        ...

    def configuration_of(self, actuation: Array) -> Array:
        """Return the configuration (dof,) that an actuation (m,) leads to without load."""
        ...

    def posture_of(self, configuration: Array, near: Posture | None = None) -> Posture:
        """
        Return the posture at a configuration (dof,), which serves several queries about it.

        `near` is this model's posture at a similar configuration. It shortens the search and
        changes the result by no more than the accuracy of the solution.
        """
        ...


@runtime_checkable
class SetByBends(Protocol):
    """A model that can be set by section bends although its configuration is something else."""

    def of_bends(self, bends: Array) -> Array:
        """Return the configuration (dof,) for bends theta (cos phi, sin phi) [rad] per section."""
        ...


def described_model(model: ArmModel) -> str:
    """Return a model's name and class, as error messages about a wrong answer give them."""
    return f'model {model.name} ({type(model).__name__})'
