"""Builders for parts of the family `sensors`, with late imports and clear errors."""

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
        Library that the module needs, imported before it.
    library_apart : str
        Library that a subprocess of the sensor needs; it is not imported here.

    """

    def build(config: PoseSensorConfig, frame_id: str) -> PoseSensor:
        """Return the closed sensor; raise SensorError if its library is missing."""
        from softarm_ros.perception.import_library import import_library, require_library

        if library:
            import_library(library)
        if library_apart:
            require_library(library_apart)
        module, _, name = target.partition(':')
        sensor: PoseSensor = getattr(import_module(module), name)(config, frame_id)
        return sensor

    return build
