"""Find and load tasks by name or from a file."""

from __future__ import annotations

from pathlib import Path

from softarm_ros.control.task_config import TaskConfig
from softarm_ros.rigs.errors import RigError, did_you_mean, listed
from softarm_ros.rigs.rig_files import expand_path, find_share_folder, is_path
from softarm_ros.rigs.validation import validate_document
from softarm_ros.rigs.yaml_document import read_yaml


def locate_task(task: str) -> Path:
    """
    Return the file of a task: one that comes with the package, or a path.

    Raises
    ------
    RigError
        If there is no task with that name; the message lists the known ones.

    """
    if is_path(task):
        return expand_path(task, 'task').resolve()
    shipped = {p.stem: p for p in (find_share_folder() / 'config' / 'tasks').glob('*.yaml')}
    if task in shipped:
        return shipped[task]
    hint = did_you_mean(task, shipped)
    raise RigError('', f'unknown task {task!r}{hint}; known: {listed(shipped)}, or a .yaml file')


def load_task(task: str) -> TaskConfig:
    """
    Load a task by name or from a file.

    Raises
    ------
    RigError
        With every problem of the file.

    """
    config: TaskConfig = validate_document(TaskConfig, read_yaml(locate_task(task)))
    return config
