"""softarm_ros: models, control and simulation of soft continuum arms, with thin ROS 2 nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softarm_ros.rigs.loader import load_rig

__all__ = ['load_rig']
__version__ = '0.1.0'


def __getattr__(name: str) -> Any:
    """Load the public names lazily, so that `import softarm_ros` stays cheap for every node."""
    if name == 'load_rig':
        from softarm_ros.rigs.loader import load_rig

        return load_rig
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
