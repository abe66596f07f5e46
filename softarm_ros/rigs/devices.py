"""The real devices of a rig: what its `devices` block may hold, and where they are found."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from softarm_ros.geometry.configs import ConfigBlock

DeviceName = Literal['daq', 'servo', 'steppers', 'valves']
# In the order to start their nodes: those that others need come first.
DEVICE_NAMES: tuple[DeviceName, ...] = ('daq', 'servo', 'steppers', 'valves')


class Devices(ConfigBlock):
    """
    Devices of an arm. Each kind has its own class with fields among `DEVICE_NAMES`, and others
    that one of these devices carries.
    """

    # The one that takes the commands of the actuators.
    DRIVING: ClassVar[str] = ''

    def blocks(self) -> dict[str, Any]:
        """Return the configuration of every device that this rig has, by name."""
        given = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: block for name, block in given.items() if block is not None}

    @property
    def names(self) -> tuple[str, ...]:
        """Devices that this rig has a node for, in the order to start them."""
        known = tuple(name for name in DEVICE_NAMES if getattr(self, name, None) is not None)
        # A drive of another package.
        own = (self.DRIVING,) if self.DRIVING and self.DRIVING not in known else ()
        return (*known, *own)
