"""Temporary files and folders whose names say which process uses them; what killed ones left."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path


@cache
def _space() -> str:
    """
    Return where process ids of this process count: in this boot and PID namespace.

    Other computers and containers may use the same folder. '' where it is not known.
    """
    try:
        boot = Path('/proc/sys/kernel/random/boot_id').read_text(encoding='ascii')
        return f'{boot[:8]}{Path("/proc/self/ns/pid").stat().st_ino:x}'
    except OSError:  # not Linux
        return ''


def mark() -> str:
    """Return a part of a name that stands for this process."""
    return f'{_space()}-{os.getpid()}'


def remove_leftovers(folder: Path, before: str, after: str) -> None:
    """
    Remove what this user's ended processes left in a folder.

    Parameters
    ----------
    folder
        Folder to look in.
    before, after
        Text before the `mark` in the names, and a regular expression of the rest.

    """
    if not _space():
        return
    pattern = re.compile(f'{re.escape(f"{before}{_space()}")}-([1-9][0-9]*){after}')
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            named = pattern.fullmatch(entry.name)
            if named is None or not _ended(int(named[1])):
                continue
            with contextlib.suppress(OSError):
                if entry.stat(follow_symlinks=False).st_uid != os.getuid():
                    continue
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    Path(entry.path).unlink()


def _ended(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def temporary_folder(within: Path | None = None) -> tempfile.TemporaryDirectory[str]:
    """
    Return a new temporary folder of this process; remove those that killed ones left.

    It is made within the given folder, by default the computer's for temporary files.
    """
    before, place = 'softarm-', within or Path(tempfile.gettempdir())
    remove_leftovers(place, before, r'-\w+')
    # What another process still adds to it at the end is a leftover, not an error.
    return tempfile.TemporaryDirectory(
        prefix=f'{before}{mark()}-', dir=place, ignore_cleanup_errors=True
    )
