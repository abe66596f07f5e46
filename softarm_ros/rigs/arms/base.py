"""Base of all kinds of arms: mechanics for models, attachments for drives, limits, outline."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import Field

from softarm_ros.control.gripper import GripperConfig
from softarm_ros.geometry.configs import ConfigBlock
from softarm_ros.plant.config import PlantBase
from softarm_ros.plant.world import STEEL_KG_M3
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.outline import Outline, SpreadMass, Strand

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from softarm_ros.control.configuration_limits import ConfigurationLimits
    from softarm_ros.control.limits import ActuatorLimits
    from softarm_ros.models.actuation_range import ActuationRange
    from softarm_ros.models.arm_model import ArmModel
    from softarm_ros.rigs.schema import Rig

NAME_PATTERN = r'^[a-z][a-z0-9_]*$'
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
ArmT = TypeVar('ArmT', bound='ArmBase')


class ActuatorBase(ConfigBlock):
    """One actuator."""

    name: Name


@dataclass(frozen=True)
class Surrounded:
    """
    Surroundings and payload of an arm, as its controller knows them, the gripper included.

    Gravity is given in the base frame; the payload's density determines the fluid it displaces.
    """

    gravity_m_s2: tuple[float, float, float]
    medium: Literal['air', 'water'] = 'air'
    tip_load_kg: float = 0.0
    tip_load_density_kg_m3: float = STEEL_KG_M3
    gripper: GripperConfig | None = None


class ArmBase(ConfigBlock):
    """
    One kind of arm, as the controller knows it: the configuration of a part of the family `arm`.

    Each builder of the part returns the attachments for one role of drives and bodies, from the
    arm and its surroundings. The usual role comes first.
    """

    # The part's name, and the body if `plant` names none.
    KIND: ClassVar[str]
    BODY: ClassVar[str]

    kind: str = Field(description='of arm (`softarm parts arm`)')
    actuators: tuple[ActuatorBase, ...] = Field(
        min_length=1, description='in the order of every actuation vector'
    )

    @classmethod
    def of(cls: type[ArmT], rig: Rig) -> ArmT:
        """Return the arm of a rig of this kind; raise RigError for another kind."""
        if not isinstance(rig.arm, cls):
            raise RigError('', f'rig {rig.name!r} is of kind {rig.kind!r}; expected {cls.KIND!r}')
        return rig.arm

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names in the order of every actuation vector."""
        return tuple(actuator.name for actuator in self.actuators)

    @property
    @abstractmethod
    def section_names(self) -> tuple[str, ...]:
        """Names of the sections, base to tip; their tips are drawn, and seen by motion capture."""

    @property
    @abstractmethod
    def mechanics_name(self) -> str:
        """Kind of mechanics that models of this arm are built on: a role of the family `model`."""

    @abstractmethod
    def mechanics(self, around: Surrounded) -> Any:
        """Return the mechanics on which a model of this role is built."""

    def commanded(self, around: Surrounded) -> Any:
        """Return `mechanics`, with models that keep to the actuator limits."""
        return self.mechanics(around)

    @abstractmethod
    def actuator_limits(self) -> ActuatorLimits:
        """Return the limits of all actuators, arrays (m,) in the actuators' SI unit."""

    def spelled_out(self: ArmT) -> ArmT:
        """Return the arm with numbers in fields that may default to geometry, to identify them."""
        return self

    def limits_of_lengths(self) -> ActuatorLimits:
        """Return the limits of actuators that are lengths, arrays (m,) in m, m/s, m/s^2."""
        from softarm_ros.control.limits import ActuatorLimits

        return ActuatorLimits(
            names=self.actuator_names,
            unit='m',
            position_min=self.column('position_min_m'),
            position_max=self.column('position_max_m'),
            max_speed=self.column('max_speed_m_s'),
            max_acceleration=self.column('max_acceleration_m_s2'),
        )

    def range_of_lengths(self) -> ActuationRange:
        """Return the range of actuators that are lengths, for a model."""
        from softarm_ros.models.actuation_range import ActuationRange

        limits = self.limits_of_lengths()
        return ActuationRange(limits.names, limits.position_min, limits.position_max, 'm')

    def column(self, field: str) -> NDArray[np.float64]:
        """Return a field of all actuators as an array (m,)."""
        import numpy as np

        return np.array([getattr(actuator, field) for actuator in self.actuators], dtype=float)

    @abstractmethod
    def configuration_limits(self) -> ConfigurationLimits:
        """Return the limits of the configuration of this arm's models."""

    def sample_configurations(
        self, model: ArmModel, rng: np.random.Generator, n: int
    ) -> NDArray[np.float64]:
        """Return n configurations (n, dof) of a model, spread over the arm's range."""
        return self.configuration_limits().sample(rng, n)

    def sample_held(
        self,
        model: ArmModel,
        rng: np.random.Generator,
        n: int,
        *,
        batches: int,
        physics: ArmModel | None = None,
        limits: ActuatorLimits | None = None,
    ) -> NDArray[np.float64]:
        """
        Return n configurations (n, dof) of `sample_configurations` that actuators can hold.

        Draws at most `batches` batches of n, so fewer may be found. `physics`, or else `model`,
        gives the actuator commands; see `those_held`.
        """
        import numpy as np

        found = np.empty((0, len(model.configuration_names)))
        for _ in range(batches):
            drawn = self.sample_configurations(model, rng, n)
            found = np.concatenate([found, self.those_held(physics or model, drawn, limits)])[:n]
            if len(found) == n:
                break
        return found

    def those_held(
        self,
        model: ArmModel,
        configurations: NDArray[np.float64],
        limits: ActuatorLimits | None = None,
    ) -> NDArray[np.float64]:
        """
        Return the rows of `configurations` (n, dof) that the actuators hold within their limits.

        `limits` replaces the limits of the arm's own actuators.
        """
        from softarm_ros.models.arm_model import ModelError

        limits = self.actuator_limits() if limits is None else limits

        def is_held(configuration: NDArray[np.float64]) -> bool:
            try:
                return limits.hold(model.actuation_of(configuration))
            except ModelError:
                return False

        return configurations[[is_held(configuration) for configuration in configurations]]

    @property
    def payload_density_kg_m3(self) -> float:
        """Density of the payload, which determines the water it displaces."""
        return STEEL_KG_M3

    @abstractmethod
    def body_radii_m(self, plant: PlantBase | None) -> tuple[float, ...]:
        """Return the outer radius of each section [m] to draw; the plant may know it better."""

    def strands(self) -> tuple[Strand, ...]:
        """Return the lines of cables, chambers or muscles; empty if they are not known."""
        return ()

    def outline(self, plant: PlantBase | None) -> Outline:
        """Return the shape and the masses with which this arm is drawn."""
        return Outline(self.body_radii_m(plant), masses=self.masses(plant))

    def masses(self, plant: PlantBase | None) -> tuple[tuple[SpreadMass, ...], ...]:
        """
        Return the masses of each section; empty if they are not known.

        They are the controller's, or the plant's if the controller's model includes no weight.
        """
        return ()
