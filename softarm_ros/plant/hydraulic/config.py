"""Parameters of the simulated water-hydraulic arm; the controller knows none of them."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from softarm_ros.geometry.configs import Angle, ConfigBlock, NonNegative, Positive, ShortLength
from softarm_ros.models.hydraulics.config import HydraulicAxisConfig
from softarm_ros.models.hydraulics.section_config import ChamberedSection, Damping
from softarm_ros.plant.config import PlantBase


class PlantHydraulicSection(ChamberedSection):
    """One section of the simulated body."""

    axial_damper_N_s_m: NonNegative = Field(description='damping against stretching')
    drag_N_s_m: NonNegative = Field(
        description='d_v of a whole section: friction of the fabric, air'
    )
    turning_drag_N_m_s: NonNegative = Field(description='d_w of a whole section')
    hydrodynamic_diameter_m: ShortLength = Field(
        description='diameter of a cylinder with the drag and added mass of the section, in water'
    )

    @property
    def damping(self) -> Damping:
        """The losses of the section."""
        return Damping(self.axial_damper_N_s_m, self.drag_N_s_m, self.turning_drag_N_m_s)


class FabricConfig(ConfigBlock):
    """Hysteresis of the fabric in bending."""

    stiffness_share: NonNegative = Field(
        default=0.0,
        description="additional stiffness for small bends, as a share of the section's",
    )
    yield_bend_deg: Positive = Field(
        default=20.0, description='bend of a section at which all stops have yielded'
    )


class HoldingBrakeConfig(ConfigBlock):
    """Spring-applied brake at each motor, which the drive lifts while it is in operation."""

    torque_N_m: Positive = Field(default=4.5, description='largest torque that the brake holds')
    close_s: NonNegative = Field(
        default=0.02, description='delay from switching the current off until the brake holds'
    )
    open_s: NonNegative = Field(
        default=0.05, description='delay from switching the current on until the brake is free'
    )


class ServoDriveConfig(ConfigBlock):
    """Servo amplifier and motor under torque command."""

    max_torque_N_m: Positive
    torque_step_N_m: Positive = Field(description='resolution of the torque reference')
    lag_s: Positive = Field(description='first-order time constant of the torque')
    brake: HoldingBrakeConfig = Field(
        default=HoldingBrakeConfig(), description='brake, used when drives are switched on and off'
    )


class PressureSensorConfig(ConfigBlock):
    """Pressure sensors of the chambers on their acquisition card."""

    noise_Pa: NonNegative = Field(description='standard deviation of one reading')
    offset_Pa: NonNegative = Field(
        description="standard deviation of the sensors' offsets, fixed in a run"
    )
    step_Pa: Positive = Field(description='resolution of the acquisition card')


class HydraulicPlantConfig(PlantBase):
    """The simulated arm with its axes."""

    IMMERSIBLE: ClassVar[bool] = True

    segments_per_section: int = Field(ge=2, le=20, default=5)
    base_tilt_deg: tuple[Angle, Angle] = Field(
        default=(0.0, 0.0), description='mounting error about base x and y'
    )
    sections: tuple[PlantHydraulicSection, ...] = Field(min_length=1)
    fabric: FabricConfig = FabricConfig()
    axis: HydraulicAxisConfig = Field(
        description='parameters of all axes, except their efficiencies'
    )
    efficiency_factors: tuple[Positive, ...] = Field(
        description="efficiency of each axis, relative to the axis's transmission_efficiency"
    )
    drive: ServoDriveConfig
    pressure_sensor: PressureSensorConfig
