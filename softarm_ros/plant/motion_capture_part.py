"""The part `sensors.motion_capture`: poses of the section tips, measured by cameras."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softarm_ros.geometry.parts import Part
from softarm_ros.plant.config import MocapConfig

if TYPE_CHECKING:
    from softarm_ros.plant.mocap import Mocap

PART = Part(
    'sensors',
    'motion_capture',
    MocapConfig,
    {'simulated': f'{__name__}:build'},
    'poses of the section tips at a fixed rate, with noise, delay and drop-outs',
)


def build(config: MocapConfig, seed: int) -> Mocap:
    """Return the sensor before its first frame; every random number follows from `seed`."""
    from softarm_ros.plant.mocap import Mocap

    return Mocap(config, seed)
