"""The real devices of a rig, from its `drives` block, and the order of their nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, PrivateAttr

from softarm_ros.geometry.configs import ConfigBlock

# In the order to start their nodes: devices that others need come first.
DEVICE_NAMES = ('daq', 'dynamixel', 'servo', 'steppers', 'valves')


class Devices(ConfigBlock):
    """
    Devices of an arm by name, each with its own fields.

    One of them takes the commands of the actuators: a part of the family `drives`. The others are
    used by that part or beside it; `rig_parts.py` knows which they are. A device that is not given
    is None.
    """

    model_config = ConfigDict(extra='allow')

    _driving: str = PrivateAttr(default='')

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @classmethod
    def of(cls, driving: str, blocks: dict[str, ConfigBlock | None]) -> Devices:
        """Return devices from valid blocks; `driving` names the one that drives."""
        given: dict[str, Any] = dict(blocks)
        made = cls.model_construct(**given)
        made._driving = driving
        return made

    @property
    def DRIVING(self) -> str:
        """Name of the device that takes the commands of the actuators."""
        return self._driving

    def blocks(self) -> dict[str, Any]:
        """Return the configuration of every device that this rig has, by name."""
        given = self.__pydantic_extra__ or {}
        return {name: block for name, block in given.items() if block is not None}

    @property
    def names(self) -> tuple[str, ...]:
        """Devices of this rig that have a node, in the order to start them."""
        given = self.blocks()
        known = tuple(name for name in DEVICE_NAMES if name in given)
        # A drive of another package.
        own = (self._driving,) if self._driving and self._driving not in known else ()
        return (*known, *own)
