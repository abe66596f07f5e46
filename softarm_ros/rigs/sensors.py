"""The sensors of a rig, from its `sensors` block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, PrivateAttr

from softarm_ros.control.pose_topic import KIND, PoseTopicConfig
from softarm_ros.geometry.configs import ConfigBlock


class Sensors(ConfigBlock):
    """
    Sensors of an arm by kind, each with its own fields: parts of the family `sensors`.

    `pose_topic` describes the poses that the control cycle takes, whichever node publishes them.
    The other sensors are devices, each with a driver.
    """

    model_config = ConfigDict(extra='allow')

    _poses: PoseTopicConfig | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, blocks: Mapping[str, ConfigBlock], poses: PoseTopicConfig) -> Sensors:
        """Return sensors from valid blocks, and the poses they produce."""
        given: dict[str, Any] = dict(blocks)
        made = cls.model_construct(**given)
        made._poses = poses
        return made

    @property
    def poses(self) -> PoseTopicConfig:
        """Poses that the control cycle takes."""
        assert self._poses is not None, 'made by `of`'
        return self._poses

    def devices(self) -> dict[str, Any]:
        """Return the configuration of every sensor that a driver reads, by kind."""
        given = self.__pydantic_extra__ or {}
        return {kind: block for kind, block in given.items() if kind != KIND}
