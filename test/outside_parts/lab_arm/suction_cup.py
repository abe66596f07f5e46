"""A gripper: a vacuum cup, connected to the DAQ in the same way as soft fingers."""

import math

from pydantic import Field

from softarm_ros.control.gripper import GripperConfig
from softarm_ros.drivers.gripper import GripperDriver
from softarm_ros.geometry.configs import Positive
from softarm_ros.geometry.parts import Part
from softarm_ros.plant.pneumatic.config import PlantGripperConfig
from softarm_ros.plant.pneumatic.gripper import Gripper
from softarm_ros.rigs.checks import check, checks_in
from softarm_ros.rigs.errors import Problem


class SimulatedCupConfig(PlantGripperConfig):
    cup_diameter_m: Positive = Field(description='of the sealed area')


class SimulatedCup(Gripper):
    def closes(self):
        return self.pressure_Pa < 0.0

    def is_open(self):
        return self.pressure_Pa >= -100.0

    def grip_N(self):
        return -self.pressure_Pa * math.pi / 4.0 * self.config.cup_diameter_m**2


class CupDriver(GripperDriver):
    pass


def build(config):
    return SimulatedCup(config)


def build_driver(config, daq):
    return CupDriver(config, daq)


@check('gripper')
def _vacuum_holds(rig):
    if rig.gripper.close_pressure_Pa >= 0.0:
        found = f'{rig.gripper.close_pressure_Pa:g}'
        yield Problem(('gripper', 'close_pressure_Pa'), 'expected less than 0: vacuum', found)


CHECKS = checks_in(globals())
PART = Part(
    'gripper',
    'lab_suction',
    GripperConfig,
    {'driver': f'{__name__}:build_driver', 'simulated': f'{__name__}:build'},
    'a cup that holds by vacuum',
    (f'{__name__}:CHECKS',),
    takes={
        'drives': 'softarm_ros.drivers.gripper_logic:GripperDriveConfig',
        'plant': f'{__name__}:SimulatedCupConfig',
    },
)
