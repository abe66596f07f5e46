"""How parts of the family `sensors` build what is read: late, and with a clear word."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from softarm_ros.perception.config import PoseSensorConfig

if TYPE_CHECKING:
    from softarm_ros.perception.sensor import PoseSensor


def sensor_builder(
    target: str, *, library: str = '', library_apart: str = ''
) -> Callable[[PoseSensorConfig, str], PoseSensor]:
    """
    Return a builder for the role `driver`.

    Parameters
    ----------
    target : str
        'module:Class', imported when a sensor is built.
    library : str
        Imported before it.
    library_apart : str
        That a process of the sensor's own needs; not imported here.

    """

    def build(config: PoseSensorConfig, frame_id: str) -> PoseSensor:
        """Return the sensor, not open; SensorError where its library is missing."""
        from softarm_ros.perception.import_library import import_library, require_library

        if library:
            import_library(library)
        if library_apart:
            require_library(library_apart)
        module, _, name = target.partition(':')
        sensor: PoseSensor = getattr(import_module(module), name)(config, frame_id)
        return sensor

    return build
