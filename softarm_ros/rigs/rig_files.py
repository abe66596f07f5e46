"""Locate rig files, without reading their fields."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from softarm_ros.home_path import HomeFolderError, expand_home
from softarm_ros.rigs.arguments import setting_options
from softarm_ros.rigs.errors import RigError, did_you_mean, listed
from softarm_ros.rigs.yaml_document import read_yaml
from softarm_ros.share_folder import share_folder

SUFFIXES = ('.yaml', '.yml')


@dataclass(frozen=True)
class RigInfo:
    """A rig that comes with the package."""

    name: str
    description: str
    path: Path


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
        return expand_path(name_or_path, 'rig')
    text = str(name_or_path)
    if is_path(text):
        return expand_path(text, 'rig')
    files = {path.stem: path for path in _rig_files()}
    if text in files:
        return files[text]
    if text and Path(text).is_dir():
        raise RigError(text, 'is a folder; expected a rig file (.yaml)')
    hint = did_you_mean(text, files)
    raise RigError('', f'unknown rig {text!r}{hint}; known: {listed(files)}, or a .yaml file')


def rig_arguments(name: str, source: Path | None, settings: Sequence[str]) -> str:
    """Return a rig on a command line: a built-in name or its file, and settings, quoted."""
    own = source is None or source in (path.resolve() for path in _rig_files())
    return shlex.join([name if own else str(source), *setting_options(settings)])


def expand_path(path: str | Path, name: str) -> Path:
    """Return a path with `~` replaced; RigError names `name` and the path if that has no home."""
    try:
        return expand_home(path, f'{name} = ')
    except HomeFolderError as error:
        raise RigError('', str(error)) from None


def is_path(text: str) -> bool:
    """Return whether a word that the user typed is a file rather than a built-in name."""
    separators = [os.sep, '/'] + ([os.altsep] if os.altsep else [])
    return (
        any(s in text for s in separators)
        or text.lower().endswith(SUFFIXES)
        or Path(text).is_file()
    )


def find_share_folder() -> Path:
    """
    Return the folder that holds config/, launch/ and urdf/.

    This is the repository for an editable installation, and share/softarm_ros under the
    installation prefix for wheels and for colcon.

    Raises
    ------
    RigError
        If neither exists; the message lists the folders searched.

    """
    try:
        return share_folder('config/rigs')
    except FileNotFoundError as error:
        raise RigError('', str(error)) from None


def _rig_files() -> list[Path]:
    return sorted((find_share_folder() / 'config' / 'rigs').glob('*.yaml'))
