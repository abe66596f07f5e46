"""Finding and loading rig files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from softarm_ros.rigs.errors import FieldPath, Problem, RigError, did_you_mean, listed
from softarm_ros.rigs.kinds import kind_of
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.settings import apply_settings
from softarm_ros.rigs.validation import validate_document
from softarm_ros.rigs.yaml_document import read_yaml
from softarm_ros.share_folder import share_folder

__all__ = ['Problem', 'RigError', 'RigInfo', 'find_share_folder', 'list_rigs', 'load_rig']

SUFFIXES = ('.yaml', '.yml')
RigT = TypeVar('RigT', bound=Rig)


@dataclass(frozen=True)
class RigInfo:
    """A rig that comes with the package."""

    name: str
    description: str
    path: Path


def load_rig(name_or_path: str | Path, settings: Sequence[str] = ()) -> Rig:
    """
    Load a rig by built-in name or from a file.

    A string is a path if it has a folder separator or the suffix .yaml, or if such a file exists;
    otherwise it is the name of a rig that comes with the package. `settings` are `field=value`,
    set over the file's own values before it is checked: `plant.mocap.delay_s=0.02`.

    Raises
    ------
    RigError
        With every problem of the file, or the names that are known.

    """
    path = find_rig(name_or_path)
    document = apply_settings(read_yaml(path), settings)
    rig: Rig = validate_document(kind_of(document), document, strip_trajectory_type)
    return rig.with_source(path.resolve(), settings)


def load_rig_of(kind: type[RigT], name_or_path: str | Path) -> RigT:
    """
    Load a rig that must be of one kind of arm.

    Raises
    ------
    RigError
        As `load_rig`, and for a rig of another kind.

    """
    rig = load_rig(name_or_path)
    if not isinstance(rig, kind):
        expected = kind.model_fields['kind'].default
        raise RigError('', f'rig {rig.name!r} is of kind {rig.kind!r}; expected {expected!r}')
    return rig


def list_rigs() -> list[RigInfo]:
    """Return the rigs that come with the package, sorted by name."""
    rigs = []
    for path in _rig_files():
        data = read_yaml(path).data
        rigs.append(RigInfo(path.stem, ' '.join(str(data.get('description', '')).split()), path))
    return rigs


def find_rig(name_or_path: str | Path) -> Path:
    """Return the file of a rig; see `load_rig`."""
    if isinstance(name_or_path, Path):
        return name_or_path.expanduser()
    text = str(name_or_path)
    if is_path(text):
        return Path(text).expanduser()
    files = {path.stem: path for path in _rig_files()}
    if text in files:
        return files[text]
    if Path(text).is_dir():
        raise RigError(text, 'is a folder; expected a rig file (.yaml)')
    hint = did_you_mean(text, files)
    raise RigError('', f'unknown rig {text!r}{hint}; known: {listed(files)}, or a .yaml file')


def is_path(text: str) -> bool:
    """Return whether a word of the user names a file rather than a built-in thing."""
    separators = [os.sep, '/'] + ([os.altsep] if os.altsep else [])
    return (
        any(s in text for s in separators)
        or text.lower().endswith(SUFFIXES)
        or Path(text).is_file()
    )


def find_share_folder() -> Path:
    """
    Return the folder that holds config/, launch/ and urdf/.

    That is the repository for an editable installation, and share/softarm_ros under the
    installation prefix for wheels and for colcon.

    Raises
    ------
    RigError
        If neither is there; says where was looked.

    """
    try:
        return share_folder('config/rigs')
    except FileNotFoundError as error:
        raise RigError('', str(error)) from None


def strip_trajectory_type(path: FieldPath) -> FieldPath:
    """Remove the union member's name from ('trajectories', name, type, field...)."""
    if len(path) > 2 and path[0] == 'trajectories' and path[2] != '[key]':
        return path[:2] + path[3:]
    return path


def _rig_files() -> list[Path]:
    return sorted((find_share_folder() / 'config' / 'rigs').glob('*.yaml'))
