"""Parameters of the simulated arm; the controller knows none of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationInfo,
    field_validator,
)

from softarm_ros.geometry.configs import (
    Angle,
    ConfigBlock,
    Finite,
    Length,
    Mass,
    NonNegative,
    NonNegativeMass,
    NonNegativeShortLength,
    PartBlock,
    Positive,
    ShortLength,
    Stiffness,
)
from softarm_ros.plant.machine import Draw, MachineConfig, as_drawn, draws

Three = tuple[Finite, Finite, Finite]
NONE: Three = (0.0, 0.0, 0.0)
TimeStep = Annotated[float, Field(ge=1e-6, le=0.01)]  # shorter ones would take hours


class PlantSectionConfig(ConfigBlock):
    """One section of the simulated body, discretised into `segments` elastic joints."""

    length_m: Length
    endcap_length_m: NonNegativeShortLength
    cable_radius_m: ShortLength
    outer_radius_m: ShortLength
    body_mass_kg: Mass
    endcap_mass_kg: NonNegativeMass = Field(description='mass of each of the two endcaps')
    bending_stiffness_N_m2: Stiffness
    torsion_stiffness_N_m2: Stiffness
    axial_stiffness_N: Stiffness
    damping_time_s: Positive = Field(
        description='Kelvin-Voigt: damping = damping_time * stiffness'
    )
    cutting_in_stiffness_N_m2: Stiffness = Field(description='Winkler foundation under the cable')
    cutting_in_relaxation_s: Positive = Field(
        description='viscous time constant of the foundation'
    )
    passing_radius_m: NonNegativeShortLength = Field(
        default=0.0,
        description='distance from the backbone at which cables of later sections pass through',
    )


class StepperConfig(ConfigBlock):
    """Open-loop stepper with a pulley on each cable."""

    step_m: Positive = Field(description='cable length of one microstep')
    max_speed_m_s: Positive
    max_acceleration_m_s2: Positive
    backlash_m: NonNegative
    slack_m: NonNegative = Field(
        default=0.0, description='dead zone: slack of the cable that the stepper does not count'
    )
    delay_s: NonNegative = Field(default=0.0, description='delay from a command to the motor')


# Fields of a simulated sensor that may be omitted: the values in `sensors` then apply.
AS_STATED = ('rate_hz', 'delay_s', 'position_noise_m')


def _may_be_left_out(schema: dict[str, Any]) -> None:
    schema['required'] = [name for name in schema['required'] if name not in AS_STATED]
    for name in AS_STATED:
        schema['properties'][name]['default'] = 'as stated'


class MocapConfig(ConfigBlock):
    """
    A pose sensor: motion capture, stereo cameras, an electromagnetic tracker.

    A rig file may omit the fields `AS_STATED`.
    """

    model_config = ConfigDict(json_schema_extra=_may_be_left_out)

    kind: str | None = Field(
        default=None,
        description='kind of sensor (`softarm parts sensors`); default: motion_capture',
    )
    rate_hz: Positive = Field(description='frames per second')
    position_noise_m: NonNegative = Field(description='standard deviation of each coordinate')
    orientation_noise_rad: NonNegative
    delay_s: NonNegative = Field(description='delay from measurement to arrival')
    dropout_probability: float = Field(ge=0.0, lt=1.0)
    dropout_duration_s: NonNegative = Field(default=0.015, description='mean length of a drop-out')
    frame_turn_deg: tuple[Angle, Angle, Angle] = Field(
        default=NONE,
        description='rotation error of the calibrated base frame as a rotation vector, base axes',
    )
    frame_shift_m: Three = Field(
        default=NONE, description='translation error of the calibrated base frame, base axes'
    )
    marker_offset_m: Three = Field(
        default=NONE,
        description='position of the measured marker relative to the true tip, in the axes of '
        'that tip',
    )
    drift_m: NonNegative = Field(
        default=0.0,
        description='standard deviation of a slow drift, the same for all poses',
    )
    drift_time_s: Positive = Field(default=60.0, description='correlation time of the drift')
    jitter_s: NonNegative = Field(
        default=0.0, description='largest lateness of a frame beyond `delay_s`; uniform'
    )
    flip_probability: float = Field(
        default=0.0,
        ge=0.0,
        lt=1.0,
        description='probability that markers of a tip are confused: half a turn about its z',
    )


PlantT = TypeVar('PlantT', bound='PlantBase')


class PlantBase(ConfigBlock):
    """Fields common to all simulated arms."""

    # Whether the body can be immersed in a medium other than air.
    IMMERSIBLE: ClassVar[bool] = False

    kind: str | None = Field(
        default=None, description='kind of body (`softarm parts body`); default: that of this arm'
    )
    medium: PartBlock = Field(
        default=PartBlock(kind='air'),
        description='medium that actually surrounds the arm (`softarm parts medium`); default: '
        '`medium` of the rig',
    )
    time_step_s: TimeStep = 0.002
    mocap: SerializeAsAny[MocapConfig] = Field(
        alias='pose_sensor', description='actual pose sensor'
    )
    machine: MachineConfig | None = Field(
        default=None, description='spreads of the fields between arms of this kind'
    )

    @field_validator('mocap', mode='before')
    @classmethod
    def _of_its_kind(cls, value: Any, info: ValidationInfo) -> Any:
        """Read the block with the fields of its kind, if the context has a reader for it."""
        read = (info.context or {}).get('read_pose_sensor')
        return value if read is None else read(value)

    def machine_number(self, seed: int) -> int:
        """Return the number of the machine for a run with this seed."""
        number = None if self.machine is None else self.machine.number
        return seed if number is None else number

    def drawn(self, seed: int) -> list[Draw]:
        """Return the draws by which the machine of a run with this seed differs from nominal."""
        if self.machine is None:
            return []
        return draws(self.nominal(), self.machine.spreads, self.machine_number(seed))

    def of_machine(self: PlantT, seed: int) -> PlantT:
        """Return the plant of the machine for a run with this seed."""
        return as_drawn(self.nominal(), self.drawn(seed))

    def nominal(self: PlantT) -> PlantT:
        """Return the plant as stated in the file, without spreads between machines."""
        return self.model_copy(update={'machine': None})


class PlantConfig(PlantBase):
    """The simulated cable-driven arm."""

    segments_per_section: int = Field(ge=2, le=64, default=10)
    cable_axial_stiffness_N: Stiffness = Field(description='E A of the thread')
    cable_free_length_m: Length = Field(
        description='cable length from the pulley to the base of the arm'
    )
    cable_damping_time_s: Positive = 0.002
    cable_friction_coefficient: NonNegative = Field(
        default=0.0, description='friction of the thread in its guides, wherever it turns'
    )
    cable_presliding_stiffness_N_m2: Stiffness = Field(
        default=3.0e4,
        description="stiffness of the thread's surroundings along it before it slides",
    )
    base_tilt_deg: tuple[Angle, Angle] = Field(
        default=(0.0, 0.0), description='mounting error about base x and y'
    )
    pair_pretension_m: NonNegative = Field(
        default=0.0, description='extra length by which both cables of a pair are wound at rest'
    )
    zero_offset_m: tuple[Finite, ...] = Field(
        default=(), description='contraction of each actuator at its zero reading; empty: zero'
    )
    sections: tuple[PlantSectionConfig, ...] = Field(min_length=1)
    stepper: StepperConfig


@dataclass(frozen=True)
class PlantCable:
    """
    The section that a cable bends (0: at the base) and its angle around the backbone [rad].

    `motor` is the index of the motor that winds the cable (None: its own motor); `sign` is -1 if
    that motor pays it out.
    """

    section_index: int
    angle_rad: float
    motor: int | None = None
    sign: float = 1.0
