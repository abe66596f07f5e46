"""The sensors of a rig: what its `sensors` block holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, PrivateAttr

from softarm_ros.control.pose_topic import KIND, PoseTopicConfig
from softarm_ros.geometry.configs import ConfigBlock


class Sensors(ConfigBlock):
    """
    Sensors of an arm by kind, each with its own fields: parts of the family `sensors`.

    `pose_topic` says what poses the control cycle takes, whoever publishes them. The others are
    devices that a driver of theirs reads.
    """

    model_config = ConfigDict(extra='allow')

    _poses: PoseTopicConfig | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, blocks: Mapping[str, ConfigBlock], poses: PoseTopicConfig) -> Sensors:
        """Return sensors that are valid, and what poses they make."""
        given: dict[str, Any] = dict(blocks)
        made = cls.model_construct(**given)
        made._poses = poses
        return made

    @property
    def poses(self) -> PoseTopicConfig:
        """What poses the control cycle takes."""
        assert self._poses is not None, 'made by `of`'
        return self._poses

    def devices(self) -> dict[str, Any]:
        """Return the configuration of every sensor that a driver reads, by kind."""
        given = self.__pydantic_extra__ or {}
        return {kind: block for kind, block in given.items() if kind != KIND}
