"""The part `sensors.pose_topic`: measured poses from a topic, whoever publishes it."""

from __future__ import annotations

from pydantic import Field

from softarm_ros.geometry.configs import TOPIC_NAME, ConfigBlock, NonNegative, PoseRate
from softarm_ros.geometry.parts import Part

KIND = 'pose_topic'


class PoseTopicConfig(ConfigBlock):
    """Properties of poses that reach the control cycle, from a driver in any package."""

    rate_hz: PoseRate = Field(description='how often poses arrive')
    delay_s: NonNegative = Field(
        default=0.01, description='from the exposure of a pose to its arrival'
    )
    position_noise_m: NonNegative = Field(
        default=2.0e-4,
        le=1.0,
        description='standard deviation of each coordinate of a pose at rest',
    )
    topic: str = Field(
        default='tip/pose',
        pattern=TOPIC_NAME,
        description='PoseStamped in the base frame, relative to the namespace of the rig',
    )

    @property
    def pose_topic(self) -> str:
        """The topic, relative to the namespace of the rig."""
        return self.topic


# No driver: another program, or another sensor of the rig, publishes the topic.
PART = Part('sensors', KIND, PoseTopicConfig, {}, 'poses of the tip on a topic, from anywhere')
