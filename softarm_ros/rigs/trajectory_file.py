"""Find and load trajectories by name or from a file."""

from __future__ import annotations

from pathlib import Path

from softarm_ros.control.trajectory_config import TrajectoryConfig
from softarm_ros.rigs.errors import RigError, did_you_mean, listed
from softarm_ros.rigs.rig_files import expand_path, find_share_folder, is_path
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.validation import validate_document
from softarm_ros.rigs.yaml_document import read_yaml


def load_trajectory_file(path: str | Path) -> TrajectoryConfig:
    """
    Load a trajectory file.

    Raises
    ------
    RigError
        With every problem of the file.

    """
    document = read_yaml(expand_path(path, 'trajectory'))
    trajectory: TrajectoryConfig = validate_document(TrajectoryConfig, document)
    return trajectory


def locate_trajectory(rig: Rig, trajectory: str | None) -> str | Path:
    """
    Return the name of a trajectory of the rig, or the path of a trajectory file.

    A name is looked up in the rig first, then among the files that come with the package.

    Raises
    ------
    RigError
        If there is no trajectory with that name; the message lists the known ones.

    """
    if trajectory is None:
        return rig.default_trajectory
    if trajectory in rig.trajectories:
        return trajectory
    if is_path(trajectory):
        return expand_path(trajectory, 'trajectory').resolve()
    shipped = {p.stem: p for p in (find_share_folder() / 'config' / 'trajectories').glob('*.yaml')}
    if trajectory in shipped:
        return shipped[trajectory]
    known = [*rig.trajectories, *sorted(set(shipped) - set(rig.trajectories))]
    hint = did_you_mean(trajectory, known)
    raise RigError(
        '', f'unknown trajectory {trajectory!r}{hint}; known: {listed(known)}, or a .yaml file'
    )


def resolve_trajectory(rig: Rig, trajectory: str | None = None) -> TrajectoryConfig:
    """Return a trajectory by name or file (see `locate_trajectory`); None: the rig's default."""
    located = locate_trajectory(rig, trajectory)
    if isinstance(located, Path):
        return load_trajectory_file(located)
    return rig.trajectories[located]
