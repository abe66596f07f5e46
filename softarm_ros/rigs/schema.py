"""The rig: all data of one arm, from its rig file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import (
    Field,
    PrivateAttr,
    SerializeAsAny,
    ValidationInfo,
    field_validator,
    model_validator,
)

from softarm_ros.control.config import EstimatorConfig, SupervisorConfig, TrackerConfig
from softarm_ros.control.gripper import GRIPPER, GripperConfig
from softarm_ros.control.pose_topic import PoseTopicConfig
from softarm_ros.control.trajectory_config import TrajectoryConfig
from softarm_ros.geometry.configs import ConfigBlock, Finite, NonNegative, PartBlock
from softarm_ros.geometry.counts import whole_number
from softarm_ros.plant.config import PlantBase
from softarm_ros.rigs.arms.base import ActuatorBase, ArmBase, Name, Surrounded
from softarm_ros.rigs.checks import Check, find_inconsistencies
from softarm_ros.rigs.devices import Devices
from softarm_ros.rigs.errors import InconsistentRigError, RigError
from softarm_ros.rigs.hysteresis_config import HysteresisConfig, hysteresis_of
from softarm_ros.rigs.model_choice import models_of, why_no_model
from softarm_ros.rigs.obstacle import ObstacleConfig
from softarm_ros.rigs.outline import Outline
from softarm_ros.rigs.part_choice import chosen_part
from softarm_ros.rigs.part_registry import built_part, kinds_of
from softarm_ros.rigs.recording import RecordingConfig
from softarm_ros.rigs.residual_file import ResidualConfig, read_residual
from softarm_ros.rigs.rig_parts import (
    arm_part,
    checks_of,
    combination_problems,
    devices_of,
    gripper_part,
    named_arm,
    named_gripper,
    plant_of,
    sensors_of,
    validated,
)
from softarm_ros.rigs.sensors import Sensors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from softarm_ros.control.configuration_limits import ConfigurationLimits
    from softarm_ros.control.limits import ActuatorLimits
    from softarm_ros.geometry.parts import Part
    from softarm_ros.models.arm_model import ArmModel
    from softarm_ros.models.hysteresis import Hysteresis
    from softarm_ros.models.memory import ArmMemory
    from softarm_ros.models.residual import Residual

PlantT = TypeVar('PlantT', bound=PlantBase)
_MOST_DRAWS = 100  # of random configurations, to find enough that can be held


class Rig(ConfigBlock):
    """
    One arm: the controller's knowledge, drives, supervision, and the simulation.

    Lengths in m, angles as the field's suffix states, vectors in the base frame (origin at the
    fixed end, z along the resting arm). The file names the parts of a rig: the kind of arm,
    models, controller, drives and body.
    """

    name: Name = Field(description='namespace of the topics')
    description: str = Field(min_length=1)
    gravity_m_s2: tuple[Finite, Finite, Finite] = Field(
        description='base frame; (0, 0, 9.81) for a hanging arm'
    )
    medium: Literal['air', 'water'] = Field(
        default='air',
        description='what surrounds the arm, as its controller believes; `plant.medium` is the '
        'truth',
    )
    tip_load_kg: NonNegative = Field(default=0.0, le=1e3, description='payload at the tip')
    arm: SerializeAsAny[ArmBase] = Field(description='the body as the controller knows it')
    chosen_model: PartBlock = Field(
        alias='model', description='default of runs; --model selects another'
    )
    residual: ResidualConfig | None = Field(
        default=None, description='learned errors of the model; default: none'
    )
    hysteresis: HysteresisConfig | None = Field(
        default=None, description='how actuators lag behind their commands; default: no lag'
    )
    gripper: SerializeAsAny[GripperConfig] | None = Field(
        default=None, description='default: no gripper'
    )
    devices: SerializeAsAny[Devices] | None = Field(
        alias='drives',
        default=None,
        description='for the backends hardware and emulated; default: no devices',
    )
    sensors: SerializeAsAny[Sensors] = Field(description='where measured poses come from')
    estimator: EstimatorConfig = EstimatorConfig()
    tracker: TrackerConfig = Field(
        alias='controller', description='the control cycle and its controller'
    )
    supervisor: SupervisorConfig = SupervisorConfig()
    trajectories: dict[Name, TrajectoryConfig] = Field(min_length=1)
    default_trajectory: str = Field(
        default='', validate_default=True, description='of runs; default: the first trajectory'
    )
    obstacles: tuple[ObstacleConfig, ...] = Field(
        default=(), description='boxes to draw beside the arm; the controller ignores them'
    )
    recording: RecordingConfig | None = Field(
        default=None, description='how `softarm score` and `softarm identify` read measurements'
    )
    plant: SerializeAsAny[PlantBase] | None = Field(
        default=None, description='the simulated arm; without it, only the backend hardware runs'
    )

    _source: Path | None = PrivateAttr(default=None)
    _settings: tuple[str, ...] = PrivateAttr(default=())
    _text: str = PrivateAttr(default='')

    @field_validator('arm', mode='before')
    @classmethod
    def _arm(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, Mapping):
            return value
        return validated(arm_part(value.get('kind')).config, value, _strict(info))

    @field_validator('gripper', mode='before')
    @classmethod
    def _gripper(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, Mapping):
            return value
        return validated(gripper_part(value.get('kind')).config, value, _strict(info))

    @field_validator('plant', mode='before')
    @classmethod
    def _plant(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, Mapping):
            return value
        arm = _arm_of(info)
        if arm is None:
            return None
        sensors = info.data.get('sensors')
        # Invalid sensors must not keep the plant from being read.
        poses = PoseTopicConfig(rate_hz=100.0) if sensors is None else sensors.poses
        medium = info.data.get('medium', 'air')
        return plant_of(arm, _gripper_of(info), value, poses, medium, _strict(info))

    @field_validator('devices', mode='before')
    @classmethod
    def _devices(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, Mapping):
            return value
        arm = _arm_of(info)
        if arm is None:
            return None
        return devices_of(arm, _gripper_of(info), value, _strict(info))

    @field_validator('sensors', mode='before')
    @classmethod
    def _sensors(cls, value: Any, info: ValidationInfo) -> Any:
        return sensors_of(value, _strict(info)) if isinstance(value, Mapping) else value

    @field_validator('default_trajectory')
    @classmethod
    def _first(cls, value: str, info: ValidationInfo) -> str:
        return value or next(iter(info.data.get('trajectories', ())), '')

    @model_validator(mode='after')
    def _consistent(self) -> Rig:
        problems = find_inconsistencies(self.view(), self.checks)
        problems += combination_problems(arm_part(self.kind), self.plant, self.devices)
        if problems:
            raise InconsistentRigError(problems)
        return self

    @property
    def kind(self) -> str:
        """Kind of the arm: a part of the family `arm`."""
        return self.arm.kind

    @property
    def checks(self) -> tuple[Check, ...]:
        """Consistency checks between the fields, including those of the rig's parts."""
        arm = arm_part(self.kind)
        return checks_of(arm, self.plant, self.devices, self.sensors, self.gripper)

    def view(self) -> SimpleNamespace:
        """Return all fields of the rig and its arm in one namespace, as checks read them."""
        own = {name: getattr(self, name) for name in type(self).model_fields}
        arm = {name: getattr(self.arm, name) for name in type(self.arm).model_fields}
        stated = {'feedback': self.feedback, 'default_model': self.default_model}
        return SimpleNamespace(**own, **arm, **stated)

    def with_arm(self, **fields: Any) -> Rig:
        """Return the rig with other values of fields of its arm; they are not checked."""
        return self.model_copy(update={'arm': self.arm.model_copy(update=fields)})

    def with_model(self, **fields: Any) -> Rig:
        """Return the rig with other values of fields of its model; they are not checked."""
        chosen = self.chosen_model
        block = PartBlock.model_validate({'kind': chosen.kind, **chosen.of_part, **fields})
        return self.model_copy(update={'chosen_model': block})

    @property
    def feedback(self) -> PoseTopicConfig:
        """Poses that the control cycle takes."""
        return self.sensors.poses

    @property
    def default_model(self) -> str:
        """Name of the model that runs use."""
        return self.chosen_model.kind

    @property
    def source(self) -> Path | None:
        """File the rig was loaded from."""
        return self._source

    @property
    def settings(self) -> tuple[str, ...]:
        """Settings that replaced values of the file, as `field=value`."""
        return self._settings

    @property
    def text(self) -> str:
        """Text of this file when it was loaded; the file may have changed since."""
        return self._text

    def with_source(self, source: Path, settings: Sequence[str] = (), text: str = '') -> Rig:
        """Return the rig with its source file, the settings applied to it, and its text."""
        rig = self.model_copy()
        rig._source = source
        rig._settings = tuple(settings)
        rig._text = text
        return rig

    @property
    def frame_prefix(self) -> str:
        """Prefix of this arm's frame names, so that two arms do not clash."""
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
    def actuators(self) -> tuple[ActuatorBase, ...]:
        """The actuators, in the order of every actuation vector."""
        return self.arm.actuators

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names in the order of every actuation vector."""
        return self.arm.actuator_names

    @property
    def section_names(self) -> tuple[str, ...]:
        """Names of the sections, base to tip; their tips are drawn, and seen by motion capture."""
        return self.arm.section_names

    @property
    def around(self) -> Surrounded:
        """Surroundings and payload of the arm."""
        return Surrounded(
            self.gravity_m_s2,
            self.medium,
            self.tip_load_kg,
            self.arm.payload_density_kg_m3,
            self.gripper,
        )

    @property
    def mechanics_name(self) -> str:
        """Kind of mechanics that models of this arm are built on: a role of the family `model`."""
        return self.arm.mechanics_name

    def mechanics(self) -> Any:
        """Return the mechanics on which a model of this role is built."""
        return self.arm.mechanics(self.around)

    @property
    def model_names(self) -> tuple[str, ...]:
        """Names of the models that can be built on the mechanics of this arm."""
        return models_of(self.mechanics_name)

    def model_name(self, name: str | None = None) -> str:
        """
        Return a model's name, or that of the default model for None.

        Raises
        ------
        RigError
            If no such model exists for this arm's mechanics; the message lists those that do.

        """
        if name is None:
            return self.default_model
        wrong = why_no_model(name, self.mechanics_name)
        if wrong is not None:
            known = name in kinds_of('model')
            raise RigError('', f'{"" if known else "unknown "}model {name!r}: {wrong}')
        return name

    def model(self, name: str | None = None) -> ArmModel:
        """
        Return the rig's default model, or another one by name (see `model_name`).

        The rig's residual, if any, corrects the default model. The model refuses actuations beyond
        the limits.
        """
        residual = self.learned_residual()
        model = self._built(name, self.arm.commanded(self.around))
        if residual is None or name not in (None, self.default_model):
            return model
        from softarm_ros.models.corrected import CorrectedModel

        return CorrectedModel(model, residual)

    @property
    def residual_path(self) -> Path | None:
        """Path of the residual file, or None if the rig has none."""
        if self.residual is None:
            return None
        folder = Path() if self._source is None else self._source.parent
        return folder / self.residual.file

    def learned_residual(self) -> Residual | None:
        """Return the residual that corrects the default model; RigError if its file is invalid."""
        if self.residual_path is None:
            return None
        return read_residual(
            self.residual_path, self.default_model, self.actuator_names, self.section_names
        )

    def operator(self) -> Hysteresis | None:
        """Return the hysteresis operator of the actuators, or None if the rig has none."""
        return None if self.hysteresis is None else hysteresis_of(self, self.hysteresis)

    def memory(self, name: str | None = None) -> ArmMemory | None:
        """Return the memory that a loop keeps with a model (see `model`), or None without one."""
        acts = self.hysteresis is not None and self.hysteresis.acts
        learned = self.residual is not None and name in (None, self.default_model)
        if not (acts or learned):
            return None
        from softarm_ros.models.memory import ArmMemory

        return ArmMemory(
            self.operator() if acts else None, self.learned_residual() if learned else None
        )

    def physics(self, name: str | None = None) -> ArmModel:
        """
        Return a model as `model` does, but without the residual.

        It accepts all actuations that the mechanics admit, since recordings may contain them.
        """
        return self._built(name, self.mechanics())

    def _built(self, name: str | None, mechanics: Any) -> ArmModel:
        block = self.chosen_model
        if name not in (None, block.kind):
            block = PartBlock(kind=self.model_name(name))
        from softarm_ros.models.arm_model import ArmModel as Interface

        part, settings = chosen_part('model', block)
        built: ArmModel = built_part(
            part,
            part.builder(self.mechanics_name)(settings, mechanics),
            'posture_of',
            'shape_of',
            like=Interface,
        )
        return built

    def actuator_limits(self) -> ActuatorLimits:
        """Return the limits of all actuators, arrays (m,) in the actuators' SI unit."""
        return self.arm.actuator_limits()

    def configuration_limits(self) -> ConfigurationLimits:
        """Return the limits of the configuration of this rig's models."""
        return self.arm.configuration_limits()

    def sample_configurations(self, rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        """
        Return n configurations (n, dof) of the default model, spread over its range.

        Actuators within their ranges can hold them. If too few such configurations are found, the
        remaining ones are at rest.

        Raises
        ------
        ValueError
            If n is not a whole number, or negative.

        """
        import numpy as np

        if whole_number(n, 'n', 'a whole number of configurations') < 0:
            raise ValueError(f'n = {n}: expected 0 or more configurations')
        model = self.model()
        found = self.arm.sample_held(model, rng, n, batches=_MOST_DRAWS)
        missing = n - len(found)
        return np.concatenate([found, np.tile(model.rest_configuration, (missing, 1))])

    def plant_for(self, backend: str) -> PlantBase:
        """Return the plant; if the rig has none, raise RigError that says what to add."""
        if self.plant is None:
            raise RigError(
                '',
                f'rig {self.name!r} has no plant, and backend {backend!r} simulates the arm: add '
                "`plant:` to its file (docs/rigs.md), or run it with backend 'hardware'",
            )
        return self.plant

    def plant_of(self, kind: type[PlantT]) -> PlantT:
        """Return the plant if it has this class; raise RigError for another body or none."""
        plant = self.plant_for('sim')
        if not isinstance(plant, kind):
            raise RigError(
                '', f'plant.kind = {plant.kind!r}: this needs the fields {kind.__name__}'
            )
        return plant

    def required_devices(self, backend: str) -> Devices:
        """Return the devices; raise RigError naming the backend if the rig has none."""
        if self.devices is None:
            raise RigError(
                '',
                f'rig {self.name!r} declares no devices for backend {backend!r}; it has: '
                f'{"none" if self.plant is None else repr("sim")}',
            )
        return self.devices

    def body_radii_m(self) -> tuple[float, ...]:
        """Return the outer radius of each section [m], as drawn."""
        return self.arm.body_radii_m(self.plant)

    def outline(self) -> Outline:
        """Return the outline with which this arm is drawn."""
        return self.arm.outline(self.plant)


def _arm_of(info: ValidationInfo) -> Part | None:
    """Return the part of the rig's arm, or None if it names none (reported elsewhere)."""
    arm = info.data.get('arm')
    if isinstance(arm, ArmBase):
        return arm_part(arm.kind)
    # The arm's fields are invalid; read the other blocks nevertheless.
    return named_arm((info.context or {}).get('data', {}))


def _gripper_of(info: ValidationInfo) -> Part:
    """Return the part of the rig's gripper, or the usual one if it names none."""
    gripper = info.data.get(GRIPPER)
    if isinstance(gripper, GripperConfig):
        return gripper_part(gripper.kind)
    return named_gripper((info.context or {}).get('data', {}))


def _strict(info: ValidationInfo) -> bool | None:
    return (info.context or {}).get('strict')
