"""What every rig file may say, whatever the kind of arm."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import Field, PrivateAttr, model_validator

from softarm_ros.control.config import SupervisorConfig, TrackerConfig
from softarm_ros.control.task_config import GripperConfig
from softarm_ros.control.trajectory_config import TrajectoryConfig
from softarm_ros.geometry.configs import ConfigBlock, Finite, NonNegative, Positive
from softarm_ros.plant.config import PlantBase
from softarm_ros.plant.world import World
from softarm_ros.rigs.checks import CHECKS as COMMON_CHECKS
from softarm_ros.rigs.checks import Check, InconsistentRigError, find_inconsistencies
from softarm_ros.rigs.devices import Devices
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.model_choice import models_of, why_no_model
from softarm_ros.rigs.outline import Outline
from softarm_ros.rigs.part_registry import find_part, kinds_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from softarm_ros.control.configuration_limits import ConfigurationLimits
    from softarm_ros.control.limits import ActuatorLimits
    from softarm_ros.drivers.actuator_driver import ActuatorDriver
    from softarm_ros.emulation.emulated_arm import EmulatedArm
    from softarm_ros.geometry.parts import Part
    from softarm_ros.models.arm_model import ArmModel
    from softarm_ros.plant.plant import Plant

NAME_PATTERN = r'^[a-z][a-z0-9_]*$'
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
RigT = TypeVar('RigT', bound='Rig')


class ActuatorBase(ConfigBlock):
    """One actuator."""

    name: Name


class FeedbackConfig(ConfigBlock):
    """Where the measured tip pose comes from."""

    rate_hz: Positive = Field(description='how often poses arrive')
    delay_s: NonNegative = Field(
        default=0.01, description='from the exposure of a pose to its arrival'
    )
    position_noise_m: NonNegative = Field(
        default=2.0e-4, description='standard deviation of each coordinate of a pose at rest'
    )
    pose_topic: str = Field(
        default='tip/pose',
        pattern=r'^/?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*$',
        description='PoseStamped in the base frame, relative to the namespace of the rig',
    )


class Rig(ConfigBlock):
    """
    One arm: what the controller knows, how it is driven and watched, and what simulates it.

    Lengths in m, angles as the field's suffix says, vectors in the base frame (origin at the
    fixed end, z along the resting arm). Each kind of arm is a subclass that adds its mechanics
    and narrows `actuators` and `plant`.
    """

    # What drives of this arm are attached to, a role of their parts and of bodies; and the body
    # where `plant` names no other.
    DRIVES: ClassVar[str]
    BODY: ClassVar[str]
    # Of a rig with other parts than the usual ones: the kind it is made of, body and drive.
    COMPOSED_OF: ClassVar[tuple[type[Rig], str | None, str | None] | None] = None
    # What must hold between the fields; those of a kind of arm come after these.
    CHECKS: ClassVar[tuple[Check, ...]] = COMMON_CHECKS

    kind: str = Field(description='of mechanics')
    name: Name = Field(description='namespace of the topics')
    description: str = Field(min_length=1)
    gravity_m_s2: tuple[Finite, Finite, Finite] = Field(
        description='base frame; (0, 0, 9.81) for a hanging arm'
    )
    medium: Literal['air', 'water'] = Field(default='air', description='what surrounds the arm')
    tip_load_kg: NonNegative = Field(default=0.0, description='payload at the tip')
    default_model: str
    actuators: tuple[ActuatorBase, ...] = Field(
        min_length=1, description='in the order of every actuation vector'
    )
    feedback: FeedbackConfig
    tracker: TrackerConfig
    supervisor: SupervisorConfig = SupervisorConfig()
    plant: PlantBase | None = Field(
        default=None, description='the simulated arm; without it the arm can only be real'
    )
    trajectories: dict[Name, TrajectoryConfig] = Field(min_length=1)
    default_trajectory: str
    gripper: GripperConfig | None = Field(default=None, description='none without it')
    devices: Devices | None = Field(
        default=None, description='for the backends hardware and emulated; none without it'
    )

    _source: Path | None = PrivateAttr(default=None)
    _settings: tuple[str, ...] = PrivateAttr(default=())

    @model_validator(mode='after')
    def _consistent(self: RigT) -> RigT:
        problems = find_inconsistencies(self, self.CHECKS)
        if problems:
            raise InconsistentRigError(problems)
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Let rigs travel between processes, those of composed classes too."""
        if self.COMPOSED_OF is None:
            return super().__reduce_ex__(protocol)
        from softarm_ros.rigs.composition import restored

        data = self.model_dump()
        return (restored, (*self.COMPOSED_OF, data), (self._source, self._settings))

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, tuple):
            self._source, self._settings = state
            return
        super().__setstate__(state)

    @property
    def source(self) -> Path | None:
        """File the rig was loaded from."""
        return self._source

    @property
    def settings(self) -> tuple[str, ...]:
        """What was set over the file's own values, as `field=value`."""
        return self._settings

    def with_source(self: RigT, source: Path, settings: Sequence[str] = ()) -> RigT:
        """Return the same rig, knowing its file and what was set over it."""
        rig = self.model_copy()
        rig._source = source
        rig._settings = tuple(settings)
        return rig

    @property
    def frame_prefix(self) -> str:
        """What the names of this arm's frames begin with, so that two arms do not clash."""
        return f'{self.name}/'

    @property
    def base_frame(self) -> str:
        """Name of the base frame in messages and transforms."""
        return f'{self.frame_prefix}base'

    @property
    def base_frames(self) -> tuple[str, str]:
        """Names of the base frame that measured poses may carry."""
        return ('base', self.base_frame)

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names in the order of every actuation vector."""
        return tuple(actuator.name for actuator in self.actuators)

    @property
    @abstractmethod
    def mechanics_name(self) -> str:
        """What this arm provides for a model to be built on: a role of the family `model`."""

    @abstractmethod
    def mechanics(self) -> Any:
        """Return what a model of this role is built on."""

    def model_settings(self, part: Part) -> ConfigBlock:
        """Return the settings of a model: what this file says of it, else its defaults."""
        return part.config()

    @property
    def model_names(self) -> tuple[str, ...]:
        """Names of the models that can be built on the mechanics of this arm."""
        return models_of(self.mechanics_name)

    def model_name(self, name: str | None = None) -> str:
        """
        Return a model's name, or the default's for None.

        Raises
        ------
        RigError
            If there is none for the mechanics of this arm; lists those there are.

        """
        if name is None:
            return self.default_model
        wrong = why_no_model(name, self.mechanics_name)
        if wrong is not None:
            known = name in kinds_of('model')
            raise RigError('', f'{"" if known else "unknown "}model {name!r}: {wrong}')
        return name

    def model(self, name: str | None = None) -> ArmModel:
        """Return the rig's default model, or another one by name (see `model_name`)."""
        part = find_part('model', self.model_name(name))
        built: ArmModel = part.builder(self.mechanics_name)(
            self.model_settings(part), self.mechanics()
        )
        return built

    @property
    @abstractmethod
    def section_names(self) -> tuple[str, ...]:
        """Names of the sections from base to tip, whose tips are drawn (and seen, by mocap)."""

    @abstractmethod
    def actuator_limits(self) -> ActuatorLimits:
        """Return the limits of all actuators, arrays (m,) in the actuators' SI unit."""

    def _column(self, field: str) -> NDArray[np.float64]:
        """Return a field of all actuators (m,)."""
        import numpy as np

        return np.array([getattr(actuator, field) for actuator in self.actuators], dtype=float)

    @abstractmethod
    def configuration_limits(self) -> ConfigurationLimits:
        """Return the limits of the configuration of this rig's models."""

    def sample_configurations(self, rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        """Return n configurations (n, dof) of the default model, spread over what it may do."""
        return self.configuration_limits().sample(rng, n)

    @abstractmethod
    def drives(self) -> Any:
        """Return what the drives are attached to, for the role `DRIVES` of their parts."""

    def simulated_arm(self, seed: int) -> Plant:
        """
        Return what stands in for the hardware; every random number follows from `seed`.

        Raises
        ------
        RigError
            If the rig has no plant.

        """
        config = self.plant_for('sim')
        part = find_part('body', config.kind or self.BODY)
        world = World(self.gravity_m_s2, self.medium, self.tip_load_kg, self.payload_density_kg_m3)
        plant: Plant = part.builder(self.DRIVES)(config, self.drives(), world, seed)
        return plant

    @property
    def payload_density_kg_m3(self) -> float:
        """Density of the payload, by which it displaces water."""
        return World.tip_load_density_kg_m3

    def plant_for(self, backend: str) -> PlantBase:
        """Return what describes the simulated arm; RigError that says what to add without it."""
        if self.plant is None:
            raise RigError(
                '',
                f'rig {self.name!r} has no plant, and backend {backend!r} simulates the arm: add '
                "`plant:` to its file (docs/rigs.md), or run it with backend 'hardware'",
            )
        return self.plant

    def _other_body(self) -> RigError:
        kind = None if self.plant is None else self.plant.kind
        return RigError('', f'plant.kind = {kind!r}: this needs body {self.BODY!r}')

    def required_devices(self, backend: str) -> Devices:
        """Return the devices; raises RigError naming the backend if the rig has none."""
        if self.devices is None:
            raise RigError(
                '',
                f"rig {self.name!r} declares no devices for backend {backend!r}; it has: 'sim'",
            )
        return self.devices

    def actuator_driver(self, devices: Devices) -> ActuatorDriver:
        """Return the driver of all actuators, behind `devices`: the rig's own, or emulated."""
        build = self._driving_part(devices).builder(self.DRIVES)
        driver: ActuatorDriver = build(self.drives(), **devices.blocks())
        return driver

    def emulated_arm(self, seed: int) -> EmulatedArm:
        """Return the rig's emulated devices on its simulated arm; for rigs with devices."""
        devices, config = self.required_devices('emulated'), self.plant_for('emulated')
        build = self._driving_part(devices).builder(f'{self.DRIVES}, emulated')
        arm: EmulatedArm = build(
            self.simulated_arm(seed), config, self.drives(), seed, **devices.blocks()
        )
        return arm

    def _driving_part(self, devices: Devices) -> Part:
        if not devices.DRIVING:
            raise RigError(
                '',
                f'devices of rig {self.name!r}: none drives its actuators; expected a part of '
                f'family drives for {self.DRIVES!r} (softarm parts drives)',
            )
        return find_part('drives', devices.DRIVING)

    @abstractmethod
    def body_radii_m(self) -> tuple[float, ...]:
        """Return the outer radius of each section [m], as drawn."""

    def outline(self) -> Outline:
        """Return what is drawn of this arm."""
        return Outline(self.body_radii_m())
