"""What a rig file may say: the configurations of all components, composed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PrivateAttr, model_validator

from softarm_ros.control.config import SupervisorConfig, TrackerConfig
from softarm_ros.control.trajectory_config import TrajectoryConfig
from softarm_ros.geometry.configs import ConfigBlock, Finite, Positive
from softarm_ros.models.config import MODEL_NAMES, CableConfig, ModelName, SectionConfig
from softarm_ros.plant.config import PlantConfig
from softarm_ros.rigs.errors import RigError, did_you_mean, listed

if TYPE_CHECKING:
    from softarm_ros.control.limits import ActuatorLimits
    from softarm_ros.models.arm_model import ArmModel

NAME_PATTERN = r'^[a-z][a-z0-9_]*$'
Name = Annotated[str, Field(pattern=NAME_PATTERN)]


class ActuatorConfig(ConfigBlock):
    """One motor with its cable: where the cable runs and what the motor may do."""

    name: Name
    section: str = Field(description='name of the section the cable bends')
    angle_deg: Finite = Field(description='around the backbone, from the section x axis')
    unit: Literal['m'] = Field(default='m', description='of the command: cable contraction')
    position_min_m: Finite = Field(description='most the cable is paid out, negative')
    position_max_m: Finite = Field(description='most the cable is pulled in')
    max_speed_m_s: Positive
    max_acceleration_m_s2: Positive


class FeedbackConfig(ConfigBlock):
    """Where the measured tip pose comes from."""

    kind: Literal['mocap'] = 'mocap'
    rate_hz: Positive = Field(description='how often poses arrive')
    pose_topic: str = Field(
        default='tip/pose',
        pattern=r'^/?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*$',
        description='PoseStamped in the base frame, relative to the namespace of the rig',
    )


class Rig(ConfigBlock):
    """
    One arm: what the controller knows, how it is driven and watched, and what simulates it.

    Lengths in m, angles as the field's suffix says, vectors in the base frame (origin at the
    fixed end, z along the resting arm).
    """

    name: Name = Field(description='namespace of the topics')
    description: str = Field(min_length=1)
    gravity_m_s2: tuple[Finite, Finite, Finite] = Field(
        description='base frame; (0, 0, 9.81) for a hanging arm'
    )
    sections: tuple[SectionConfig, ...] = Field(min_length=1, description='from base to tip')
    default_model: ModelName
    actuators: tuple[ActuatorConfig, ...] = Field(
        min_length=1, description='in the order of every actuation vector'
    )
    feedback: FeedbackConfig
    tracker: TrackerConfig
    supervisor: SupervisorConfig = SupervisorConfig()
    plant: PlantConfig
    trajectories: dict[Name, TrajectoryConfig] = Field(min_length=1)
    default_trajectory: str

    _source: Path | None = PrivateAttr(default=None)

    @model_validator(mode='after')
    def _consistent(self) -> Rig:
        from softarm_ros.rigs.checks import InconsistentRigError, find_inconsistencies

        problems = find_inconsistencies(self)
        if problems:
            raise InconsistentRigError(problems)
        return self

    @property
    def source(self) -> Path | None:
        """File the rig was loaded from."""
        return self._source

    def with_source(self, source: Path) -> Rig:
        """Return the same rig, knowing its file."""
        rig = self.model_copy()
        rig._source = source
        return rig

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names in the order of every actuation vector."""
        return tuple(actuator.name for actuator in self.actuators)

    def cables(self) -> tuple[CableConfig, ...]:
        """Return where the cables run, one per actuator."""
        return tuple(
            CableConfig(name=a.name, section=a.section, angle_deg=a.angle_deg)
            for a in self.actuators
        )

    def actuator_limits(self) -> ActuatorLimits:
        """Return the limits of all actuators, arrays (m,) in m, m/s, m/s^2."""
        import numpy as np

        from softarm_ros.control.limits import ActuatorLimits

        def column(field: str) -> Any:
            return np.array([getattr(actuator, field) for actuator in self.actuators], dtype=float)

        return ActuatorLimits(
            names=self.actuator_names,
            unit=self.actuators[0].unit,
            position_min=column('position_min_m'),
            position_max=column('position_max_m'),
            max_speed=column('max_speed_m_s'),
            max_acceleration=column('max_acceleration_m_s2'),
        )

    def model_name(self, name: str | None = None) -> ModelName:
        """
        Return a model's name, or the default's for None.

        Raises
        ------
        RigError
            If there is no such model; lists those there are.

        """
        if name is None:
            return self.default_model
        for known in MODEL_NAMES:
            if name == known:
                return known
        hint = did_you_mean(name, MODEL_NAMES)
        raise RigError('', f'unknown model {name!r}{hint}; known: {listed(MODEL_NAMES)}')

    def model(self, name: str | None = None) -> ArmModel:
        """Return the rig's default model, or another one by name (see `model_name`)."""
        from softarm_ros.models.factory import build_model

        return build_model(self.model_name(name), self.sections, self.cables())
