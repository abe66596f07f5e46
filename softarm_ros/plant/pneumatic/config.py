"""Parameters of the simulated pneumatic arm; the controller knows none of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, SerializeAsAny, ValidationInfo, field_validator

from softarm_ros.geometry.configs import (
    Angle,
    ConfigBlock,
    Finite,
    Length,
    Mass,
    Modulus,
    NonNegative,
    NonNegativeMass,
    NonNegativeModulus,
    NonNegativeShortLength,
    Positive,
    ShortLength,
)
from softarm_ros.plant.config import PlantBase
from softarm_ros.plant.hysteresis import CreepConfig

Three = tuple[Positive, Positive, Positive]


class ChamberHysteresisConfig(ConfigBlock):
    """Hysteresis of extension over pressure: stops (Prandtl-Ishlinskii), then creep."""

    lost_share: float = Field(ge=0.0, lt=1.0, description='see plant/hysteresis.py')
    saturation_Pa: Positive = Field(description='about the pressure at which all stops yield')
    stops: int = Field(default=8, ge=1, le=100)
    creep: CreepConfig = CreepConfig(shares=(), lags_s=())


class PneumaticPlantSectionConfig(ConfigBlock):
    """
    One section of the simulated body: a soft end part that sags, then the part with chambers.

    The end part is a solid rod of `deforming_length_m`; the first one is inside the frame, just
    behind the origin of the base. Both parts are of the same silicone (Yeoh's law). Its modulus
    and the cross-section determine the stiffness of the part with chambers, which softens as
    pressure extends it (`silicone_kernels.py`).
    """

    deforming_length_m: Length
    youngs_modulus_Pa: Modulus = Field(
        description="Young's modulus of the silicone at rest, 6 C10 of Yeoh's law"
    )
    c20_Pa: NonNegativeModulus = Field(
        default=0.0, description="C20 of Yeoh's law; stiffens the silicone when stretched"
    )
    bending_length_m: Length
    outer_radius_m: ShortLength
    chamber_radius_m: ShortLength
    mass_per_length_kg_m: Mass
    wall_share: Positive = Field(
        default=1.0,
        description='stiffness of the part with chambers at rest, as a share of that of a solid '
        'bar',
    )
    extension_m: Three = Field(description='free extension of each chamber at full pressure')
    full_pressure_Pa: Positive = Field(description='pressure at which extension_m is reached')
    turn_deg: Angle = Field(
        default=0.0, description='rotation of the chambers about the axis of the arm'
    )
    linear_share: float = Field(
        gt=0.0,
        le=1.0,
        description='linear share of the curve; the rest grows with the pressure squared',
    )
    damping_time_s: Positive = Field(
        description='Kelvin-Voigt: damping = damping_time * stiffness'
    )

    @property
    def bending_stiffness_N_m2(self) -> float:
        """Bending stiffness E I of the part with chambers at rest [N m^2]."""
        return 0.25 * self.axial_stiffness_N * self.outer_radius_m**2

    @property
    def axial_stiffness_N(self) -> float:
        """Axial stiffness E A of the part with chambers at rest [N]."""
        return self.wall_share * self.youngs_modulus_Pa * math.pi * self.outer_radius_m**2


class RegulatorConfig(ConfigBlock):
    """Electropneumatic proportional regulators on analogue outputs, one for each chamber."""

    span_Pa: Positive = Field(description='pressure at full signal')
    dac_bits: int = Field(
        ge=6, le=24, description='resolution of the analogue output over the full signal'
    )
    max_pressure_Pa: Positive = Field(description='pressure limit of the driver')
    lag_s: Positive = Field(description='first-order lag of valve, tube and chamber')
    max_rate_Pa_s: Positive = Field(description='largest rate that the flow of the valve allows')
    dead_zone_Pa: NonNegative = Field(description='width of the play between signal and pressure')
    gain: tuple[Positive, ...] = Field(description='gain of each regulator; ideally 1')
    offset_Pa: tuple[Finite, ...] = Field(
        description='offset of each regulator while it is not closed'
    )
    sensor_noise_Pa: NonNegative


class PlantGripperConfig(ConfigBlock):
    """A gripper at the tip; fields common to all ways of holding an object."""

    mass_kg: NonNegativeMass
    length_m: Length
    outer_radius_m: ShortLength
    lag_s: Positive
    vacuum_Pa: Annotated[float, Field(lt=0.0, allow_inf_nan=False)] = Field(
        default=-3.0e4, description='gauge pressure of the vacuum supply'
    )
    sensor_span_Pa: Positive = Field(
        default=1.0e5,  # SMC PSE543A
        description='for emulated devices: pressure at 5 V of the sensor; 1 V is its negative',
    )
    reach_m: Positive = Field(
        description='largest distance from the middle of the fingers at which an object is gripped'
    )


class SoftFingersConfig(PlantGripperConfig):
    """Soft fingers: vacuum opens them, pressure closes them around an object."""

    grips_above_Pa: Positive = Field(
        description='pressure from which an object within reach is held'
    )
    releases_below_Pa: Finite = Field(description='pressure below which a held object is released')
    force_per_pressure_N_Pa: Positive = Field(
        description='force that can carry weight, per pressure above releases_below_Pa'
    )


class WrenchSensorConfig(ConfigBlock):
    """Force-torque sensor under the base."""

    force_noise_N: NonNegative
    moment_noise_N_m: NonNegative
    force_range_N: Positive
    moment_range_N_m: Positive


class PneumaticPlantConfig(PlantBase):
    """The simulated pneumatic arm."""

    IMMERSIBLE: ClassVar[bool] = True

    segments_per_section: int = Field(
        ge=1,
        le=40,
        default=4,
        description='number of elastic joints; half as many in each end part',
    )
    sections: tuple[PneumaticPlantSectionConfig, ...] = Field(min_length=1)
    tip_length_m: NonNegativeShortLength = Field(
        description='length of the rigid part beyond the last chambers'
    )
    tip_part_mass_kg: NonNegativeMass
    hysteresis: ChamberHysteresisConfig
    regulators: RegulatorConfig
    gripper: SerializeAsAny[PlantGripperConfig] | None = Field(
        default=None,
        description="actual gripper at the tip; its fields are those of the rig's `gripper`",
    )
    wrench_sensor: WrenchSensorConfig | None = None

    @field_validator('gripper', mode='before')
    @classmethod
    def _of_its_gripper(cls, value: Any, info: ValidationInfo) -> Any:
        """Read the block with the fields of its kind, if the context has a reader for it."""
        read = (info.context or {}).get('read_gripper', SoftFingersConfig.model_validate)
        return read(value) if isinstance(value, Mapping) else value
