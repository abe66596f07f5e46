"""The part `gripper.soft_fingers`: vacuum opens them, pressure closes them."""

from __future__ import annotations

from softarm_ros.control.gripper import GripperConfig
from softarm_ros.geometry.parts import Part

PART = Part(
    'gripper',
    'soft_fingers',
    GripperConfig,
    {
        'driver': 'softarm_ros.drivers.gripper:build',
        'simulated': 'softarm_ros.plant.pneumatic.gripper:build',
    },
    'soft fingers that vacuum opens and pressure closes',
    ('softarm_ros.rigs.gripper_checks:SOFT_FINGERS',),
    takes={
        'drives': 'softarm_ros.drivers.gripper_logic:GripperDriveConfig',
        'plant': 'softarm_ros.plant.pneumatic.config:SoftFingersConfig',
    },
)
