"""The first part of a rig's default trajectory, for short runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import build_trajectory
from softarm_ros.whole_file import write_text

_POINTS = 11


def beginning(rig: Rig, length_m: float, folder: Path) -> str:
    """Write the first `length_m` of the default trajectory to a file; return its path."""
    path = build_trajectory(rig, None, 1).path.sample(2000)
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    wanted = np.linspace(0.0, min(length_m, along[-1]), _POINTS)
    points = np.array([np.interp(wanted, along, path[:, i]) for i in range(3)]).T
    file = folder / f'{rig.name}_beginning.yaml'
    speed = rig.trajectories[rig.default_trajectory].speed
    document = {'type': 'waypoints', 'points': points.tolist(), 'speed': speed, 'laps': 1}
    write_text(file, json.dumps(document))  # JSON is YAML
    return str(file)
