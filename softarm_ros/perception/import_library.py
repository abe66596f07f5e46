"""Import of sensor libraries when they are needed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from softarm_ros.perception.sensor import SensorError
from softarm_ros.requirements import SENSING


def import_library(*modules: str) -> None:
    """Import modules; if one is missing, raise SensorError that says how to install it."""
    for module in modules:
        try:
            import_module(module)
        except ImportError as error:
            raise SensorError(
                f"{module} cannot be imported ({error}): pip install '{SENSING[module]}'"
            ) from error


def require_library(module: str) -> None:
    """Raise SensorError that says how to install it, if a subprocess's library is missing."""
    if find_spec(module) is None:
        raise SensorError(f"{module} is not installed: pip install '{SENSING[module]}'")
