"""Measured poses as they are, at the time they were measured."""

from __future__ import annotations

from softarm_ros.geometry.configs import ConfigBlock
from softarm_ros.geometry.parts import Part


class DirectConfig(ConfigBlock):
    """Nothing to set."""


# The control cycle itself takes poses so (`runtime/pose_intake.py`); there is nothing to build.
PART = Part('estimator', 'direct', DirectConfig, {}, 'measured poses as they are')
