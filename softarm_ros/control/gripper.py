"""Fields of a gripper at the tip that the controller uses."""

from __future__ import annotations

from pydantic import Field

from softarm_ros.geometry.configs import ConfigBlock, Finite, NonNegative, Timeout

# Name of the gripper's block in the files of a rig, its drives and its plant.
GRIPPER = 'gripper'
USUAL_GRIPPER = 'soft_fingers'


class GripperConfig(ConfigBlock):
    """
    A gripper at the tip that one pressure opens and another closes.

    The config of a part of the family `gripper` is this class or one derived from it.
    """

    kind: str = Field(
        default=USUAL_GRIPPER, description='kind of gripper (`softarm parts gripper`)'
    )
    open_pressure_Pa: Finite = Field(description='gauge; negative is vacuum')
    close_pressure_Pa: Finite = Field(description='gauge')
    action_s: Timeout = Field(default=0.5, description='duration of opening or closing')
    mass_kg: NonNegative = Field(default=0.0, description='mass, as known to the controller')
    volume_m3: NonNegative = Field(
        default=0.0, description='volume of the water that it displaces'
    )
    centre_m: NonNegative = Field(
        default=0.0, description='distance of its centre of mass beyond the tip'
    )
