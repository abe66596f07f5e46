"""Loads the rig that a bag was recorded with, from the bag's metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.leftovers import temporary_folder
from softarm_ros.nodes.bag_messages import topics_of
from softarm_ros.nodes.bag_repair import about_of
from softarm_ros.rigs.arguments import settings_of
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import list_rigs, load_rig
from softarm_ros.rigs.rig_files import find_rig
from softarm_ros.rigs.schema import Rig
from softarm_ros.whole_file import write_text


def rig_without_bag(what: str, rig: str | None, settings: Sequence[str]) -> Rig:
    """
    Return the rig named by an argument that is not a bag; `rig`, the value of --rig, must be None.

    Raises
    ------
    UsageError
        If the argument names no rig, or `rig` is given.
    RigError
        If the rig file has mistakes.

    """
    if rig is not None:
        raise UsageError(f'--rig {rig}: {what} is not a bag; expected the folder of a recording')
    try:
        file = find_rig(what)
    except RigError as error:
        raise UsageError(f'{error}, or the folder of a recording') from None
    return load_rig(file, settings)


def recorded_rig(about: Mapping[str, str], folder: Path, settings: Sequence[str] = ()) -> Rig:
    """
    Return the rig of a bag; its rig file may be written to `folder`.

    If the original rig file is unchanged, it is loaded from its own path, so that files beside it
    are found. `settings` override those of the run.

    Raises
    ------
    RigError
        If the recorded rig file is not valid in this version.
    UsageError
        If the bag does not state its rig.

    """
    if 'rig_file' not in about:
        raise UsageError(
            'the bag does not state its rig: it was recorded neither by `softarm run --bag` or '
            '`softarm record` nor by `bag:=`'
        )
    path = Path(about.get('rig_path', ''))
    if not _holds(path, about['rig_file']):
        path = folder / f'{Path(about.get("rig", "recorded")).name}.yaml'
        write_text(path, about['rig_file'])
    try:
        return load_rig(path, [*settings_of([about.get('settings', '')]), *settings])
    except RigError as error:
        raise RigError('the rig file in the bag', error.problems) from None


def require_residual(rig: Rig, about: Mapping[str, str]) -> None:
    """Raise UsageError if the residual of a recorded rig, which is not in its bag, is missing."""
    try:
        rig.learned_residual()
    except RigError as error:
        raise UsageError(
            f'{error}\nA bag does not have the residual of its rig; expected it beside '
            f'{about.get("rig_path", "the rig file")}, and this file as it was recorded'
        ) from None


def rig_of_bag(
    bag: Path, named: str | None = None, settings: Sequence[str] = ()
) -> tuple[Rig, str]:
    """
    Return the rig to draw a bag with, and a text on its source: named, recorded or of the package.

    Parameters
    ----------
    bag : Path
        Folder or file of a recording.
    named : str, optional
        Name or file of a rig given by the user; it overrides the rig in the bag.
    settings : sequence of str
        `field=value`; they override the rig file and the settings of the run.

    Raises
    ------
    BagError
        If the bag cannot be read.
    RigError, UsageError
        If the rig file is invalid, or the bag has neither a rig file nor topics of a built-in rig.

    """
    if named is not None:
        return load_rig(named, settings), f'{named}, as named'
    topics, about = topics_of(bag), about_of(bag)
    if 'rig_file' not in about:
        name = _of_the_package(bag, topics)
        return load_rig(name, settings), f'{name} of the package; the bag holds no rig file'
    with temporary_folder() as folder:
        try:
            rig = recorded_rig(about, Path(folder), settings)
            rig.learned_residual()  # its file is not in the bag: check that it can be read
        except RigError as error:
            raise UsageError(f'{bag}: {error}\nName a rig: --rig RIG') from None
    stated = f' with {about["settings"]}' if about.get('settings') else ''
    return rig, f'{rig.name}, the rig file that was recorded{stated}'


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding='utf-8') == text
    except (OSError, UnicodeDecodeError):
        return False


def _of_the_package(bag: Path, topics: Iterable[str]) -> str:
    known = {info.name for info in list_rigs()}
    for topic in topics:
        name = topic.strip('/').split('/')[0]
        if name in known:
            return name
    raise UsageError(
        f'{bag}: no topics of a rig that comes with the package; it has '
        f'{", ".join(sorted(topics)) or "no topics"}. Name the rig: --rig RIG'
    )
