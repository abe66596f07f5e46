"""A kind of arm: its soft sections may bend less than their cables could bend them."""

from typing import ClassVar

from pydantic import Field

from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.geometry.parts import Part
from softarm_ros.rigs.arms.cable_driven import PART as CABLE_DRIVEN
from softarm_ros.rigs.arms.cable_driven import CableArm


class CarefulArm(CableArm):
    KIND: ClassVar[str] = 'lab_careful'

    bending_share: float = Field(gt=0.0, le=1.0, description='of what its sections may bend')

    def configuration_limits(self):
        usual = super().configuration_limits()
        return ConfigurationLimits.of_bending(self.bending_share * usual.max_bending_rad)


PART = Part(
    'arm',
    CarefulArm.KIND,
    CarefulArm,
    CABLE_DRIVEN.builders,
    'soft sections that bend less than they could',
    CABLE_DRIVEN.checks,
)
